/*
 * Activations that are no clamp, written once for every instruction set (isa.h). All cases of a
 * value are computed and one is chosen. Plain loops are those that the compiler turns into vectors.
 */
#include "backend/cpu/access.h"
#include "backend/cpu/pointwise/curves.h"
#include "backend/cpu/pointwise/powers_body.h"

LANES_INLINE void hswish_block(const float *x, float *y, const enum access access, int n)
{
    const lanes three = lanes_all(3.0f), z = get(x, access, n);
    lanes middle = lanes_divide(lanes_multiply(z, lanes_add(z, three)), lanes_all(6.0f));
    lanes upper = lanes_at_most(three, z, z, middle);
    put(y, lanes_at_most(z, lanes_all(-3.0f), lanes_all(0.0f), upper), access, n);
}

static void hswish(const float *x, int64_t n, float *y)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        hswish_block(x + i, y + i, ACCESS_WHOLE, LANES);
    if (i < n)
        hswish_block(x + i, y + i, ACCESS_PART, (int)(n - i));
}

LANES_INLINE void hswish_backward_block(const float *dy, const float *x, float *dx,
                                        const enum access access, int n)
{
    const lanes three = lanes_all(3.0f), z = get(x, access, n);
    lanes middle =
        lanes_divide(lanes_add(lanes_multiply(lanes_all(2.0f), z), three), lanes_all(6.0f));
    lanes upper = lanes_at_most(three, z, lanes_all(1.0f), middle);
    lanes slope = lanes_at_most(z, lanes_all(-3.0f), lanes_all(0.0f), upper);
    put(dx, lanes_multiply(get(dy, access, n), slope), access, n);
}

static void hswish_backward(const float *dy, const float *x, int64_t n, float *dx)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        hswish_backward_block(dy + i, x + i, dx + i, ACCESS_WHOLE, LANES);
    if (i < n)
        hswish_backward_block(dy + i, x + i, dx + i, ACCESS_PART, (int)(n - i));
}

static void sigmoid(const float *restrict x, int64_t n, float *restrict y)
{
    double power[POWERS_MOST];
    for (int64_t at = 0; at < n; at += POWERS_MOST) {
        const int part = n - at < POWERS_MOST ? (int)(n - at) : POWERS_MOST;
        for (int i = 0; i < part; i++)
            power[i] = -(double)x[at + i];
        powers(power, part);
        for (int i = 0; i < part; i++)
            y[at + i] = (float)(1.0 / (1.0 + power[i]));
    }
}

static void sigmoid_backward(const float *restrict dy, const float *restrict y, int64_t n,
                             float *restrict dx)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * y[i] * (1.0f - y[i]);
}

const struct tdmi_curve_kernels TDMI_THIS_ISA(tdmi_curve) = {hswish, hswish_backward, sigmoid,
                                                             sigmoid_backward};

/* curves.cu: hswish and sigmoid with their slopes, of every type, whole vectors or not, aligned or
 * not; where they bend, and far out. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/curves.h"

static double curve(enum tdmi_act act, double x)
{
    if (act == TDMI_ACT_SIGMOID)
        return 1.0 / (1.0 + exp(-x));
    return x <= -3.0 ? 0.0 : x >= 3.0 ? x : x * (x + 3.0) / 6.0;
}

/* Of what is kept: sigmoid's output, hswish's input. */
static double slope(enum tdmi_act act, double kept)
{
    if (act == TDMI_ACT_SIGMOID)
        return kept * (1.0 - kept);
    return kept <= -3.0 ? 0.0 : kept >= 3.0 ? 1.0 : (2.0 * kept + 3.0) / 6.0;
}

static void run(enum tdmi_dtype type, enum tdmi_act act, int64_t n, int off)
{
    static const float odd[] = {-3.0f, 3.0f, 0.0f, -200.0f, 200.0f, -2.75f};
    void *blocks[4];
    void *x = tensor(type, n, off, 1, &blocks[0]), *dy = tensor(type, n, off, 2, &blocks[1]);
    void *y = tensor(type, n, off, 0, &blocks[2]), *dx = tensor(type, n, off, 0, &blocks[3]);
    const void *kept = act == TDMI_ACT_SIGMOID ? y : x;
    for (int64_t i = 0; i < 6 && i < n; i++)
        put_value(x, type, i, odd[i]);
    assert_int_equal(tdmi_cuda_curve(NULL, type, act, x, y, n), 0);
    assert_int_equal(tdmi_cuda_curve_gradient(NULL, type, act, kept, dy, dx, n), 0);
    for (int64_t i = 0; i < n; i++) {
        const double wanted = curve(act, value_at(x, type, i));
        const double back = slope(act, value_at(kept, type, i)) * value_at(dy, type, i);
        expect_near(value_at(y, type, i), wanted, step_of(type, fabs(wanted)), "y", i);
        expect_near(value_at(dx, type, i), back, step_of(type, fabs(back)), "dx", i);
    }
    assert_int_equal(tdmi_cuda_curve_gradient(NULL, type, act, kept, dy, dy, n), 0);
    for (int64_t i = 0; i < n; i++) /* where the gradient was */
        expect_near(value_at(dy, type, i), value_at(dx, type, i), 0.0, "dx in place", i);
    for (int i = 0; i < 4; i++)
        tdmi_free(blocks[i]);
}

void case_curves(void **state)
{
    static const struct {
        int64_t n;
        int off;
    } sizes[] = {{1, 0}, {7, 0}, {8, 0}, {2053, 0}, {300, 1}};
    float one = 1.0f;
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int s = 0; s < 5; s++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = s % 2 == 1});
            run(float_types[t], TDMI_ACT_HSWISH, sizes[s].n, sizes[s].off);
            run(float_types[t], TDMI_ACT_SIGMOID, sizes[s].n, sizes[s].off);
        }
    assert_int_equal(tdmi_cuda_curve(NULL, TDMI_DTYPE_F32, TDMI_ACT_RELU, &one, &one, 1), 1);
    assert_int_equal(tdmi_cuda_curve(NULL, TDMI_DTYPE_U8, TDMI_ACT_HSWISH, &one, &one, 1), 1);
}

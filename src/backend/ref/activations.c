/*
 * Activations. Backward of hswish reads the input; that of the others reads the output, so that the
 * input need not live so long.
 *
 *     relu     max(x, 0)                       relu6    min(max(x, 0), 6)
 *     sigmoid  1 / (1 + exp(-x)), whose slope is y (1 - y)
 *     hswish   x · min(max(x + 3, 0), 6) / 6, whose slope is 0 up to -3, (2x + 3) / 6 to 3, then 1
 */
#include "backend/ref/ref.h"

#include <math.h>

static float relu(float x)
{
    return x > 0.0f ? x : 0.0f;
}

static float relu_gradient(float dy, float y)
{
    return y > 0.0f ? dy : 0.0f;
}

static float relu6(float x)
{
    float above = x > 0.0f ? x : 0.0f;
    return above < 6.0f ? above : 6.0f;
}

static float relu6_gradient(float dy, float y)
{
    return y > 0.0f && y < 6.0f ? dy : 0.0f;
}

static float sigmoid(float x)
{
    return (float)(1.0 / (1.0 + exp(-(double)x)));
}

static float sigmoid_gradient(float dy, float y)
{
    return dy * y * (1.0f - y);
}

static float hswish(float x)
{
    if (x <= -3.0f)
        return 0.0f;
    return x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;
}

static float hswish_gradient(float dy, float x)
{
    if (x <= -3.0f)
        return dy * 0.0f;
    return dy * (x >= 3.0f ? 1.0f : (2.0f * x + 3.0f) / 6.0f);
}

/* The kernel of an activation; its gradient reads call->x[0] or call->y. */
#define ACTIVATION(name, reads)                                                  \
    TDMI_KERNEL_RUN(name##_forward)                                              \
    {                                                                            \
        int64_t n = call->n * tdmi_shape_values(desc->out);                      \
        for (int64_t i = 0; i < n; i++)                                          \
            call->y[i] = name(call->x[0][i]);                                    \
    }                                                                            \
    TDMI_KERNEL_RUN(name##_backward)                                             \
    {                                                                            \
        int64_t n = desc->wants_dx ? call->n * tdmi_shape_values(desc->out) : 0; \
        for (int64_t i = 0; i < n; i++)                                          \
            call->dx[0][i] = name##_gradient(call->dy[i], (reads)[i]);           \
    }                                                                            \
    const struct tdmi_kernel tdmi_ref_##name = {                                 \
        .forward = name##_forward, .backward = name##_backward, TDMI_SHARES_IMAGES}

ACTIVATION(relu, call->y);
ACTIVATION(relu6, call->y);
ACTIVATION(sigmoid, call->y);
ACTIVATION(hswish, call->x[0]);

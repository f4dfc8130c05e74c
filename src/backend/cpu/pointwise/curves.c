/* Ops of backend cpu that are activations but no clamp: hswish and sigmoid. */
#include "backend/cpu/pointwise/curves.h"
#include "backend/cpu/cpu.h"

TDMI_TABLE_OF(const struct tdmi_curve_kernels *tdmi_curve_kernels, tdmi_curve)

static const struct tdmi_curve_kernels *kernels(void)
{
    return tdmi_curve_kernels(tdmi_isa_best());
}

static int64_t values_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    return call->n * tdmi_shape_values(desc->out);
}

TDMI_KERNEL_RUN(hswish_forward)
{
    kernels()->hswish(call->x[0], values_of(desc, call), call->y);
}

TDMI_KERNEL_RUN(hswish_backward)
{
    if (desc->wants_dx)
        kernels()->hswish_backward(call->dy, call->x[0], values_of(desc, call), call->dx[0]);
}

TDMI_KERNEL_RUN(sigmoid_forward)
{
    kernels()->sigmoid(call->x[0], values_of(desc, call), call->y);
}

TDMI_KERNEL_RUN(sigmoid_backward)
{
    if (desc->wants_dx)
        kernels()->sigmoid_backward(call->dy, call->y, values_of(desc, call), call->dx[0]);
}

const struct tdmi_kernel tdmi_cpu_hswish = {.forward = hswish_forward, .backward = hswish_backward};
const struct tdmi_kernel tdmi_cpu_sigmoid = {.forward = sigmoid_forward,
                                             .backward = sigmoid_backward};

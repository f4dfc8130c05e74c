/*
 * Dense layers in training whose images become lanes (dense_lanes.h): sizes, and the kernel of the
 * op. It runs groups that fill the lanes, where the weights stay in the second cache: a rule of the
 * shape.
 */
#include "backend/cpu/gemm/dense_lanes.h"
#include "backend/cpu/cpu.h"

/* Larger groups and weights are for products that read a weight once for many images. */
enum { MOST_VECTORS = 2, MOST_WEIGHTS = 1 << 16 };

TDMI_TABLE_OF(const struct tdmi_dense_lanes_kernels *tdmi_dense_lanes_kernels, tdmi_dense_lanes)

static int64_t whole(int64_t n, int unit)
{
    return (n + unit - 1) / unit * unit;
}

struct tdmi_dense_scratch tdmi_dense_lanes_scratch(const struct tdmi_dense_lanes *desc,
                                                   void *workspace)
{
    const int lanes = tdmi_dense_lanes_kernels(desc->isa)->lanes;
    const int64_t in = desc->in, out = desc->out, images = whole(desc->max_images, lanes);
    struct tdmi_dense_scratch scratch = {.row = (int)whole(out, lanes)};
    scratch.x = tdmi_cpu_take(workspace, &scratch.total, in * images);
    scratch.dy = tdmi_cpu_take(workspace, &scratch.total, out * lanes);
    scratch.result = tdmi_cpu_take(workspace, &scratch.total, (in > out ? in : out) * lanes);
    scratch.rows = tdmi_cpu_take(workspace, &scratch.total, scratch.row * images);
    return scratch;
}

size_t tdmi_dense_lanes_workspace_bytes(const struct tdmi_dense_lanes *desc)
{
    return sizeof(float) * (size_t)tdmi_dense_lanes_scratch(desc, NULL).total;
}

/* ---- the kernel of the op ---- */

static struct tdmi_dense_lanes lanes_of(const struct tdmi_op_desc *desc)
{
    return (struct tdmi_dense_lanes){(int)tdmi_shape_values(desc->in[0]), desc->out.c,
                                     desc->max_images, tdmi_isa_best()};
}

static bool can_run(const struct tdmi_op_desc *desc)
{
    const struct tdmi_dense_lanes dense = lanes_of(desc);
    const int lanes = tdmi_dense_lanes_kernels(dense.isa)->lanes;
    return desc->is_training && dense.isa >= TDMI_ISA_AVX2 && desc->max_images >= lanes &&
           desc->max_images <= MOST_VECTORS * lanes &&
           (int64_t)dense.in * dense.out <= MOST_WEIGHTS;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_dense_lanes dense = lanes_of(desc);
    needs->workspace_bytes = tdmi_dense_lanes_workspace_bytes(&dense);
}

TDMI_KERNEL_RUN(forward)
{
    const struct tdmi_dense_lanes dense = lanes_of(desc);
    tdmi_dense_lanes_kernels(dense.isa)->forward(
        &dense, &(struct tdmi_dense_call){
                    .n = call->n,
                    .x = call->x[0],
                    .weights = call->params[0],
                    .bias = desc->attrs.has_bias ? call->params[1] : NULL,
                    .y = call->y,
                    .workspace = call->workspace,
                });
}

TDMI_KERNEL_RUN(backward)
{
    const struct tdmi_dense_lanes dense = lanes_of(desc);
    tdmi_dense_lanes_kernels(dense.isa)->backward(
        &dense, &(struct tdmi_dense_call){
                    .n = call->n,
                    .x = call->x[0],
                    .weights = call->params[0],
                    .dy = call->dy,
                    .dweights = call->dparams[0],
                    .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
                    .dx = desc->wants_dx ? call->dx[0] : NULL,
                    .workspace = call->workspace,
                });
}

const struct tdmi_kernel tdmi_dense_by_lanes = {
    .can_run = can_run, .needs = needs, .forward = forward, .backward = backward};

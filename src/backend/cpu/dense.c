/*
 * Dense layers of backend cpu: pictures as lanes (dense_lanes.h) where a shard of training fills
 * them and the weights stay in the second cache; else what the build has for all of them. A fixed
 * rule of the shape.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm/dense_lanes.h"
#include "base/scope.h"

/* Larger shards and weights are for products that read a weight once for many pictures. */
enum { MOST_VECTORS = 2, MOST_WEIGHTS = 1 << 16 };

/* Kernel dense_lanes, or the prepared desc of the other kernel. */
struct chosen {
    bool is_by_lanes;
    struct tdmi_dense_lanes lanes;
    struct tdmi_op_desc desc;
};

static struct tdmi_dense_lanes lanes_of(const struct tdmi_op_desc *desc)
{
    return (struct tdmi_dense_lanes){(int)tdmi_shape_values(desc->in[0]), desc->out.c,
                                     desc->max_images, tdmi_isa_best()};
}

static bool is_for_lanes(const struct tdmi_op_desc *desc)
{
    const struct tdmi_dense_lanes dense = lanes_of(desc);
    const int lanes = tdmi_dense_lanes_count(dense.isa);
    return desc->is_training && dense.isa >= TDMI_ISA_AVX2 && desc->max_images >= lanes &&
           desc->max_images <= MOST_VECTORS * lanes &&
           (int64_t)dense.in * dense.out <= MOST_WEIGHTS;
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    const struct tdmi_kernel *other = tdmi_cpu_dense_of_any_shape();
    TDMI_AT_END(tdmi_free_at) struct chosen *chosen = NULL;
    TDMI_TRY(TDMI_NEW(chosen, 1, err));
    chosen->is_by_lanes = is_for_lanes(desc);
    chosen->lanes = lanes_of(desc);
    chosen->desc = *desc;
    if (!chosen->is_by_lanes && other->prepare)
        TDMI_TRY(other->prepare(desc, &chosen->desc.prepared, err));
    *prepared = tdmi_take(&chosen);
    return TDM_OK;
}

static void release(void *prepared)
{
    struct chosen *chosen = prepared;
    if (chosen && chosen->desc.prepared)
        tdmi_cpu_dense_of_any_shape()->release(chosen->desc.prepared);
    tdmi_free(chosen);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct chosen *chosen = desc->prepared;
    if (chosen->is_by_lanes)
        needs->workspace_bytes = tdmi_dense_lanes_workspace_bytes(&chosen->lanes);
    else
        *needs = tdmi_kernel_needs_of(tdmi_cpu_dense_of_any_shape(), &chosen->desc);
}

static struct tdmi_dense_call call_of(const struct tdmi_op_desc *desc,
                                      const struct tdmi_op_call *call)
{
    return (struct tdmi_dense_call){.n = call->n,
                                    .x = call->x[0],
                                    .weights = call->params[0],
                                    .bias = desc->attrs.has_bias ? call->params[1] : NULL,
                                    .y = call->y,
                                    .dy = call->dy,
                                    .dweights = call->dparams[0],
                                    .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
                                    .dx = desc->wants_dx ? call->dx[0] : NULL,
                                    .workspace = call->workspace};
}

TDMI_KERNEL_RUN(forward)
{
    const struct chosen *chosen = desc->prepared;
    const struct tdmi_dense_call own = call_of(desc, call);
    if (chosen->is_by_lanes)
        tdmi_dense_lanes_forward(&chosen->lanes, &own);
    else
        tdmi_cpu_dense_of_any_shape()->forward(stream, &chosen->desc, call);
}

TDMI_KERNEL_RUN(backward)
{
    const struct chosen *chosen = desc->prepared;
    const struct tdmi_dense_call own = call_of(desc, call);
    if (chosen->is_by_lanes)
        tdmi_dense_lanes_backward(&chosen->lanes, &own);
    else
        tdmi_cpu_dense_of_any_shape()->backward(stream, &chosen->desc, call);
}

const struct tdmi_kernel tdmi_cpu_dense = {.prepare = prepare,
                                           .release = release,
                                           .needs = needs,
                                           .forward = forward,
                                           .backward = backward};

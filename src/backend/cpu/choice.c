/*
 * The choice of a kernel for a convolution or a dense layer of backend cpu. The first kernel of the
 * list (registry.c) that can do all of the desc runs it, so that the same network gives the same
 * bits on every run; bench/results/cpu.md has the measurements behind the order. Only oneDNN may
 * refuse later, when the desc is prepared.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/cpu.h"
#include "base/team.h"
#include "base/scope.h"

#include <stdio.h>

/* A kernel and the desc it was prepared for. */
struct chosen {
    const struct tdmi_kernel *kernel;
    struct tdmi_op_desc desc;
};

static bool is_alone(const struct tdmi_op_fusion *fusion)
{
    return !fusion->folds_norm && !fusion->adds_residual && fusion->act == TDMI_ACT_NONE &&
           !fusion->gives_sums && !fusion->reads_gradient_form && !fusion->in[0].has_norm &&
           fusion->in[0].act == TDMI_ACT_NONE && fusion->pool == 0;
}

static bool carries(const struct tdmi_kernel *kernel, const struct tdmi_op_desc *desc)
{
    bool pools = desc->fusion.pool == 0 || kernel == &tdmi_conv_by_thin;
    return is_alone(&desc->fusion) || (pools && kernel->can_fuse && kernel->can_fuse(desc));
}

/* The first of the list that can do everything in the desc, or its end. */
static const struct tdmi_kernel *const *next(const struct tdmi_kernel *const *kernels,
                                             const struct tdmi_op_desc *desc)
{
    for (; *kernels; kernels++) {
        bool runs = !(*kernels)->can_run || (*kernels)->can_run(desc);
        if (runs && carries(*kernels, desc))
            break;
    }
    return kernels;
}

static const struct tdmi_kernel *choose(const struct tdmi_op_desc *desc)
{
    return *next(tdmi_cpu_kernels_of(desc->kind), desc);
}

static bool can(const struct tdmi_op_desc *desc)
{
    return choose(desc) != NULL;
}

tdm_status tdmi_cpu_prepare_first(const struct tdmi_kernel *const *kernels,
                                  struct tdmi_op_desc *desc, const struct tdmi_kernel **kernel,
                                  tdm_error *err)
{
    for (kernels = next(kernels, desc); *kernels; kernels = next(kernels + 1, desc)) {
        tdm_status status = TDM_OK;
        *kernel = *kernels;
        if ((*kernels)->prepare)
            status = (*kernels)->prepare(desc, &desc->prepared, err);
        if (status != TDM_E_ABSENT || !*next(kernels + 1, desc))
            return status;
    }
    return TDM_FAIL(err, TDM_E_ABSENT, "preparing a layer: no kernel can run it");
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct chosen *chosen = NULL;
    TDMI_TRY(TDMI_NEW(chosen, 1, err));
    chosen->desc = *desc;
    TDMI_TRY(tdmi_cpu_prepare_first(tdmi_cpu_kernels_of(desc->kind), &chosen->desc, &chosen->kernel,
                                    err));
    *prepared = tdmi_take(&chosen);
    return TDM_OK;
}

static void release(void *prepared)
{
    struct chosen *chosen = prepared;
    if (!chosen)
        return;
    if (chosen->desc.prepared)
        chosen->kernel->release(chosen->desc.prepared);
    tdmi_free(chosen);
}

/* A convolution's kernel that only writes dx gets memory to write it to, and the sum is made here.
 */
static bool has_spill(const struct chosen *chosen)
{
    return chosen->desc.kind == TDMI_OP_CONV && chosen->desc.is_training && chosen->desc.wants_dx &&
           !chosen->kernel->adds_dx;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct chosen *chosen = desc->prepared;
    *needs = tdmi_kernel_needs_of(chosen->kernel, &chosen->desc);
    if (has_spill(chosen))
        needs->workspace_bytes =
            tdmi_cpu_lines(needs->workspace_bytes) +
            (size_t)desc->max_images * (size_t)tdmi_shape_values(desc->in[0]) * sizeof(float);
}

/* A kernel is one for all directions. */
static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *algorithms)
{
    const struct chosen *chosen = desc->prepared;
    if (chosen->kernel->algorithm)
        snprintf(algorithms->forward.by, sizeof algorithms->forward.by, "%s",
                 chosen->kernel->algorithm);
    if (desc->is_training)
        algorithms->of_weights = algorithms->forward;
    if (desc->is_training && desc->wants_dx)
        algorithms->of_input = algorithms->forward;
}

TDMI_KERNEL_PACK(pack)
{
    const struct chosen *chosen = desc->prepared;
    if (chosen->kernel->pack)
        chosen->kernel->pack(stream, &chosen->desc, call);
}

TDMI_KERNEL_RUN(forward)
{
    const struct chosen *chosen = desc->prepared;
    tdmi_kernel_run_shared(chosen->kernel->forward, chosen->kernel->shares_forward, stream,
                           &chosen->desc, call);
}

static void run_backward(const struct chosen *chosen, tdmi_stream *stream,
                         const struct tdmi_op_call *call)
{
    tdmi_kernel_run_shared(chosen->kernel->backward, chosen->kernel->shares_backward, stream,
                           &chosen->desc, call);
}

TDMI_KERNEL_RUN(backward)
{
    const struct chosen *chosen = desc->prepared;
    if (!call->dx_add[0] || !has_spill(chosen)) {
        run_backward(chosen, stream, call);
        return;
    }
    const struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(chosen->kernel, &chosen->desc);
    const int64_t image = tdmi_shape_values(desc->in[0]);
    struct tdmi_op_call spilled = *call;
    float *spill = (float *)((char *)call->workspace + tdmi_cpu_lines(needs.workspace_bytes));
    spilled.dx[0] = spill;
    run_backward(chosen, stream, &spilled);
    tdmi_member_wait(call->member);
    const struct tdmi_share mine = tdmi_member_share(call->member, call->n);
    for (int64_t i = mine.first * image; i < mine.end * image; i++)
        call->dx[0][i] = call->dx_add[0][i] + spill[i];
}

/* ---- chains --------------------------------------------------------------------------------- */

/* Called before preparing: these kernels are our own and never absent. */
static bool is_product(const struct tdmi_op_desc *desc)
{
    const struct tdmi_kernel *kernel = choose(desc);
    return kernel == &tdmi_conv_by_gemm || kernel == &tdmi_conv_by_gemm_if_best;
}

static bool can_chain(const struct tdmi_op_desc *const *links, int n)
{
    return choose(links[n - 2]) == &tdmi_conv_by_depthwise && is_product(links[n - 1]) &&
           (n == 2 || is_product(links[0])) && tdmi_conv_chain_is_for(links, n);
}

static void forward_chain(tdmi_stream *stream TDMI_UNUSED, const struct tdmi_op_desc *const *links,
                          const struct tdmi_op_call *calls, int n)
{
    const struct tdmi_op_desc *prepared[TDMI_CHAIN_LINKS];
    for (int i = 0; i < n; i++)
        prepared[i] = &((const struct chosen *)links[i]->prepared)->desc;
    tdmi_conv_chain_forward(prepared, calls, n);
}

static const struct tdmi_chain_table chains = {can_chain, tdmi_conv_chain_workspace_bytes,
                                               forward_chain};

const struct tdmi_kernel tdmi_cpu_conv = {
    .can_run = can,
    .can_fuse = can,
    .adds_dx = true,
    .shares_forward = TDMI_SHARING_OWN,
    .shares_backward = TDMI_SHARING_OWN,
    .prepare = prepare,
    .release = release,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
    .chain = &chains,
};

const struct tdmi_kernel tdmi_cpu_dense = {.shares_forward = TDMI_SHARING_OWN,
                                           .shares_backward = TDMI_SHARING_OWN,
                                           .prepare = prepare,
                                           .release = release,
                                           .needs = needs,
                                           .forward = forward,
                                           .backward = backward};

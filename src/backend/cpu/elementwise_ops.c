/*
 * Ops of backend cpu that are passes over whole tensors: add, relu, relu6, global_pool, and the
 * updates a step ends with. What a desc and a call mean in terms of elementwise.h.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise.h"

static const struct tdmi_elementwise_kernels *kernels(void)
{
    return tdmi_elementwise_kernels(tdmi_isa_best());
}

/* ---- what they carry --------------------------------------------------------------------------
 */

static bool is_clamp(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

/* Forms of inputs, in training. */
static bool can_read(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    bool has_more = fusion->folds_norm || fusion->adds_residual || fusion->gives_sums ||
                    fusion->reads_gradient_form || fusion->is_virtual;
    return !has_more && is_clamp(fusion->in[0].act) && is_clamp(fusion->in[1].act);
}

static bool can_only_read(const struct tdmi_op_desc *desc)
{
    return can_read(desc) && desc->fusion.act == TDMI_ACT_NONE;
}

static bool can_read_and_activate(const struct tdmi_op_desc *desc)
{
    return can_read(desc) && is_clamp(desc->fusion.act);
}

static struct tdmi_read_form form_of(const struct tdmi_op_desc *desc,
                                     const struct tdmi_op_call *call, int k)
{
    struct tdmi_read_form form = {NULL, NULL, desc->fusion.in[k].act};
    if (desc->fusion.in[k].has_norm) {
        form.scale = call->in_norm[k].scale;
        form.shift = call->in_norm[k].shift;
    }
    return form;
}

static struct tdmi_backward_sums sums_of(const struct tdmi_op_desc *desc,
                                         const struct tdmi_op_call *call, int k)
{
    double *sums = call->dx_sums[k];
    if (!sums)
        return (struct tdmi_backward_sums){NULL, NULL, NULL};
    return (struct tdmi_backward_sums){call->in_norm[k].mean, sums, sums + desc->in[k].c};
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    (void)desc;
    (void)needs; /* none */
}

/* The gradient of input k of y = act(sum of inputs). */
static void backward_of_input(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                              int k, enum tdmi_act act)
{
    if (!call->dx[k])
        return;
    const struct tdmi_combine_gradient work = {.pixels = call->n * tdmi_shape_pixels(desc->out),
                                               .channels = desc->out.c,
                                               .dy = call->dy,
                                               .y = act == TDMI_ACT_NONE ? NULL : call->y,
                                               .act = act,
                                               .x = call->x[k],
                                               .form = form_of(desc, call, k),
                                               .dx = call->dx[k],
                                               .add = call->dx_add[k],
                                               .sums = sums_of(desc, call, k)};
    kernels()->combine_backward(&work);
}

/* ---- add --------------------------------------------------------------------------------------
 */

static void add_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    (void)stream;
    kernels()->combine(&(struct tdmi_combine){
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
        .x = {call->x[0], call->x[1]},
        .form = {form_of(desc, call, 0), form_of(desc, call, 1)},
        .act = desc->fusion.act,
        .y = call->y,
    });
}

static void add_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    (void)stream;
    backward_of_input(desc, call, 0, TDMI_ACT_NONE);
    backward_of_input(desc, call, 1, TDMI_ACT_NONE);
}

const struct tdmi_kernel tdmi_cpu_add = {
    .can_fuse = can_read_and_activate,
    .adds_dx = true,
    .needs = needs,
    .forward = add_forward,
    .backward = add_backward,
};

/* ---- relu, relu6 ------------------------------------------------------------------------------
 */

static enum tdmi_act act_of(const struct tdmi_op_desc *desc)
{
    return desc->kind == TDMI_OP_RELU6 ? TDMI_ACT_RELU6 : TDMI_ACT_RELU;
}

static void activation_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                               const struct tdmi_op_call *call)
{
    (void)stream;
    kernels()->combine(&(struct tdmi_combine){
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
        .x = {call->x[0], NULL},
        .form = {form_of(desc, call, 0), {NULL, NULL, TDMI_ACT_NONE}},
        .act = act_of(desc),
        .y = call->y,
    });
}

static void activation_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                const struct tdmi_op_call *call)
{
    (void)stream;
    backward_of_input(desc, call, 0, act_of(desc));
}

const struct tdmi_kernel tdmi_cpu_activation = {
    .can_fuse = can_only_read,
    .adds_dx = true,
    .needs = needs,
    .forward = activation_forward,
    .backward = activation_backward,
};

/* ---- global pooling ---------------------------------------------------------------------------
 */

static struct tdmi_global_pool pool_of(const struct tdmi_op_desc *desc,
                                       const struct tdmi_op_call *call)
{
    return (struct tdmi_global_pool){.n = call->n,
                                     .pixels = tdmi_shape_pixels(desc->in[0]),
                                     .channels = desc->in[0].c,
                                     .x = call->x[0],
                                     .form = form_of(desc, call, 0),
                                     .y = call->y,
                                     .dy = call->dy,
                                     .dx = call->dx[0],
                                     .add = call->dx_add[0],
                                     .sums = sums_of(desc, call, 0)};
}

static void global_pool_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                const struct tdmi_op_call *call)
{
    const struct tdmi_global_pool work = pool_of(desc, call);
    (void)stream;
    kernels()->global_pool(&work);
}

static void global_pool_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                 const struct tdmi_op_call *call)
{
    const struct tdmi_global_pool work = pool_of(desc, call);
    (void)stream;
    if (work.dx)
        kernels()->global_pool_backward(&work);
}

const struct tdmi_kernel tdmi_cpu_global_pool = {
    .can_fuse = can_only_read,
    .adds_dx = true,
    .needs = needs,
    .forward = global_pool_forward,
    .backward = global_pool_backward,
};

/* ---- updates ----------------------------------------------------------------------------------
 */

void tdmi_cpu_sgd(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    kernels()->sgd(call);
}

void tdmi_cpu_blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                    float momentum)
{
    (void)stream;
    kernels()->blend(states, sums, n, scale, momentum);
}

void tdmi_cpu_accumulate(tdmi_stream *stream, float *to, const float *from, int64_t n)
{
    (void)stream;
    kernels()->accumulate(to, from, n);
}

/*
 * A backend whose kernels take every form of fusion, each written as the reference kernel between
 * passes of its own, and refuse what they are told to; a network with branches for it, and what a
 * run of that gave.
 */
#pragma once

#include "base/hash/rng.h"
#include "graph/executor.h"
#include "models/network.h"
#include "graph/packed.h"
#include "graph/poison.h"
#include "unit.h"

#include <math.h>

enum { most_images = 3, n_classes = 5 };

/* ---- a backend that fuses by composition -------------------------------------------------- */

/* Fusions that its kernels refuse, changed from case to case. */
static struct {
    enum tdmi_op_kind kind; /* TDMI_OP_KINDS: nobody refuses */
    bool forms, sums, gradient_form, folding;
} refused;

/* Batch norms are never virtual, and take an add and an activation behind them instead. */
static bool norms_take_groups;

static float apply(enum tdmi_act act, float z)
{
    z = act != TDMI_ACT_NONE && z < 0.0f ? 0.0f : z;
    return act == TDMI_ACT_RELU6 && z > 6.0f ? 6.0f : z;
}

static float slope(enum tdmi_act act, float z)
{
    if (act == TDMI_ACT_NONE)
        return 1.0f;
    return z > 0.0f && (act == TDMI_ACT_RELU || z < 6.0f) ? 1.0f : 0.0f;
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    if (desc->kind == TDMI_OP_BATCH_NORM && norms_take_groups)
        return !fusion->is_virtual && !fusion->folds_norm && !fusion->in[0].has_norm &&
               fusion->in[0].act == TDMI_ACT_NONE;
    if (desc->kind == TDMI_OP_BATCH_NORM)
        return fusion->is_virtual && refused.kind != desc->kind;
    if (fusion->pool) /* test_fuse_pool.c */
        return false;
    if (refused.kind != desc->kind)
        return true;
    bool has_form = false;
    for (int k = 0; k < TDMI_OP_INPUTS; k++)
        has_form |= fusion->in[k].has_norm || fusion->in[k].act != TDMI_ACT_NONE;
    bool folds = fusion->folds_norm || fusion->adds_residual || fusion->act != TDMI_ACT_NONE;
    return !(refused.forms && has_form) && !(refused.sums && fusion->gives_sums) &&
           !(refused.gradient_form && fusion->reads_gradient_form) && !(refused.folding && folds);
}

static float preactivation(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int k,
                           int64_t i)
{
    const struct tdmi_norm *norm = &call->in_norm[k];
    int c = (int)(i % desc->in[k].c);
    return desc->fusion.in[k].has_norm ? norm->scale[c] * call->x[k][i] + norm->shift[c]
                                       : call->x[k][i];
}

/* The op alone, on inputs as they would be without fusion; to be released with done(). */
static struct tdmi_op_call plain_call(const struct tdmi_op_desc *desc,
                                      const struct tdmi_op_call *call)
{
    struct tdmi_op_call plain = *call;
    for (int k = 0; k < TDMI_OP_INPUTS && call->x[k]; k++) {
        int64_t n = call->n * tdmi_shape_values(desc->in[k]);
        float *x = room(n);
        for (int64_t i = 0; i < n; i++)
            x[i] = apply(desc->fusion.in[k].act, preactivation(desc, call, k, i));
        plain.x[k] = x;
    }
    return plain;
}

static void done(struct tdmi_op_call *plain)
{
    for (int k = 0; k < TDMI_OP_INPUTS; k++)
        free((void *)(uintptr_t)plain->x[k]);
}

static struct tdmi_op_desc plain_desc(const struct tdmi_op_desc *desc)
{
    struct tdmi_op_desc plain = *desc;
    plain.fusion = (struct tdmi_op_fusion){0};
    return plain;
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    struct tdmi_op_call plain = plain_call(desc, call);
    struct tdmi_op_desc alone = plain_desc(desc);
    int channels = desc->out.c;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    if (desc->kind == TDMI_OP_CONV) { /* always reads what pack wrote: weights, then a bias */
        alone.attrs.has_bias = true;
        plain.params[0] = call->packed;
        plain.params[1] = plain.params[0] + (int64_t)desc->attrs.kernel * desc->attrs.kernel *
                                                desc->in[0].c * channels;
    }
    tdmi_backend_ref.kernels[desc->kind]->forward(stream, &alone, &plain);
    for (int64_t i = 0; desc->kind != TDMI_OP_INPUT && i < n; i++)
        call->y[i] = apply(desc->fusion.act, call->y[i] + (call->residual ? call->residual[i] : 0));
    if (desc->fusion.gives_sums) {
        memset(call->norm.sums, 0, 2 * sizeof(double) * (size_t)channels);
        for (int64_t i = 0; i < n; i++) {
            double off = (double)call->y[i] - (double)call->norm.centre[i % channels];
            call->norm.sums[i % channels] += off;
            call->norm.sums[channels + i % channels] += off * off;
        }
    }
    done(&plain);
}

/* Add, mask, sum: what a reader owes the node below. */
static void finish_gradient(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int k,
                            const float *dx)
{
    int channels = desc->in[k].c;
    int64_t n = call->n * tdmi_shape_values(desc->in[k]);
    if (call->dx_sums[k])
        memset(call->dx_sums[k], 0, 2 * sizeof(double) * (size_t)channels);
    for (int64_t i = 0; i < n; i++) {
        float g = dx[i] * slope(desc->fusion.in[k].act, preactivation(desc, call, k, i)) +
                  (call->dx_add[k] ? call->dx_add[k][i] : 0.0f);
        call->dx[k][i] = g;
        if (!call->dx_sums[k])
            continue;
        float off = call->x[k][i] - call->in_norm[k].mean[i % channels];
        call->dx_sums[k][i % channels] += (double)g;
        call->dx_sums[k][channels + i % channels] += (double)g * (double)off;
    }
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    struct tdmi_op_call plain = plain_call(desc, call);
    struct tdmi_op_desc alone = plain_desc(desc);
    int64_t n = call->n * tdmi_shape_values(desc->out);
    float *dy = NULL, *dx[TDMI_OP_INPUTS] = {NULL, NULL};
    if (desc->fusion.reads_gradient_form) {
        const struct tdmi_norm *norm = &call->norm;
        dy = room(n);
        for (int64_t i = 0; i < n; i++) {
            int c = (int)(i % desc->out.c);
            dy[i] = norm->of_g[c] * call->dy[i] + norm->of_x[c] * call->y[i] + norm->one[c];
        }
        plain.dy = dy;
    }
    for (int k = 0; k < TDMI_OP_INPUTS; k++)
        if (call->dx[k])
            plain.dx[k] = dx[k] = room(call->n * tdmi_shape_values(desc->in[k]));
    tdmi_backend_ref.kernels[desc->kind]->backward(stream, &alone, &plain);
    for (int k = 0; k < TDMI_OP_INPUTS; k++) {
        if (call->dx[k])
            finish_gradient(desc, call, k, dx[k]);
        free(dx[k]);
    }
    free(dy);
    done(&plain);
}

/* A virtual batch norm is the reference's without its passes. */
static void norm_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    struct tdmi_op_call plain = *call;
    float *scrap = room(call->n * tdmi_shape_values(desc->out));
    if (desc->fusion.is_virtual)
        plain.y = scrap;
    tdmi_backend_ref.kernels[desc->kind]->forward(stream, desc, &plain);
    for (int64_t i = 0; !desc->fusion.is_virtual && i < call->n * tdmi_shape_values(desc->out); i++)
        call->y[i] = apply(desc->fusion.act, call->y[i] + (call->residual ? call->residual[i] : 0));
    free(scrap);
}

/* The gradient behind the mask of a fused activation; to be freed. */
static float *masked(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    const int64_t n = call->n * tdmi_shape_values(desc->out);
    float *g = room(n);
    for (int64_t i = 0; i < n; i++)
        g[i] = call->dy[i] * (desc->fusion.act ? slope(desc->fusion.act, call->y[i]) : 1.0f);
    return g;
}

static void norm_reduce_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                 const struct tdmi_op_call *call)
{
    struct tdmi_op_call plain = *call;
    float *g = masked(desc, call);
    plain.dy = g;
    tdmi_backend_ref.kernels[desc->kind]->reduce_backward(stream, desc, &plain);
    free(g);
}

static void norm_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                          const struct tdmi_op_call *call)
{
    const struct tdmi_norm *norm = &call->norm;
    int channels = desc->out.c;
    double m = (double)(norm->total_images * tdmi_shape_pixels(desc->out));
    assert_true(!desc->fusion.is_virtual || !call->dx[0]);
    assert_true(desc->fusion.adds_residual || !call->dx[1]);
    struct tdmi_op_call plain = *call;
    float *g = desc->fusion.is_virtual ? NULL : masked(desc, call);
    if (g)
        plain.dy = g;
    tdmi_backend_ref.kernels[desc->kind]->backward(stream, desc, &plain);
    if (call->dx[1] && call->dx[1] != call->dy)
        memcpy(call->dx[1], g, sizeof *g * (size_t)(call->n * tdmi_shape_values(desc->out)));
    free(g);
    for (int c = 0; desc->fusion.is_virtual && c < channels; c++) {
        double scale = (double)norm->scale[c], rstd = (double)norm->rstd[c];
        double of_x = -scale * rstd * rstd * norm->total[channels + c] / m;
        double one = -scale * norm->total[c] / m - of_x * (double)norm->mean[c];
        norm->of_g[c] = norm->scale[c];
        norm->of_x[c] = desc->keeps_statistics ? 0.0f : (float)of_x;
        norm->one[c] = desc->keeps_statistics ? 0.0f : (float)one;
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    struct tdmi_op_desc alone = plain_desc(desc);
    *needs = tdmi_kernel_needs_of(tdmi_backend_ref.kernels[desc->kind], &alone);
    if (desc->kind == TDMI_OP_CONV)
        needs->packed_bytes = sizeof(float) * (size_t)desc->out.c *
                              (size_t)(desc->attrs.kernel * desc->attrs.kernel * desc->in[0].c + 1);
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    int64_t rows = (int64_t)desc->attrs.kernel * desc->attrs.kernel * desc->in[0].c;
    int channels = desc->out.c;
    float *weights = call->packed, *bias = weights + rows * channels;
    (void)stream;
    for (int c = 0; c < channels; c++) {
        float scale = 1.0f, shift = call->params[1] ? call->params[1][c] : 0.0f;
        if (desc->fusion.folds_norm) {
            scale = call->norm_params[0][c] /
                    sqrtf(call->norm_states[1][c] + (float)call->norm_epsilon);
            shift = (shift - call->norm_states[0][c]) * scale + call->norm_params[1][c];
        }
        for (int64_t r = 0; r < rows; r++)
            weights[r * channels + c] = call->params[0][r * channels + c] * scale;
        bias[c] = shift;
    }
}

struct fusing {
    struct tdmi_backend backend;
    struct tdmi_kernel kernels[TDMI_OP_KINDS];
    const struct tdmi_kernel *table[TDMI_OP_KINDS];
};

static void fusing_init(struct fusing *it)
{
    it->backend = poisoned_backend(&tdmi_backend_ref);
    it->backend.kernels = it->table;
    for (int kind = 0; kind < TDMI_OP_KINDS; kind++) {
        it->kernels[kind] = *tdmi_backend_ref.kernels[kind];
        it->table[kind] = &it->kernels[kind];
        if (kind == TDMI_OP_INPUT || kind == TDMI_OP_SOFTMAX)
            continue;
        it->kernels[kind].can_fuse = can_fuse;
        it->kernels[kind].adds_dx = true;
        it->kernels[kind].needs = needs;
        it->kernels[kind].forward = forward;
        it->kernels[kind].backward = backward;
    }
    it->kernels[TDMI_OP_CONV].pack = pack;
    it->kernels[TDMI_OP_BATCH_NORM].adds_dx = false;
    it->kernels[TDMI_OP_BATCH_NORM].forward = norm_forward;
    it->kernels[TDMI_OP_BATCH_NORM].backward = norm_backward;
    it->kernels[TDMI_OP_BATCH_NORM].reduce_backward = norm_reduce_backward;
}

/* ---- a network with branches --------------------------------------------------------------- */

static int unit(tdmi_graph *graph, const char *name, int x, int channels, int kernel)
{
    char norm[32];
    snprintf(norm, sizeof norm, "%s_bn", name);
    x = tdmi_graph_add(graph, TDMI_OP_CONV, name, x,
                       (struct tdmi_op_attrs){.channels = channels,
                                              .kernel = kernel,
                                              .stride = 1,
                                              .dilation = 1,
                                              .groups = 1,
                                              .pad_top = kernel / 2,
                                              .pad_bottom = kernel / 2,
                                              .pad_left = kernel / 2,
                                              .pad_right = kernel / 2});
    return tdmi_add_batch_norm(graph, norm, x);
}

/* Two residual blocks, one with a projection; a ReLU with three readers; a pool between. */
static tdmi_graph *branches(void)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_input(
        graph,
        &(struct tdmi_preprocess){
            .width = 9, .height = 7, .channels = 3, .crop_fraction = 1.0, .scale = TDMI_SCALE_TF});
    int stem = tdmi_add_relu(graph, "relu0", unit(graph, "conv0", x, 6, 3));
    int shortcut = unit(graph, "shortcut", stem, 8, 1);
    int a = tdmi_add_relu(graph, "relu1", unit(graph, "conv1", stem, 5, 1));
    a = unit(graph, "conv2", a, 8, 3);
    int sum = tdmi_add_sum(graph, "add1", a, shortcut);
    int joined = tdmi_add_relu(graph, "relu2", sum);
    int pooled = tdmi_add_max_pool(graph, "pool1", joined, 2, 2);
    int b = tdmi_graph_add(graph, TDMI_OP_RELU6, "relu3", unit(graph, "conv3", pooled, 8, 3),
                           (struct tdmi_op_attrs){0});
    b = unit(graph, "conv4", b, 8, 1);
    b = tdmi_add_sum(graph, "add2", pooled, b);
    b = tdmi_add_sum(graph, "add3", b, tdmi_add_max_pool(graph, "pool2", sum, 2, 2));
    /* One tensor twice, once through a ReLU; and two readers of one pair, the lower a concat. */
    int c = unit(graph, "conv5", b, 8, 1);
    c = tdmi_add_sum(graph, "add4", c, tdmi_add_relu(graph, "relu4", c));
    int both = tdmi_graph_join(graph, TDMI_OP_CONCAT, "concat", c, b, (struct tdmi_op_attrs){0});
    b = tdmi_add_sum(graph, "add5", c, b);
    b = tdmi_add_sum(graph, "add6", b, unit(graph, "conv6", both, 8, 1));
    b = tdmi_add_global_pool(graph, "pool", b);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", b, n_classes));
    assert_int_equal(tdmi_graph_finish(graph, "branches", NULL), TDM_OK);
    return graph;
}

struct values {
    float *params, *states;
};

__attribute__((unused)) static void values_release(struct values *it)
{
    free(it->params);
    free(it->states);
}

static struct values values_of(const tdmi_graph *graph)
{
    struct values it = {room(graph->param_values), room(graph->state_values)};
    tdmi_graph_init_values(graph, 5, it.params, it.states);
    for (int t = 0; t < graph->n_params + graph->n_states; t++) { /* away from 0 and 1 */
        bool is_state = t >= graph->n_params;
        const struct tdmi_tensor *tensor =
            is_state ? &graph->states[t - graph->n_params] : &graph->params[t];
        float *at = (is_state ? it.states : it.params) + tensor->offset;
        tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, 7, (uint64_t)t);
        for (int64_t i = 0; tensor->spec.n_dims == 1 && i < tensor->n; i++)
            at[i] += tdmi_rng_uniform(&rng, -0.4f, 0.4f);
    }
    return it;
}

/* Two groups one after the other, the second ragged; what the second gave. */
struct outcome {
    float *sums, probabilities[most_images * n_classes];
};

__attribute__((unused)) static void outcome_release(struct outcome *it)
{
    free(it->sums);
}

struct pictures {
    uint8_t pixels[most_images][7 * 9 * 3];
    const uint8_t *at[most_images];
};

static void draw(struct pictures *pictures)
{
    for (int i = 0; i < most_images; i++) {
        tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 1, (uint64_t)i);
        pictures->at[i] = pictures->pixels[i];
        for (int p = 0; p < 7 * 9 * 3; p++)
            pictures->pixels[i][p] = (uint8_t)tdmi_rng_below(&rng, 256);
    }
}

/* samples: pictures, or rows where the plan begins behind the input. */
static struct outcome run_on(const tdmi_plan *plan, struct values values,
                             const uint8_t *const *samples)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_values lent = {values.params, values.states};
    struct outcome outcome = {.sums = room(tdmi_graph_sums_values(graph))};
    struct tdmi_judgement judgements[most_images];
    const int32_t labels[most_images] = {0, 3, 4};
    tdmi_executor *lane;
    tdmi_packed *packed;
    tdmi_pool *pool;
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, NULL, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, lent, 0, pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    for (int n = most_images; n >= most_images - 1; n--) {
        struct tdmi_group group = {
            .n = n, .pixels = samples, .labels = labels, .judgements = judgements};
        tdmi_executor_forward(lane, lent, &group, plan->is_training ? outcome.sums : NULL);
        assert_int_equal(tdmi_executor_fetch_output(lane, n, outcome.probabilities, NULL), TDM_OK);
        for (int s = 0; s < plan->n_segments; s++)
            tdmi_executor_backward(lane, lent, s, outcome.sums, NULL);
    }
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_pool_free(pool);
    return outcome;
}

static struct outcome run(const tdmi_plan *plan, struct values values)
{
    struct pictures pictures;
    draw(&pictures);
    return run_on(plan, values, pictures.at);
}

static void same_outcome(const tdmi_graph *graph, const struct outcome *got,
                         const struct outcome *wanted)
{
    for (int t = 0; t < graph->n_params; t++)
        compare(got->sums + graph->params[t].offset, wanted->sums + graph->params[t].offset,
                graph->params[t].n, graph->params[t].name);
    int64_t states = tdmi_graph_state_sums_at(graph);
    for (int t = 0; t < graph->n_states; t++)
        compare(got->sums + states + graph->states[t].offset,
                wanted->sums + states + graph->states[t].offset, graph->states[t].n,
                graph->states[t].name);
    compare(got->probabilities, wanted->probabilities, (most_images - 1) * n_classes,
            "probabilities");
}

static const struct {
    enum tdmi_op_kind kind;
    bool forms, sums, gradient_form, folding;
    int n_training, n_inference; /* virtual nodes */
} refusals[] = {
    {TDMI_OP_KINDS, false, false, false, false, 12, 17},
    {TDMI_OP_CONV, true, false, false, false, 9, 17},
    {TDMI_OP_CONV, false, true, false, false, 12, 17},
    {TDMI_OP_CONV, false, false, true, false, 4, 17},
    {TDMI_OP_CONV, false, false, false, true, 12, 6},
    {TDMI_OP_CONV, true, true, true, true, 1, 3},
    {TDMI_OP_ADD, true, false, false, false, 7, 17},
    {TDMI_OP_MAX_POOL, true, false, false, false, 11, 16},
    {TDMI_OP_BATCH_NORM, true, false, false, false, 4, 17},
    {TDMI_OP_RELU, true, false, false, false, 11, 17},
};

__attribute__((unused)) static void refuse(size_t r)
{
    refused.kind = refusals[r].kind;
    refused.forms = refusals[r].forms;
    refused.sums = refusals[r].sums;
    refused.gradient_form = refusals[r].gradient_form;
    refused.folding = refusals[r].folding;
}

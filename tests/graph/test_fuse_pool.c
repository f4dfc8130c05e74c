/*
 * Max pools that the convolution before them carries: a backend whose conv does it by composing
 * reference kernels gives what the reference gives; and in groups of many small pictures, where
 * backend cpu does it in earnest, every backend does.
 */
#include "backend/cpu/isa.h"
#include "base/hash/rng.h"
#include "graph/executor.h"
#include "models/network.h"
#include "graph/packed.h"
#include "graph/poison.h"
#include "unit.h"

#include <math.h>

enum { most_images = 20, classes = 10, most_pixels = 28 * 28 };

/* ---- a conv that pools by composition ------------------------------------------------------- */

static bool can_pool(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *f = &desc->fusion;
    return f->pool && !f->in[0].has_norm && f->in[0].act == TDMI_ACT_NONE && !f->gives_sums &&
           !f->reads_gradient_form && (f->act == TDMI_ACT_NONE || f->act == TDMI_ACT_RELU);
}

static bool is_cut(enum tdmi_act act, float y)
{
    return act == TDMI_ACT_RELU && !(y > 0.0f);
}

/* The pool behind a conv, as the op it was. */
static struct tdmi_op_desc pool_desc(const struct tdmi_op_desc *desc)
{
    return (struct tdmi_op_desc){
        .kind = TDMI_OP_MAX_POOL,
        .attrs = {.kernel = desc->fusion.pool, .stride = desc->fusion.pool},
        .in = {desc->out},
        .out = tdmi_op_result(desc),
        .max_images = desc->max_images,
        .is_training = true,
        .wants_dx = true,
    };
}

/* Saved: the winners, and behind them, as floats, the slope of the activation at each of them. */
static float *slopes_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    size_t winners = (size_t)desc->max_images * (size_t)tdmi_shape_values(tdmi_op_result(desc));
    return (float *)((char *)call->saved + (winners + 63) / 64 * 64);
}

static void pool_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call, const float *y)
{
    const struct tdmi_op_desc pool = pool_desc(desc);
    struct tdmi_op_call pooled = *call;
    float *slopes = slopes_of(desc, call);
    pooled.x[0] = y;
    tdmi_backend_ref.kernels[TDMI_OP_MAX_POOL]->forward(stream, &pool, &pooled);
    for (int64_t i = 0; i < call->n * tdmi_shape_values(pool.out); i++)
        slopes[i] = is_cut(desc->fusion.act, call->y[i]) ? 0.0f : 1.0f;
}

/* The gradient of what the conv alone would have given. */
static float *pool_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_op_desc pool = pool_desc(desc);
    const int64_t n = call->n * tdmi_shape_values(pool.out);
    struct tdmi_op_call pooled = *call;
    float *dy = room(n), *dx = room(call->n * tdmi_shape_values(desc->out));
    for (int64_t i = 0; i < n; i++)
        dy[i] = call->dy[i] * slopes_of(desc, call)[i];
    pooled.dy = dy;
    pooled.dx[0] = dx;
    tdmi_backend_ref.kernels[TDMI_OP_MAX_POOL]->backward(stream, &pool, &pooled);
    free(dy);
    return dx;
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const int64_t n = call->n * tdmi_shape_values(desc->out);
    const struct tdmi_kernel *conv = tdmi_backend_ref.kernels[TDMI_OP_CONV];
    struct tdmi_op_call alone = *call;
    if (!desc->fusion.pool) {
        conv->forward(stream, desc, call);
        return;
    }
    alone.y = room(n);
    conv->forward(stream, desc, &alone);
    for (int64_t i = 0; i < n; i++)
        alone.y[i] = is_cut(desc->fusion.act, alone.y[i]) ? 0.0f : alone.y[i];
    pool_forward(stream, desc, call, alone.y);
    free(alone.y);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    struct tdmi_op_call alone = *call;
    float *dy = desc->fusion.pool ? pool_backward(stream, desc, call) : NULL;
    if (dy)
        alone.dy = dy;
    tdmi_backend_ref.kernels[TDMI_OP_CONV]->backward(stream, desc, &alone);
    free(dy);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    tdmi_backend_ref.kernels[TDMI_OP_CONV]->needs(desc, needs);
    if (desc->fusion.pool) /* slopes_of */
        needs->saved_bytes =
            64 + 5 * (size_t)desc->max_images * (size_t)tdmi_shape_values(tdmi_op_result(desc));
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct pictures {
    uint8_t pixels[most_images][most_pixels];
    const uint8_t *at[most_images];
    int32_t labels[most_images];
};

static void paint(struct pictures *it)
{
    for (int i = 0; i < most_images; i++) {
        tdmi_rng rng = tdmi_rng_at(9, TDMI_RNG_TEST, 2, (uint64_t)i);
        it->at[i] = it->pixels[i];
        it->labels[i] = i % classes;
        for (int p = 0; p < most_pixels; p++)
            it->pixels[i][p] = (uint8_t)tdmi_rng_below(&rng, 256);
    }
}

/* The sums of a ragged group, after a whole one. */
static float *run(const tdmi_plan *plan, struct tdmi_values values, const struct pictures *pictures)
{
    struct tdmi_judgement judgements[most_images];
    float *sums = room(tdmi_graph_sums_values(plan->graph));
    tdmi_executor *lane;
    tdmi_packed *packed;
    tdmi_pool *pool;
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, NULL, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, values, 0, pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    for (int n = most_images; n >= most_images - 3; n -= 3) {
        struct tdmi_group group = {
            .n = n, .pixels = pictures->at, .labels = pictures->labels, .judgements = judgements};
        tdmi_executor_forward(lane, values, &group, sums);
        for (int s = 0; s < plan->n_segments; s++)
            tdmi_executor_backward(lane, values, s, sums, NULL);
    }
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_pool_free(pool);
    return sums;
}

static void same_sums(const tdmi_graph *graph, const float *got, const float *wanted)
{
    const int64_t tail = tdmi_graph_tail_at(graph);
    for (int t = 0; t < graph->n_params; t++)
        compare(got + graph->params[t].offset, wanted + graph->params[t].offset, graph->params[t].n,
                graph->params[t].name);
    compare(got + tail, wanted + tail, TDMI_TAIL_VALUES, "what the group says of itself");
}

/* Pools that a conv may take, behind an activation and not, and one with another reader before. */
static tdmi_graph *pools(void)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_input(graph, &(struct tdmi_preprocess){.width = 17,
                                                            .height = 15,
                                                            .channels = 3,
                                                            .crop_fraction = 1.0,
                                                            .scale = TDMI_SCALE_TF});
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 6, 3, 1, 1, true));
    x = tdmi_add_max_pool(graph, "pool1", x, 2, 2);
    x = tdmi_add_conv(graph, "conv2", x, 8, 3, 1, 1, true);
    x = tdmi_add_max_pool(graph, "pool2", x, 3, 3);
    int wide = tdmi_add_conv(graph, "conv3", x, 8, 3, 1, 2, true);
    x = tdmi_add_max_pool(graph, "pool3", wide, 2, 1);
    x = tdmi_graph_join(graph, TDMI_OP_CONCAT, "concat", tdmi_add_global_pool(graph, "g1", x),
                        tdmi_add_global_pool(graph, "g2", wide), (struct tdmi_op_attrs){0});
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "pools", NULL), TDM_OK);
    return graph;
}

static float *run_on(const struct tdmi_backend *on, const tdmi_graph *graph,
                     struct tdmi_values values, const struct pictures *pictures, int n_virtual)
{
    struct tdmi_backend backend = poisoned_backend(on);
    tdmi_plan *plan;
    int n = 0;
    assert_int_equal(tdmi_plan_new(graph, &backend, most_images, true, &plan, NULL), TDM_OK);
    for (int i = 0; i < graph->n_nodes; i++)
        n += plan->nodes[i].is_virtual;
    if (n_virtual >= 0)
        assert_int_equal(n, n_virtual);
    float *sums = run(plan, values, pictures);
    tdmi_plan_free(plan);
    return sums;
}

TEST(a_convolution_can_give_what_the_pool_behind_it_makes)
{
    static struct pictures pictures;
    struct tdmi_kernel conv = *tdmi_backend_ref.kernels[TDMI_OP_CONV];
    const struct tdmi_kernel *table[TDMI_OP_KINDS];
    struct tdmi_backend pooling = tdmi_backend_ref;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = pools();
    float *params = room(graph->param_values), *states = room(graph->state_values);
    const struct tdmi_values values = {params, states};
    paint(&pictures);
    tdmi_graph_init_values(graph, 5, params, states);
    memcpy(table, tdmi_backend_ref.kernels, sizeof table);
    conv.can_fuse = can_pool;
    conv.needs = needs;
    conv.forward = forward;
    conv.backward = backward;
    table[TDMI_OP_CONV] = &conv;
    pooling.kernels = table;
    float *wanted = run_on(&tdmi_backend_ref, graph, values, &pictures, 0);
    float *got = run_on(&pooling, graph, values, &pictures, 3); /* ReLU and two pools */
    same_sums(graph, got, wanted);
    free(got);
    conv.can_fuse = NULL;
    got = run_on(&pooling, graph, values, &pictures, 0);
    same_sums(graph, got, wanted);
    free(got);
    free(wanted);
    free(params);
    free(states);
}

/* In lenet5: the activation and the pool behind each of its convolutions. -1: anything. */
static int pooled_by(const struct tdmi_backend *backend)
{
    return backend == &tdmi_backend_cpu && tdmi_isa_best() >= TDMI_ISA_AVX2 ? 4 : -1;
}

TEST(every_backend_gives_the_gradients_of_the_reference)
{
    static struct pictures pictures;
    struct tdmi_network network;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    paint(&pictures);
    assert_int_equal(tdmi_network_find("lenet5", &network, NULL), TDM_OK);
    assert_int_equal(tdmi_network_build(&network, &network.preprocess, classes, &graph, NULL),
                     TDM_OK);
    float *params = room(graph->param_values), *states = room(graph->state_values);
    const struct tdmi_values values = {params, states};
    tdmi_graph_init_values(graph, 5, params, states);
    float *wanted = run_on(&tdmi_backend_ref, graph, values, &pictures, 0);
    for (int i = 0; tdmi_backend_at(i); i++) {
        const struct tdmi_backend *backend = tdmi_backend_at(i);
        if (!backend->device.is_host)
            continue;
        float *got = run_on(backend, graph, values, &pictures, pooled_by(backend));
        same_sums(graph, got, wanted);
        free(got);
    }
    free(wanted);
    free(params);
    free(states);
}

TEST_MAIN(NULL, NULL)

/*
 * The memory plan: lifetimes and segments. That no lifetime is too short is shown by running: a
 * backend that is the reference but hands out memory full of NaN, and a plan in which every buffer
 * has bytes of its own, must give the same bits as the plan that shares.
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "models/known_network.h"
#include "graph/executor.h"
#include "graph/poison.h"
#include "sanitized.h"
#include "unit.h"

enum { most_images = 4 };

static const struct {
    const char *network;
    int size;
} networks[] = {{"convnet7", 9},          {"lenet5", 23},   {"mobilenetv2-0.1", 32},
                {"convnet7", 16},         {"lenet5", 28},   {"resnet20-cifar", 16},
                {"mobilenetv2-0.35", 40}, {"resnet18", 32}, {"resnet50", 33},
                {"xception", 71}};

/* Planning is quick with all of them; running, under a sanitizer, with the first. */
enum { n_networks = sizeof networks / sizeof networks[0], n_run = is_sanitized ? 3 : n_networks };

/* ---- NaN everywhere ----------------------------------------------------------------------- */

/* Give every buffer bytes of its own. */
static void spread_out(tdmi_plan *plan)
{
    size_t end = 0, image_end = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        struct tdmi_buffer *buffers[] = {&it->y,
                                         &it->dy,
                                         &it->saved,
                                         &it->forward_workspace,
                                         &it->backward_workspace,
                                         &it->spill[0],
                                         &it->spill[1]};
        if (it->dy_of != i) { /* no gradient lies in another's, either */
            it->dy.bytes = plan->nodes[it->dy_of].dy.bytes;
            it->dy_of = i;
        }
        for (int b = 0; b < 7; b++) {
            size_t *of = buffers[b]->is_by_image ? &image_end : &end;
            buffers[b]->offset = *of;
            *of += buffers[b]->bytes;
        }
    }
    end += (size_t)plan->max_images * image_end;
    assert_true(end > plan->arena_bytes);
    plan->arena_bytes = end;
    plan->image_bytes = image_end;
}

struct outcome {
    float *sums, logits[most_images * 5];
    struct tdmi_judgement judgements[most_images];
};

/* Two groups one after the other in the same lane, the second ragged: what the first left behind
 * must not show. */
static void run_plan(const tdmi_plan *plan, const float *params, const float *states,
                     struct outcome *outcome)
{
    const tdmi_graph *graph = plan->graph;
    int64_t image = tdmi_shape_values(graph->nodes[0].out);
    uint8_t *pixels = tdmi_alloc((size_t)(most_images * image), 1);
    const uint8_t *pictures[most_images];
    int32_t labels[most_images];
    tdmi_executor *lane;
    assert_non_null(pixels);
    for (int i = 0; i < most_images; i++) {
        tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 1, (uint64_t)i);
        pictures[i] = pixels + i * image;
        labels[i] = i % 5;
        for (int64_t p = 0; p < image; p++)
            pixels[i * image + p] = (uint8_t)tdmi_rng_below(&rng, 256);
    }
    size_t n_sums = (size_t)tdmi_graph_sums_values(graph);
    outcome->sums = tdmi_alloc(n_sums, sizeof(float));
    assert_non_null(outcome->sums);
    memset(outcome->judgements, 0, sizeof outcome->judgements);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    for (int n = most_images; n >= most_images - 1; n--) {
        struct tdmi_group group = {
            .n = n, .pixels = pictures, .labels = labels, .judgements = outcome->judgements};
        struct tdmi_values values = {params, states};
        tdmi_executor_forward(lane, values, &group, plan->is_training ? outcome->sums : NULL);
        memcpy(outcome->logits, tdmi_executor_logits(lane), sizeof(float) * (size_t)n * 5);
        for (int s = 0; s < plan->n_segments; s++)
            tdmi_executor_backward(lane, values, s, outcome->sums, NULL);
    }
    tdmi_executor_close(lane);
    tdmi_free(pixels);
}

TEST(sharing_memory_changes_no_bit)
{
    struct tdmi_backend backend = poisoned_backend(&tdmi_backend_ref);
    for (int i = 0; i < 2 * n_run; i++) {
        bool is_training = i >= n_run;
        tdmi_graph *graph = network_new(networks[i % n_run].network, networks[i % n_run].size, 5);
        tdmi_plan *shared, *spread;
        struct outcome a = {0}, b = {0};
        float *params = tdmi_alloc((size_t)graph->param_values, sizeof(float));
        float *states = tdmi_alloc((size_t)graph->state_values, sizeof(float));
        assert_true(params && states);
        tdmi_graph_init_values(graph, 9, params, states);
        assert_int_equal(tdmi_plan_new(graph, &backend, most_images, is_training, &shared, NULL),
                         TDM_OK);
        assert_int_equal(tdmi_plan_new(graph, &backend, most_images, is_training, &spread, NULL),
                         TDM_OK);
        spread_out(spread);
        run_plan(shared, params, states, &a);
        run_plan(spread, params, states, &b);
        assert_memory_equal(a.logits, b.logits, sizeof a.logits);
        assert_memory_equal(a.judgements, b.judgements, sizeof a.judgements);
        assert_memory_equal(a.sums, b.sums, sizeof(float) * (size_t)tdmi_graph_sums_values(graph));
        bool is_finite = true; /* no NaN was read */
        for (int64_t v = 0; v < graph->param_values; v++)
            is_finite = is_finite && a.sums[v] - a.sums[v] == 0.0f;
        assert_true(is_finite);
        assert_true(is_training == (a.sums[tdmi_graph_tail_at(graph)] > 0.0f));
        tdmi_free(a.sums);
        tdmi_free(b.sums);
        tdmi_free(params);
        tdmi_free(states);
        tdmi_plan_free(shared);
        tdmi_plan_free(spread);
        tdmi_graph_free(graph);
    }
}

/* ---- segments ------------------------------------------------------------------------------ */

/* Where the gradients begin that a plan computes: at the first parameter that is not frozen. */
static int64_t first_trained_value(const tdmi_plan *plan)
{
    for (int i = plan->first_trained; i < plan->graph->n_nodes; i++)
        if (plan->graph->nodes[i].n_params)
            return plan->graph->params[plan->graph->nodes[i].first_param].offset;
    return 0;
}

static void check_segments(const tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    const int64_t begin = first_trained_value(plan);
    int64_t end = tdmi_graph_sums_values(graph);
    int node = graph->n_nodes - 1;
    assert_true(plan->n_segments >= 1);
    for (int s = 0; s < plan->n_segments; s++) {
        const struct tdmi_segment *segment = &plan->segments[s];
        assert_int_equal(segment->first_node, node);
        assert_true(segment->last_node <= segment->first_node);
        assert_true(segment->first_value + segment->n_values == end);
        assert_true(segment->n_values > 0);
        assert_true(segment->first_value >= begin);
        assert_true(segment->last_node >= plan->first_trained);
        /* Every gradient of its range is written by its nodes. */
        for (int i = 0; i < segment->last_node; i++)
            for (int p = 0; p < graph->nodes[i].n_params; p++) {
                const struct tdmi_tensor *tensor = &graph->params[graph->nodes[i].first_param + p];
                assert_true(tensor->offset + tensor->n <= segment->first_value);
            }
        for (int i = segment->last_node; i <= segment->first_node; i++)
            assert_true(plan->nodes[i].has_backward || graph->nodes[i].n_params == 0);
        end = segment->first_value;
        node = segment->last_node - 1;
    }
    assert_int_equal(end, begin);
    for (; node >= plan->first_trained; node--)
        assert_int_equal(graph->nodes[node].n_params, 0);
}

TEST(segments_cover_the_sums_once_from_the_end_down)
{
    for (int i = 0; i < n_networks; i++) {
        tdmi_graph *graph = network_new(networks[i].network, networks[i].size, 5);
        tdmi_plan *plan;
        assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 4, true, &plan, NULL), TDM_OK);
        check_segments(plan);
        tdmi_plan_free(plan);
        assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 4, false, &plan, NULL), TDM_OK);
        assert_int_equal(plan->n_segments, 0);
        tdmi_plan_free(plan);
        tdmi_graph_free(graph);
    }
}

TEST(segments_end_where_the_frozen_nodes_do)
{
    for (int i = 0; i < n_networks; i++) {
        tdmi_graph *graph = network_new(networks[i].network, networks[i].size, 5);
        struct tdmi_plan_options request = {.max_images = 4, .is_training = true};
        const int borders[] = {1, graph->n_nodes / 3, graph->n_nodes / 2, graph->head};
        assert_true(graph->head > 0);
        for (int b = 0; b < 4; b++) {
            tdmi_plan *plan;
            request.first_trained = borders[b];
            assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_ref, &request, &plan, NULL),
                             TDM_OK);
            assert_true(borders[b] == 1 || first_trained_value(plan) > 0);
            check_segments(plan);
            tdmi_plan_free(plan);
        }
        tdmi_graph_free(graph);
    }
}

/* Three dense layers, two of them large enough for a segment each. */
static tdmi_graph *wide_graph(void)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_input(
        graph,
        &(struct tdmi_preprocess){.width = 20, .height = 20, .channels = 1, .crop_fraction = 1.0});
    x = tdmi_add_relu(graph, "relu0", x);
    x = tdmi_add_dense(graph, "dense1", x, 700);
    x = tdmi_add_relu(graph, "relu1", x);
    x = tdmi_add_dense(graph, "dense2", x, 800);
    x = tdmi_add_relu(graph, "relu2", x);
    x = tdmi_add_dense(graph, "dense3", x, 5);
    tdmi_add_softmax(graph, x);
    assert_int_equal(tdmi_graph_finish(graph, "wide", NULL), TDM_OK);
    return graph;
}

TEST(large_networks_hand_out_gradients_early)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = wide_graph();
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 4, true, &plan, NULL), TDM_OK);
    check_segments(plan);
    assert_int_equal(plan->n_segments, 2);
    assert_string_equal(graph->nodes[plan->segments[0].last_node].name, "dense2");
    assert_string_equal(graph->nodes[plan->segments[1].last_node].name, "dense1");
    /* Nothing below dense1 learns: no gradient is computed for it. */
    assert_false(plan->nodes[1].has_backward);
    assert_false(plan->nodes[2].desc.wants_dx);
    assert_int_equal(plan->nodes[1].dy.bytes, 0);
    assert_int_equal(plan->nodes[0].dy.bytes, 0);
}

TEST(a_network_without_parameters_has_one_segment_with_the_tail)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = tdmi_graph_new();
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    assert_non_null(graph);
    int x = tdmi_add_input(
        graph,
        &(struct tdmi_preprocess){.width = 3, .height = 3, .channels = 3, .crop_fraction = 1.0});
    tdmi_add_softmax(graph, tdmi_add_global_pool(graph, "pool", x));
    assert_int_equal(tdmi_graph_finish(graph, "bare", NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 2, true, &plan, NULL), TDM_OK);
    assert_int_equal(plan->n_segments, 1);
    check_segments(plan);
}

/* ---- other --------------------------------------------------------------------------------- */

TEST(inference_needs_less_than_training)
{
    for (int i = 0; i < n_networks; i++) {
        tdmi_graph *graph = network_new(networks[i].network, networks[i].size, 5);
        tdmi_plan *train, *evaluator;
        assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 8, true, &train, NULL), TDM_OK);
        assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 8, false, &evaluator, NULL),
                         TDM_OK);
        assert_true(evaluator->arena_bytes < train->arena_bytes);
        tdmi_plan_free(train);
        tdmi_plan_free(evaluator);
        tdmi_graph_free(graph);
    }
}

static double passes_of(const tdmi_plan *plan, const char *name)
{
    int i = 0;
    while (strcmp(plan->graph->nodes[i].name, name) != 0)
        i++;
    return tdmi_plan_node_operations(plan, i) / tdmi_node_flops(&plan->graph->nodes[i]);
}

/* Forward; the gradient of weights, where there are some that learn; that of the input, where
 * somebody below learns. */
TEST(operations_count_what_is_computed)
{
    static const struct {
        const char *frozen_before, *name;
        double passes;
    } cases[] = {{NULL, "conv1", 2.0},     {NULL, "relu1", 2.0},     {NULL, "conv2", 3.0},
                 {NULL, "dense3", 3.0},    {"conv2", "conv1", 1.0},  {"conv2", "relu1", 1.0},
                 {"conv2", "conv2", 2.0},  {"conv2", "dense1", 3.0}, {"dense3", "dense2", 1.0},
                 {"dense3", "dense3", 2.0}};
    tdmi_graph *graph = network_new("lenet5", 28, 5);
    tdmi_plan *plan;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_plan_options request = {.max_images = 2, .is_training = true};
        while (cases[i].frozen_before &&
               strcmp(graph->nodes[request.first_trained].name, cases[i].frozen_before) != 0)
            request.first_trained++;
        assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_ref, &request, &plan, NULL), TDM_OK);
        assert_true(passes_of(plan, cases[i].name) == cases[i].passes);
        tdmi_plan_free(plan);
    }
    assert_int_equal(tdmi_plan_new(graph, &tdmi_backend_ref, 2, false, &plan, NULL), TDM_OK);
    assert_true(passes_of(plan, "conv2") == 1.0);
    tdmi_plan_free(plan);
    tdmi_graph_free(graph);
}

static bool never(const struct tdmi_op_desc *desc)
{
    (void)desc;
    return false;
}

TEST(a_backend_that_lacks_an_op_is_named)
{
    const struct tdmi_kernel *kernels[TDMI_OP_KINDS];
    struct tdmi_kernel picky = *tdmi_backend_ref.kernels[TDMI_OP_MAX_POOL];
    struct tdmi_backend backend = tdmi_backend_ref;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = network_new("lenet5", 28, 3);
    picky.can_run = never;
    for (int way = 0; way < 2; way++) {
        tdmi_plan *plan = NULL;
        tdm_error err = {0};
        memcpy(kernels, tdmi_backend_ref.kernels, sizeof kernels);
        kernels[TDMI_OP_MAX_POOL] = way ? &picky : NULL;
        backend.kernels = kernels;
        assert_int_equal(tdmi_plan_new(graph, &backend, 4, true, &plan, &err), TDM_E_ABSENT);
        assert_null(plan);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "pool1"));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "max_pool"));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "ref"));
    }
}

TEST_MAIN(NULL, NULL)

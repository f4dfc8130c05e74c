/*
 * Chains in plans without training: which nodes become links, that what lies between them takes no
 * memory, and that a network gives the same bits with and without.
 */
#include "backend/cpu/isa.h"
#include "base/hash/rng.h"
#include "graph/executor.h"
#include "models/network.h"
#include "graph/packed.h"
#include "graph/poison.h"
#include "unit.h"

enum { most_images = 3, n_classes = 4, side = 21 };

static int unit(tdmi_graph *graph, const char *name, int x, struct tdmi_op_attrs attrs)
{
    static const struct tdmi_build same = {.padding = TDMI_PADDING_SAME};
    x = tdmi_add_padded_conv(graph, &same, name, x, attrs);
    return tdmi_add_keras_norm(graph, tdmi_name("%s_bn", name).text, x);
}

static int activated(tdmi_graph *graph, const char *name, int x, struct tdmi_op_attrs attrs)
{
    return tdmi_add_relu6(graph, tdmi_name("%s_act", name).text, unit(graph, name, x, attrs));
}

static int narrow(tdmi_graph *graph, const char *name, int x, int channels)
{
    return unit(graph, name, x,
                (struct tdmi_op_attrs){.channels = channels, .kernel = 1, .stride = 1});
}

/* The expansion and the depthwise convolution of an inverted residual block. */
static int wide(tdmi_graph *graph, const char *name, int x, int channels, int stride)
{
    x = activated(graph, tdmi_name("%s_expand", name).text, x,
                  (struct tdmi_op_attrs){.channels = channels, .kernel = 1, .stride = 1});
    return activated(graph, tdmi_name("%s_depth", name).text, x,
                     (struct tdmi_op_attrs){
                         .channels = channels, .kernel = 3, .stride = stride, .groups = channels});
}

static tdmi_graph *blocks(void)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_input(graph, &(struct tdmi_preprocess){.width = side,
                                                            .height = side,
                                                            .channels = 3,
                                                            .crop_fraction = 1.0,
                                                            .scale = TDMI_SCALE_TF});
    x = activated(graph, "stem", x,
                  (struct tdmi_op_attrs){.channels = 10, .kernel = 3, .stride = 1});
    int a = narrow(graph, "a_project", wide(graph, "a", x, 40, 1), 10);
    a = tdmi_add_sum(graph, "a_add", a, x);
    int b = narrow(graph, "b_project", wide(graph, "b", a, 33, 2), 12);
    /* The wide tensor has two readers: an expansion and a depthwise convolution, no chain. */
    int c = wide(graph, "c", b, 48, 1);
    c = tdmi_add_sum(graph, "c_add", narrow(graph, "c_left", c, 12),
                     narrow(graph, "c_right", c, 12));
    c = tdmi_add_global_pool(graph, "pool", c);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", c, n_classes));
    assert_int_equal(tdmi_graph_finish(graph, "blocks", NULL), TDM_OK);
    return graph;
}

/* The backend with chains, and the same without. */
struct backends {
    struct tdmi_backend with, without;
    struct tdmi_kernel conv;
    const struct tdmi_kernel *table[TDMI_OP_KINDS];
};

static void backends_init(struct backends *it)
{
    it->with = poisoned_backend(&tdmi_backend_cpu);
    it->without = it->with;
    memcpy(it->table, tdmi_backend_cpu.kernels, sizeof it->table);
    it->conv = *it->table[TDMI_OP_CONV];
    it->conv.chain = NULL;
    it->table[TDMI_OP_CONV] = &it->conv;
    it->without.kernels = it->table;
}

static void run(const tdmi_plan *plan, struct tdmi_values values, int n,
                float probabilities[most_images * n_classes])
{
    static uint8_t pixels[most_images][side * side * 3];
    const uint8_t *pictures[most_images];
    struct tdmi_group group = {.n = n, .pixels = pictures};
    tdmi_executor *lane;
    tdmi_packed *packed;
    tdmi_pool *pool;
    for (int i = 0; i < most_images; i++) {
        tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 1, (uint64_t)i);
        pictures[i] = pixels[i];
        for (int p = 0; p < side * side * 3; p++)
            pixels[i][p] = (uint8_t)tdmi_rng_below(&rng, 256);
    }
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, NULL, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, values, 0, pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    tdmi_executor_forward(lane, values, &group, NULL);
    assert_int_equal(tdmi_executor_fetch_output(lane, n, probabilities, NULL), TDM_OK);
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_pool_free(pool);
}

static int node_of(const tdmi_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return i;
    fail_msg("no node is called %s", name);
    return 0;
}

static int links_of(const tdmi_plan *plan, const char *name)
{
    return plan->nodes[node_of(plan->graph, name)].n_links;
}

TEST(only_readers_of_their_inputs_are_links)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = blocks();
    struct backends backends;
    tdmi_plan *plan, *training, *apart;
    backends_init(&backends);
    assert_int_equal(tdmi_plan_new(graph, &backends.with, most_images, false, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(graph, &backends.with, most_images, true, &training, NULL),
                     TDM_OK);
    assert_int_equal(
        tdmi_plan_make(graph, &backends.with,
                       &(struct tdmi_plan_options){.max_images = most_images, .is_apart = true},
                       &apart, NULL),
        TDM_OK);
    if (tdmi_isa_best() >= TDMI_ISA_AVX2) {
        assert_int_equal(links_of(plan, "a_project"), 3);
        assert_int_equal(links_of(plan, "b_project"), 3);
    }
    assert_int_equal(links_of(plan, "c_left"), 1);
    assert_int_equal(links_of(plan, "c_right"), 1);
    for (int i = 0; i < graph->n_nodes; i++) {
        assert_true((plan->nodes[i].chained_by < 0) || plan->nodes[i].y.bytes == 0);
        assert_int_equal(training->nodes[i].n_links, 1);
        assert_int_equal(apart->nodes[i].n_links, 1);
    }
    tdmi_plan_free(plan);
    tdmi_plan_free(training);
    tdmi_plan_free(apart);
}

TEST(frozen_nodes_are_links_and_trained_ones_are_not)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = blocks();
    struct backends backends;
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    backends_init(&backends);
    struct tdmi_plan_options request = {.max_images = most_images, .is_training = true};
    request.first_trained = node_of(graph, "b_project"); /* what reads the frozen part trains */
    assert_int_equal(tdmi_plan_make(graph, &backends.with, &request, &plan, NULL), TDM_OK);
    if (tdmi_isa_best() >= TDMI_ISA_AVX2)
        assert_int_equal(links_of(plan, "a_project"), 3);
    assert_int_equal(links_of(plan, "b_project"), 1);
    assert_true(plan->nodes[node_of(graph, "b_depth")].y.bytes > 0);
}

TEST(a_network_gives_the_same_bits_with_chains)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = blocks();
    struct backends backends;
    tdmi_plan *with, *without;
    float *params = tdmi_alloc((size_t)graph->param_values, sizeof *params);
    float *states = tdmi_alloc((size_t)graph->state_values, sizeof *states);
    assert_true(params && states);
    tdmi_graph_init_values(graph, 5, params, states);
    struct tdmi_values values = {params, states};
    backends_init(&backends);
    assert_int_equal(tdmi_plan_new(graph, &backends.with, most_images, false, &with, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(graph, &backends.without, most_images, false, &without, NULL),
                     TDM_OK);
    if (tdmi_isa_best() >= TDMI_ISA_AVX2)
        assert_true(with->arena_bytes < without->arena_bytes);
    for (int n = 1; n <= most_images; n++) {
        float got[most_images * n_classes], wanted[most_images * n_classes];
        run(with, values, n, got);
        run(without, values, n, wanted);
        assert_memory_equal(got, wanted, sizeof(float) * (size_t)n * n_classes);
        for (int i = 0; i < n * n_classes; i++)
            assert_true(got[i] > 0.0f && got[i] < 1.0f); /* no poison, and softmax is not flat */
    }
    tdmi_plan_free(with);
    tdmi_plan_free(without);
    tdmi_free(params);
    tdmi_free(states);
}

TEST_MAIN(NULL, NULL)

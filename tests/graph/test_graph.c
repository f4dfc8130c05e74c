/* Building graphs: what is laid out where, which mistakes are told, what fresh weights are. */
#include "base/memory.h"
#include "models/known_network.h"
#include "unit.h"

#include <math.h>
#include <limits.h>

static const struct tdmi_preprocess grey = {
    .width = 8, .height = 8, .channels = 1, .crop_fraction = 1.0};

/* ---- layout -------------------------------------------------------------------------------- */

static void check_layout(const struct tdmi_tensor *tensors, int n, int64_t total)
{
    int64_t end = 0;
    for (int i = 0; i < n; i++) {
        int64_t values = 1;
        assert_int_equal(tensors[i].offset % 16, 0);
        assert_true(tensors[i].offset >= end && tensors[i].offset < end + 16);
        end = tensors[i].offset + tensors[i].n;
        for (int d = 0; d < tensors[i].spec.n_dims; d++)
            values *= tensors[i].spec.dims[d];
        assert_int_equal(values, tensors[i].n);
    }
    assert_true(total >= end && total < end + 16);
}

TEST(tensors_lie_one_behind_the_other_on_cache_lines)
{
    const struct tdmi_network *it;
    for (int i = 0; (it = tdmi_network_at(i)) != NULL; i++) {
        tdmi_graph *graph = network_new(it->name, it->preprocess.width, 7);
        check_layout(graph->params, graph->n_params, graph->param_values);
        check_layout(graph->states, graph->n_states, graph->state_values);
        assert_int_equal(tdmi_graph_state_sums_at(graph), graph->param_values);
        assert_int_equal(tdmi_graph_tail_at(graph), graph->param_values + graph->state_values);
        assert_true(tdmi_graph_sums_values(graph) >= tdmi_graph_tail_at(graph) + TDMI_TAIL_VALUES);
        tdmi_graph_free(graph);
    }
}

/* ---- fresh values -------------------------------------------------------------------------- */

static float *fresh(const tdmi_graph *graph, uint64_t seed)
{
    float *values = tdmi_alloc((size_t)(graph->param_values + graph->state_values), sizeof(float));
    assert_non_null(values);
    tdmi_graph_init_values(graph, seed, values, values + graph->param_values);
    return values;
}

TEST(fresh_values_are_a_function_of_the_seed)
{
    tdmi_graph *graph = network_new("convnet7", 32, 4), *again = network_new("convnet7", 64, 4);
    float *a = fresh(graph, 7), *b = fresh(again, 7), *c = fresh(graph, 8);
    size_t bytes = sizeof(float) * (size_t)(graph->param_values + graph->state_values);
    int n_same = 0, n_he = 0;
    assert_memory_equal(a, b, bytes); /* the picture's size changes no weight here */
    for (int t = 0; t < graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &graph->params[t];
        if (tensor->spec.init != TDMI_INIT_HE)
            continue;
        double sum = 0.0, squares = 0.0, bound = sqrt(6.0 / (double)tensor->spec.fan_in);
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->n; i++) {
            sum += (double)a[i];
            squares += (double)a[i] * (double)a[i];
            assert_true(fabs((double)a[i]) <= bound * (1.0 + 1e-6));
            n_same += memcmp(&a[i], &c[i], sizeof *a) == 0;
            n_he++;
        }
        double n = (double)tensor->n, spread = bound / sqrt(3.0);
        assert_true(fabs(sum / n) < 5.0 * spread / sqrt(n));
        assert_true(fabs(squares / n / (spread * spread) - 1.0) < 5.0 / sqrt(n));
    }
    assert_true(n_same < n_he / 1000);
    tdmi_free(a);
    tdmi_free(b);
    tdmi_free(c);
    tdmi_graph_free(graph);
    tdmi_graph_free(again);
}

TEST(biases_begin_at_zero_and_batch_norm_as_identity)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = network_new("convnet7", 32, 4);
    float *values = fresh(graph, 7);
    int n_seen = 0;
    for (int t = 0; t < graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &graph->params[t];
        if (tensor->spec.init == TDMI_INIT_HE)
            continue;
        bool is_one = strstr(tensor->name, "bn") && strstr(tensor->name, ".weight");
        for (int64_t i = 0; i < tensor->n; i++)
            assert_true(values[tensor->offset + i] == (is_one ? 1.0f : 0.0f));
        assert_false(tensor->spec.has_decay);
        n_seen++;
    }
    assert_int_equal(n_seen, 13);
    for (int t = 0; t < graph->n_states; t++) {
        bool is_one = strstr(graph->states[t].name, "running_var") != NULL;
        for (int64_t i = 0; i < graph->states[t].n; i++)
            assert_true(values[graph->param_values + graph->states[t].offset + i] ==
                        (is_one ? 1.0f : 0.0f));
    }
    tdmi_free(values);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

typedef void builder(tdmi_graph *graph);

static void empty(tdmi_graph *graph)
{
    (void)graph;
}

static void no_input(tdmi_graph *graph)
{
    tdmi_add_relu(graph, "relu", -1);
}

static void input_that_reads(tdmi_graph *graph)
{
    int x = tdmi_add_input(graph, &grey);
    tdmi_graph_add(graph, TDMI_OP_INPUT, "second", x, (struct tdmi_op_attrs){.preprocess = grey});
}

static void second_input(tdmi_graph *graph)
{
    const int x = tdmi_add_input(graph, &grey);
    const int y = tdmi_graph_add(graph, TDMI_OP_INPUT, "second", -1,
                                 (struct tdmi_op_attrs){.preprocess = grey});
    const int sum = tdmi_graph_join(graph, TDMI_OP_ADD, "add", x, y, (struct tdmi_op_attrs){0});
    tdmi_add_softmax(graph, tdmi_add_global_pool(graph, "pool", sum));
}

static void softmax_in_the_middle(tdmi_graph *graph)
{
    int x = tdmi_add_global_pool(graph, "pool", tdmi_add_input(graph, &grey));
    x = tdmi_graph_add(graph, TDMI_OP_SOFTMAX, "early", x, (struct tdmi_op_attrs){0});
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, 3));
}

static void reads_a_later_node(tdmi_graph *graph)
{
    tdmi_add_input(graph, &grey);
    tdmi_add_relu(graph, "relu", 1);
}

static void same_name_twice(tdmi_graph *graph)
{
    int x = tdmi_add_relu(graph, "relu", tdmi_add_input(graph, &grey));
    tdmi_add_softmax(graph, tdmi_add_relu(graph, "relu", x));
}

static void no_reader(tdmi_graph *graph)
{
    int x = tdmi_add_input(graph, &grey);
    tdmi_add_relu(graph, "first", x);
    tdmi_add_softmax(graph, tdmi_add_global_pool(graph, "pool", x));
}

static void no_softmax(tdmi_graph *graph)
{
    tdmi_add_global_pool(graph, "pool", tdmi_add_input(graph, &grey));
}

static void softmax_of_a_picture(tdmi_graph *graph)
{
    tdmi_add_softmax(graph, tdmi_add_input(graph, &grey));
}

static void window_too_large(tdmi_graph *graph)
{
    tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &grey), 4, 11, 1, 1, true);
}

static void window_of_nothing(tdmi_graph *graph)
{
    tdmi_add_max_pool(graph, "pool", tdmi_add_input(graph, &grey), 0, 1);
}

static void stride_of_nothing(tdmi_graph *graph)
{
    tdmi_add_max_pool(graph, "pool", tdmi_add_input(graph, &grey), 2, 0);
}

static void padding_as_wide_as_the_window(tdmi_graph *graph)
{
    tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &grey), 4, 3, 1, 3, true);
}

static void no_channels(tdmi_graph *graph)
{
    tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &grey), 0, 3, 1, 1, true);
}

static void no_outputs(tdmi_graph *graph)
{
    tdmi_add_dense(graph, "dense", tdmi_add_input(graph, &grey), -3);
}

static void two_channels_of_colour(tdmi_graph *graph)
{
    struct tdmi_preprocess odd = grey;
    odd.channels = 2;
    tdmi_add_input(graph, &odd);
}

static void bad_batch_norm(tdmi_graph *graph)
{
    tdmi_graph_add(graph, TDMI_OP_BATCH_NORM, "bn", tdmi_add_input(graph, &grey),
                   (struct tdmi_op_attrs){.epsilon = 0.0, .momentum = 0.1});
}

/* 15 · 15 · 2^30 · 2^30 values would overflow 64 bits. */
static void huge_weights(tdmi_graph *graph)
{
    int x =
        tdmi_add_input(graph, &(struct tdmi_preprocess){.width = 15, .height = 15, .channels = 1});
    x = tdmi_add_conv(graph, "conv1", x, 1 << 20, 15, 1, 0, false);
    x = tdmi_add_conv(graph, "conv2", x, INT_MAX, 15, 1, 14, false);
    tdmi_add_softmax(graph, tdmi_add_global_pool(graph, "pool", x));
}

/* 40000 · 40000 · 2^31 activations come close to 2^62. */
static void huge_activations(tdmi_graph *graph)
{
    int x = tdmi_add_input(
        graph, &(struct tdmi_preprocess){.width = 40000, .height = 40000, .channels = 1});
    x = tdmi_add_conv(graph, "conv1", x, INT_MAX, 1, 1, 0, false);
    tdmi_add_softmax(graph, tdmi_add_global_pool(graph, "pool", x));
}

static void huge_dense(tdmi_graph *graph)
{
    int x = tdmi_add_input(
        graph, &(struct tdmi_preprocess){.width = 30000, .height = 30000, .channels = 1});
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, 30000));
}

static void endless(tdmi_graph *graph)
{
    int x = tdmi_add_input(graph, &grey);
    for (int i = 0; i < 5000; i++) {
        char name[16];
        snprintf(name, sizeof name, "relu%d", i);
        x = tdmi_add_relu(graph, name, x);
    }
}

TEST(mistakes_are_told_in_a_sentence_that_names_the_node)
{
    static const struct {
        builder *build;
        const char *says, *names;
    } cases[] = {
        {empty, "must begin with an input", "tested"},
        {no_input, "only earlier nodes can be read", "'relu'"},
        {input_that_reads, "reads no input", "'second'"},
        {second_input, "only the first node may be", "'second'"},
        {softmax_in_the_middle, "only the last node may be", "'early'"},
        {reads_a_later_node, "only earlier nodes can be read", "'relu'"},
        {same_name_twice, "taken by node 1", "'relu'"},
        {no_reader, "read by no other", "'first'"},
        {no_softmax, "end with softmax", "tested"},
        {softmax_of_a_picture, "image of 8×8", "'softmax'"},
        {window_too_large, "no room for a window of 11", "'conv'"},
        {window_of_nothing, "1 to 15", "'pool'"},
        {stride_of_nothing, "1 to 15", "'pool'"},
        {padding_as_wide_as_the_window, "0 to 2 are accepted", "'conv'"},
        {no_channels, "at least 1", "'conv'"},
        {no_outputs, "at least 1", "'dense'"},
        {two_channels_of_colour, "1 or 3", "'input'"},
        {bad_batch_norm, "epsilon 0", "'bn'"},
        {huge_weights, "values", "'conv2'"},
        {huge_activations, "values", "'conv1'"},
        {huge_dense, "values", "'dense'"},
        {endless, "more than 4096 nodes", "'relu4095'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_graph *graph = tdmi_graph_new();
        tdm_error err = {0};
        char text[2000];
        assert_non_null(graph);
        cases[i].build(graph);
        if (tdmi_graph_finish(graph, "tested", &err) != TDM_E_INPUT)
            fail_msg("case %zu (%s) was accepted", i, cases[i].says);
        tdm_error_format(&err, text, sizeof text);
        if (!strstr(text, cases[i].says) || !strstr(text, cases[i].names))
            fail_msg("case %zu: '%s' and '%s' are not in: %s", i, cases[i].says, cases[i].names,
                     text);
        assert_int_equal(tdmi_graph_finish(graph, "tested", NULL), TDM_E_INPUT);
        tdmi_graph_free(graph);
    }
}

TEST(after_a_mistake_nothing_more_is_added)
{
    tdmi_graph *graph = tdmi_graph_new();
    tdm_error err = {0};
    assert_non_null(graph);
    no_channels(graph);
    int nodes = graph->n_nodes;
    assert_int_equal(tdmi_add_relu(graph, "relu", 0), -1);
    assert_int_equal(graph->n_nodes, nodes);
    assert_int_equal(tdmi_graph_finish(graph, "tested", &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "at least 1"));
    tdmi_graph_free(graph);
    tdmi_graph_free(NULL);
}

TEST(a_picture_too_small_for_a_network_is_refused_with_advice)
{
    /* The others pad every window, and look at one pixel if they must. */
    static const char *const names[] = {"xception", "convnet7", "lenet5", "alexnet"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tdmi_network network;
        tdmi_graph *graph = NULL;
        tdm_error err = {0};
        assert_int_equal(tdmi_network_find(names[i], &network, NULL), TDM_OK);
        network.preprocess.width = network.preprocess.height = 4;
        assert_int_equal(tdmi_network_build(&network, &network.preprocess, 3, &graph, &err),
                         TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "larger --size"));
        assert_null(graph);
    }
}

TEST_MAIN(NULL, NULL)

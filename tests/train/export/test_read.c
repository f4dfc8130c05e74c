/*
 * Every exported file is read again and gives the same answers: heads with a hidden layer, with one
 * logit, with a question a class; hard swish; batch norms of either publisher; with and without
 * --model.
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "models/network.h"
#include "weights/import/import.h"
#include "weights/safetensors/safetensors.h"
#include "weights/weights.h"
#include "tandem/model.h"
#include "tandem/log.h"
#include "train/evaluate/evaluated.h"
#include "train/export/models.h"
#include "train/model/model_import.h"
#include "train/pictures.h"
#include "unit.h"

#include <math.h>

enum { PICTURES = 5, MOST_CLASSES = 4 };

static const char *const names[MOST_CLASSES] = {"ant", "bee", "cat", "dog"};

static struct tdm_model model_of(tdmi_graph *graph, const char *network)
{
    tdmi_rng rng = tdmi_rng_at(9, TDMI_RNG_TEST, 0, 0);
    assert_int_equal(tdmi_graph_finish(graph, network, NULL), TDM_OK);
    struct tdm_model model =
        empty_model(graph, network, tdmi_graph_classes(graph), names, MOST_CLASSES);
    struct tdmi_model_file *file = &model.file;
    tdmi_graph_init_values(graph, 3, file->params, file->states);
    for (int i = 0; i < graph->n_params; i++)
        for (int64_t v = 0; graph->params[i].spec.n_dims == 1 && v < graph->params[i].n; v++)
            file->params[graph->params[i].offset + v] += tdmi_rng_uniform(&rng, -0.3F, 0.3F);
    /* Small variances: an epsilon that is none of theirs would be seen. */
    for (int64_t v = 0; v < graph->state_values; v++)
        file->states[v] = tdmi_rng_uniform(&rng, 0.001F, 0.01F);
    return model;
}

struct answers {
    float logits[PICTURES * MOST_CLASSES], probabilities[PICTURES * MOST_CLASSES];
};

static void ask(const struct tdmi_model_file *file, struct answers *answers)
{
    const int64_t bytes = PICTURES * tdmi_shape_values(file->graph->nodes[0].out);
    TDMI_AT_END(tdmi_free_at) uint8_t *pixels = tdmi_alloc((size_t)bytes, 1);
    tdmi_rng rng = tdmi_rng_at(10, TDMI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < bytes; i++)
        pixels[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    *answers = (struct answers){{0}, {0}};
    evaluated(file->graph, (struct tdmi_values){file->params, file->states}, pixels, PICTURES,
              answers->probabilities, answers->logits);
}

static void same_numbers(const char *what, const float *found, const float *expected, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(found[i] - expected[i]) <= 1e-4F * (1.0F + fabsf(expected[i]))))
            fail_msg("%s: value %d is %g, the model's %g", what, i, (double)found[i],
                     (double)expected[i]);
}

static void answers_alike(const struct tdm_model *model, const char *path, const char *network)
{
    struct answers expected, found;
    TDMI_AT_END(tdmi_model_file_release) struct tdmi_model_file read = {0};
    tdm_error err = {0};
    char text[3000], what[300];
    snprintf(what, sizeof what, "%s, --model %s", path, network ? network : "not given");
    if (tdmi_model_import(path, &(struct tdm_model_options){.network = network}, &read, &err)) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s: %s", what, text);
    }
    assert_int_equal(read.n_classes, model->file.n_classes);
    for (int c = 0; c < read.n_classes; c++)
        assert_string_equal(read.classes[c], names[c]);
    ask(&model->file, &expected);
    ask(&read, &found);
    same_numbers(what, found.logits, expected.logits, PICTURES * read.n_classes);
    same_numbers(what, found.probabilities, expected.probabilities, PICTURES * read.n_classes);
}

/* One of our networks is also read back with its name given. */
static void comes_back(const struct tree *tree, tdmi_graph *graph, const char *network)
{
    static const char *const files[] = {"read.safetensors", "read.h5"};
    TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, network);
    struct tdmi_network known;
    for (size_t i = 0; i < 2; i++) {
        struct tdm_export_result result = {.struct_bytes = sizeof result};
        tdm_error err = {0};
        const char *path = below(tree, files[i]);
        if (tdm_model_export(&model, &(struct tdm_export_options){.path = path}, &result, &err))
            fail_msg("%s", tdm_error_sentence(&err, 0));
        answers_alike(&model, path, NULL);
        if (tdmi_network_find(network, &known, NULL) == TDM_OK)
            answers_alike(&model, path, network);
    }
}

static const struct tdmi_preprocess small = {.width = 9,
                                             .height = 9,
                                             .channels = 3,
                                             .fit = TDMI_FIT_STRETCH,
                                             .crop_fraction = 1,
                                             .scale = TDMI_SCALE_TF};

static tdmi_graph *known(const char *name, int size, const struct tdmi_head *head,
                         enum tdmi_padding padding, enum tdmi_publisher publisher)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    assert_int_equal(tdmi_network_find(name, &network, NULL), TDM_OK);
    struct tdmi_build what = tdmi_network_defaults(&network, head->classes);
    what.head = *head;
    what.padding = padding;
    what.publisher = publisher;
    what.preprocess.width = what.preprocess.height = size;
    assert_int_equal(tdmi_network_make(&network, &what, &graph, NULL), TDM_OK);
    return graph;
}

TEST(heads_of_every_kind_come_back)
{
    static const struct tdmi_head heads[] = {
        {.classes = 3, .hidden = 7},
        {.classes = 3, .hidden = 7, .dropout = 0.4},
        {.classes = 3, .dropout = 0.4},
        {.classes = 2, .is_logistic = true},
        {.classes = 2, .is_logistic = true, .hidden = 5},
        {.classes = 4, .is_logistic = true},
        {.classes = 2, .label_smoothing = 0.1},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        comes_back(*state,
                   known("lenet5", 16, &heads[i], TDMI_PADDING_SYMMETRIC, TDMI_PUBLISHER_OURS),
                   "lenet5");
        tdmi_graph *graph = tdmi_graph_new();
        int x = tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &small), 4, 3, 2, 1, true);
        x = tdmi_add_global_pool(graph, "pool", tdmi_add_relu(graph, "relu", x));
        tdmi_add_head(graph, &heads[i], "last", x);
        comes_back(*state, graph, "mine");
    }
}

static const struct tdmi_head three = {.classes = 3};

TEST(both_publishers_mobilenets_come_back)
{
    for (int form = TDMI_PUBLISHER_KERAS; form <= (int)TDMI_PUBLISHER_TORCH; form++)
        for (int padding = 0; padding <= (int)TDMI_PADDING_SYMMETRIC; padding++)
            comes_back(*state,
                       known("mobilenetv2-0.1", 32, &three, (enum tdmi_padding)padding,
                             (enum tdmi_publisher)form),
                       "mobilenetv2-0.1");
}

/* The tensors, classes and layers of an export, and nothing else that we say of ourselves. */
static void forget(const char *from, const char *to)
{
    static const char *const kept[] = {"model_config", "classes"};
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_weights_open(from, &weights, &err), &err);
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    for (size_t i = 0; i < 2; i++)
        tdmi_safetensors_note(writer, kept[i], tdmi_weights_fact(weights, kept[i]));
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    assert_ok(tdmi_safetensors_finish(writer, to, &err), &err);
}

/* As Keras saves it again: it keeps no words of ours. Its layers still say epsilon and padding. */
TEST(layers_say_more_than_a_name)
{
    const struct tree *tree = *state;
    const char *name = "mobilenetv2-0.1";
    for (int padding = 0; padding <= (int)TDMI_PADDING_SYMMETRIC; padding++) {
        struct tdm_export_result result = {.struct_bytes = sizeof result};
        const char *path = below(tree, "plain.h5"), *again = below(tree, "again.safetensors");
        TDMI_AT_END(model_release)
        struct tdm_model model = model_of(
            known(name, 32, &three, (enum tdmi_padding)padding, TDMI_PUBLISHER_TORCH), name);
        assert_int_equal(
            tdm_model_export(&model, &(struct tdm_export_options){.path = path}, &result, NULL),
            TDM_OK);
        forget(path, again);
        struct tdmi_model_file read;
        const struct tdm_model_options options = {.network = name, .size = 32};
        struct answers expected, found;
        assert_int_equal(tdmi_model_import(again, &options, &read, NULL), TDM_OK);
        ask(&model.file, &expected);
        ask(&read, &found);
        same_numbers(again, found.logits, expected.logits, 3 * PICTURES);
        tdmi_model_file_release(&read);
    }
}

TEST(hard_swish_comes_back)
{
    const struct tdmi_op_attrs none = {0};
    tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &small), 4, 3, 1, 1, false);
    x = tdmi_add_keras_norm(graph, "norm", x);
    x = tdmi_graph_add(graph, TDMI_OP_HSWISH, "hswish", x, none);
    int y = tdmi_add_conv(graph, "conv2", x, 4, 3, 1, 1, true);
    y = tdmi_graph_add(graph, TDMI_OP_HSWISH, "hswish2", y, none);
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_sum(graph, "sum", x, y));
    x = tdmi_add_dense(graph, "hidden_one", x, 6);
    x = tdmi_graph_add(graph, TDMI_OP_HSWISH, "hswish3", x, none);
    x = tdmi_graph_add(graph, TDMI_OP_SIGMOID, "sigmoid", x, none);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "last", x, 3));
    comes_back(*state, graph, "swish");
}

/* Norms of Keras under names of PyTorch, and a network that only the file knows. */
TEST(a_network_of_nobodys_comes_back)
{
    tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_conv(graph, "a", tdmi_add_input(graph, &small), 4, 3, 2, 1, false);
    x = tdmi_add_keras_norm(graph, "a_bn", x);
    x = tdmi_add_batch_norm(graph, "b_bn", tdmi_add_conv(graph, "b", x, 4, 3, 2, 1, true));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "last", x, 3));
    comes_back(*state, graph, "nobodys");
}

/* Such come of networks that a Keras file describes. */
TEST(dense_layers_behind_a_pool_are_head_under_any_name)
{
    const char *path = below(*state, "dense.safetensors");
    tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_conv(graph, "a", tdmi_add_input(graph, &small), 4, 3, 2, 1, true);
    x = tdmi_add_dense(graph, "d1", tdmi_add_global_pool(graph, "pool", x), 6);
    x = tdmi_add_dense(graph, "d2", tdmi_add_relu(graph, "d1_relu", x), 5);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "last", tdmi_add_relu(graph, "d2_relu", x), 3));
    TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "nobodys");
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    assert_int_equal(
        tdm_model_export(&model, &(struct tdm_export_options){.path = path}, &result, NULL),
        TDM_OK);

    tdmi_weights *weights;
    struct tdmi_import import;
    assert_int_equal(tdmi_weights_open(path, &weights, NULL), TDM_OK);
    const struct tdmi_import_request same = {.head = {.classes = 3}},
                                     others = {.head = {.classes = 4}};
    assert_int_equal(tdmi_import(weights, &same, &import, NULL), TDM_OK);
    assert_false(import.has_new_head);
    assert_string_equal(import.graph->nodes[import.graph->head].name, "d1");
    tdmi_import_release(&import);
    assert_int_equal(tdmi_import(weights, &others, &import, NULL), TDM_OK);
    assert_true(import.has_new_head);
    assert_int_equal(import.graph->n_nodes, 5); /* input, a, pool, last, softmax */
    assert_string_equal(import.graph->nodes[import.graph->head].name, "last");
    tdmi_import_release(&import);
    tdmi_weights_close(weights);
}

TEST_MAIN(begin_with_tree, end_with_tree)

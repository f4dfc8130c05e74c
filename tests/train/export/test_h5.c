/* Models as Keras' .h5: which layers they are, in which order, and with which weights. */
#include "models/known_network.h"
#include "weights/import/import.h"
#include "weights/weights.h"
#include "train/export/keras.h"
#include "train/export/models.h"
#include "train/pictures.h"

#include "base/each_allocation.h"
#include "unit.h"

static const char *const classes[] = {"a \"b\"", "猫", "c"};

static struct tdm_model model_of(tdmi_graph *graph, const char *network)
{
    struct tdm_model model = empty_model(graph, network, 3, classes, 3);
    for (int64_t i = 0; i < graph->param_values; i++)
        model.file.params[i] = (float)(i % 1000);
    return model;
}

static tdmi_weights *exported(const struct tdm_model *model, const char *path)
{
    tdm_error err = {0};
    char text[3000];
    tdmi_weights *weights = NULL;
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    if (tdm_model_export(model, &(struct tdm_export_options){.path = path}, &result, &err) ||
        tdmi_weights_open(path, &weights, &err)) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
    assert_string_equal(result.form, "h5");
    return weights;
}

/* By the end of its name: what stands before is the file's business. */
static size_t place_of(const tdmi_weights *weights, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const char *found = tdmi_weights_at(weights, i)->name;
        if (strlen(found) >= length && strcmp(found + strlen(found) - length, name) == 0)
            return i;
    }
    fail_msg("no weights %s", name);
    return 0;
}

TEST(xception_has_the_layers_of_keras_in_its_order)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("xception", 71, 3), "xception");
    tdmi_weights *weights = exported(&model, below(tree, "xception.h5"));
    size_t depthwise = place_of(weights, "/block2_sepconv2/depthwise_kernel:0");
    size_t pointwise = place_of(weights, "/block2_sepconv2/pointwise_kernel:0");
    size_t norm = place_of(weights, "/block2_sepconv2_bn/gamma:0");
    size_t shortcut = place_of(weights, "/conv2d/kernel:0");
    size_t shortcut_norm = place_of(weights, "/batch_normalization/gamma:0");
    size_t next = place_of(weights, "/block3_sepconv1/depthwise_kernel:0");
    assert_int_equal(pointwise, depthwise + 1);
    /* As Keras' own Xception has them: the shortcut where it is as far from the end. */
    assert_true(depthwise < norm && norm < shortcut && shortcut < shortcut_norm);
    assert_true(shortcut_norm < next);
    const struct tdmi_weights_tensor *kernel = tdmi_weights_at(weights, depthwise);
    assert_int_equal(kernel->shape[2], 128);
    assert_int_equal(kernel->shape[3], 1);
    assert_int_equal(tdmi_weights_count(weights),
                     (size_t)(model.file.graph->n_params + model.file.graph->n_states));
    tdmi_weights_close(weights);
}

static const tdm_json_value *layer_of(const tdm_json_value *config, const char *name)
{
    const tdm_json_value *layers = tdm_json_member(tdm_json_member(config, "config"), "layers");
    for (size_t i = 0; i < tdm_json_count(layers); i++) {
        const tdm_json_value *layer = tdm_json_at(layers, i);
        if (strcmp(tdm_json_as_string(tdm_json_member(layer, "name"), ""), name) == 0)
            return layer;
    }
    fail_msg("no layer %s", name);
    return NULL;
}

static void is_layer(const tdm_json_value *config, const char *name, const char *class_name,
                     const char *input)
{
    const tdm_json_value *layer = layer_of(config, name);
    const tdm_json_value *calls = tdm_json_member(layer, "inbound_nodes");
    const tdm_json_value *first = tdm_json_at(tdm_json_at(tdm_json_at(calls, 0), 0), 0);
    assert_string_equal(tdm_json_as_string(tdm_json_member(layer, "class_name"), ""), class_name);
    assert_string_equal(tdm_json_as_string(first, ""), input);
}

TEST(the_configuration_says_what_keras_has_no_word_for_in_layers)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("resnet20-cifar", 32, 3), "resnet20-cifar");
    tdmi_weights *weights = exported(&model, below(tree, "cifar.h5"));
    const char *text = tdmi_weights_fact(weights, "model_config");
    tdm_json_document *document = NULL;
    assert_non_null(text);
    assert_int_equal(tdm_json_read(text, strlen(text), "config", &document, NULL), TDM_OK);
    const tdm_json_value *config = tdm_json_root(document);
    is_layer(config, "conv1", "Conv2D", "input");
    /* Three by three at stride 2 pads both sides here; Keras' "same" pads one. */
    is_layer(config, "layer2.0.conv1.zeros", "ZeroPadding2D", "layer1.2.relu2");
    is_layer(config, "layer2.0.conv1", "Conv2D", "layer2.0.conv1.zeros");
    is_layer(config, "layer2.0.shortcut.pad.turn", "Permute", "layer2.0.shortcut.pick");
    is_layer(config, "layer2.0.shortcut.pad.channels", "ZeroPadding2D",
             "layer2.0.shortcut.pad.turn");
    is_layer(config, "layer2.0.shortcut.pad.turn_back", "Permute",
             "layer2.0.shortcut.pad.channels");
    is_layer(config, "linear", "Dense", "pool");
    is_layer(config, "softmax", "Activation", "linear");
    const tdm_json_value *conv = tdm_json_member(layer_of(config, "conv1"), "config");
    assert_string_equal(tdm_json_as_string(tdm_json_member(conv, "padding"), ""), "same");
    const tdm_json_value *norm = tdm_json_member(layer_of(config, "bn1"), "config");
    assert_true(tdm_json_as_number(tdm_json_member(norm, "epsilon"), 0) == 1e-5);
    assert_true(tdm_json_as_number(tdm_json_member(norm, "momentum"), 0) == 0.9);
    tdm_json_document_free(document);
    tdmi_weights_close(weights);
}

TEST(what_keras_has_no_layer_for_is_refused_by_name)
{
    const struct tree *tree = *state;
    static const struct {
        enum tdmi_op_kind kind;
        struct tdmi_op_attrs attrs;
        const char *says;
    } cases[] = {
        {TDMI_OP_LRN, {.kernel = 5, .alpha = 1, .beta = 1, .offset = 1}, "no layer for lrn"},
        {TDMI_OP_MAX_POOL,
         {.kernel = 3, .stride = 1, .pad_top = 2},
         "no layer for the largest value of padded windows"},
        {TDMI_OP_AVG_POOL,
         {.kernel = 3, .stride = 1, .pad_top = 2},
         "no layer for the mean of padded windows"},
    };
    const struct tdmi_preprocess preprocess = {
        .width = 8, .height = 8, .channels = 3, .crop_fraction = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_graph *graph = tdmi_graph_new();
        tdm_error err = {0};
        char text[3000];
        struct tdm_export_result result = {.struct_bytes = sizeof result};
        int x = tdmi_add_input(graph, &preprocess);
        x = tdmi_graph_add(graph, cases[i].kind, "strange", x, cases[i].attrs);
        tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, 3));
        assert_int_equal(tdmi_graph_finish(graph, "strange", NULL), TDM_OK);
        TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "strange");
        const char *path = below(tree, "strange.h5");
        assert_int_equal(
            tdm_model_export(&model, &(struct tdm_export_options){.path = path}, &result, &err),
            TDM_E_INPUT);
        tdm_error_format(&err, text, sizeof text);
        if (!strstr(text, cases[i].says))
            fail_msg("expected '%s' in: %s", cases[i].says, text);
        assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_MISSING);
    }
}

TEST(the_same_model_gives_the_same_file_with_its_classes)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("lenet5", 28, 3), "lenet5");
    tdmi_weights *weights = exported(&model, below(tree, "1.h5"));
    tdm_json_document *document = NULL;
    const char *text = tdmi_weights_fact(weights, "classes");
    assert_non_null(text);
    assert_int_equal(tdm_json_read(text, strlen(text), "classes", &document, NULL), TDM_OK);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(tdm_json_as_string(tdm_json_at(tdm_json_root(document), i), ""),
                            classes[i]);
    tdm_json_document_free(document);
    tdmi_weights_close(weights);
    tdmi_weights_close(exported(&model, below(tree, "2.h5")));
    same_files(below(tree, "1.h5"), below(tree, "2.h5"));
}

/* Imported again: the same values in the same tensors, by the description alone. */
static void comes_back(const struct tdm_model *model, const char *path)
{
    tdm_error err = {0};
    char text[3000];
    struct tdmi_import import;
    tdmi_weights *weights = exported(model, path);
    if (tdmi_import(weights, &(struct tdmi_import_request){0}, &import, &err) != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
    const tdmi_graph *found = import.graph, *expected = model->file.graph;
    assert_int_equal(found->n_params, expected->n_params);
    for (int i = 0; i < expected->n_params; i++) {
        const struct tdmi_tensor *is = &found->params[i], *was = &expected->params[i];
        assert_int_equal(is->n, was->n);
        assert_memory_equal(import.params + is->offset, model->file.params + was->offset,
                            sizeof(float) * (size_t)was->n);
    }
    assert_int_equal(tdmi_graph_preprocess(import.graph)->scale,
                     tdmi_graph_preprocess(model->file.graph)->scale);
    tdmi_import_release(&import);
    tdmi_weights_close(weights);
}

/* Keras' ResNet-50 wants blue first; an export of ours by that name does not. */
TEST(colours_stay_in_order_whatever_the_network_is_called)
{
    const struct tree *tree = *state;
    static const enum tdmi_scale scales[] = {TDMI_SCALE_TORCH, TDMI_SCALE_CAFFE};
    for (int i = 0; i < 2; i++) {
        const struct tdmi_preprocess preprocess = {
            .width = 8, .height = 8, .channels = 3, .crop_fraction = 1, .scale = scales[i]};
        tdmi_graph *graph = tdmi_graph_new();
        int x = tdmi_add_conv(graph, "conv1", tdmi_add_input(graph, &preprocess), 4, 3, 1, 1, true);
        tdmi_add_softmax(graph, tdmi_add_dense(graph, "fc", x, 3));
        assert_int_equal(tdmi_graph_finish(graph, "resnet50", NULL), TDM_OK);
        TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "resnet50");
        comes_back(&model, below(tree, "colours.h5"));
    }
}

/* A network without naming rules has two layers where xception has one separable layer. */
TEST(halves_of_separable_convolutions_come_back_as_layers)
{
    const struct tree *tree = *state;
    const struct tdmi_preprocess preprocess = {
        .width = 8, .height = 8, .channels = 3, .crop_fraction = 1};
    const struct tdmi_build what = {.padding = TDMI_PADDING_SAME};
    tdmi_graph *graph = tdmi_graph_new();
    int x =
        tdmi_add_depthwise(graph, &what, "sep.depthwise", tdmi_add_input(graph, &preprocess), 3, 1);
    x = tdmi_add_conv(graph, "sep.pointwise", x, 5, 1, 1, 0, false);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, 3));
    assert_int_equal(tdmi_graph_finish(graph, "strange", NULL), TDM_OK);
    TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "strange");
    comes_back(&model, below(tree, "halves.h5"));
}

static struct tree *scene_tree;
static struct tdm_model scene_model;

static tdm_status export_scene(tdm_error *err)
{
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    const char *path = below(scene_tree, "scene.h5");
    tdm_status status =
        tdm_model_export(&scene_model, &(struct tdm_export_options){.path = path}, &result, err);
    assert_int_equal(tdmi_file_kind_of(path),
                     status == TDM_OK ? TDMI_FILE_REGULAR : TDMI_FILE_MISSING);
    return status;
}

TEST(without_memory_nothing_is_written)
{
    scene_tree = *state;
    scene_model = model_of(network_new("lenet5", 28, 3), "lenet5");
    assert_true(fail_each_allocation(export_scene) > 10);
    model_release(&scene_model);
}

TEST_MAIN(begin_with_tree, end_with_tree)

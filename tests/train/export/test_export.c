/* Models as files of other programs: what is in them, byte by byte and by name. */
#include "base/hash/rng.h"
#include "models/known_network.h"
#include "weights/safetensors/safetensors.h"
#include "base/text/json.h"
#include "train/export/export.h"
#include "train/export/models.h"
#include "train/export/onnx_walk.h"
#include "train/pictures.h"

#include <math.h>

#include "base/each_allocation.h"
#include "unit.h"

/* ---- models of values that are drawn ------------------------------------------------------- */

static const char *const hostile[] = {"a\"b\\c", "Straße, 猫 🐈", "</script>\t\n'"};

static struct tdm_model model_of(tdmi_graph *graph, const char *network)
{
    const int n_classes = graph->nodes[graph->n_nodes - 1].out.c;
    struct tdm_model model = empty_model(graph, network, n_classes, hostile, 3);
    struct tdmi_model_file *file = &model.file;
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 0, 0);
    file->progress.step = 77;
    file->lineage = (struct tdmi_lineage){.file = "base.pth", .licence = "BSD-3-Clause"};
    for (int64_t i = 0; i < graph->param_values; i++)
        file->params[i] = tdmi_rng_uniform(&rng, -1, 1);
    for (int64_t i = 0; i < graph->state_values; i++)
        file->states[i] = tdmi_rng_uniform(&rng, 0.1f, 2);
    return model;
}

static const struct tdmi_preprocess small = {
    .width = 12, .height = 10, .channels = 3, .crop_fraction = 1, .scale = TDMI_SCALE_TORCH};

static int added(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int input,
                 struct tdmi_op_attrs attrs)
{
    return tdmi_graph_add(graph, kind, name, input, attrs);
}

/* Every op there is, in places where their forms differ. */
static tdmi_graph *every_op(int lrn_kernel)
{
    const struct tdmi_op_attrs none = {0};
    const struct tdmi_op_attrs norm = {.epsilon = 0.001, .momentum = 0.1};
    tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_input(graph, &small);
    x = added(graph, TDMI_OP_CONV, "conv", x,
              (struct tdmi_op_attrs){.channels = 6,
                                     .kernel = 3,
                                     .stride = 1,
                                     .dilation = 2,
                                     .groups = 3,
                                     .pad_top = 1,
                                     .pad_bottom = 2,
                                     .pad_left = 3,
                                     .pad_right = 4,
                                     .has_bias = true});
    x = added(graph, TDMI_OP_BATCH_NORM, "norm", x, norm);
    int beside = added(graph, TDMI_OP_HSWISH, "hswish", x, none);
    x = added(graph, TDMI_OP_RELU, "relu", x, none);
    x = tdmi_graph_join(graph, TDMI_OP_CONCAT, "concat", x, beside, none);
    x = added(
        graph, TDMI_OP_LRN, "lrn", x,
        (struct tdmi_op_attrs){.kernel = lrn_kernel, .alpha = 1e-4, .beta = 0.75, .offset = 2});
    x = added(graph, TDMI_OP_MAX_POOL, "max", x,
              (struct tdmi_op_attrs){
                  .kernel = 3, .stride = 1, .pad_top = 1, .pad_bottom = 1, .pad_right = 2});
    x = added(
        graph, TDMI_OP_AVG_POOL, "avg", x,
        (struct tdmi_op_attrs){.kernel = 2, .stride = 2, .pad_left = 1, .counts_padding = true});
    x = added(graph, TDMI_OP_PAD, "pad", x,
              (struct tdmi_op_attrs){.pad_top = 1, .pad_right = 2, .pad_front = 3, .pad_back = 1});
    x = added(graph, TDMI_OP_DROPOUT, "drop", x, (struct tdmi_op_attrs){.rate = 0.5});
    beside = added(graph, TDMI_OP_GLOBAL_POOL, "pool", x, none);
    x = added(graph, TDMI_OP_DENSE, "dense", x,
              (struct tdmi_op_attrs){.channels = 16, .has_bias = true});
    x = tdmi_graph_join(graph, TDMI_OP_ADD, "add", x, beside, none);
    x = added(graph, TDMI_OP_RELU6, "relu6", x, none);
    x = added(graph, TDMI_OP_CONV, "again", x,
              (struct tdmi_op_attrs){
                  .channels = 4, .kernel = 1, .stride = 1, .dilation = 1, .groups = 1});
    x = added(graph, TDMI_OP_SIGMOID, "sigmoid", x, none);
    x = added(graph, TDMI_OP_DROPOUT, "last", x, (struct tdmi_op_attrs){.rate = 0.1, .stream = 1});
    added(graph, TDMI_OP_SOFTMAX, "softmax", x, none);
    assert_int_equal(tdmi_graph_finish(graph, "every", NULL), TDM_OK);
    return graph;
}

static struct tdm_export_result must_export(const tdm_model *model, const char *path, bool bytes)
{
    tdm_error err = {0};
    char text[3000];
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    const struct tdm_export_options options = {.path = path, .preprocess = bytes};
    if (tdm_model_export(model, &options, &result, &err) != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
    assert_int_equal(result.bytes, tdmi_file_bytes(path));
    return result;
}

/* ---- ONNX ---------------------------------------------------------------------------------- */

enum { GRAPH = 7, NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, METADATA = 14 };

struct onnx_file {
    void *bytes;
    struct message model, graph;
};

static struct onnx_file onnx_open(const char *path)
{
    struct onnx_file file;
    assert_int_equal(tdmi_file_read(path, 1 << 28, &file.bytes, &file.model.length, NULL), TDM_OK);
    file.model.at = file.bytes;
    file.graph = field_of(file.model, GRAPH).sub;
    return file;
}

static bool is_attribute(struct message node, const char *name, struct message *attribute)
{
    return find_named(node, 5, 1, name, attribute);
}

/* "Conv relu.out,conv.weight > conv.out": one node of theirs in words. */
static void describe_node(struct message node, char *text, size_t bytes)
{
    struct field field;
    struct message op = field_of(node, 4).sub, output = field_of(node, 2).sub;
    int length = snprintf(text, bytes, "%.*s", (int)op.length, (const char *)op.at);
    for (int n = 0; find_nth(node, 1, n, &field); n++)
        length += snprintf(text + length, bytes - (size_t)length, "%c%.*s", n ? ',' : ' ',
                           (int)field.sub.length, (const char *)field.sub.at);
    snprintf(text + length, bytes - (size_t)length, " > %.*s", (int)output.length,
             (const char *)output.at);
}

static void nodes_are(const struct onnx_file *file, const char *const *expected)
{
    struct field field;
    char text[300];
    int n = 0;
    for (; find_nth(file->graph, NODE, n, &field); n++) {
        describe_node(field.sub, text, sizeof text);
        if (!expected[n] || strcmp(text, expected[n]) != 0)
            fail_msg("node %d is '%s', expected '%s'", n, text, expected[n] ? expected[n] : "none");
    }
    assert_null(expected[n]);
}

TEST(every_op_has_its_words_in_onnx)
{
    static const char *const expected[] = {
        "Conv input,conv.weight,conv.bias > conv.out",
        "BatchNormalization conv.out,norm.weight,norm.bias,norm.running_mean,norm.running_var > "
        "norm.out",
        "HardSwish norm.out > hswish.out",
        "Relu norm.out > relu.out",
        "Concat relu.out,hswish.out > concat.out",
        "LRN concat.out > lrn.out",
        "MaxPool lrn.out > max.out",
        "AveragePool max.out > avg.out",
        "Pad avg.out,pad.pads > pad.out",
        "GlobalAveragePool pad.out > pool.out",
        "Flatten pad.out > pad.flat",
        "Gemm pad.flat,dense.weight,dense.bias > dense.out",
        "Flatten pool.out > pool.flat",
        "Add dense.out,pool.flat > add.out",
        "Clip add.out,relu6.min,relu6.max > relu6.out",
        "Unsqueeze relu6.out,relu6.picture_axes > relu6.picture",
        "Conv relu6.picture,again.weight > again.out",
        "Sigmoid again.out > sigmoid.out",
        "Flatten sigmoid.out > logits",
        "Softmax logits > probabilities",
        NULL,
    };
    const struct tree *tree = *state;
    TDMI_AT_END(model_release) struct tdm_model model = model_of(every_op(5), "every");
    must_export(&model, below(tree, "every.onnx"), false);
    struct onnx_file file = onnx_open(below(tree, "every.onnx"));
    nodes_are(&file, expected);
    assert_int_equal(field_of(file.model, 1).value, 8);                   /* form */
    assert_int_equal(field_of(field_of(file.model, 8).sub, 2).value, 17); /* operators */
    struct message conv = field_of(file.graph, NODE).sub, pads;
    static const uint64_t wanted_pads[] = {1, 3, 2, 4}; /* above, left, below, right */
    assert_true(is_attribute(conv, "pads", &pads));
    for (int i = 0; i < 4; i++) {
        struct field field;
        assert_true(find_nth(pads, 8, i, &field));
        assert_int_equal(field.value, wanted_pads[i]);
    }
    tdmi_free(file.bytes);
}

/* The values of a constant in the file. */
static const float *constant(const struct onnx_file *file, const char *name, size_t n,
                             float *values)
{
    struct message tensor;
    if (!find_named(file->graph, INITIALIZER, 8, name, &tensor))
        fail_msg("no constant %s", name);
    struct message raw = field_of(tensor, 9).sub;
    assert_int_equal(raw.length, n * sizeof(float));
    memcpy(values, raw.at, raw.length);
    return values;
}

TEST(weights_in_onnx_are_turned_as_its_ops_read_them)
{
    enum { in = 16, out = 4 };
    const struct tree *tree = *state;
    TDMI_AT_END(model_release) struct tdm_model model = model_of(every_op(5), "every");
    const tdmi_graph *graph = model.file.graph;
    float values[in * out];
    must_export(&model, below(tree, "turned.onnx"), false);
    struct onnx_file file = onnx_open(below(tree, "turned.onnx"));
    for (int p = 0; p < graph->n_params; p++) {
        if (strcmp(graph->params[p].name, "again.weight") != 0)
            continue;
        constant(&file, "again.weight", in * out, values);
        for (int i = 0; i < in; i++)
            for (int o = 0; o < out; o++)
                assert_true(values[o * in + i] ==
                            model.file.params[graph->params[p].offset + i * out + o]);
    }
    tdmi_free(file.bytes);
}

TEST(preprocessing_in_onnx_takes_bytes)
{
    static const char *const expected[] = {
        "Transpose input > input.channels_first",
        "Cast input.channels_first > input.float",
        "Div input.float,input.divisor > input.scaled",
        "Sub input.scaled,input.mean > input.centred",
        "Div input.centred,input.deviation > input.out",
        "Gemm input.flat,dense.weight,dense.bias > logits",
        NULL,
    };
    const struct tree *tree = *state;
    tdmi_graph *graph = tdmi_graph_new();
    float values[3];
    tdmi_add_head(graph, &(struct tdmi_head){.classes = 3, .is_logistic = true}, "dense",
                  tdmi_add_input(graph, &small));
    assert_int_equal(tdmi_graph_finish(graph, "flat", NULL), TDM_OK);
    TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "flat");
    must_export(&model, below(tree, "bytes.onnx"), true);
    struct onnx_file file = onnx_open(below(tree, "bytes.onnx"));
    struct field field;
    char text[300];
    for (int n = 0, w = 0; expected[w]; n++) {
        assert_true(find_nth(file.graph, NODE, n, &field));
        describe_node(field.sub, text, sizeof text);
        w += strcmp(text, expected[w]) == 0;
    }
    constant(&file, "input.mean", 3, values);
    assert_true(values[0] == 0.485f && values[2] == 0.406f);
    constant(&file, "input.deviation", 3, values);
    assert_true(values[1] == 0.224f);
    struct message input = field_of(file.graph, INPUT).sub;
    struct message type = field_of(field_of(input, 2).sub, 1).sub;
    assert_int_equal(field_of(type, 1).value, 2); /* bytes */
    tdmi_free(file.bytes);
}

TEST(one_logit_gives_both_probabilities)
{
    static const char *const expected[] = {
        "Flatten input > input.flat",
        "Gemm input.flat,dense.weight,dense.bias > logits",
        "Neg logits > logistic.negative",
        "Concat logistic.negative,logits > logistic.both",
        "Sigmoid logistic.both > probabilities",
        NULL,
    };
    const struct tree *tree = *state;
    tdmi_graph *graph = tdmi_graph_new();
    tdmi_add_head(graph, &(struct tdmi_head){.classes = 2, .is_logistic = true}, "dense",
                  tdmi_add_input(graph, &small));
    assert_int_equal(tdmi_graph_finish(graph, "flat", NULL), TDM_OK);
    TDMI_AT_END(model_release) struct tdm_model model = model_of(graph, "flat");
    must_export(&model, below(tree, "one.onnx"), false);
    struct onnx_file file = onnx_open(below(tree, "one.onnx"));
    nodes_are(&file, expected);
    tdmi_free(file.bytes);
}

static void refused(const tdm_model *model, struct tdm_export_options options, tdm_status status,
                    const char *says_so)
{
    tdm_error err = {0};
    char text[3000];
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    tdm_status found = tdm_model_export(model, &options, &result, &err);
    tdm_error_format(&err, text, sizeof text);
    if (found != status || !strstr(text, says_so))
        fail_msg("status %d; expected '%s' in: %s", (int)found, says_so, text);
    assert_int_equal(tdmi_file_kind_of(options.path), TDMI_FILE_MISSING);
}

TEST(networks_that_onnx_cannot_express_are_refused)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release) struct tdm_model model = model_of(every_op(4), "every");
    refused(&model, (struct tdm_export_options){.path = below(tree, "even.onnx")}, TDM_E_INPUT,
            "node 'lrn' normalises over 4 channels");
    /* 2.4 GB that nobody has to have: they are refused before a value is read. */
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = tdmi_graph_new();
    int x = tdmi_add_dense(graph, "wide", tdmi_add_input(graph, &small), 30000);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, 20000));
    assert_int_equal(tdmi_graph_finish(graph, "large", NULL), TDM_OK);
    const struct tdm_model large = {.file = {.network = "large", .graph = graph}};
    refused(&large, (struct tdm_export_options){.path = below(tree, "large.onnx")}, TDM_E_INPUT,
            "at most 2147483647");
}

/* ---- safetensors --------------------------------------------------------------------------- */

static tdmi_safetensors *tensors_of(const char *path)
{
    tdmi_safetensors *file = NULL;
    assert_int_equal(tdmi_safetensors_open(path, &file, NULL), TDM_OK);
    return file;
}

static const struct tdmi_tensor *tensor_of(const struct tdmi_tensor *tensors, int n,
                                           const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

TEST(mobilenet_goes_under_torchvisions_names_with_its_epsilon)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("mobilenetv2-0.35", 32, 3), "mobilenetv2-0.35");
    const tdmi_graph *graph = model.file.graph;
    struct tdm_export_result result = must_export(&model, below(tree, "mobile.safetensors"), false);
    assert_non_null(strstr(result.note, "'Conv1' pads 0, 1, 0 and 1"));
    tdmi_safetensors *file = tensors_of(below(tree, "mobile.safetensors"));
    const struct tdmi_safetensors_tensor *found =
        tdmi_safetensors_find(file, "features.4.conv.1.1.running_var");
    const struct tdmi_tensor *ours =
        tensor_of(graph->states, graph->n_states, "block_3_depthwise_BN.running_var");
    assert_non_null(found);
    for (int64_t i = 0; i < found->n_values; i++)
        assert_true(fabs((double)((const float *)found->data)[i] + 1e-5 -
                         (double)model.file.states[ours->offset + i] - 1e-3) < 1e-6);
    found = tdmi_safetensors_find(file, "features.4.conv.1.0.weight");
    assert_non_null(found);
    assert_int_equal(found->shape[1], 1);
    assert_int_equal(found->shape[3], 3);
    found = tdmi_safetensors_find(file, "features.0.1.num_batches_tracked");
    assert_non_null(found);
    assert_int_equal(found->dtype, TDMI_DTYPE_I64);
    assert_int_equal(found->rank, 0);
    assert_int_equal(*(const int64_t *)found->data, 77);
    assert_int_equal(tdmi_safetensors_count(file),
                     (size_t)(graph->n_params + graph->n_states + graph->n_states / 2));
    assert_string_equal(tdmi_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(tdmi_safetensors_metadata(file, "network"), "mobilenetv2-0.35");
    assert_non_null(strstr(tdmi_safetensors_metadata(file, "lineage"), "BSD-3-Clause"));
    tdmi_safetensors_close(file);
}

TEST(what_torchvision_would_compute_otherwise_is_noted)
{
    const struct tree *tree = *state;
    const char *path = below(tree, "noted.safetensors");
    struct tdm_model model = model_of(network_new("mobilenetv2-0.35", 33, 3), "mobilenetv2-0.35");
    assert_string_equal(must_export(&model, path, false).note, ""); /* both pad equally there */
    model_release(&model);
    model = model_of(network_new("resnet18", 32, 3), "resnet18");
    assert_string_equal(must_export(&model, path, false).note, "");
    model_release(&model);
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    assert_int_equal(tdmi_network_find("resnet18", &network, NULL), TDM_OK);
    struct tdmi_build what = tdmi_network_defaults(&network, 3);
    what.preprocess.width = what.preprocess.height = 32;
    what.head.hidden = 16;
    assert_int_equal(tdmi_network_make(&network, &what, &graph, NULL), TDM_OK);
    model = model_of(graph, "resnet18");
    assert_non_null(strstr(must_export(&model, path, false).note,
                           "another network from 'hidden' on, where torchvision has 'fc'"));
    model_release(&model);
}

TEST(networks_of_ours_keep_their_names_and_values)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("xception", 71, 3), "xception");
    const tdmi_graph *graph = model.file.graph;
    assert_string_equal(must_export(&model, below(tree, "ours.safetensors"), false).note, "");
    tdmi_safetensors *file = tensors_of(below(tree, "ours.safetensors"));
    const struct tdmi_safetensors_tensor *found =
        tdmi_safetensors_find(file, "block1_conv1_bn.running_var");
    const struct tdmi_tensor *ours =
        tensor_of(graph->states, graph->n_states, "block1_conv1_bn.running_var");
    assert_non_null(found);
    assert_memory_equal(found->data, model.file.states + ours->offset, found->bytes);
    tdmi_safetensors_close(file);
}

/* ---- both ---------------------------------------------------------------------------------- */

static void classes_are(const char *text)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    assert_non_null(text);
    assert_int_equal(tdm_json_read(text, strlen(text), "classes", &document, NULL), TDM_OK);
    const tdm_json_value *list = tdm_json_root(document);
    assert_int_equal(tdm_json_count(list), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(tdm_json_as_string(tdm_json_at(list, (size_t)i), ""), hostile[i]);
}

TEST(names_of_classes_come_through_whatever_they_are)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("convnet7", 8, 3), "convnet7");
    must_export(&model, below(tree, "classes.safetensors"), false);
    tdmi_safetensors *file = tensors_of(below(tree, "classes.safetensors"));
    classes_are(tdmi_safetensors_metadata(file, "classes"));
    tdmi_safetensors_close(file);
    must_export(&model, below(tree, "classes.onnx"), false);
    struct onnx_file onnx = onnx_open(below(tree, "classes.onnx"));
    struct message entry;
    char text[500];
    assert_true(find_named(onnx.model, METADATA, 1, "classes", &entry));
    struct message value = field_of(entry, 2).sub;
    snprintf(text, sizeof text, "%.*s", (int)value.length, (const char *)value.at);
    classes_are(text);
    assert_true(find_named(onnx.model, METADATA, 1, "preprocess", &entry));
    assert_true(find_named(onnx.model, METADATA, 1, "lineage", &entry));
    tdmi_free(onnx.bytes);
}

TEST(the_same_model_gives_the_same_bytes)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("lenet5", 28, 3), "lenet5");
    must_export(&model, below(tree, "a/new/folder/1.onnx"), true);
    must_export(&model, below(tree, "2.onnx"), true);
    same_files(below(tree, "a/new/folder/1.onnx"), below(tree, "2.onnx"));
    must_export(&model, below(tree, "1.safetensors"), false);
    must_export(&model, below(tree, "2.SafeTensors"), false);
    same_files(below(tree, "1.safetensors"), below(tree, "2.SafeTensors"));
}

TEST(the_form_is_the_endings_or_the_one_that_is_named)
{
    const struct tree *tree = *state;
    TDMI_AT_END(model_release)
    struct tdm_model model = model_of(network_new("lenet5", 28, 3), "lenet5");
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    assert_int_equal(
        tdm_model_export(&model, &(struct tdm_export_options){.form = "onnx"}, &result, NULL),
        TDM_E_USAGE);
    refused(&model, (struct tdm_export_options){.path = below(tree, "model.pb")}, TDM_E_USAGE,
            "there is .onnx, .safetensors, .h5");
    refused(&model, (struct tdm_export_options){.path = below(tree, "model"), .form = "tflite"},
            TDM_E_USAGE, "there is onnx, safetensors, h5");
    refused(&model,
            (struct tdm_export_options){.path = below(tree, "x.safetensors"), .preprocess = true},
            TDM_E_USAGE, "onnx files only");
    assert_int_equal(tdm_model_export(&model,
                                      &(struct tdm_export_options){.path = below(tree, "model.bin"),
                                                                   .form = "onnx"},
                                      &result, NULL),
                     TDM_OK);
    assert_string_equal(result.form, "onnx");
    assert_string_equal(tdm_export_form(0), "onnx");
    assert_null(tdm_export_form(-1));
}

static struct tree *scene_tree;
static struct tdm_model scene_model;
static const char *scene_name;

static tdm_status export_scene(tdm_error *err)
{
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    const char *path = below(scene_tree, scene_name);
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
    scene_name = "scene.onnx";
    assert_true(fail_each_allocation(export_scene) > 10);
    scene_name = "scene.safetensors";
    assert_true(fail_each_allocation(export_scene) > 10);
    model_release(&scene_model);
}

TEST_MAIN(begin_with_tree, end_with_tree)

/*
 * Weights of other programs as networks of ours: LeNet-5 and narrow MobileNetV2 files made here,
 * with names and layouts of PyTorch, Keras and ours.
 */
#include "base/file/file.h"
#include "weights/import/import.h"
#include "weights/fetch/catalogue.h"
#include "weights/layouts.h"
#include "weights/names.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/log.h"
#include "unit.h"
#include <math.h>

/* A file in the making: tensors of our network as another program writes them. */
struct made {
    tdmi_safetensors_writer *writer;
    float *values[600];
    int n;
    void *bytes;
    tdmi_weights *weights;
};

/* Values count up from start, a quarter apart. */
static void add(struct made *made, const char *name, const struct tdmi_layout *layout, float start)
{
    int64_t n = 1;
    for (int d = 0; d < layout->rank; d++)
        n *= layout->shape[d];
    float *values = made->values[made->n++] = tdmi_alloc((size_t)n, sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = start + 0.25F * (float)i;
    tdmi_safetensors_add(made->writer, name, TDMI_DTYPE_F32, layout->rank, layout->shape, values);
}

static void add_shape(struct made *made, const char *name, int rank, int64_t a, int64_t b,
                      int64_t c, int64_t d)
{
    add(made, name, &(struct tdmi_layout){rank, {a, b, c, d}}, 0.0F);
}

static tdmi_weights *opened_as(struct made *made, const char *name)
{
    size_t n_bytes = 0;
    tdm_error err = {0};
    assert_int_equal(tdmi_safetensors_finish_bytes(made->writer, &made->bytes, &n_bytes, &err),
                     TDM_OK);
    if (tdmi_weights_open_bytes(made->bytes, n_bytes, name, &made->weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return made->weights;
}

static tdmi_weights *opened(struct made *made)
{
    return opened_as(made, "made");
}

static void end(struct made *made)
{
    tdmi_weights_close(made->weights);
    tdmi_safetensors_writer_free(made->writer);
    tdmi_free(made->bytes);
    for (int i = 0; i < made->n; i++)
        tdmi_free(made->values[i]);
}

/* PyTorch's LeNet-5, tensor by tensor, all but `without`. */
static void add_lenet(struct made *made, const char *prefix, int channels, const char *without)
{
    static const struct {
        const char *name;
        int rank;
        int64_t shape[4];
    } tensors[] = {{"conv1.weight", 4, {6, 0, 5, 5}},  {"conv1.bias", 1, {6}},
                   {"conv2.weight", 4, {16, 6, 5, 5}}, {"conv2.bias", 1, {16}},
                   {"fc1.weight", 2, {120, 400}},      {"fc1.bias", 1, {120}},
                   {"fc2.weight", 2, {84, 120}},       {"fc2.bias", 1, {84}},
                   {"fc3.weight", 2, {10, 84}},        {"fc3.bias", 1, {10}}};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char name[80];
        if (without && strcmp(without, tensors[i].name) == 0)
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i].name);
        add_shape(made, name, tensors[i].rank, tensors[i].shape[0],
                  tensors[i].shape[1] ? tensors[i].shape[1] : (tensors[i].rank == 4 ? channels : 0),
                  tensors[i].shape[2], tensors[i].shape[3]);
    }
}

static void imported(struct made *made, const struct tdmi_import_request *request,
                     struct tdmi_import *import)
{
    tdm_error err = {0};
    if (tdmi_import(opened(made), request, import, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
}

static void refused(struct made *made, const struct tdmi_import_request *request, tdm_status status,
                    const char *says)
{
    struct tdmi_import import;
    tdm_error err = {0};
    char text[3500];
    tdm_status found = tdmi_import(opened(made), request, &import, &err);
    tdm_error_format(&err, text, sizeof text);
    if (found != status || !strstr(text, says))
        fail_msg("status %d; '%s' is not in: %s", (int)found, says, text);
    assert_null(import.graph);
}

/* LeNet-5 without a tensor is refused. */
static void assert_lenet_refused(const char *without, const struct tdmi_import_request *request,
                                 tdm_status status, const char *says)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    add_lenet(&made, "", 1, without);
    refused(&made, request, status, says);
}

static const float *param(const struct tdmi_import *import, const char *name)
{
    for (int i = 0; i < import->graph->n_params; i++)
        if (strcmp(import->graph->params[i].name, name) == 0)
            return import->params + import->graph->params[i].offset;
    fail_msg("there is no %s", name);
    return NULL;
}

TEST(tensors_of_pytorch_are_transposed_to_our_layout)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "", 1, NULL);
    imported(&made, &(struct tdmi_import_request){.network = "lenet5"}, &import);
    /* theirs (out, in, y, x), ours (y, x, in, out) */
    const float *conv2 = param(&import, "conv2.weight"), *dense1 = param(&import, "dense1.weight");
    for (int o = 0; o < 16; o += 5)
        for (int i = 0; i < 6; i++)
            assert_true(conv2[((3 * 5 + 2) * 6 + i) * 16 + o] ==
                        0.25F * (float)(((o * 6 + i) * 5 + 3) * 5 + 2));
    /* theirs (out, (channel, y, x)), ours ((y, x, channel), out) */
    assert_true(dense1[((4 * 5 + 1) * 16 + 7) * 120 + 11] ==
                0.25F * (float)(11 * 400 + (7 * 5 + 4) * 5 + 1));
    assert_true(param(&import, "dense3.bias")[9] == 0.25F * 9.0F);
    assert_int_equal(import.n_classes, 10);
    assert_string_equal(import.classes[3], "class 3");
    assert_string_equal(import.network, "lenet5");
    assert_string_equal(import.lineage.origin, "PyTorch");
    assert_string_equal(import.lineage.form, "safetensors");
    assert_false(import.has_new_head);
    assert_int_equal(import.n_notes, 1); /* what the file does not say */
    assert_non_null(strstr(import.notes[0], "scale unit, fit pad, padding symmetric"));
}

TEST(a_prefix_and_counters_are_no_obstacle)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "state_dict.module.", 1, NULL);
    add_shape(&made, "state_dict.module.bn.num_batches_tracked", 1, 1, 0, 0, 0);
    add_shape(&made, "optimizer.momentum.conv1.weight", 4, 6, 1, 5, 5);
    imported(&made, &(struct tdmi_import_request){.network = "lenet5"}, &import);
    assert_true(param(&import, "dense2.bias")[83] == 0.25F * 83.0F);
}

TEST(colours_make_the_form_for_32_pixels)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "", 3, NULL);
    imported(&made, &(struct tdmi_import_request){.network = "lenet5"}, &import);
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
    assert_int_equal(preprocess->width, 32);
    assert_int_equal(preprocess->channels, 3);
    assert_int_equal(preprocess->scale, TDMI_SCALE_TF);
    assert_int_equal(import.graph->nodes[1].attrs.pad_top, 0);
}

TEST(a_head_of_other_classes_is_new)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    const struct tdmi_import_request request = {
        .network = "lenet5", .head.classes = 4, .classes = names, .n_classes = 4, .seed = 3};
    for (int has_head = 0; has_head < 2; has_head++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        add_lenet(&made, "", 1, has_head ? NULL : "fc3.weight");
        imported(&made, &request, &import);
        assert_true(import.has_new_head);
        assert_int_equal(import.n_classes, 4);
        assert_string_equal(import.classes[2], "c");
        assert_int_equal(import.n_notes, 2);
        assert_non_null(strstr(import.notes[0], has_head ? "the file's has 10" : "has none"));
        assert_true(param(&import, "conv1.bias")[5] == 1.25F);
        /* It begins with a sixth of the variance that a network from scratch has. */
        const float *drawn = param(&import, "dense3.weight"), bound = 1.0F / sqrtf(84.0F);
        float most = 0.0F;
        for (int i = 0; i < 84 * 4; i++)
            most = fmaxf(most, fabsf(drawn[i]));
        assert_true(most > 0.9F * bound && most <= bound * 1.000001F);
    }
    assert_lenet_refused("fc3.weight", &(struct tdmi_import_request){.network = "lenet5"},
                         TDM_E_INPUT, "no last layer");
}

TEST(everything_that_does_not_fit_is_named)
{
    TDMI_AT_END(end) struct made extra = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(end) struct made other = {.writer = tdmi_safetensors_writer_new()};
    add_lenet(&extra, "", 1, "conv2.weight");
    add_shape(&extra, "fc4.weight", 2, 3, 10, 0, 0);
    refused(&extra, &(struct tdmi_import_request){.network = "lenet5"}, TDM_E_INPUT,
            "1 are missing, 0 of another shape, 1 of no use (missing: conv2.weight of "
            "16×6×5×5; of no use: fc4.weight of 3×10)");
    add_lenet(&other, "", 1, "conv2.bias");
    add_shape(&other, "conv2.bias", 1, 15, 0, 0, 0);
    refused(&other, &(struct tdmi_import_request){.network = "lenet5"}, TDM_E_INPUT,
            "of another shape: conv2.bias is 15, not 16");
    assert_lenet_refused(NULL, &(struct tdmi_import_request){.network = "nosuch"}, TDM_E_USAGE,
                         "nosuch");
}

TEST(a_file_of_another_network_is_refused_in_one_sentence)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    assert_lenet_refused(NULL, &(struct tdmi_import_request){.network = "alexnet"}, TDM_E_INPUT,
                         "are of another network than alexnet: by their tensors they are those of "
                         "lenet5 (--model lenet5)");
    add_shape(&made, "body.weight", 2, 3, 10, 0, 0);
    refused(&made, &(struct tdmi_import_request){.network = "alexnet"}, TDM_E_INPUT,
            "of its 7 layers with weights before the head, 0 are in the file");
}

TEST(a_head_stays_only_for_classes_of_the_same_names)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    static const struct {
        const char *in_file, *says; /* NULL: the head stays */
    } cases[] = {
        {"[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]", NULL},
        {"[\"b\",\"a\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]", "with other names"},
        {"[\"a\",\"b\"]", "with other names"},
        {NULL, "which it does not name"},
        {"[1, 2]", "which it does not name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        const struct tdmi_import_request request = {
            .network = "lenet5", .head.classes = 10, .classes = names, .n_classes = 10};
        add_lenet(&made, "", 1, NULL);
        if (cases[i].in_file)
            tdmi_safetensors_note(made.writer, "classes", cases[i].in_file);
        imported(&made, &request, &import);
        assert_int_equal(import.has_new_head, cases[i].says != NULL);
        assert_int_equal(import.n_notes, 1 + import.has_new_head);
        if (cases[i].says)
            assert_non_null(strstr(import.notes[0], cases[i].says));
        else
            assert_true(param(&import, "dense3.bias")[9] == 2.25F);
    }
}

TEST(numbers_that_are_none_are_refused_by_name)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        add_lenet(&made, "", 1, NULL);
        made.values[4][399] = wrong[i]; /* fc1.weight */
        refused(&made, &(struct tdmi_import_request){.network = "lenet5"}, TDM_E_INPUT,
                "tensor 'fc1.weight' has a NaN or an infinity");
    }
}

TEST(words_for_the_input_are_taken_or_refused)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "", 1, NULL);
    imported(
        &made,
        &(struct tdmi_import_request){
            .network = "lenet5",
            .input = {.fit = "crop", .crop_fraction = 0.5, .filter = "bicubic", .scale = "raw"}},
        &import);
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
    assert_int_equal(preprocess->fit, TDMI_FIT_CROP);
    assert_int_equal(preprocess->filter, TDMI_FILTER_BICUBIC);
    assert_int_equal(preprocess->scale, TDMI_SCALE_RAW);
    assert_true(preprocess->crop_fraction == 0.5);
    static const struct {
        struct tdmi_import_input input;
        const char *says;
    } cases[] = {{{.fit = "fill"}, "pad, crop, stretch"},
                 {{.filter = "box"}, "lanczos"},
                 {{.scale = "double"}, "caffe"},
                 {{.padding = "valid"}, "symmetric"},
                 {{.fit = "crop", .crop_fraction = 2.0}, "0.01 to 1"},
                 {{.fit = "pad", .crop_fraction = 0.5}, "not cropped"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_lenet_refused(
            NULL, &(struct tdmi_import_request){.network = "lenet5", .input = cases[i].input},
            TDM_E_USAGE, cases[i].says);
    }
    static const char *const two[] = {"a", "b"};
    assert_lenet_refused(
        NULL, &(struct tdmi_import_request){.network = "lenet5", .classes = two, .n_classes = 2},
        TDM_E_INPUT, "2 names of classes for the 10 outputs");
}

static tdmi_graph *graph_of(const char *name)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    assert_int_equal(tdmi_network_find(name, &network, NULL), TDM_OK);
    assert_int_equal(tdmi_network_build(&network, &network.preprocess, 5, &graph, NULL), TDM_OK);
    return graph;
}

/* Every tensor of a network of ours, as its publisher names and lays it out. */
static void add_network(struct made *made, const tdmi_graph *graph, const char *network,
                        bool is_keras)
{
    float start = 1.0F;
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct tdmi_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_params + node->n_states; i++) {
            const struct tdmi_tensor *tensor =
                i < node->n_params ? &graph->params[node->first_param + i]
                                   : &graph->states[node->first_state + i - node->n_params];
            char name[4 * TDMI_NAME_BYTES], layer[TDMI_NAME_BYTES];
            struct tdmi_layout layout =
                is_keras ? tdmi_layout_of_keras(node, tensor) : tdmi_layout_of_torch(node, tensor);
            if (is_keras) {
                assert_true(tdmi_keras_layer(network, node->name, layer));
                snprintf(name, sizeof name, "model_weights/%s/%s/%s:0", layer, layer,
                         tdmi_keras_variable(node, tensor));
            } else {
                assert_true(tdmi_torch_name(network, node, tensor, name));
            }
            add(made, name, &layout, start += 1.0F);
        }
    }
}

TEST(narrow_mobilenets_of_both_publishers_fill_their_own_form)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = graph_of("mobilenetv2-0.35");
    for (int is_keras = 0; is_keras < 2; is_keras++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        add_network(&made, graph, "mobilenetv2-0.35", is_keras);
        imported(&made, &(struct tdmi_import_request){.network = "mobilenetv2-0.35"}, &import);
        const struct tdmi_node *conv = &import.graph->nodes[1], *norm = &import.graph->nodes[2];
        assert_int_equal(import.n_classes, 5);
        assert_int_equal(conv->attrs.pad_top, !is_keras);
        assert_true(norm->attrs.epsilon == (is_keras ? 1e-3 : 1e-5));
        assert_int_equal(norm->attrs.is_biased, is_keras);
        assert_string_equal(import.lineage.origin, is_keras ? "Keras" : "PyTorch");
        assert_int_equal(tdmi_graph_preprocess(import.graph)->scale,
                         is_keras ? TDMI_SCALE_TF : TDMI_SCALE_TORCH);
        /* The head begins where the file's last layer is. */
        assert_string_equal(import.graph->nodes[import.graph->head].name, "predictions");
    }
}

TEST(a_network_is_recognised_by_its_tensors)
{
    static const struct {
        const char *network;
        bool is_keras;
    } cases[] = {{"mobilenetv2-0.35", false}, {"mobilenetv2-0.35", true}, {"resnet20-cifar", false},
                 {"resnet32-cifar", false},   {"convnet7", false},        {"lenet5", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = graph_of(cases[i].network);
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        add_network(&made, graph, cases[i].network, cases[i].is_keras);
        imported(&made, &(struct tdmi_import_request){0}, &import);
        assert_string_equal(import.network, cases[i].network);
        assert_int_equal(import.n_classes, 5);
        assert_non_null(strstr(import.notes[0], "by its tensors"));
    }
    TDMI_AT_END(end) struct made deeper = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = graph_of("resnet26-cifar");
    add_network(&deeper, graph, "resnet26-cifar", false); /* holds all of resnet20-cifar */
    refused(&deeper, &(struct tdmi_import_request){0}, TDM_E_USAGE, "--model NAME");
}

TEST(a_config_of_timm_beside_the_file_is_read)
{
    static const char config[] =
        "{\"architecture\": \"lenet5\", \"label_names\": [\"zero\", \"one\", \"two\"],"
        "\"pretrained_cfg\": {\"input_size\": [1, 28, 28], \"interpolation\": \"bicubic\","
        "\"crop_pct\": 0.95, \"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, %s]}}";
    for (int is_known = 0; is_known < 2; is_known++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        char text[sizeof config + 20];
        tdm_error err = {0};
        snprintf(text, sizeof text, config, is_known ? "0.5" : "0.4");
        assert_int_equal(tdmi_file_write("timm/config.json", text, strlen(text), &err), TDM_OK);
        add_lenet(&made, "", 1, NULL);
        if (tdmi_import(opened_as(&made, "timm/model.safetensors"),
                        &(struct tdmi_import_request){0}, &import, &err) != TDM_OK)
            fail_msg("%s", tdm_error_sentence(&err, 0));
        const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
        assert_int_equal(preprocess->scale, is_known ? TDMI_SCALE_TF : TDMI_SCALE_UNIT);
        assert_int_equal(preprocess->fit, is_known ? TDMI_FIT_CROP : TDMI_FIT_PAD);
        assert_int_equal(import.n_notes, 2 - is_known);
        assert_non_null(strstr(import.notes[0], is_known ? "crop to 0.95" : "no equal here"));
    }
}

/* A rank without the file has neither what lies beside it nor a path to read its hash from. */
TEST(facts_about_the_file_may_come_from_another_rank)
{
    static const char config[] =
        "{\"architecture\": \"lenet5\", \"pretrained_cfg\": {\"input_size\": [1, 28, 28],"
        "\"crop_pct\": 0.8, \"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.5]}}";
    static const char other[] =
        "{\"architecture\": \"lenet5\", \"pretrained_cfg\": {\"input_size\": [1, 28, 28],"
        "\"crop_pct\": 0.4, \"mean\": [0.5, 0.5, 0.5], \"std\": [0.5, 0.5, 0.5]}}";
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write("own/config.json", other, strlen(other), &err), TDM_OK);
    for (int has_config = 0; has_config < 2; has_config++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        const struct tdmi_import_request request = {
            .network = "lenet5", .wants_hash = true, .beside = has_config ? config : ""};
        struct tdmi_digest digest;
        add_lenet(&made, "", 1, NULL);
        if (tdmi_import(opened_as(&made, "own/model.safetensors"), &request, &import, &err) !=
            TDM_OK)
            fail_msg("%s", tdm_error_sentence(&err, 0));
        const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
        assert_int_equal(preprocess->fit, has_config ? TDMI_FIT_CROP : TDMI_FIT_PAD);
        if (has_config)
            assert_true(fabs(preprocess->crop_fraction - 0.8) < 1e-9);
        assert_int_equal(tdmi_weights_digest(made.weights, &digest, &err), TDM_OK);
        assert_int_equal(digest.bytes, (int64_t)tdmi_weights_file_bytes(made.weights));
        assert_string_equal(import.lineage.sha256, digest.sha256);
    }
}

TEST(published_files_are_known_by_their_digits)
{
    static const struct {
        const char *network, *file, *sha256, *name; /* NULL: it is none */
    } cases[] = {
        {"mobilenetv2", "mobilenet_v2-7ebf99e0.pth", NULL, "mobilenetv2-torch"},
        {"mobilenetv2", "b0353104.safetensors", NULL, "mobilenetv2-torch-v1"},
        {"resnet50", "resnet50-11ad3fa6.pth", NULL, "resnet50"},
        {"resnet50", "mine.pth", "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
         "resnet50-v1"},
        {"resnet50", "mine.pth", "1676ba61", NULL},
        {"resnet50", "mobilenet_v2-7ebf99e0.pth", NULL, NULL},
        {"mobilenetv2", "a7ebf99e0.pth", NULL, NULL},
        {"mobilenetv2", "7ebf99e00.pth", NULL, NULL},
        {"mobilenetv2-0.35", "7ebf99e0.pth", NULL, NULL},
        {"mobilenetv2", "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5", NULL,
         "mobilenetv2-notop"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdm_weights_known *known =
            tdmi_catalogue_recognise(cases[i].network, cases[i].file, cases[i].sha256);
        if (!known != !cases[i].name || (known && strcmp(known->name, cases[i].name) != 0))
            fail_msg("%s is taken for %s", cases[i].file, known ? known->name : "none");
    }
    assert_true(tdmi_catalogue_has_size("resnet50", 102540417));
    assert_false(tdmi_catalogue_has_size("resnet50", 98000000));
    assert_false(tdmi_catalogue_has_size("xception", 92000000)); /* its hash is another kind */
}

/* torchvision prepares images for its second weights otherwise than for its first. */
TEST(published_files_have_the_preprocessing_of_their_recipe)
{
    static const struct {
        const char *file, *fit;
        double crop;
        const char *says;
    } cases[] = {
        {"mobilenet_v2-7ebf99e0.pth", NULL, 224.0 / 232.0,
         "is torchvision V2, ImageNet's mobilenet_v2-7ebf99e0.pth: images become numbers as was "
         "published with it: scale torch, fit crop to 0.9655"},
        {"mobilenet_v2-b0353104.pth", NULL, 0.875, "scale torch, fit crop to 0.875"},
        {"mine.pth", NULL, 0.875,
         "warning: the file does not say how images become numbers; guessed: scale torch, fit crop "
         "to 0.875, padding symmetric"},
        {"mobilenet_v2-7ebf99e0.pth", "stretch", 224.0 / 232.0, "fit stretch, padding"},
        {"mine.pth", "stretch", 0.875, "guessed: scale torch, padding symmetric (--scale"},
    };
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = graph_of("mobilenetv2");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        tdm_error err = {0};
        const struct tdmi_import_request request = {.network = "mobilenetv2",
                                                    .input = {.fit = cases[i].fit}};
        add_network(&made, graph, "mobilenetv2", false);
        if (tdmi_import(opened_as(&made, cases[i].file), &request, &import, &err) != TDM_OK)
            fail_msg("%s", tdm_error_sentence(&err, 0));
        const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
        assert_true(fabs(preprocess->crop_fraction - cases[i].crop) < 1e-12);
        assert_int_equal(preprocess->fit, cases[i].fit ? TDMI_FIT_STRETCH : TDMI_FIT_CROP);
        assert_int_equal(preprocess->scale, TDMI_SCALE_TORCH);
        assert_int_equal(import.n_notes, 1);
        if (!strstr(import.notes[0], cases[i].says))
            fail_msg("'%s' is not in: %s", cases[i].says, import.notes[0]);
    }
}

TEST(a_variance_without_a_root_is_refused_by_name)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = graph_of("mobilenetv2-0.35");
    /* 1e-5 is the epsilon of PyTorch's norms. */
    static const float variances[] = {-1.0F, -2e-5F, -0.5e-5F};
    for (int i = 0; i < 3; i++) {
        TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
        TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
        const struct tdmi_import_request request = {.network = "mobilenetv2-0.35"};
        add_network(&made, graph, "mobilenetv2-0.35", false);
        made.values[4][2] = variances[i]; /* conv, gamma, beta, mean, variance */
        if (i < 2)
            refused(&made, &request, TDM_E_INPUT,
                    "tensor 'features.0.1.running_var' has the variance");
        else
            imported(&made, &request, &import);
    }
}

/* Ours say so under the same keys. */
static const char said_preprocess[] =
    "{\"width\": 28, \"height\": 28, \"channels\": 1, \"fit\": \"crop\", "
    "\"crop_fraction\": 0.5, \"filter\": \"bicubic\", \"scale\": \"torch\", "
    "\"draft\": true}";

TEST(facts_of_an_export_of_ours_hold_where_the_request_is_silent)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "", 1, NULL);
    tdmi_safetensors_note(made.writer, "network", "lenet5");
    tdmi_safetensors_note(made.writer, "preprocess", said_preprocess);
    imported(&made, &(struct tdmi_import_request){.input = {.filter = "lanczos"}}, &import);
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(import.graph);
    assert_string_equal(import.network, "lenet5");
    assert_int_equal(preprocess->fit, TDMI_FIT_CROP);
    assert_true(preprocess->crop_fraction == 0.5);
    assert_int_equal(preprocess->scale, TDMI_SCALE_TORCH);
    assert_int_equal(preprocess->filter, TDMI_FILTER_LANCZOS);
    assert_true(preprocess->uses_draft);
    assert_int_equal(import.n_notes, 0); /* nothing was taken for granted */
}

TEST(facts_of_other_programs_under_our_keys_are_skipped)
{
    TDMI_AT_END(end) struct made made = {.writer = tdmi_safetensors_writer_new()};
    TDMI_AT_END(tdmi_import_release) struct tdmi_import import = {0};
    add_lenet(&made, "", 1, NULL);
    tdmi_safetensors_note(made.writer, "preprocess", "imagenet");
    tdmi_safetensors_note(made.writer, "padding", "1");
    imported(&made, &(struct tdmi_import_request){.network = "lenet5"}, &import);
    assert_int_equal(tdmi_graph_preprocess(import.graph)->scale, TDMI_SCALE_UNIT);
    assert_int_equal(import.n_notes, 2);
    assert_non_null(strstr(import.notes[0], "is skipped"));
    assert_non_null(strstr(import.notes[1], "scale unit, fit pad, padding symmetric"));
    TDMI_AT_END(end) struct made other = {.writer = tdmi_safetensors_writer_new()};
    add_shape(&other, "body.weight", 2, 3, 10, 0, 0);
    tdmi_safetensors_note(other.writer, "network", "net");
    refused(&other, &(struct tdmi_import_request){0}, TDM_E_USAGE, "--model NAME");
}

static int silence(void **state)
{
    (void)state;
    tdm_log_set_level(TDM_LOG_SILENT); /* every complaint is a message too */
    return 0;
}

TEST_MAIN(silence, NULL)

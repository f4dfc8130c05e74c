/*
 * One network of ours by name from every form that has no word for networks: NumPy's .npz and
 * TensorFlow.js, with names of PyTorch and of Keras, are the network that the same tensors in
 * safetensors are, value by value.
 */
#include "data/tree.h"
#include "base/hash/crc32.h"
#include "base/memory.h"
#include "models/known_network.h"
#include "weights/import/import.h"
#include "weights/layouts.h"
#include "weights/names.h"
#include "weights/safetensors/safetensors.h"
#include "unit.h"

static const char network[] = "mobilenetv2-0.1";

enum { CLASSES = 4, MOST_TENSORS = 400 };

struct tensor {
    char name[4 * TDMI_NAME_BYTES];
    struct tdmi_layout layout;
    size_t n;
    float *values;
};

struct source {
    struct tensor tensors[MOST_TENSORS];
    size_t n;
};

/* As the publisher names and lays out a narrow MobileNetV2. */
static void make(struct source *source, bool is_keras)
{
    tdmi_graph *graph = network_new(network, 32, CLASSES);
    source->n = 0;
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct tdmi_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_params + node->n_states; i++) {
            const struct tdmi_tensor *of =
                i < node->n_params ? &graph->params[node->first_param + i]
                                   : &graph->states[node->first_state + i - node->n_params];
            struct tensor *made = &source->tensors[source->n++];
            char layer[TDMI_NAME_BYTES];
            assert_true(source->n <= MOST_TENSORS);
            made->layout =
                is_keras ? tdmi_layout_of_keras(node, of) : tdmi_layout_of_torch(node, of);
            made->n = (size_t)of->n;
            made->values = tdmi_alloc(made->n, sizeof *made->values);
            for (size_t v = 0; v < made->n; v++)
                made->values[v] = (float)source->n + 0.125F * (float)v;
            if (!is_keras) {
                assert_true(tdmi_torch_name(network, node, of, made->name));
                continue;
            }
            assert_true(tdmi_keras_layer(network, node->name, layer));
            snprintf(made->name, sizeof made->name, "%s/%s", layer, tdmi_keras_variable(node, of));
        }
    }
    tdmi_graph_free(graph);
}

static void release(struct source *source)
{
    for (size_t i = 0; i < source->n; i++)
        tdmi_free(source->tensors[i].values);
}

/* ---- the forms ------------------------------------------------------------------------------- */

struct bytes {
    uint8_t *at;
    size_t n, room;
};

static void put(struct bytes *bytes, const void *from, size_t n)
{
    while (bytes->n + n > bytes->room) {
        bytes->room = 2 * bytes->room + n + 1024;
        bytes->at = realloc(bytes->at, bytes->room);
        assert_non_null(bytes->at);
    }
    memcpy(bytes->at + bytes->n, from, n);
    bytes->n += n;
}

static void put_number(struct bytes *bytes, uint32_t number, size_t width)
{
    for (size_t i = 0; i < width; i++)
        put(bytes, &(uint8_t){(uint8_t)(number >> (8 * i))}, 1);
}

static void put_shape(char *text, size_t room, const struct tensor *tensor)
{
    size_t n = 0;
    for (int i = 0; i < tensor->layout.rank; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%lld", i ? "," : "",
                              (long long)tensor->layout.shape[i]);
}

static struct bytes npy(const struct tensor *tensor)
{
    struct bytes made = {0};
    char shape[100], text[200];
    put_shape(shape, sizeof shape, tensor);
    int n = snprintf(text, sizeof text,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }\n", shape);
    put(&made, "\x93NUMPY\1", 7);
    put_number(&made, 0, 1);
    put_number(&made, (uint32_t)n, 2);
    put(&made, text, (size_t)n);
    put(&made, tensor->values, sizeof(float) * tensor->n);
    return made;
}

/* From the CRC to the length of the name, alike in both heads of a member. */
static void put_member(struct bytes *zip, const struct bytes *array, size_t name)
{
    put_number(zip, tdmi_crc32(0, array->at, array->n), 4);
    put_number(zip, (uint32_t)array->n, 4);
    put_number(zip, (uint32_t)array->n, 4);
    put_number(zip, (uint32_t)name, 2);
}

static struct bytes npz(const struct source *source)
{
    struct bytes zip = {0}, list = {0};
    for (size_t i = 0; i < source->n; i++) {
        struct bytes array = npy(&source->tensors[i]);
        const uint32_t at = (uint32_t)zip.n;
        char name[5 * TDMI_NAME_BYTES];
        const size_t length =
            (size_t)snprintf(name, sizeof name, "%s.npy", source->tensors[i].name);
        put(&zip, "PK\3\4\x14\0\0\0\0\0\0\0\0\0", 14);
        put_member(&zip, &array, length);
        put_number(&zip, 0, 2);
        put(&zip, name, length);
        put(&zip, array.at, array.n);
        put(&list, "PK\1\2\x14\0\x14\0\0\0\0\0\0\0\0\0", 16);
        put_member(&list, &array, length);
        put(&list, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
        put_number(&list, at, 4);
        put(&list, name, length);
        free(array.at);
    }
    const uint32_t at = (uint32_t)zip.n;
    put(&zip, list.at, list.n);
    put(&zip, "PK\5\6\0\0\0\0", 8);
    put_number(&zip, (uint32_t)source->n, 2);
    put_number(&zip, (uint32_t)source->n, 2);
    put_number(&zip, (uint32_t)list.n, 4);
    put_number(&zip, at, 4);
    put_number(&zip, 0, 2);
    free(list.at);
    return zip;
}

static tdmi_weights *opened(const void *bytes, size_t n)
{
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    if (tdmi_weights_open_bytes(bytes, n, "made", &weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return weights;
}

static tdmi_weights *tfjs(const struct source *source, const struct tree *tree)
{
    struct bytes text = {0}, values = {0};
    char line[6 * TDMI_NAME_BYTES], shape[100];
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    put(&text, "{\"weightsManifest\":[{\"paths\":[\"a.bin\",\"b.bin\"],\"weights\":[", 58);
    for (size_t i = 0; i < source->n; i++) {
        put_shape(shape, sizeof shape, &source->tensors[i]);
        int n =
            snprintf(line, sizeof line, "%s{\"name\":\"%s\",\"shape\":[%s],\"dtype\":\"float32\"}",
                     i ? "," : "", source->tensors[i].name, shape);
        put(&text, line, (size_t)n);
        put(&values, source->tensors[i].values, sizeof(float) * source->tensors[i].n);
    }
    put(&text, "]}]}", 4);
    const size_t first = values.n / 3; /* in the middle of a value, perhaps */
    tree_file(tree, "js/model.json", text.at, text.n);
    tree_file(tree, "js/a.bin", values.at, first);
    tree_file(tree, "js/b.bin", values.at + first, values.n - first);
    if (tdmi_weights_open(tree_path(tree, "js"), &weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    free(text.at);
    free(values.at);
    return weights;
}

/* ---- the test -------------------------------------------------------------------------------- */

static void imported(tdmi_weights *weights, struct tdmi_import *import)
{
    tdm_error err = {0};
    if (tdmi_import(weights, &(struct tdmi_import_request){.network = network}, import, &err))
        fail_msg("%s: %s", tdmi_weights_form_name(weights), tdm_error_sentence(&err, 0));
    tdmi_weights_close(weights);
}

static void is_the_same(const struct tdmi_import *found, const struct tdmi_import *wanted)
{
    const tdmi_graph *graph = wanted->graph;
    assert_int_equal(found->n_classes, CLASSES);
    assert_int_equal(found->graph->param_values, graph->param_values);
    assert_memory_equal(found->params, wanted->params, sizeof(float) * (size_t)graph->param_values);
    assert_memory_equal(found->states, wanted->states, sizeof(float) * (size_t)graph->state_values);
    assert_memory_equal(tdmi_graph_preprocess(found->graph), tdmi_graph_preprocess(graph),
                        sizeof(struct tdmi_preprocess));
    for (int i = 0; i < graph->n_nodes; i++) {
        assert_true(found->graph->nodes[i].attrs.epsilon == graph->nodes[i].attrs.epsilon);
        assert_int_equal(found->graph->nodes[i].attrs.pad_top, graph->nodes[i].attrs.pad_top);
    }
    assert_string_equal(found->lineage.origin, wanted->lineage.origin);
}

static void by_name(bool is_keras)
{
    static struct source source;
    struct tree tree = tree_new();
    struct tdmi_import wanted, found;
    void *bytes = NULL;
    size_t n = 0;
    make(&source, is_keras);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    for (size_t i = 0; i < source.n; i++)
        tdmi_safetensors_add(writer, source.tensors[i].name, TDMI_DTYPE_F32,
                             source.tensors[i].layout.rank, source.tensors[i].layout.shape,
                             source.tensors[i].values);
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n, NULL), TDM_OK);
    imported(opened(bytes, n), &wanted);
    assert_string_equal(wanted.lineage.origin, is_keras ? "Keras" : "PyTorch");

    struct bytes zip = npz(&source);
    imported(opened(zip.at, zip.n), &found);
    assert_string_equal(found.lineage.form, "numpy");
    is_the_same(&found, &wanted);
    tdmi_import_release(&found);

    imported(tfjs(&source, &tree), &found);
    assert_string_equal(found.lineage.form, "tfjs");
    is_the_same(&found, &wanted);
    tdmi_import_release(&found);

    tdmi_import_release(&wanted);
    tdmi_safetensors_writer_free(writer);
    tdmi_free(bytes);
    free(zip.at);
    release(&source);
    tree_free(&tree);
}

TEST(names_of_pytorch_are_read_in_every_form)
{
    by_name(false);
}

TEST(names_of_keras_are_read_in_every_form)
{
    by_name(true);
}

/* numpy.savez(file, *arrays) calls them arr_0, arr_1, …: nothing says which is which. */
TEST(arrays_without_names_are_refused_with_what_to_do)
{
    static struct source source;
    struct tdmi_import import;
    tdm_error err = {0};
    char text[3000];
    make(&source, true);
    for (size_t i = 0; i < source.n; i++)
        snprintf(source.tensors[i].name, sizeof source.tensors[i].name, "arr_%d", (int)i);
    struct bytes zip = npz(&source);
    tdmi_weights *weights = opened(zip.at, zip.n);
    assert_int_equal(
        tdmi_import(weights, &(struct tdmi_import_request){.network = network}, &import, &err),
        TDM_E_INPUT);
    tdm_error_format(&err, text, sizeof text);
    if (!strstr(text, "its arrays have no names (arr_0, arr_1"))
        fail_msg("%s", text);
    tdmi_weights_close(weights);
    free(zip.at);
    release(&source);
}

TEST_MAIN(NULL, NULL)

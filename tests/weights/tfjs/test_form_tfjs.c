/* TensorFlow.js models: shards as one, quantised values as floats, the network as a fact, and paths
 * that stay in the folder. */
#include "weights/weights_file.h"
#include "data/tree.h"

#define FOLDER CHECKOUT "/tests/fixtures/weights/tfjs"

TEST(a_model_is_read_by_its_file_and_by_its_folder)
{
    static const char *const names[] = {"tfjs/model.json", "tfjs", "tfjs/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture(names[i]);
        assert_string_equal(tdmi_weights_form_name(weights), "tfjs");
        assert_int_equal(tdmi_weights_count(weights), 8);
        assert_counted(weights, "d/kernel", "3,2"); /* ends in the second shard */
        assert_counted(weights, "d/bias", "2");
        const struct tdmi_weights_tensor *seed = tdmi_weights_find(weights, "seed");
        int32_t values[2];
        assert_int_equal(seed->dtype, TDMI_DTYPE_I32);
        memcpy(values, seed->data, sizeof values);
        assert_int_equal(values[0], 3);
        assert_int_equal(values[1], -1);
        assert_int_equal(tdmi_weights_find(weights, "flags")->dtype, TDMI_DTYPE_BOOL);
    }
}

static void assert_values(const tdmi_weights *weights, const char *name, const float *wanted, int n)
{
    float values[8];
    tdm_error err = {0};
    const struct tdmi_weights_tensor *tensor = tdmi_weights_find(weights, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->n_values, n);
    assert_int_equal(tdmi_weights_floats(weights, tensor, values, &err), TDM_OK);
    for (int i = 0; i < n; i++)
        assert_true(values[i] == wanted[i]);
}

TEST(quantised_values_become_what_they_stand_for)
{
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture("tfjs/model.json");
    assert_values(weights, "q8", (const float[]){-1, 63, 126.5F}, 3);
    assert_values(weights, "q16", (const float[]){1, 16384.75F}, 2);
    assert_counted(weights, "half", "3");
    const struct tdmi_weights_tensor *whole = tdmi_weights_find(weights, "whole");
    int32_t values[2];
    assert_int_equal(whole->dtype, TDMI_DTYPE_I32);
    memcpy(values, whole->data, sizeof values);
    assert_int_equal(values[0], -2);
    assert_int_equal(values[1], 3); /* 2.5 */
}

TEST(the_network_is_a_fact)
{
    tdmi_weights *weights = open_fixture("tfjs/model.json");
    assert_fact(weights, "format", "layers-model");
    assert_fact(weights, "keras_version", "2.15.0");
    assert_fact(
        weights, "model_config",
        "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"tiny\",\"layers\":[{\"class_"
        "name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":2,\"rate\":0.5,\"bias\":true,"
        "\"none\":null}}]}}");
    tdmi_weights_close(weights);
}

/* A model.json of this text in a folder with a shard "a.bin" of 16 bytes; files outside of it. */
static void assert_model_refused(const char *text, const char *words)
{
    struct tree tree = tree_new();
    char found[4000];
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    tree_file(&tree, "outside.bin", "0123456789abcdef", 16);
    tree_file(&tree, "model/a.bin", "0123456789abcdef", 16);
    tree_file(&tree, "model/model.json", text, strlen(text));
    tdm_status status = tdmi_weights_open(tree_path(&tree, "model"), &weights, &err);
    tdm_error_format(&err, found, sizeof found);
    if (status != TDM_E_INPUT || strstr(found, words) == NULL)
        fail_msg("%s: '%s' is not in: %s", text, words, found);
    tree_free(&tree);
}

#define WEIGHT "{\"name\":\"w\",\"shape\":[4],\"dtype\":\"float32\"}"
#define MODEL(paths, weights) \
    "{\"weightsManifest\":[{\"paths\":[" paths "],\"weights\":[" weights "]}]}"

TEST(paths_that_leave_the_folder_are_refused)
{
    static const char *const paths[] = {
        "../outside.bin",   "/etc/passwd", "a/../../outside.bin", "",      ".",    "..",
        "./../outside.bin", "a.bin/",      "https://x/a.bin",     "\\\\a", "a//b", "./a.bin"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char text[400];
        snprintf(text, sizeof text, MODEL("\"%s\"", WEIGHT), paths[i]);
        assert_model_refused(text, "leaves the model's folder");
    }
}

TEST(models_that_do_not_fit_are_refused)
{
    static const char *const cases[][2] = {
        {MODEL("\"a.bin\",\"a.bin\"", WEIGHT), "listed twice"},
        {MODEL("\"b.bin\"", WEIGHT), "b.bin"},
        {MODEL("", WEIGHT), "have 0 bytes and its shapes need 16"},
        {MODEL("\"a.bin\"", ""), "have 16 bytes and its shapes need 0"},
        {MODEL("\"a.bin\"", WEIGHT "," WEIGHT), "need 32"},
        {MODEL("3", WEIGHT), "leaves the model's folder"},
        {MODEL("\"a.bin\"", "{}"), "has no name"},
        {MODEL("\"a.bin\"", "3"), "has no name"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[-4],\"dtype\":\"float32\"}"),
         "its shape is none"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[4e30],\"dtype\":\"float32\"}"),
         "its shape is none"},
        {MODEL("\"a.bin\"",
               "{\"name\":\"w\",\"shape\":[4294967296,4294967296],\"dtype\":\"float32\"}"),
         "its shape is none"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[1000000000000],\"dtype\":\"float32\"}"),
         "need 4000000000000"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[4],\"dtype\":\"string\"}"),
         "of type 'string'"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[2],\"dtype\":\"complex64\"}"),
         "of type 'complex64'"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[4],\"dtype\":\"float32\","
                            "\"quantization\":{\"dtype\":\"int4\",\"scale\":1,\"min\":0}}"),
         "has an unsupported quantisation"},
        {MODEL("\"a.bin\"", "{\"name\":\"w\",\"shape\":[16],\"dtype\":\"float32\","
                            "\"quantization\":{\"dtype\":\"uint8\"}}"),
         "has an unsupported quantisation"},
        {"{\"weightsManifest\":3}", "no list \"weightsManifest\""},
        {"{\"weightsManifest\":[]}", "no weights"},
        {"{\"weightsManifest\":[3]}", "not a list of weights"},
        {"{\"weightsManifest\":[", "model.json"},
        {"", "model.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_model_refused(cases[i][0], cases[i][1]);
}

TEST(a_shard_is_named_once_in_the_whole_manifest)
{
    static const char group[] = "{\"paths\":[\"a.bin\"],\"weights\":[{\"name\":\"%s\","
                                "\"shape\":[4],\"dtype\":\"float32\"}]}";
    char first[200], second[200], text[500];
    snprintf(first, sizeof first, group, "v");
    snprintf(second, sizeof second, group, "w");
    snprintf(text, sizeof text, "{\"weightsManifest\":[%s,%s]}", first, second);
    assert_model_refused(text, "shard 'a.bin' is listed twice");
}

/* links names of one file of 1 MiB, in one group or one each. */
static tdm_status open_linked(int links, bool is_symbolic, bool is_apart, char found[4000])
{
    enum { side = 1 << 20 };
    struct tree tree = tree_new();
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    size_t room = (size_t)links * 160 + 200, n = 0;
    char *text = calloc(room, 1), *bytes = calloc(side, 1);
    assert_true(text && bytes);
    tree_file(&tree, "model/0.bin", bytes, side);
    n += (size_t)snprintf(text, room, "{\"weightsManifest\":[{\"paths\":[");
    for (int i = 0; i < links; i++) {
        char name[40];
        snprintf(name, sizeof name, "model/%d.bin", i);
        char *from = strdup(tree_path(&tree, "model/0.bin")), *to = strdup(tree_path(&tree, name));
        if (i > 0)
            assert_int_equal(is_symbolic ? symlink(from, to) : link(from, to), 0);
        free(from);
        free(to);
        n += (size_t)snprintf(text + n, room - n, "%s\"%d.bin\"", i && !is_apart ? "," : "", i);
        if (is_apart)
            n += (size_t)snprintf(
                text + n, room - n,
                "],\"weights\":[{\"name\":\"w%d\",\"shape\":[%d],\"dtype\":\"uint8\"}]}%s", i, side,
                i + 1 < links ? ",{\"paths\":[" : "");
    }
    if (!is_apart)
        n += (size_t)snprintf(
            text + n, room - n,
            "],\"weights\":[{\"name\":\"w\",\"shape\":[%d,%d],\"dtype\":\"uint8\"}]}", links, side);
    snprintf(text + n, room - n, "]}");
    tree_file(&tree, "model/model.json", text, strlen(text));
    tdm_status status = tdmi_weights_open(tree_path(&tree, "model"), &weights, &err);
    tdm_error_format(&err, found, 4000);
    tdmi_weights_close(weights);
    free(text);
    free(bytes);
    tree_free(&tree);
    return status;
}

TEST(one_file_under_many_names_is_not_read_again_and_again)
{
    char found[4000];
    for (int kind = 0; kind < 4; kind++) {
        const bool is_symbolic = (kind & 1) != 0, is_apart = (kind & 2) != 0;
        assert_int_equal(open_linked(10, is_symbolic, is_apart, found), TDM_OK);
        assert_int_equal(open_linked(200, is_symbolic, is_apart, found), TDM_E_INPUT);
        if (!strstr(found, "links to files of 1048576 bytes and would be read as 209715200"))
            fail_msg("%s", found);
    }
    assert_int_equal(open_linked(5000, true, false, found), TDM_E_INPUT);
    if (!strstr(found, "names 5000 shards; at most 4096"))
        fail_msg("%s", found);
}

TEST(a_cut_model_and_a_folder_without_one_are_refused)
{
    struct tree tree = tree_new();
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    assert_int_equal(tdmi_weights_open(tree.root, &weights, &err), TDM_E_INPUT);
    assert_refused_wherever_cut("tfjs/model.json");
    tree_free(&tree);
}

TEST(without_memory_reading_fails_cleanly)
{
    for (int64_t n = 1;; n++) {
        tdm_error err = {0};
        tdmi_weights *weights = NULL;
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_weights_open(FOLDER "/model.json", &weights, &err);
        tdmi_memory_fail_from(0);
        tdmi_weights_close(weights);
        if (status == TDM_OK)
            break;
        assert_true(n < 10000);
    }
}

TEST_MAIN(NULL, NULL)

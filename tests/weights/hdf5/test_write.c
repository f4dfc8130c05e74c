/*
 * HDF5 and Keras files of our own, read again by our reader; h5py and Keras read the same ones in
 * bench/peers/checks/keras_check.py --copy.
 */
#include "weights/hdf5/hdf5_file.h"
#include "weights/keras/h5_write.h"
#include "weights/weights.h"

static const float values[6] = {1, -2, 0.5F, 3, 1e-30F, 7};
static const int64_t table[] = {2, 3}, none[] = {0, 3};

static tdmi_hdf5_object *at(tdmi_hdf5 *file, const char *path)
{
    tdm_error err = {0};
    tdmi_hdf5_object *object = NULL;
    struct tdmi_hdf5_text text = {path, strlen(path)};
    assert_int_equal(tdmi_hdf5_find(file, tdmi_hdf5_root(file), text, &object, &err), TDM_OK);
    return object;
}

static void assert_text(tdmi_hdf5 *file, const struct tdmi_hdf5_values *found, uint64_t index,
                        const char *wanted)
{
    tdm_error err = {0};
    struct tdmi_hdf5_text text;
    assert_int_equal(tdmi_hdf5_text_at(file, found, index, &text, &err), TDM_OK);
    assert_int_equal(text.length_bytes, strlen(wanted));
    assert_memory_equal(text.bytes, wanted, text.length_bytes);
}

static struct tdmi_hdf5_values attribute(tdmi_hdf5 *file, const char *path, const char *key)
{
    tdm_error err = {0};
    bool is_there = false;
    struct tdmi_hdf5_values found;
    assert_int_equal(tdmi_hdf5_attribute(file, at(file, path), key, &found, &is_there, &err),
                     TDM_OK);
    if (!is_there)
        fail_msg("'%s' has no '%s'", path, key);
    return found;
}

TEST(arrays_and_attributes_are_read_back)
{
    void *bytes = NULL;
    tdm_error err = {0};
    struct tdmi_hdf5_values found;
    static const char *const names[] = {"first", "a much longer second", ""};
    const double wide[] = {0.1, -1e300};
    static const int64_t two[] = {2};
    tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_add(writer, "b/table", TDMI_DTYPE_F32, 2, table, values);
    tdmi_hdf5_writer_add(writer, "b/one", TDMI_DTYPE_F32, 0, NULL, values + 3);
    tdmi_hdf5_writer_add(writer, "a/none", TDMI_DTYPE_F32, 2, none, NULL);
    tdmi_hdf5_writer_add(writer, "wide", TDMI_DTYPE_F64, 1, two, wide);
    tdmi_hdf5_writer_note(writer, "", "version", "2.4.0");
    tdmi_hdf5_writer_note(writer, "b", "nothing", "");
    tdmi_hdf5_writer_note(writer, "b/table", "unit", "metre");
    tdmi_hdf5_writer_note_list(writer, "a", "names", names, 3);
    tdmi_hdf5_writer_note_list(writer, "a", "no names", NULL, 0);
    size_t n_bytes;
    tdmi_hdf5 *file = written(writer, &bytes, &n_bytes);
    assert_int_equal(tdmi_hdf5_dataset(file, at(file, "b/table"), &found, &err), TDM_OK);
    assert_int_equal(found.dtype, TDMI_DTYPE_F32);
    assert_int_equal(found.rank, 2);
    assert_int_equal(found.shape[1], 3);
    assert_memory_equal(found.data, values, sizeof values);
    assert_int_equal((found.data - (const uint8_t *)bytes) % 8, 0);
    assert_int_equal(tdmi_hdf5_dataset(file, at(file, "b/one"), &found, &err), TDM_OK);
    assert_int_equal(found.rank, 0);
    assert_memory_equal(found.data, values + 3, sizeof(float));
    assert_int_equal(tdmi_hdf5_dataset(file, at(file, "a/none"), &found, &err), TDM_OK);
    assert_int_equal(found.n_values, 0);
    assert_int_equal(tdmi_hdf5_dataset(file, at(file, "wide"), &found, &err), TDM_OK);
    assert_int_equal(found.dtype, TDMI_DTYPE_F64);
    assert_memory_equal(found.data, wide, sizeof wide);
    assert_null(at(file, "b/tabl"));
    found = attribute(file, "", "version");
    assert_text(file, &found, 0, "2.4.0");
    found = attribute(file, "b", "nothing");
    assert_text(file, &found, 0, "");
    found = attribute(file, "b/table", "unit");
    assert_text(file, &found, 0, "metre");
    found = attribute(file, "a", "names");
    assert_int_equal(found.n_values, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_text(file, &found, i, names[i]);
    found = attribute(file, "a", "no names");
    assert_int_equal(found.n_values, 0);
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

/* 3,000 members: leaves of 8, nodes of 32, and two levels above. */
TEST(large_groups_become_trees)
{
    enum { N = 3000 };
    void *bytes = NULL;
    char name[32];
    tdm_error err = {0};
    const struct tdmi_hdf5_link *links;
    size_t n_links = 0;
    static float numbers[N];
    tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    for (int i = 0; i < N; i++) {
        numbers[i] = (float)i;
        snprintf(name, sizeof name, "group/layer_%d", i * 7 % N);
        tdmi_hdf5_writer_add(writer, name, TDMI_DTYPE_F32, 0, NULL, &numbers[i * 7 % N]);
    }
    size_t n_bytes;
    tdmi_hdf5 *file = written(writer, &bytes, &n_bytes);
    assert_int_equal(tdmi_hdf5_links(file, at(file, "group"), &links, &n_links, &err), TDM_OK);
    assert_int_equal(n_links, N);
    for (int i = 0; i < N; i++) {
        struct tdmi_hdf5_values found;
        tdmi_hdf5_object *object = NULL;
        snprintf(name, sizeof name, "layer_%d", i);
        assert_int_equal(links[i].name.length_bytes, strlen(name));
        assert_memory_equal(links[i].name.bytes, name, strlen(name));
        assert_int_equal(tdmi_hdf5_follow(file, &links[i], &object, &err), TDM_OK);
        assert_int_equal(tdmi_hdf5_dataset(file, object, &found, &err), TDM_OK);
        assert_memory_equal(found.data, &numbers[i], sizeof(float));
    }
    tdmi_hdf5_close(file);
    tdmi_free(bytes);
}

/* 2,000 layers with names of 40 bytes are 80 KB of names, and the configuration is 200 KB. */
static void write_large(const char *path)
{
    enum { N = 2000, CONFIG = 200000 };
    static char names[N][48], config[CONFIG + 1];
    static struct tdmi_keras_h5_layer layers[N];
    static const struct tdmi_keras_weight weights[] = {{"kernel:0", 2, table, values},
                                                       {"bias:0", 0, NULL, values + 4}};
    memset(config, 'x', CONFIG);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "block_%d_with_a_name_of_forty_letters_%d", i, i);
        layers[i] = (struct tdmi_keras_h5_layer){names[i], weights, i % 10 == 0 ? 2 : 0};
    }
    struct tdmi_keras_file file = {
        .layers = layers, .n_layers = N, .keras_version = "2.4.0", .model_config = config};
    assert_int_equal(tdmi_keras_h5_write(&file, path, NULL), TDM_OK);
}

TEST(keras_files_hold_any_number_of_layers_in_their_order)
{
    void *bytes = NULL, *again = NULL;
    size_t n_bytes = 0, n_again = 0;
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    write_large("large.h5");
    if (tdmi_weights_open("large.h5", &weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_int_equal(tdmi_weights_count(weights), 400);
    assert_string_equal(tdmi_weights_at(weights, 3)->name,
                        "block_10_with_a_name_of_forty_letters_10/bias:0");
    assert_string_equal(tdmi_weights_at(weights, 398)->name,
                        "block_1990_with_a_name_of_forty_letters_1990/kernel:0");
    assert_memory_equal(tdmi_weights_at(weights, 398)->data, values, sizeof values);
    assert_int_equal(strlen(tdmi_weights_fact(weights, "model_config")), 200000);
    assert_string_equal(tdmi_weights_fact(weights, "backend"), "tensorflow");
    tdmi_weights_close(weights);
    write_large("again.h5");
    assert_int_equal(tdmi_file_read("large.h5", 1 << 30, &bytes, &n_bytes, &err), TDM_OK);
    assert_int_equal(tdmi_file_read("again.h5", 1 << 30, &again, &n_again, &err), TDM_OK);
    assert_int_equal(n_bytes, n_again);
    assert_memory_equal(bytes, again, n_bytes);
    tdmi_free(bytes);
    tdmi_free(again);
}

TEST(weights_alone_lie_at_the_root)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    const struct tdmi_keras_weight kernel = {"conv/kernel:0", 2, table, values};
    const struct tdmi_keras_h5_layer layers[] = {{"input", NULL, 0}, {"conv", &kernel, 1}};
    struct tdmi_keras_file file = {.layers = layers, .n_layers = 2, .keras_version = "1.2.2"};
    assert_int_equal(tdmi_keras_h5_write(&file, "weights.h5", &err), TDM_OK);
    assert_int_equal(tdmi_weights_open("weights.h5", &weights, &err), TDM_OK);
    assert_string_equal(tdmi_weights_at(weights, 0)->name, "conv/conv/kernel:0");
    assert_null(tdmi_weights_fact(weights, "model_config"));
    assert_string_equal(tdmi_weights_fact(weights, "keras_version"), "1.2.2");
    tdmi_weights_close(weights);
    assert_int_equal(tdmi_keras_h5_write(&file, "/proc/no/weights.h5", &err), TDM_E_SYSTEM);
}

static void assert_refused(tdmi_hdf5_writer *writer, const char *words)
{
    tdm_error err = {0};
    assert_int_equal(tdmi_hdf5_writer_finish(writer, "refused.h5", &err), TDM_E_USAGE);
    assert_int_equal(tdmi_file_kind_of("refused.h5"), TDMI_FILE_MISSING);
    if (strstr(tdm_error_sentence(&err, 0), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tdm_error_sentence(&err, 0));
    tdmi_hdf5_writer_free(writer);
}

TEST(finish_reports_failed_writes)
{
    tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_add(writer, "a", TDMI_DTYPE_F32, 0, NULL, values);
    tdmi_hdf5_writer_add(writer, "a", TDMI_DTYPE_F32, 0, NULL, values);
    assert_refused(writer, "'a' is there twice");
    writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_add(writer, "a", TDMI_DTYPE_F32, 0, NULL, values);
    tdmi_hdf5_writer_add(writer, "a/b", TDMI_DTYPE_F32, 0, NULL, values);
    assert_refused(writer, "below 'a', which is an array");
    writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_note(writer, "g", "key", "text");
    tdmi_hdf5_writer_note(writer, "g", "key", "text");
    assert_refused(writer, "attribute 'key' of 'g'");
    writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_add(writer, "a", TDMI_DTYPE_I64, 0, NULL, values);
    assert_refused(writer, "type I64");
    writer = tdmi_hdf5_writer_new();
    tdmi_hdf5_writer_add(writer, "a", TDMI_DTYPE_F32, 0, NULL, values);
    tdmi_hdf5_writer_group(writer, "a");
    assert_refused(writer, "to be a group");
}

TEST(without_memory_writing_fails_cleanly)
{
    tdm_status status = TDM_E_MEMORY;
    for (int64_t n = 1; status == TDM_E_MEMORY; n++) {
        tdm_error err = {0};
        static const struct tdmi_keras_weight kernel = {"kernel:0", 2, table, values};
        static const struct tdmi_keras_h5_layer layer = {"conv", &kernel, 1};
        struct tdmi_keras_file file = {
            .layers = &layer, .n_layers = 1, .keras_version = "2.4.0", .model_config = "{}"};
        tdmi_memory_fail_from(n);
        status = tdmi_keras_h5_write(&file, "without_memory.h5", &err);
        tdmi_memory_fail_from(0);
    }
    assert_int_equal(status, TDM_OK);
}

TEST_MAIN(NULL, NULL)

/*
 * Files that Keras and h5py wrote, as lists of tensors: what tests/fixtures/make_keras.py found in
 * them with h5py, and which words stand in the sentence about what is not read.
 */
#include "weights/weights.h"
#include "base/hash/crc32.h"
#include "base/memory.h"
#include "io/compress/inflate.h"
#include "graph/fixture.h"
#include <inttypes.h>
#include "test_data.h"
#include "unit.h"

struct expecting {
    char name[128]; /* of the file */
    tdmi_weights *weights;
    size_t n_tensors;
};

static void path_of(const char *name, char path[4096])
{
    snprintf(path, 4096, CHECKOUT "/tests/fixtures/keras/%s", name);
}

static void finish(struct expecting *expecting)
{
    if (expecting->weights != NULL &&
        tdmi_weights_count(expecting->weights) != expecting->n_tensors)
        fail_msg("%s: %zu tensors, h5py finds %zu", expecting->name,
                 tdmi_weights_count(expecting->weights), expecting->n_tensors);
    tdmi_weights_close(expecting->weights);
    expecting->weights = NULL;
    expecting->n_tensors = 0;
}

static void expect_file(struct expecting *expecting, const char *name)
{
    char path[4096];
    tdm_error err = {0};
    finish(expecting);
    snprintf(expecting->name, sizeof expecting->name, "%.100s", name);
    path_of(name, path);
    if (tdmi_weights_open(path, &expecting->weights, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_string_equal(tdmi_weights_form_name(expecting->weights),
                        strstr(name, ".keras") ? "keras" : "keras-h5");
}

/* NAME TYPE CRC32 RANK SHAPE…: the next tensor of the file. */
static void expect_tensor(struct expecting *expecting, const char *line)
{
    char name[128], dtype[16];
    uint32_t crc;
    int rank, n = 0;
    assert_int_equal(sscanf(line, "%127s %15s %" SCNx32 " %d%n", name, dtype, &crc, &rank, &n), 4);
    if (expecting->n_tensors >= tdmi_weights_count(expecting->weights))
        fail_msg("%s: no '%s'", expecting->name, name);
    const struct tdmi_weights_tensor *tensor =
        tdmi_weights_at(expecting->weights, expecting->n_tensors++);
    if (strcmp(tensor->name, name) != 0)
        fail_msg("%s: found '%s', expected '%s'", expecting->name, tensor->name, name);
    assert_string_equal(tdmi_dtype_name(tensor->dtype), dtype);
    assert_int_equal(tensor->rank, rank);
    for (int i = 0; i < rank; i++) {
        int64_t extent;
        int step = 0;
        assert_int_equal(sscanf(line + n, "%" SCNd64 "%n", &extent, &step), 1);
        n += step;
        assert_int_equal(tensor->shape[i], extent);
    }
    if (tdmi_crc32(0, tensor->data, tensor->bytes) != crc)
        fail_msg("%s: other values in '%s'", expecting->name, name);
}

static void expect_fact(const struct expecting *expecting, const char *line)
{
    char key[64];
    uint32_t crc;
    assert_int_equal(sscanf(line, "%63s %" SCNx32, key, &crc), 2);
    const char *fact = tdmi_weights_fact(expecting->weights, key);
    if (fact == NULL || tdmi_crc32(0, fact, strlen(fact)) != crc)
        fail_msg("%s: another %s", expecting->name, key);
}

/* NAME WORD…: the words stand in one of the frames. */
static void expect_refusal(const char *line)
{
    char name[128], path[4096];
    int n = 0;
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    assert_int_equal(sscanf(line, "%127s %n", name, &n), 1);
    path_of(name, path);
    assert_int_equal(tdmi_weights_open(path, &weights, &err), TDM_E_INPUT);
    bool is_said = false;
    for (int i = 0; i < err.n_frames; i++)
        is_said |= strstr(tdm_error_sentence(&err, i), line + n) != NULL;
    if (!is_said)
        fail_msg("%s: '%s' is not in: %s", name, line + n, tdm_error_sentence(&err, 0));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), name));
}

/* Builds without zlib read what is not compressed. */
static bool needs_zlib(const char *name)
{
    return strncmp(name, "packed", 6) == 0 || strncmp(name, "deflated", 8) == 0;
}

TEST(files_hold_what_h5py_finds_in_them)
{
    char line[1024], path[4096];
    struct expecting expecting = {.weights = NULL};
    path_of("expected.txt", path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    bool is_passed_over = false;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "file ", 5) == 0) {
            is_passed_over = needs_zlib(line + 5) && tdmi_inflate_best() == NULL;
            if (!is_passed_over)
                expect_file(&expecting, line + 5);
        } else if (strncmp(line, "refused ", 8) == 0) {
            expect_refusal(line + 8);
        } else if (line[0] != '#' && !is_passed_over) {
            if (strncmp(line, "tensor ", 7) == 0)
                expect_tensor(&expecting, line + 7);
            else
                expect_fact(&expecting, line + 5);
        }
    }
    finish(&expecting);
    fclose(file);
}

TEST(layers_have_the_names_of_the_configuration)
{
    char path[4096];
    tdm_error err = {0};
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    path_of("nested.keras", path);
    assert_int_equal(tdmi_weights_open(path, &weights, &err), TDM_OK);
    assert_string_equal(tdmi_weights_fact(weights, "layers/sequential/layers/conv2d"),
                        "inner_conv");
    assert_string_equal(tdmi_weights_fact(weights, "layers/sequential"), "inner");
}

/* The lists say the order, not the alphabet; what an optimizer remembers is in neither file. */
TEST(published_files_are_read_in_the_order_of_their_layers)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    const char *path = test_data("weights/tm_waste_4class_keras_model.h5");
    assert_int_equal(tdmi_weights_open(path, &weights, &err), TDM_OK);
    assert_int_equal(tdmi_weights_count(weights), 263);
    assert_string_equal(tdmi_weights_at(weights, 0)->name, "sequential_1/Conv1/kernel:0");
    assert_string_equal(tdmi_weights_at(weights, 262)->name, "sequential_3/dense_Dense2/kernel:0");
    assert_string_equal(tdmi_weights_fact(weights, "keras_version"), "2.4.0");
    assert_non_null(strstr(tdmi_weights_fact(weights, "model_config"), "\"sequential_4\""));
    tdmi_weights_close(weights);
    path = test_data("weights/fer2013_mini_XCEPTION.119-0.65.hdf5");
    assert_int_equal(tdmi_weights_open(path, &weights, &err), TDM_OK);
    const struct tdmi_weights_tensor *tensor =
        tdmi_weights_find(weights, "separable_conv2d_8/separable_conv2d_8/depthwise_kernel:0");
    assert_non_null(tensor);
    assert_int_equal(tensor->shape[2], 128);
    assert_string_equal(tdmi_weights_at(weights, 0)->name, "conv2d_1/conv2d_1/kernel:0");
    assert_null(tdmi_weights_find(weights, "Variable:0"));
    tdmi_weights_close(weights);
}

static void *bytes_of(const char *name, size_t *n_bytes)
{
    char path[4096];
    path_of(name, path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long end = ftell(file);
    assert_true(end > 0);
    rewind(file);
    void *bytes = malloc((size_t)end);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)end, file), (size_t)end);
    fclose(file);
    *n_bytes = (size_t)end;
    return bytes;
}

/* Reads all that was opened; true when it was. */
static bool reads(const void *bytes, size_t n_bytes)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    uint32_t crc = 0;
    if (tdmi_weights_open_bytes(bytes, n_bytes, "damaged", &weights, &err) != TDM_OK) {
        assert_true(err.n_frames > 0 && tdm_error_sentence(&err, 0)[0] != 0);
        return false;
    }
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        crc = tdmi_crc32(crc, tensor->data, tensor->bytes);
    }
    tdmi_weights_close(weights);
    return crc != 1;
}

/* Each length in memory of its own, so that a sanitizer sees a byte too far. */
static bool reads_cut(const void *bytes, size_t n_bytes)
{
    void *copy = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n_bytes);
    bool is_read = reads(copy, n_bytes);
    free(copy);
    return is_read;
}

TEST(a_file_cut_short_at_any_byte_is_refused)
{
    static const char *const names[] = {"latest.h5", "split.h5", "packed-latest.h5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n_bytes;
        void *bytes = bytes_of(names[i], &n_bytes);
        for (size_t cut = 0; cut < n_bytes; cut++)
            assert_false(reads_cut(bytes, cut));
        free(bytes);
    }
}

TEST(files_cut_short_at_every_percent_are_refused)
{
    static const char *const names[] = {"nested.h5",        "sequential.weights.h5",
                                        "sequential.keras", "deflated.keras",
                                        "userblock.h5",     "many.h5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n_bytes;
        void *bytes = bytes_of(names[i], &n_bytes);
        for (size_t percent = 0; percent < 100; percent++)
            assert_false(reads_cut(bytes, n_bytes * percent / 100));
        free(bytes);
    }
}

/* Any byte may be wrong: what comes of it is a list or a sentence. */
TEST(a_file_with_any_byte_changed_is_read_or_refused)
{
    static const char *const names[] = {"split.h5", "latest.h5", "kinds.h5", "packed-latest.h5"};
    int n_read = 0, n_refused = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n_bytes;
        uint8_t *bytes = bytes_of(names[i], &n_bytes);
        for (size_t at = 0; at < n_bytes; at++) {
            uint8_t was = bytes[at];
            bytes[at] = at % 2 ? 0xff : (uint8_t)(was ^ 1u);
            if (reads(bytes, n_bytes))
                n_read++;
            else
                n_refused++;
            bytes[at] = was;
        }
        free(bytes);
    }
    assert_true(n_read > 1000 && n_refused > 1000);
}

TEST(without_memory_reading_fails_cleanly)
{
    static const char *const names[] = {"nested.keras", "packed.h5"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        tdm_status status = TDM_E_MEMORY;
        path_of(names[i], path);
        if (needs_zlib(names[i]) && tdmi_inflate_best() == NULL)
            continue;
        for (int64_t n = 1; status == TDM_E_MEMORY; n++) {
            tdm_error err = {0};
            TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
            tdmi_memory_fail_from(n);
            status = tdmi_weights_open(path, &weights, &err);
            tdmi_memory_fail_from(0);
        }
        assert_int_equal(status, TDM_OK);
    }
}

TEST_MAIN(NULL, NULL)

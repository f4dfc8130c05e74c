/*
 * Files of tensors: what is written is read back, the same calls give the same bytes, and whatever
 * is cut, changed or invented is refused with a sentence.
 */
#include "weights/safetensors/safetensors.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include <unistd.h>
#include "test_data.h"
#include "unit.h"

static const float weights[6] = {1, -2, 3.5F, 0, 1e-30F, 7};
static const uint8_t pixels[5] = {1, 2, 3, 4, 255};
static const uint64_t position[1] = {UINT64_MAX - 1};
static const int64_t two_by_three[] = {2, 3}, five[] = {5}, nothing[] = {4, 0};

/* ---- writing for the tests -------------------------------------------------------------- */

static tdmi_safetensors_writer *sample_writer(void)
{
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_note(writer, "classes", "[\"a\",\"b\"]");
    tdmi_safetensors_note(writer, "note", "says \"tandem.checksum\":\"0123456789abcdef\" \xc3\xa4");
    tdmi_safetensors_add(writer, "test.input", TDMI_DTYPE_U8, 1, five, pixels);
    tdmi_safetensors_add(writer, "dense.weight", TDMI_DTYPE_F32, 2, two_by_three, weights);
    tdmi_safetensors_add(writer, "order.position", TDMI_DTYPE_U64, 0, NULL, position);
    tdmi_safetensors_add(writer, "empty", TDMI_DTYPE_BF16, 2, nothing, NULL);
    return writer;
}

static uint8_t *sample_bytes(size_t *n_bytes)
{
    void *bytes = NULL;
    tdm_error err = {0};
    tdmi_safetensors_writer *writer = sample_writer();
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, n_bytes, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    return bytes;
}

/* Copied and lent: both say the same. */
static tdm_status open_bytes(const void *bytes, size_t n_bytes, tdm_error *err)
{
    tdmi_safetensors *file = NULL, *lent = NULL;
    tdm_error other = {0};
    tdm_status status = tdmi_safetensors_open_bytes(bytes, n_bytes, "x.safetensors", &file, err);
    assert_int_equal(tdmi_safetensors_lend(bytes, n_bytes, "x.safetensors", &lent, &other), status);
    if (status != TDM_OK)
        assert_string_equal(tdm_error_sentence(&other, 0), tdm_error_sentence(err, 0));
    tdmi_safetensors_close(lent);
    tdmi_safetensors_close(file);
    return status;
}

/* A file from a header's text and a number of data bytes. */
static tdm_status open_text(const char *header, size_t n_data, tdm_error *err)
{
    uint8_t bytes[2048] = {0};
    size_t n = strlen(header);
    assert_true(8 + n + n_data <= sizeof bytes);
    bytes[0] = (uint8_t)(n & 255);
    bytes[1] = (uint8_t)(n >> 8);
    memcpy(bytes + 8, header, n);
    return open_bytes(bytes, 8 + n + n_data, err);
}

static size_t header_end(const uint8_t *bytes)
{
    return 8 + (size_t)bytes[0] + ((size_t)bytes[1] << 8);
}

/* ---- round trip ------------------------------------------------------------------------- */

static void check_sample(const tdmi_safetensors *file)
{
    assert_true(tdmi_safetensors_metadata(file, "tandem.checksum") != NULL);
    assert_int_equal(tdmi_safetensors_count(file), 4);
    assert_string_equal(tdmi_safetensors_metadata(file, "classes"), "[\"a\",\"b\"]");
    assert_int_equal(tdmi_safetensors_metadata_count(file), 3);
    assert_string_equal(tdmi_safetensors_metadata_key(file, 1), "classes");
    assert_null(tdmi_safetensors_metadata(file, "absent"));
    const struct tdmi_safetensors_tensor *dense = tdmi_safetensors_find(file, "dense.weight");
    assert_non_null(dense);
    assert_int_equal(dense->dtype, TDMI_DTYPE_F32);
    assert_int_equal(dense->rank, 2);
    assert_int_equal(dense->shape[0], 2);
    assert_int_equal(dense->shape[1], 3);
    assert_int_equal(dense->n_values, 6);
    assert_memory_equal(dense->data, weights, sizeof weights);
    const struct tdmi_safetensors_tensor *input = tdmi_safetensors_find(file, "test.input");
    assert_memory_equal(input->data, pixels, sizeof pixels);
    const struct tdmi_safetensors_tensor *scalar = tdmi_safetensors_find(file, "order.position");
    assert_int_equal(scalar->rank, 0);
    assert_int_equal(scalar->n_values, 1);
    assert_memory_equal(scalar->data, position, sizeof position);
    assert_int_equal(tdmi_safetensors_find(file, "empty")->bytes, 0);
    assert_null(tdmi_safetensors_find(file, "dense"));
    for (size_t i = 0; i < tdmi_safetensors_count(file); i++)
        assert_int_equal((uintptr_t)tdmi_safetensors_at(file, i)->data % 64, 0);
}

TEST(written_tensors_are_read_back)
{
    tdm_error err = {0};
    char path[512];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/tensors-%ld.safetensors", base != NULL ? base : "/tmp",
             (long)getpid());
    tdmi_safetensors_writer *writer = sample_writer();
    assert_int_equal(tdmi_safetensors_finish(writer, path, &err), TDM_OK);
    tdmi_safetensors *file = NULL;
    assert_int_equal(tdmi_safetensors_open(path, &file, &err), TDM_OK);
    check_sample(file);
    tdmi_safetensors_close(file);

    size_t n_bytes = 0, n_stored = 0;
    void *stored = NULL;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    assert_int_equal(tdmi_file_read(path, 1 << 20, &stored, &n_stored, &err), TDM_OK);
    assert_int_equal(n_stored, n_bytes);
    assert_memory_equal(stored, bytes, n_bytes);
    tdmi_free(stored);
    tdmi_safetensors_writer_free(writer);
    unlink(path);
}

TEST(tensors_are_aligned_in_the_file_and_widest_first)
{
    size_t n_bytes = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    size_t end = header_end(bytes);
    assert_int_equal(end % 64, 0);
    assert_int_equal(n_bytes, end + sizeof position + sizeof weights + sizeof pixels);
    assert_memory_equal(bytes + end, position, sizeof position);
    assert_memory_equal(bytes + end + 8, weights, sizeof weights);
    assert_memory_equal(bytes + end + 32, pixels, sizeof pixels);
}

TEST(the_checksum_is_the_hash_of_the_file_with_its_digits_as_zeros)
{
    size_t n_bytes = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    static const char start[] = "{\"__metadata__\":{\"tandem.checksum\":\"";
    assert_memory_equal(bytes + 8, start, sizeof start - 1);
    char stored[17] = "", computed[17];
    uint8_t *digits = bytes + 8 + sizeof start - 1;
    memcpy(stored, digits, 16);
    memset(digits, '0', 16);
    snprintf(computed, sizeof computed, "%016llx",
             (unsigned long long)tdmi_xxh64_of(bytes, n_bytes, 0));
    assert_string_equal(stored, computed);
}

TEST(a_writer_may_finish_again_after_the_data_changed)
{
    float value = 1;
    void *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    tdm_error err = {0};
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_add(writer, "w", TDMI_DTYPE_F32, 0, NULL, &value);
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &first, &n_first, &err), TDM_OK);
    value = 2;
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &second, &n_second, &err), TDM_OK);
    assert_int_equal(n_first, n_second);
    assert_memory_not_equal(first, second, n_first);
    assert_int_equal(open_bytes(second, n_second, &err), TDM_OK);
    tdmi_free(first);
    tdmi_free(second);
    tdmi_safetensors_writer_free(writer);
}

TEST(a_needed_tensor_must_have_the_requested_type_and_shape)
{
    static const int64_t three_by_two[] = {3, 2};
    size_t n_bytes = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    TDMI_AT_END(tdmi_safetensors_close_at) tdmi_safetensors *file = NULL;
    tdm_error err = {0};
    const void *data = NULL;
    assert_int_equal(tdmi_safetensors_open_bytes(bytes, n_bytes, "x", &file, &err), TDM_OK);
    assert_int_equal(
        tdmi_safetensors_need(file, "dense.weight", TDMI_DTYPE_F32, 2, two_by_three, &data, &err),
        TDM_OK);
    assert_memory_equal(data, weights, sizeof weights);
    static const struct {
        const char *name;
        enum tdmi_dtype dtype;
        int rank;
        const int64_t *shape;
        const char *sentence;
    } cases[] = {
        {"dense.weight", TDMI_DTYPE_F32, 2, three_by_two,
         "x: tensor 'dense.weight' is F32 [2,3]; F32 [3,2] is needed"},
        {"dense.weight", TDMI_DTYPE_F16, 2, two_by_three,
         "x: tensor 'dense.weight' is F32 [2,3]; F16 [2,3] is needed"},
        {"dense.weight", TDMI_DTYPE_F32, 1, two_by_three,
         "x: tensor 'dense.weight' is F32 [2,3]; F32 [2] is needed"},
        {"dense.bias", TDMI_DTYPE_F32, 0, NULL,
         "x: it has no tensor 'dense.bias'; F32 [] is needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tdmi_safetensors_need(file, cases[i].name, cases[i].dtype, cases[i].rank,
                                               cases[i].shape, &data, &err),
                         TDM_E_INPUT);
        assert_string_equal(tdm_error_sentence(&err, 0), cases[i].sentence);
    }
}

/* ---- mistakes of the caller ------------------------------------------------------------- */

TEST(mistakes_in_what_is_added_are_reported_by_finish)
{
    static const int64_t negative[] = {-1}, huge[] = {INT64_MAX, 3};
    static const int64_t ranks[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const struct {
        const char *name, *note; /* note: of the metadata, and no tensor */
        enum tdmi_dtype dtype;
        int rank;
        const int64_t *shape;
        const void *data;
    } cases[] = {
        {"w", NULL, TDMI_DTYPE_U8, 1, five, pixels},
        {"\xff", NULL, TDMI_DTYPE_U8, 1, five, pixels},
        {"__metadata__", NULL, TDMI_DTYPE_U8, 1, five, pixels},
        {"v", NULL, TDMI_DTYPE_F32, 1, negative, weights},
        {"v", NULL, TDMI_DTYPE_F32, 2, huge, weights},
        {"v", NULL, TDMI_DTYPE_F32, 9, ranks, weights},
        {"v", NULL, TDMI_DTYPE_F32, 1, five, NULL},
        {.name = "tandem.checksum", .note = "mine"},
        {.name = "key", .note = "\xc3"},
    };
    for (int i = 0; i < 9; i++) {
        TDMI_AT_END(tdmi_safetensors_writer_free_at)
        tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
        tdmi_safetensors_add(writer, "w", TDMI_DTYPE_F32, 2, two_by_three, weights);
        if (cases[i].note)
            tdmi_safetensors_note(writer, cases[i].name, cases[i].note);
        else
            tdmi_safetensors_add(writer, cases[i].name, cases[i].dtype, cases[i].rank,
                                 cases[i].shape, cases[i].data);
        void *bytes = NULL;
        size_t n_bytes = 0;
        tdm_error err = {0};
        assert_int_not_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, &err), TDM_OK);
        assert_int_not_equal(err.n_frames, 0);
        assert_null(bytes);
    }
}

TEST(every_failing_allocation_is_an_ordinary_error)
{
    bool is_done = false;
    for (int64_t n = 1; !is_done; n++) {
        assert_true(n < 1000);
        void *bytes = NULL;
        size_t n_bytes = 0;
        tdm_error err = {0};
        tdmi_safetensors *file = NULL;
        tdmi_memory_fail_from(n);
        tdmi_safetensors_writer *writer = sample_writer();
        tdm_status status = tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, &err);
        if (status == TDM_OK)
            status = tdmi_safetensors_open_bytes(bytes, n_bytes, "x", &file, &err);
        tdmi_memory_fail_from(0);
        is_done = status == TDM_OK;
        if (!is_done)
            assert_int_equal(status, TDM_E_MEMORY);
        for (int i = 0; i < err.n_frames; i++) /* no name is to blame */
            assert_null(strstr(tdm_error_sentence(&err, i), "twice"));
        tdmi_safetensors_close(file);
        tdmi_free(bytes);
        tdmi_safetensors_writer_free(writer);
    }
}

/* ---- damage ----------------------------------------------------------------------------- */

TEST(a_file_cut_anywhere_is_refused)
{
    size_t n_bytes = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    for (size_t n = 0; n < n_bytes; n++) {
        tdm_error err = {0};
        uint8_t *cut = malloc(n + 1); /* of this length, so that reading past it is noticed */
        memcpy(cut, bytes, n);
        assert_int_equal(open_bytes(cut, n, &err), TDM_E_INPUT);
        free(cut);
    }
}

TEST(a_longer_file_is_refused)
{
    size_t n_bytes = 0;
    tdm_error err = {0};
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    bytes = tdmi_realloc(bytes, n_bytes + 1, 1);
    bytes[n_bytes] = 0;
    assert_int_equal(open_bytes(bytes, n_bytes + 1, &err), TDM_E_INPUT);
}

TEST(every_flipped_bit_is_found)
{
    size_t n_bytes = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
        tdm_error err = {0};
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        tdm_status status = open_bytes(bytes, n_bytes, &err);
        /* The one flip that leaves a right file without a checksum is one in its own key: then
         * there is nothing to compare with, and the other checks still hold. */
        bool is_in_key = bit / 8 >= 8 + 18 && bit / 8 < 8 + 18 + 15;
        if (!is_in_key || status != TDM_OK)
            assert_int_equal(status, TDM_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(a_flipped_bit_in_the_data_is_found_by_the_checksum)
{
    size_t n_bytes = 0;
    tdm_error err = {0};
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = sample_bytes(&n_bytes);
    bytes[n_bytes - 1] ^= 1;
    assert_int_equal(open_bytes(bytes, n_bytes, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "damaged"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "checksum"));
}

/* ---- strange headers -------------------------------------------------------------------- */

#define T(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(a_header_must_make_sense)
{
    static const struct {
        const char *header;
        size_t n_data;
        const char *says; /* NULL: it is fine */
    } cases[] = {
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 8, NULL},
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}   ", 8, NULL},
        {"{\"b\":" T("U8", "[2]", "[4,6]") ",\"a\":" T("F32", "[]", "[0,4]") "}", 6, NULL},
        {"{\"b\":" T("U8", "[0]", "[4,4]") ",\"a\":" T("F32", "[]", "[0,4]") "}", 4, NULL},
        {"{\"e\":" T("U8", "[0]", "[0,0]") ",\"a\":" T("F32", "[]", "[0,4]") "}", 4, NULL},
        {"{}", 0, NULL},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL},
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 9, "the last tensor ends at byte"},
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 7, "within the 7 bytes"},
        {"{\"a\":" T("F32", "[2]", "[1,9]") "}", 9, "starts at byte"},
        {"{\"a\":" T("F32", "[3]", "[0,8]") "}", 8, "12 bytes by its shape"},
        {"{\"a\":" T("F32", "[2]", "[8,0]") "}", 8, "not two offsets"},
        {"{\"a\":" T("F32", "[2]", "[0,8,8]") "}", 8, "not two offsets"},
        {"{\"a\":" T("F32", "[2]", "[0,\"8\"]") "}", 8, "not two offsets"},
        {"{\"a\":" T("F32", "[2]", "[0,8.5]") "}", 8, "not two offsets"},
        {"{\"a\":" T("F32", "[2]", "null") "}", 8, "not two offsets"},
        {"{\"a\":" T("F32", "[2]", "[0,99999999999999999999]") "}", 8, "not two offsets"},
        {"{\"a\":" T("F31", "[2]", "[0,8]") "}", 8, "dtype 'F31' is not one of F32 BF16"},
        {"{\"a\":" T("F32", "[-2]", "[0,8]") "}", 8, "axis 0"},
        {"{\"a\":" T("F32", "[1.5]", "[0,8]") "}", 8, "axis 0"},
        {"{\"a\":" T("F32", "8", "[0,8]") "}", 8, "its shape is missing"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "more than 8 axes"},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "too many elements"},
        {"{\"a\":" T("F64", "[2305843009213693952]", "[0,0]") "}", 0, "too many elements"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[2,6]") "}", 6, "starts at"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[0,4]") "}", 4, "starts at"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[5,9]") "}", 9, "starts at"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"a\":" T("U8", "[4]", "[4,8]") "}", 8, "header"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "does not say its dtype"},
        {"{\"a\":7}", 8, "does not say its dtype"},
        {"{\"__metadata__\":7}", 0, "not an object"},
        {"{\"__metadata__\":{\"a\":7}}", 0, "'a' in the header is not a string"},
        {"{\"__metadata__\":{\"tandem.checksum\":\"xyz\"}}", 0, "hex digits"},
        {"{\"__metadata__\":{\"tandem.checksum\":\"0123456789abcdef\"}}", 0, "checksum is"},
        {"[]", 0, "does not start with '{'"},
        {" {}", 0, "does not start with '{'"},
        {"", 0, "does not start with '{'"},
        {"{\"a\":", 0, "header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_error err = {0};
        tdm_status status = open_text(cases[i].header, cases[i].n_data, &err);
        if (cases[i].says == NULL) {
            assert_int_equal(status, TDM_OK);
            continue;
        }
        if (status != TDM_E_INPUT || strstr(tdm_error_sentence(&err, 0), cases[i].says) == NULL ||
            strstr(tdm_error_sentence(&err, 0), "x.safetensors") == NULL)
            fail_msg("%s: status %d, \"%s\", expected \"%s\"", cases[i].header, (int)status,
                     tdm_error_sentence(&err, 0), cases[i].says);
    }
}

TEST(a_huge_header_length_takes_no_memory)
{
    static const uint8_t lengths[][8] = {
        {255, 255, 255, 255, 255, 255, 255, 255}, {0, 0, 0, 0, 0, 0, 0, 128}, {1}, {2, 0, 0, 1}};
    for (size_t i = 0; i < 4; i++) {
        tdm_error err = {0};
        assert_int_equal(open_bytes(lengths[i], 8, &err), TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "bytes 0 to 7"));
    }
}

/* ---- files ------------------------------------------------------------------------------ */

TEST(paths_that_are_no_files_are_bad_input)
{
    static const char *const paths[] = {"/dev/null/x.safetensors", "/tmp", "/dev/null"};
    for (size_t i = 0; i < 3; i++) {
        tdm_error err = {0};
        tdmi_safetensors *file = NULL;
        assert_int_equal(tdmi_safetensors_open(paths[i], &file, &err), TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), paths[i]));
        assert_null(file);
    }
}

/* Every tensor of it is read, written and read again. */
static void rewrite(const char *path, size_t n_tensors)
{
    tdm_error err = {0};
    tdmi_safetensors *file = NULL, *again = NULL;
    void *bytes = NULL;
    size_t n_bytes = 0;
    if (tdmi_safetensors_open(path, &file, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_false(tdmi_safetensors_metadata(file, "tandem.checksum") != NULL);
    assert_int_equal(tdmi_safetensors_count(file), n_tensors);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    for (size_t i = 0; i < tdmi_safetensors_metadata_count(file); i++) {
        const char *key = tdmi_safetensors_metadata_key(file, i);
        tdmi_safetensors_note(writer, key, tdmi_safetensors_metadata(file, key));
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_at(file, i);
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, &err), TDM_OK);
    assert_int_equal(tdmi_safetensors_open_bytes(bytes, n_bytes, "again", &again, &err), TDM_OK);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tdmi_safetensors_tensor *a = tdmi_safetensors_at(file, i);
        const struct tdmi_safetensors_tensor *b = tdmi_safetensors_find(again, a->name);
        assert_non_null(b);
        assert_int_equal(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, a->bytes);
    }
    tdmi_free(bytes);
    tdmi_safetensors_close(again);
    tdmi_safetensors_writer_free(writer);
    tdmi_safetensors_close(file);
}

TEST(files_of_other_programs_open)
{
    rewrite(test_data("weights/mnist_cnn_tinygrad.safetensors"), 20);
    rewrite(test_data("weights/mobilenetv2_1.0_224_imagenet.safetensors"), 262);
}

TEST_MAIN(NULL, NULL)

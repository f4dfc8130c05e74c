/* NumPy's files: every version of the head, both orders of axes and bytes, and hostile heads. */
#include "base/text/text.h"
#include "io/compress/inflate.h"
#include "data/pack.h"
#include "weights/weights_file.h"

TEST(arrays_of_all_types_and_orders_are_read)
{
    static const struct {
        const char *name;
        enum tdmi_dtype dtype;
    } types[] = {
        {"float16", TDMI_DTYPE_F16}, {"float64", TDMI_DTYPE_F64}, {"int8", TDMI_DTYPE_I8},
        {"int16", TDMI_DTYPE_I16},   {"int32", TDMI_DTYPE_I32},   {"int64", TDMI_DTYPE_I64},
        {"uint8", TDMI_DTYPE_U8},    {"uint16", TDMI_DTYPE_U16},  {"uint32", TDMI_DTYPE_U32},
        {"uint64", TDMI_DTYPE_U64},  {"bool", TDMI_DTYPE_BOOL}};
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture("numpy/stored.npz");
    assert_string_equal(tdmi_weights_form_name(weights), "numpy");
    assert_int_equal(tdmi_weights_count(weights), 17);
    assert_counted(weights, "plain", "2,3");
    assert_counted(weights, "fortran", "2,3,2");
    assert_counted(weights, "empty", "0,2");
    assert_counted(weights, "big", "3");
    assert_counted(weights, "both", "2,3");
    assert_counted(weights, "float16", "2");
    assert_counted(weights, "float64", "2");
    assert_int_equal(tdmi_weights_find(weights, "single")->rank, 0);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        assert_int_equal(tdmi_weights_find(weights, types[i].name)->dtype, types[i].dtype);
    assert_int_equal(((const uint8_t *)tdmi_weights_find(weights, "int32")->data)[4], 1);
    assert_string_equal(tdmi_weights_at(weights, 0)->name, "plain");
    assert_fact(weights, "left_out", "names (<U3)");
}

TEST(compressed_arrays_are_read)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture("numpy/packed.npz");
    assert_counted(weights, "w", "4,5");
    assert_int_equal(tdmi_weights_find(weights, "b")->n_values, 64);
}

TEST(stored_arrays_are_used_where_they_lie)
{
    struct bytes bytes = fixture("numpy/stored.npz");
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_weights_open_bytes(bytes.at, bytes.n, "x", &weights, &err), TDM_OK);
    const uint8_t *data = tdmi_weights_find(weights, "plain")->data;
    assert_true(data > bytes.at && data < bytes.at + bytes.n);
    tdmi_weights_close(weights);
    tdmi_free(bytes.at);
}

TEST(a_single_array_of_any_version_is_one_tensor)
{
    static const char *const names[][2] = {{"numpy/array.npy", "2,3"},
                                           {"numpy/version2.npy", "4"},
                                           {"numpy/version3.npy", "4"},
                                           {"numpy/python2.npy", "2,2"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture(names[i][0]);
        assert_int_equal(tdmi_weights_count(weights), 1);
        assert_counted(weights, "array", names[i][1]);
    }
}

TEST(objects_are_refused_and_text_alone_is_no_weights)
{
    assert_fixture_refused("numpy/object.npz", "Python objects, a pickle, which is not run");
    assert_fixture_refused("numpy/names.npz", "only w (<U3)");
}

TEST(cut_files_are_refused)
{
    assert_refused_wherever_cut("numpy/stored.npz");
    assert_refused_wherever_cut("numpy/array.npy");
    assert_refused_wherever_cut("numpy/version3.npy");
    if (tdmi_inflate_best() != NULL)
        assert_refused_wherever_cut("numpy/packed.npz");
}

/* A .npy of version 1 with this head and 16 bytes of values. */
static void assert_head_refused(const char *head, const char *words)
{
    tdmi_text text = {0};
    tdmi_text_add(&text, "\x93NUMPY\1\0", 8);
    pack_number(&text, strlen(head), 2);
    tdmi_text_printf(&text, "%s", head);
    pack_number(&text, 0, 8);
    pack_number(&text, 0, 8);
    assert_bytes_refused(text.bytes, text.length_bytes, words);
    tdmi_text_release(&text);
}

TEST(hostile_heads_are_refused)
{
    static const char *const cases[][2] = {
        {"", "not a type, an order and a shape"},
        {"{}", "not a type, an order and a shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)", "not a type"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }", "(byte 44)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [4], }", "not a type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }", "not a type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4 4), }", "not a type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'x': 1}", "not a type"},
        {"{'descr': __import__('os'), 'fortran_order': False, 'shape': (4,)}", "not a type"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}", "not a type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "8 axes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "not a type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", "needs 20 bytes"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (5,), }", "needs 20 bytes"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,5), }", "needs 20 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "too many values"},
        {"{'descr': '>f4', 'fortran_order': True, 'shape': (4294967296, 4294967296), }",
         "too many values"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }",
         "too many values"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "only array (<c8)"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "Python objects"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_head_refused(cases[i][0], cases[i][1]);
    assert_bytes_refused("\x93NUMPY\4\0\1\0{}\0\0", 14, "of version 4");
    assert_bytes_refused("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "a head of 4294967295 bytes");
    assert_bytes_refused("\x93NUMPY\1\0\xff\xff{}", 12, "a head of 65535 bytes");
}

/* A directory that promises 100 MB of a small entry is refused before memory is asked for; so is
 * one that promises more than deflate can make. */
TEST(bombs_are_refused)
{
    static const uint64_t promises[] = {100000000, 1000000000};
    static const char *const words[] = {"a bomb", "promises 1000000000 bytes"};
    static uint8_t zeros[100000];
    for (size_t i = 0; i < 2; i++) {
        struct pack_zip zip = {.method = 8};
        pack_zip_add(&zip, "w.npy", zeros, sizeof zeros);
        pack_zip_end(&zip, "");
        uint8_t *end = (uint8_t *)zip.bytes.bytes + zip.bytes.length_bytes - 22;
        uint8_t *directory = end - (end[12] | (size_t)end[13] << 8);
        for (int k = 0; k < 4; k++)
            directory[24 + k] = (uint8_t)(promises[i] >> 8 * k);
        assert_bytes_refused(zip.bytes.bytes, zip.bytes.length_bytes, words[i]);
        tdmi_text_release(&zip.bytes);
    }
}

TEST(without_memory_reading_fails_cleanly)
{
    assert_lives_without_memory("numpy/stored.npz");
    assert_lives_without_memory("numpy/array.npy");
}

TEST_MAIN(NULL, NULL)

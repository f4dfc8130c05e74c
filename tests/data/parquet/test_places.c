/*
 * Large values of pages that pyarrow packed by Snappy or put into a dictionary (packed*.parquet and
 * repeated.parquet of tests/fixtures/parquet): each is had by itself. Of pages that zstd packed
 * none is: those have groups.
 */
#include "unit.h"
#include "data/parquet/parquet_files.h"

enum { ROWS = 12 };

/* parquet/test_foreign.c has what such a build says. */
static void skip_without_arrow(void)
{
    if (!has_arrow())
        skip();
}

/* Same as large_pixels in make.py. */
static void large_pixels_of(int i, uint8_t pixels[12000])
{
    uint32_t state = (uint32_t)i + 1;
    for (int b = 0; b < 4800; b++) {
        state = (state * 1103515245u + 12345u) & 0x7fffffffu;
        pixels[b] = (uint8_t)(state >> 16);
    }
    memset(pixels + 4800, i, 7200);
}

/* Reading an image unpacks only the part of a Snappy page or dictionary that holds it: such tables
 * have no groups, and a cache of a byte is enough. */
TEST(large_values_are_unpacked_one_by_one)
{
    skip_without_arrow();
    static const struct {
        const char *name;
        int null_at, distinct;
    } cases[] = {{"packed.parquet", -1, ROWS},
                 {"packed_plain.parquet", 3, ROWS},
                 {"packed_v2.parquet", 3, ROWS},
                 {"repeated.parquet", 3, 6}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tdm_source_options options = {.cache_bytes = 1};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        assert_int_equal(tdmi_source_open(parquet_fixture(cases[c].name), &options, &source, NULL),
                         TDM_OK);
        assert_int_equal(tdmi_source_items(source), ROWS);
        assert_int_equal(tdmi_source_groups(source), 0);
        static uint8_t expected[12000], pixels[12000];
        for (int turn = 0; turn < 2 * ROWS; turn++) {
            const int i = 7 * turn % ROWS;
            tdm_status status = tdmi_source_read_raw(source, i, pixels, NULL);
            assert_int_equal(status, i == cases[c].null_at ? TDM_E_INPUT : TDM_OK);
            if (status != TDM_OK)
                continue;
            large_pixels_of(i % cases[c].distinct, expected);
            assert_memory_equal(pixels, expected, sizeof pixels);
        }
    }
}

/* Same as easy_pixels in make.py, which compress to a twentieth. A value counts as large by its
 * size in memory, not by its size in the file. */
TEST(pictures_that_pack_well_are_large_values_too)
{
    skip_without_arrow();
    static const struct {
        const char *name;
        int64_t n_groups, cache_bytes;
    } cases[] = {{"packed_well.parquet", 0, 1}, {"packed_well_zstd.parquet", 1, 1 << 20}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tdm_source_options options = {.cache_bytes = cases[c].cache_bytes};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        tdmi_text file = {0};
        assert_int_equal(
            tdmi_storage_read_file(parquet_fixture(cases[c].name), 1 << 20, &file, NULL), TDM_OK);
        assert_true(file.length_bytes < ROWS * 1024); /* packed, they are small */
        tdmi_text_release(&file);
        assert_int_equal(tdmi_source_open(parquet_fixture(cases[c].name), &options, &source, NULL),
                         TDM_OK);
        assert_int_equal(tdmi_source_items(source), ROWS);
        assert_int_equal(tdmi_source_groups(source), cases[c].n_groups);
        static uint8_t pixels[12000];
        for (int turn = 0; turn < 2 * ROWS; turn++) {
            const int i = 7 * turn % ROWS;
            assert_int_equal(tdmi_source_read_raw(source, i, pixels, NULL), TDM_OK);
            for (int b = 0; b < 12000; b++)
                assert_int_equal(pixels[b], b % 2 == 0 ? i : i + 100);
        }
    }
}

/* Within what is packed or stored, whichever row it hits. */
TEST(a_damaged_page_is_named)
{
    skip_without_arrow();
    static const char *const names[] = {"packed.parquet", "packed_plain.parquet",
                                        "packed_v2.parquet", "repeated.parquet"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        tdm_error err = {0};
        static uint8_t pixels[12000];
        char text[8000];
        assert_ok(tdmi_storage_read_file(parquet_fixture(names[n]), 1 << 20, &file, &err), &err);
        file.bytes[file.length_bytes / 2] ^= 1;
        tree_file(&tree, "x.parquet", file.bytes, file.length_bytes);
        assert_ok(tdmi_source_open(tree_path(&tree, "x.parquet"), NULL, &source, &err), &err);
        assert_int_equal(tdmi_source_read_raw(source, 0, pixels, &err), TDM_E_INPUT);
        tdm_error_format(&err, text, sizeof text);
        assert_non_null(strstr(text, "checksum"));
        assert_non_null(strstr(text, "x.parquet"));
    }
}

TEST_MAIN(NULL, NULL)

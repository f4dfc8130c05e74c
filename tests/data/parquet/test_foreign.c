/*
 * Tables that other programs wrote: tests/fixtures/parquet (made by pyarrow, see make.py there) as
 * sources, and every file of TANDEM_TEST_DATA/parquet as a table of columns and as a source, each
 * with its expected result written down.
 */
#include "unit.h"
#include "data/parquet/parquet_files.h"

#include "io/arrow/bridge.h"
#include "io/arrow/cell.h"
#include "data/parquet/pages.h"

enum { ROWS = 12 };

static tdm_status open_fixture(const char *name, const struct tdm_source_options *options,
                               tdmi_source **source, char text[8000])
{
    tdm_error err = {0};
    tdm_status status = tdmi_source_open(parquet_fixture(name), options, source, &err);
    tdm_error_format(&err, text, 8000);
    return status;
}

/* Pixels that make.py gives image i: 20 i and on. */
static void assert_row(const tdmi_source *source, int i, const uint8_t expected[12])
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_ok(tdmi_source_read(source, i, &bytes, &err), &err);
    assert_int_equal(bytes.length_bytes, 23);
    assert_memory_equal(bytes.bytes, "P6\n2 2\n255\n", 11);
    assert_memory_equal(bytes.bytes + 11, expected, 12);
}

static void pixels_of(int i, uint8_t pixels[12])
{
    for (int b = 0; b < 12; b++)
        pixels[b] = (uint8_t)(20 * i + b);
}

TEST_IF(has_arrow(), tables_of_pyarrow_are_read)
{
    static const struct {
        const char *name, *classes, *first_path;
        int first_label, n_groups;
        const char *raw_shape;
    } cases[] = {
        {"defaults.parquet", "0 1 2", "defaults.parquet#0", 0, 2, NULL},
        {"gzip.parquet", "0 1 2", "gzip.parquet#0", 0, 2, NULL},
        {"brotli.parquet", "0 1 2", "brotli.parquet#0", 0, 2, NULL},
        {"lz4.parquet", "0 1 2", "lz4.parquet#0", 0, 2, NULL},
        {"zstd_v2.parquet", "0 1 2", "zstd_v2.parquet#0", 0, 2, NULL},
        {"plain_v2.parquet", "0 1 2", "plain_v2.parquet#0", 0, 2, NULL},
        {"small_pages.parquet", "0 1 2", "small_pages.parquet#0", 0, 6, NULL},
        {"indexed_pages.parquet", "0 1 2", "indexed_pages.parquet#0", 0, 4, NULL},
        {"required.parquet", "0 1 2", "required.parquet#0", 0, 2, NULL},
        {"delta_length.parquet", "0 1 2", "delta_length.parquet#0", 0, 2, NULL},
        {"base_one.parquet", "1 2 3", "base_one.parquet#0", 0, 2, NULL},
        {"negative.parquet", "-1 0 1", "negative.parquet#0", 0, 2, NULL},
        {"float_labels.parquet", "0 1 2", "float_labels.parquet#0", 0, 2, NULL},
        {"words.parquet", "ant bee cow", "words.parquet#0", 0, 2, NULL},
        {"categories.parquet", "ant bee cow", "categories.parquet#0", 0, 2, NULL},
        {"views.parquet", "ant bee cow", "views.parquet#0", 0, 2, NULL},
        {"split.parquet", "ant bee cow", "p/0.ppm", 0, 2, NULL},
        {"hugging_face.parquet", "ant bee cow dog", "hugging_face.parquet#0", 0, 2, NULL},
        {"binary_file.parquet", "ant bee cow", "file:/p/0.ppm", 0, 2, NULL},
        {"raw_binary.parquet", "0 1 2", "raw_binary.parquet#0", 0, 2, "2x2x3"},
        {"raw_fixed.parquet", "0 1 2", "raw_fixed.parquet#0", 0, 2, "2x2x3"},
        {"raw_list.parquet", "0 1 2", "raw_list.parquet#0", 0, 2, NULL},
        {"unlabelled.parquet", "", "unlabelled.parquet#0", -1, 2, NULL},
        {"unannotated.parquet", "0 1 2", "unannotated.parquet#0", 0, 2, NULL},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tdm_source_options options = {.raw_shape = cases[c].raw_shape};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        char text[8000];
        print_message("# %s\n", cases[c].name);
        if (open_fixture(cases[c].name, &options, &source, text) != TDM_OK)
            fail_msg("%s", text);
        assert_classes(source, cases[c].classes);
        assert_int_equal(tdmi_source_items(source), ROWS);
        assert_string_equal(tdmi_source_item(source, 0).path, cases[c].first_path);
        assert_int_equal(tdmi_source_groups(source), cases[c].n_groups);
        assert_int_equal(tdmi_source_group_first(source, 0), 0);
        assert_int_equal(tdmi_source_group_first(source, cases[c].n_groups), ROWS);
        struct tdmi_raw_shape shape;
        bool is_raw = strncmp(cases[c].name, "raw_", 4) == 0;
        assert_int_equal(tdmi_source_raw_shape(source, &shape), is_raw);
        for (int i = ROWS - 1; i >= 0; i--) {
            uint8_t expected[12], pixels[12];
            pixels_of(i, expected);
            assert_row(source, i, expected);
            if (is_raw) {
                assert_int_equal(tdmi_source_read_raw(source, i, pixels, NULL), TDM_OK);
                assert_memory_equal(pixels, expected, 12);
            }
            int label = cases[c].first_label < 0 ? -1 : i % 3;
            assert_int_equal(tdmi_source_item(source, i).label, label);
        }
    }
}

TEST_IF(has_arrow(), groups_begin_where_their_pages_do)
{
    static const struct {
        const char *name;
        int64_t firsts[8];
    } cases[] = {{"defaults.parquet", {0, 7, 12}},
                 {"small_pages.parquet", {0, 2, 4, 6, 8, 10, 12}},
                 {"indexed_pages.parquet", {0, 3, 6, 9, 12}}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tdmi_source_close_at)
        tdmi_source *source = open_source(parquet_fixture(cases[c].name));
        for (int64_t g = 0; g <= tdmi_source_groups(source); g++)
            assert_int_equal(tdmi_source_group_first(source, g), cases[c].firsts[g]);
    }
}

/* BGR, grey, and BGRA over white. */
TEST_IF(has_arrow(), pictures_of_spark_are_turned)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(parquet_fixture("spark_image.parquet"));
    assert_int_equal(tdmi_source_items(source), ROWS);
    assert_classes(source, "0 1 2");
    for (int i = 0; i < ROWS; i++) {
        uint8_t expected[12];
        pixels_of(i, expected);
        if (i == 11)
            memset(expected, 255, 3);
        if (i != 10)
            assert_row(source, i, expected);
    }
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_ok(tdmi_source_read(source, 10, &bytes, &err), &err);
    assert_int_equal(bytes.length_bytes, 11 + 4);
    assert_memory_equal(bytes.bytes, "P5\n2 2\n255\n", 11);
    for (int p = 0; p < 4; p++)
        assert_int_equal((uint8_t)bytes.bytes[11 + p], 200 + 3 * p);
}

TEST_IF(has_arrow(), parts_are_taken_from_the_column)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(parquet_fixture("split.parquet"));
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(tdmi_source_item(source, i).part,
                         i % 4 == 3 ? TDMI_PART_VAL : TDMI_PART_TRAIN);
}

TEST_IF(has_arrow(), nulls_are_named_when_they_are_read)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(parquet_fixture("nulls.parquet"));
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_int_equal(tdmi_source_item(source, 7).label, -1);
    tdm_status status = tdmi_source_read(source, 5, &bytes, &err);
    assert_failure(status, TDM_E_INPUT, &err, "row 5 of");
    assert_failure(status, TDM_E_INPUT, &err, "nulls.parquet");
    assert_failure(status, TDM_E_INPUT, &err, "the value is null");
    assert_ok(tdmi_source_read(source, 6, &bytes, &err), &err);
}

TEST_IF(has_arrow(), tables_that_are_none_of_pictures_are_refused)
{
    static const struct {
        const char *name, *word;
        struct tdm_source_options options;
    } cases[] = {
        {"two_pictures.parquet", "several columns that could be images", {0}},
        {"numbers.parquet", "no column of images", {0}},
        {"numbers.parquet", "(integer)", {0}},
        {"fractions.parquet", "neither an integer nor text", {0}},
        {"no_rows.parquet", "there is no image in", {0}},
        {"raw_binary.parquet", "12 bytes a row that are no image of a known format", {0}},
        {"raw_fixed.parquet", "give their shape", {0}},
        {"hugging_face.parquet", "no column 'img.nothing'", {.image_column = "img.nothing"}},
        {"split.parquet", "no column 'image.bytes'", {.image_column = "image.bytes"}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tdmi_source *source = NULL;
        char text[8000];
        assert_int_equal(open_fixture(cases[c].name, &cases[c].options, &source, text),
                         TDM_E_INPUT);
        if (strstr(text, cases[c].word) == NULL)
            fail_msg("'%s' is not in: %s", cases[c].word, text);
    }
}

TEST_IF(has_arrow(), options_name_columns)
{
    static const struct {
        const char *name, *classes;
        struct tdm_source_options options;
    } cases[] = {
        {"two_pictures.parquet", "0 1 2", {.image_column = "right"}},
        {"hugging_face.parquet", "ant bee cow dog", {.image_column = "img.bytes"}},
        {"binary_file.parquet", "23", {.label_column = "length"}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        char text[8000];
        uint8_t expected[12];
        if (open_fixture(cases[c].name, &cases[c].options, &source, text) != TDM_OK)
            fail_msg("%s", text);
        assert_classes(source, cases[c].classes);
        pixels_of(4, expected);
        assert_row(source, 4, expected);
    }
}

/* Uncompressed values that are worth a read of their own are read where they lie; a damaged page is
 * still found. */
TEST_IF(has_arrow(), large_values_are_read_where_they_lie)
{
    static const char *const names[] = {"large.parquet", "large_v2.parquet"};
    for (int n = 0; n < 2; n++) {
        tdmi_source *source = open_source(parquet_fixture(names[n]));
        uint8_t pixels[5000];
        tdm_error err = {0};
        assert_int_equal(tdmi_source_groups(source), 0); /* each as quick as any other */
        for (int i = 5; i >= 0; i--) {
            if (i == 3) {
                assert_failure(tdmi_source_read_raw(source, i, pixels, &err), TDM_E_INPUT, &err,
                               "null");
                continue;
            }
            assert_ok(tdmi_source_read_raw(source, i, pixels, &err), &err);
            for (int p = 0; p < 5000; p++)
                assert_int_equal(pixels[p], i);
        }
        tdmi_source_close(source);

        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        assert_ok(tdmi_storage_read_file(parquet_fixture(names[n]), 1 << 20, &bytes, &err), &err);
        bytes.bytes[bytes.length_bytes / 2] ^= 1; /* within a picture */
        tree_file(&tree, "x.parquet", bytes.bytes, bytes.length_bytes);
        source = open_source(tree_path(&tree, "x.parquet"));
        tdm_status status = tdmi_source_read_raw(source, 0, pixels, &err);
        assert_failure(status, TDM_E_INPUT, &err, "checksum");
        assert_failure(status, TDM_E_INPUT, &err, "x.parquet");
        tdmi_source_close(source);
    }
}

/* A cache that holds nothing still gives every picture. */
TEST_IF(has_arrow(), a_cache_of_one_byte_is_enough)
{
    static const char *const names[] = {"defaults.parquet", "delta_length.parquet"};
    for (int n = 0; n < 2; n++) {
        struct tdm_source_options options = {.cache_bytes = 1};
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        char text[8000];
        assert_int_equal(open_fixture(names[n], &options, &source, text), TDM_OK);
        for (int turn = 0; turn < 3; turn++)
            for (int i = 0; i < ROWS; i += 5) {
                uint8_t expected[12];
                pixels_of(i, expected);
                assert_row(source, i, expected);
            }
    }
}

TEST_IF(has_arrow(), lack_of_memory_is_an_error_on_every_way)
{
    static const char *const names[] = {
        "defaults.parquet",    "delta_length.parquet", "hugging_face.parquet",
        "spark_image.parquet", "raw_list.parquet",     "large.parquet",
        "packed.parquet",      "packed_v2.parquet",    "repeated.parquet"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        assert_survives_lack_of_memory(parquet_fixture(names[n]));
}

/* Files without checksums: whatever byte is flipped, pictures come out or a sentence names the
 * file. */
TEST_IF(has_arrow(), a_flipped_byte_is_an_error_or_another_picture)
{
    static const char *const names[] = {"defaults.parquet",     "zstd_v2.parquet",
                                        "large_v2.parquet",     "delta_length.parquet",
                                        "hugging_face.parquet", "packed_plain.parquet"};
    int n_refused = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        TDMI_AT_END(tdmi_text_release) tdmi_text file = {0}, bytes = {0};
        tdm_error err = {0};
        assert_ok(tdmi_storage_read_file(parquet_fixture(names[n]), 1 << 20, &file, &err), &err);
        size_t step = file.length_bytes > 10000 ? 997 : 7;
        for (size_t at = 0; at < file.length_bytes; at += step) {
            tdmi_source *source = NULL;
            file.bytes[at] ^= (char)(1 << at % 8);
            tree_file(&tree, "flipped.parquet", file.bytes, file.length_bytes);
            file.bytes[at] ^= (char)(1 << at % 8);
            tdm_status status =
                tdmi_source_open(tree_path(&tree, "flipped.parquet"), NULL, &source, &err);
            for (int64_t i = 0; status == TDM_OK && i < tdmi_source_items(source); i++)
                status = tdmi_source_read(source, i, &bytes, &err);
            tdmi_source_close(source);
            if (status == TDM_OK)
                continue;
            n_refused++;
            assert_failure(status, TDM_E_INPUT, &err, "flipped.parquet");
        }
    }
    assert_true(n_refused > 100);
}

TEST_IF(!has_arrow(), a_build_without_arrow_refuses_them)
{
    assert_refused(parquet_fixture("defaults.parquet"), TDM_E_ABSENT, "tools/deps");
}

/* ---- TANDEM_TEST_DATA/parquet ------------------------------------------------------------ */

/* All rows through the stream; the number of them, or -1 with the sentence in text. */
static int64_t count_rows(const char *path, char text[8000])
{
    tdmi_arrow_file *file = NULL;
    struct ArrowArrayStream stream = {0};
    tdm_error err = {0};
    int64_t n_rows = 0;
    tdm_status status = tdmi_arrow_file_open(path, &file, &err);
    if (status == TDM_OK)
        status = tdmi_arrow_file_stream(file, NULL, 0, 0, -1, &stream, &err);
    while (status == TDM_OK) {
        struct ArrowArray rows;
        status = tdmi_arrow_stream_next(&stream, path, &rows, &err);
        if (status == TDM_OK && rows.release == NULL)
            break;
        n_rows += status == TDM_OK ? rows.length : 0;
        tdmi_arrow_array_release(&rows);
    }
    tdmi_arrow_stream_release(&stream);
    tdmi_arrow_file_close(file);
    tdm_error_format(&err, text, 8000);
    return status == TDM_OK ? n_rows : -1;
}

/* Holds the pages of one column, read by us, against what Arrow reads. */
static void compare_column(const tdmi_arrow_file *file, const char *path, const char *column)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *bytes = NULL;
    TDMI_AT_END(tdmi_arrow_stream_release) struct ArrowArrayStream stream = {0};
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema schema = {0};
    struct ArrowArray rows = {0};
    struct tdmi_pages pages;
    bool can_read;
    tdm_error err = {0};
    assert_ok(tdmi_storage_open(path, &bytes, &err), &err);
    assert_ok(tdmi_pages_open(file, bytes, column, 0, &pages, &can_read, &err), &err);
    assert_true(can_read);
    assert_ok(tdmi_arrow_file_stream(file, &column, 1, 0, 1, &stream, &err), &err);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    int64_t row = 0, at = 0;
    for (int64_t p = 0; p < pages.n_pages; p++) {
        TDMI_AT_END(tdmi_page_release) struct tdmi_page page = {0}, dictionary = {0};
        assert_ok(tdmi_pages_load(&pages, bytes, p, &page, &dictionary, &err), &err);
        for (int32_t v = 0; v < page.n_values; v++, row++, at++) {
            struct tdmi_arrow_cell cell;
            const uint8_t *expected;
            int64_t n_expected;
            if (rows.release == NULL || at == rows.length) {
                tdmi_arrow_array_release(&rows);
                at = 0;
                assert_ok(tdmi_arrow_stream_next(&stream, path, &rows, &err), &err);
                assert_non_null(rows.release);
            }
            assert_true(
                tdmi_arrow_cell_field(tdmi_arrow_cell_at(&schema, &rows, at), column, &cell));
            bool is_null = tdmi_arrow_cell_is_null(cell);
            assert_int_equal(page.values[v].bytes == NULL, is_null);
            if (is_null)
                continue;
            assert_true(tdmi_arrow_cell_bytes(cell, &expected, &n_expected));
            assert_int_equal(page.values[v].n_bytes, n_expected);
            assert_memory_equal(page.values[v].bytes, expected, (size_t)n_expected);
        }
    }
    assert_int_equal(row, pages.n_rows);
    tdmi_arrow_array_release(&rows);
    tdmi_pages_release(&pages);
}

/* Which file, its rows (or what the refusal says), a column that we read by pages, and what it is
 * as a source: the refusal, or NULL. pyarrow 26 reads the same files and refuses the same ones, but
 * for the two with wrong checksums, which it does not look at unless asked. */
static const struct {
    const char *name;
    int64_t n_rows;
    const char *refusal, *column, *as_source;
} files[] = {
    {"data/alltypes_dictionary.parquet", 2, NULL, "string_col", "several columns"},
    {"data/alltypes_plain.parquet", 8, NULL, "date_string_col", "several columns"},
    {"data/alltypes_plain.snappy.parquet", 2, NULL, "string_col", "several columns"},
    {"data/binary.parquet", 12, NULL, "foo", "no image of a known format"},
    {"data/byte_stream_split.zstd.parquet", 300, NULL, NULL, "no column of images"},
    {"data/concatenated_gzip_members.parquet", 513, NULL, NULL, "no column of images"},
    {"data/datapage_v1-corrupt-checksum.parquet", -1, "checksum", NULL, "no column of images"},
    {"data/datapage_v1-snappy-compressed-checksum.parquet", 5120, NULL, NULL,
     "no column of images"},
    {"data/datapage_v2.snappy.parquet", 5, NULL, "a", "no column of images"},
    {"data/delta_byte_array.parquet", 1000, NULL, NULL, "no column of images"},
    {"data/delta_length_byte_array.parquet", 1000, NULL, NULL, "no column of images"},
    {"data/fixed_length_byte_array.parquet", 1000, NULL, "flba_field", NULL},
    {"data/lz4_raw_compressed.parquet", 4, NULL, "c1", "no image of a known format"},
    {"data/nation.dict-malformed.parquet", 25, NULL, "name", "several columns"},
    {"data/nested_lists.snappy.parquet", 3, NULL, NULL, "no column of images"},
    {"data/nested_structs.rust.parquet", 1, NULL, NULL, "no column of images"},
    {"data/nulls.snappy.parquet", 8, NULL, NULL, "no column of images"},
    {"data/rle-dict-snappy-checksum.parquet", 1000, NULL, "binary_field",
     "no image of a known format"},
    {"data/rle-dict-uncompressed-corrupt-checksum.parquet", -1, "checksum", NULL, NULL},
    {"data/unknown-logical-type.parquet", 3, NULL, "column with unknown type",
     "no image of a known format"},
    {"bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet", -1, "", NULL, "several columns"},
    {"bad_data/ARROW-RS-GH-6229-LEVELS.parquet", -1, "", NULL, "no column of images"},
    {"bad_data/PARQUET-1481.parquet", -1, "Invalid physical column type", NULL,
     "Invalid physical column type"},
};

TEST_IF(has_arrow(), every_file_at_hand_has_its_expected_result)
{
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        char name[300], text[8000];
        tdm_error err = {0};
        snprintf(name, sizeof name, "parquet/%s", files[f].name);
        const char *path = test_data(name);
        print_message("# %s\n", files[f].name);
        int64_t n_rows = count_rows(path, text);
        if (n_rows != files[f].n_rows)
            fail_msg("%lld rows, %lld expected: %s", (long long)n_rows, (long long)files[f].n_rows,
                     text);
        if (n_rows < 0) {
            assert_non_null(strstr(text, files[f].refusal));
            assert_non_null(strstr(text, path));
        }
        if (files[f].column != NULL) {
            TDMI_AT_END(tdmi_arrow_file_close_at) tdmi_arrow_file *file = NULL;
            assert_ok(tdmi_arrow_file_open(path, &file, &err), &err);
            compare_column(file, path, files[f].column);
        }
        if (files[f].as_source != NULL)
            assert_refused(path, TDM_E_INPUT, files[f].as_source);
    }
}

/* No picture comes out of a page whose checksum is wrong, and the sentence says where it lies. */
TEST_IF(has_arrow(), a_wrong_checksum_is_named_by_row_and_offset)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source =
        open_source(test_data("parquet/data/rle-dict-uncompressed-corrupt-checksum.parquet"));
    assert_int_equal(tdmi_source_items(source), 1000);
    tdm_status status = tdmi_source_read(source, 3, &bytes, &err);
    assert_failure(status, TDM_E_INPUT, &err, "row 3 of");
    assert_failure(status, TDM_E_INPUT, &err, "dictionary at byte 57");
    assert_failure(status, TDM_E_INPUT, &err, "checksum");
}

TEST_IF(has_arrow(), the_real_set_of_hugging_face_is_read)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(test_data("datasets/cifar10-parquet"));
    assert_string_equal(tdmi_source_kind(source), "parquet");
    assert_classes(source, "airplane automobile bird cat deer dog frog horse ship truck");
    assert_int_equal(tdmi_source_items(source), 50000);
    assert_in_range(tdmi_source_groups(source), 15, 40);
    assert_int_equal(tdmi_source_item(source, 0).part, TDMI_PART_NONE);
    int64_t n_of_class[10] = {0};
    for (int64_t i = 0; i < 50000; i++)
        n_of_class[tdmi_source_item(source, i).label]++;
    for (int c = 0; c < 10; c++)
        assert_int_equal(n_of_class[c], 5000);
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    for (int64_t i = 0; i < 50000; i += 997) {
        assert_ok(tdmi_source_read(source, i, &bytes, &err), &err);
        assert_memory_equal(bytes.bytes, "\xff\xd8\xff", 3);
    }
}

TEST_MAIN(NULL, NULL)

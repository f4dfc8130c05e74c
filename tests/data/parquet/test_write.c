/* Promises of the writer: a page for every image, equal bytes, columns that any reader sees. */
#include "unit.h"
#include "data/parquet/parquet_files.h"

#include "io/arrow/bridge.h"

static tdmi_arrow_file *open_file(const char *path)
{
    tdm_error err = {0};
    tdmi_arrow_file *file = NULL;
    assert_ok(tdmi_arrow_file_open(path, &file, &err), &err);
    return file;
}

TEST_IF(has_arrow(), every_picture_is_a_page)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_parquet_file(
        &tree, "a.parquet",
        &(struct written){.n_rows = 100, .n_classes = 3, .options.group_bytes = 4000});
    TDMI_AT_END(tdmi_arrow_file_close_at)
    tdmi_arrow_file *file = open_file(tree_path(&tree, "a.parquet"));
    assert_int_equal(tdmi_arrow_file_rows(file), 100);
    assert_in_range(tdmi_arrow_file_groups(file), 2, 4);
    assert_string_equal(tdmi_arrow_file_value(file, TDMI_PARQUET_VERSION_KEY), "1");
    assert_null(tdmi_arrow_file_value(file, TDMI_PARQUET_RAW_SHAPE_KEY));
    tdm_error err = {0};
    for (int g = 0; g < tdmi_arrow_file_groups(file); g++) {
        struct tdmi_arrow_chunk chunk;
        assert_ok(tdmi_arrow_chunk_facts(file, "image", g, &chunk, &err), &err);
        assert_true(chunk.is_simple && chunk.fixed_bytes == 0);
        assert_int_equal(chunk.max_definition + chunk.max_repetition, 0);
        assert_true(chunk.has_offset_index);
        assert_int_equal(chunk.codec, 0);
        struct tdmi_arrow_page *pages = NULL;
        int64_t n_pages = 0;
        assert_ok(tdmi_arrow_chunk_pages(file, "image", g, &pages, &n_pages, &err), &err);
        assert_int_equal(n_pages, chunk.n_rows);
        for (int64_t p = 0; p < n_pages; p++) {
            assert_int_equal(pages[p].first_row, p);
            if (p > 0)
                assert_int_equal(pages[p].offset_bytes,
                                 pages[p - 1].offset_bytes + pages[p - 1].n_bytes);
        }
        tdmi_free(pages);
        assert_ok(tdmi_arrow_chunk_facts(file, "label", g, &chunk, &err), &err);
        assert_false(chunk.has_offset_index);
    }
    assert_int_equal(
        tdmi_arrow_chunk_facts(file, "nothing", 0, &(struct tdmi_arrow_chunk){0}, &err),
        TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "no column 'nothing'"));
}

/* All rows as text, through the stream that every foreign file takes. */
TEST_IF(has_arrow(), rows_come_back_through_the_stream)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_parquet_file(&tree, "a.parquet",
                       &(struct written){.n_rows = 7,
                                         .n_classes = 2,
                                         .options = {.image_codec = TDMI_ARROW_ZSTD,
                                                     .column_codec = TDMI_ARROW_SNAPPY}});
    tdmi_arrow_file *file = open_file(tree_path(&tree, "a.parquet"));
    static const char *const columns[] = {"path", "label", "image"};
    TDMI_AT_END(tdmi_arrow_stream_release) struct ArrowArrayStream stream = {0};
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema schema = {0};
    struct ArrowArray rows = {0};
    tdm_error err = {0};
    assert_ok(tdmi_arrow_file_stream(file, columns, 3, 0, -1, &stream, &err), &err);
    tdmi_arrow_file_close(file); /* the stream lives on */
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(schema.n_children, 3);
    assert_string_equal(schema.children[0]->name, "image");
    assert_string_equal(schema.children[0]->format, "z");
    assert_string_equal(schema.children[1]->name, "label");
    assert_string_equal(schema.children[1]->format, "i");
    assert_string_equal(schema.children[2]->name, "path");
    assert_string_equal(schema.children[2]->format, "u");
    assert_ok(tdmi_arrow_stream_next(&stream, "a.parquet", &rows, &err), &err);
    assert_int_equal(rows.length, 7);
    const int32_t *ends = rows.children[0]->buffers[1], *labels = rows.children[1]->buffers[1];
    const uint8_t *pictures = rows.children[0]->buffers[2];
    for (int i = 0; i < 7; i++) {
        uint8_t expected[150];
        size_t n = picture_of(i, expected);
        assert_int_equal(ends[i + 1] - ends[i], n);
        assert_memory_equal(pictures + ends[i], expected, n);
        assert_int_equal(labels[i], i % 2);
    }
    tdmi_arrow_array_release(&rows);
    assert_ok(tdmi_arrow_stream_next(&stream, "a.parquet", &rows, &err), &err);
    assert_null(rows.release);
}

TEST_IF(has_arrow(), equal_rows_give_equal_bytes)
{
    const struct written written = {
        .n_rows = 300,
        .n_classes = 7,
        .options = {.column_codec = TDMI_ARROW_ZSTD, .group_bytes = 5000}};
    tdmi_text files[2] = {{0}, {0}};
    for (int f = 0; f < 2; f++)
        write_parquet(&files[f], &written);
    assert_int_equal(files[0].length_bytes, files[1].length_bytes);
    assert_memory_equal(files[0].bytes, files[1].bytes, files[0].length_bytes);
    for (int f = 0; f < 2; f++)
        tdmi_text_release(&files[f]);
}

/* Page header, offset index, length: what a picture costs beside its bytes and the small columns.
 */
TEST_IF(has_arrow(), a_page_costs_at_most_forty_bytes)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text file = {0};
    write_parquet(&file, &(struct written){.n_rows = 1000, .n_classes = 2});
    tree_file(&tree, "a.parquet", file.bytes, file.length_bytes);
    TDMI_AT_END(tdmi_arrow_file_close_at)
    tdmi_arrow_file *opened = open_file(tree_path(&tree, "a.parquet"));
    TDMI_AT_END(tdmi_free_at) struct tdmi_arrow_page *pages = NULL;
    int64_t n_pages = 0, n_bytes = 0;
    tdm_error err = {0};
    assert_ok(tdmi_arrow_chunk_pages(opened, "image", 0, &pages, &n_pages, &err), &err);
    for (int64_t p = 0; p < n_pages; p++) {
        uint8_t bytes[150];
        n_bytes += pages[p].n_bytes - (int64_t)picture_of((int)p, bytes);
    }
    assert_in_range(n_bytes / n_pages, 10, 30); /* the offset index adds some ten more */
}

struct full {
    int64_t left_bytes;
};

static tdm_status refuse_when_full(void *self, const void *bytes, size_t n_bytes, tdm_error *err)
{
    struct full *full = self;
    (void)bytes;
    full->left_bytes -= (int64_t)n_bytes;
    return full->left_bytes >= 0
               ? TDM_OK
               : TDM_FAIL(err, TDM_E_SYSTEM, "cannot write 'x': the disk is full");
}

TEST_IF(has_arrow(), what_the_sink_says_is_the_error)
{
    for (int64_t room = 0; room < 1200; room += 100) {
        struct full full = {room};
        struct tdmi_byte_sink sink = {&full, refuse_when_full};
        struct tdmi_parquet_write_options options = {.group_bytes = 300};
        tdm_error err = {0};
        tdmi_parquet_writer *writer = NULL;
        tdm_status status = tdmi_parquet_writer_open(&sink, &options, &writer, &err);
        for (int i = 0; i < 10 && status == TDM_OK; i++) {
            struct tdmi_parquet_row row = {.image = "0123456789",
                                           .image_bytes = 10,
                                           .class_name = "",
                                           .path = "",
                                           .split = ""};
            status = tdmi_parquet_writer_add(writer, &row, &err);
        }
        if (status == TDM_OK)
            status = tdmi_parquet_writer_finish(writer, &err);
        tdmi_parquet_writer_free(writer);
        assert_int_equal(status, TDM_E_SYSTEM);
        assert_string_equal(tdm_error_sentence(&err, 0), "cannot write 'x': the disk is full");
    }
}

TEST_IF(!has_arrow(), a_build_without_arrow_says_what_brings_it)
{
    struct tdmi_byte_sink sink = {NULL, add_to_text};
    tdm_error err = {0};
    tdmi_parquet_writer *writer = NULL;
    assert_int_equal(
        tdmi_parquet_writer_open(&sink, &(struct tdmi_parquet_write_options){0}, &writer, &err),
        TDM_E_ABSENT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "tools/deps"));
    tdmi_arrow_file *file = NULL;
    assert_failure(tdmi_arrow_file_open("x.parquet", &file, &err), TDM_E_ABSENT, &err,
                   "tools/deps");
}

TEST_MAIN(NULL, NULL)

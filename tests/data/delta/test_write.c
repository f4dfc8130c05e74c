/* The log of a prepared table: its bytes, that it is read back, and what it does not overwrite. */
#include "unit.h"
#include "base/each_allocation.h"
#include "data/tree.h"

#include "base/memory.h"
#include "data/delta/log.h"
#include "data/delta/write.h"

static const struct tdmi_delta_column columns[] = {
    {"image", "binary", false}, {"label", "integer", false}, {"class", "string", true}};
static const struct tdmi_delta_part parts[] = {{"part-1.parquet", 100, 7},
                                               {"100% \"new\" #2.parquet", 2000, 70}};
static const struct tdmi_delta_commit commit = {.columns = columns,
                                                .n_columns = 3,
                                                .parts = parts,
                                                .n_parts = 2,
                                                .time_ms = 1700000000123,
                                                .engine = "tandem/0.1.0"};

static const char expected[] =
    "{\"commitInfo\":{\"timestamp\":1700000000123,\"operation\":\"WRITE\",\"operationParameters\":{"
    "\"mode\":\"ErrorIfExists\",\"partitionBy\":\"[]\"},\"isBlindAppend\":true,"
    "\"operationMetrics\":{\"numFiles\":\"2\",\"numOutputRows\":\"77\",\"numOutputBytes\":\"2100\"}"
    ",\"engineInfo\":\"tandem/0.1.0\"}}\n"
    "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
    "{\"metaData\":{\"id\":\"ID\",\"format\":{\"provider\":\"parquet\",\"options\":{}},"
    "\"schemaString\":\"{\\\"type\\\":\\\"struct\\\",\\\"fields\\\":[{\\\"name\\\":\\\"image\\\","
    "\\\"type\\\":\\\"binary\\\",\\\"nullable\\\":false,\\\"metadata\\\":{}},{\\\"name\\\":"
    "\\\"label\\\",\\\"type\\\":\\\"integer\\\",\\\"nullable\\\":false,\\\"metadata\\\":{}},{"
    "\\\"name\\\":\\\"class\\\",\\\"type\\\":\\\"string\\\",\\\"nullable\\\":true,\\\"metadata\\\":"
    "{}}]}\",\"partitionColumns\":[],\"configuration\":{},\"createdTime\":1700000000123}}\n"
    "{\"add\":{\"path\":\"part-1.parquet\",\"partitionValues\":{},\"size\":100,"
    "\"modificationTime\":1700000000123,\"dataChange\":true,\"stats\":\"{\\\"numRecords\\\":7}\"}}"
    "\n{\"add\":{\"path\":\"100%25%20%22new%22%20%232.parquet\",\"partitionValues\":{},"
    "\"size\":2000,\"modificationTime\":1700000000123,\"dataChange\":true,"
    "\"stats\":\"{\\\"numRecords\\\":70}\"}}\n";

TEST(the_bytes_depend_on_the_commit_alone)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0}, again = {0};
    assert_ok(tdmi_delta_commit_text(&commit, &text, &err), &err);
    assert_ok(tdmi_delta_commit_text(&commit, &again, &err), &err);
    assert_string_equal(text.bytes, again.bytes);
    char *id = strstr(text.bytes, "\"id\":\"");
    assert_non_null(id);
    id += 6;
    for (int i = 0; i < 36; i++)
        assert_true(strchr(i == 8 || i == 13 || i == 18 || i == 23 ? "-" : "0123456789abcdef",
                           id[i]) != NULL);
    assert_int_equal(id[14], '8'); /* version */
    assert_non_null(strchr("89ab", id[19]));
    char first_id[37];
    snprintf(first_id, sizeof first_id, "%.36s", id);
    memmove(id + 2, id + 36, strlen(id + 36) + 1);
    id[0] = 'I', id[1] = 'D';
    assert_string_equal(text.bytes, expected);

    /* Another number for other data, the same for another time. */
    struct tdmi_delta_part other_parts[] = {parts[0], parts[1]};
    struct tdmi_delta_commit other = commit;
    other.time_ms++;
    assert_ok(tdmi_delta_commit_text(&other, &text, &err), &err);
    assert_non_null(strstr(text.bytes, first_id));
    other.parts = other_parts;
    other_parts[1].n_rows++;
    assert_ok(tdmi_delta_commit_text(&other, &text, &err), &err);
    assert_null(strstr(text.bytes, first_id));
}

TEST(what_is_written_is_read_back)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    assert_ok(tdmi_delta_write(tree_path(&tree, "out/set"), &commit, &err), &err);
    assert_ok(tdmi_delta_log_read(tree_path(&tree, "out/set"), -1, &table, &err), &err);
    assert_int_equal(table.version, 0);
    assert_int_equal(table.n_fields, 3);
    assert_string_equal(table.fields[1].type, "integer");
    assert_false(table.fields[1].is_nullable);
    assert_int_equal(table.n_files, 2);
    assert_string_equal(table.files[0].path, parts[1].path);
    assert_int_equal(table.files[0].n_rows, 70);
    assert_int_equal(table.files[1].size_bytes, 100);
}

static void assert_not_written(const char *folder, const struct tdmi_delta_commit *it,
                               const char *word)
{
    tdm_error err = {0};
    assert_failure(tdmi_delta_write(folder, it, &err), TDM_E_USAGE, &err, word);
}

TEST(another_log_is_not_overwritten)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdm_error err = {0};
    struct tdmi_delta_commit other = commit;
    other.time_ms++;
    tree_text(&tree, "_delta_log/.00000000000000000000.json.17.tmp", "left by who was killed");
    assert_ok(tdmi_delta_write(tree.root, &commit, &err), &err);
    assert_ok(tdmi_delta_write(tree.root, &commit, &err), &err); /* the same again */
    assert_not_written(tree.root, &other, "00000000000000000000.json differs");
    tree_text(&tree, "_delta_log/00000000000000000001.json", "{}");
    assert_not_written(tree.root, &commit,
                       "is the log of another Delta table (00000000000000000001.json)");
}

TEST(names_that_others_refuse_are_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const names[] = {"", "my label", "a=b", "a\tb", "f(x)"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tdmi_delta_column column = {names[i], "binary", true};
        struct tdmi_delta_commit wrong = commit;
        wrong.columns = &column;
        wrong.n_columns = 1;
        assert_not_written(tree.root, &wrong, "cannot have a column");
    }
}

static const char *scene_folder, *scene_log;

static tdm_status write_scene(tdm_error *err)
{
    tdm_status status = tdmi_delta_write(scene_folder, &commit, err);
    assert_int_equal(access(scene_log, F_OK) == 0, status == TDM_OK);
    return status;
}

TEST(running_out_of_memory_leaves_nothing)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    scene_folder = tree.root;
    scene_log = tree_path(&tree, "_delta_log/00000000000000000000.json");
    assert_true(fail_each_allocation(write_scene) > 5);
}

TEST_MAIN(NULL, NULL)

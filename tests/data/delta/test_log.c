/* Which files of a log make a version, what is missing or damaged, and the tables of other
 * programs. */
#include "unit.h"
#include "base/each_allocation.h"
#include "data/sources.h"

#include "base/file/file.h"
#include "base/memory.h"
#include "io/arrow/bridge.h"
#include "io/arrow/has_arrow.h"
#include "data/delta/log.h"
#include "data/delta/path.h"
#include "data/delta/vector.h"

#define PROTOCOL "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
#define METADATA                                                                      \
    "{\"metaData\":{\"schemaString\":\"{\\\"fields\\\":[{\\\"name\\\":\\\"image\\\"," \
    "\\\"type\\\":\\\"binary\\\"}]}\",\"partitionColumns\":[]}}\n"
#define ADD(path) "{\"add\":{\"path\":\"" path "\",\"size\":7,\"partitionValues\":{}}}\n"
#define SIDECAR(path) "{\"sidecar\":{\"path\":\"" path "\",\"sizeInBytes\":7}}\n"
#define SECOND ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11"

/* Status of opening a file that is not Parquet. */
static tdm_status no_parquet(void)
{
    return !has_arrow() ? TDM_E_ABSENT : TDM_E_INPUT;
}

static void log_text(const struct tree *tree, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "_delta_log/0000000000000000000%s", name);
    tree_text(tree, path, text);
}

/* "version: paths" */
static void assert_table(const char *path, int64_t version, const char *expected)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    assert_ok(tdmi_delta_log_read(path, version, &table, &err), &err);
    tdmi_text_printf(&text, "%d:", (int)table.version);
    for (int64_t i = 0; i < table.n_files; i++)
        tdmi_text_printf(&text, " %s", table.files[i].path);
    assert_string_equal(tdmi_text_string(&text), expected);
}

static void assert_no_table(const char *path, int64_t version, tdm_status code, const char *word)
{
    tdm_error err = {0};
    struct tdmi_delta_table table;
    tdm_status status = tdmi_delta_log_read(path, version, &table, &err);
    assert_failure(status, code, &err, word);
    assert_failure(status, code, &err, "cannot read the log of the Delta table");
}

TEST(versions_are_replayed_in_order)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    log_text(&tree, "0.json", PROTOCOL METADATA ADD("a"));
    log_text(&tree, "1.json", ADD("b"));
    log_text(&tree, "2.json", "{\"remove\":{\"path\":\"a\"}}\n");
    /* None of these is a commit of its own. */
    log_text(&tree, "3.crc", "x");
    log_text(&tree, "0.00000000000000000002.compacted.json", "x");
    log_text(&tree, "3.json.tmp", "x");
    tree_text(&tree, "_delta_log/3.json", "x");
    tree_text(&tree, "_delta_log/_last_checkpoint", "{\"version\":99");
    tree_text(&tree, "_delta_log/.00000000000000000003.json.17.tmp", "x");
    tree_text(&tree, "_delta_log/99999999999999999999.json", "x");
    tree_text(&tree, "_delta_log/_staged_commits/00000000000000000003.x.json", "x");
    assert_table(tree.root, -1, "2: b");
    assert_table(tree.root, 2, "2: b");
    assert_table(tree.root, 1, "1: a b");
    assert_table(tree.root, 0, "0: a");
    assert_no_table(tree.root, 3, TDM_E_INPUT, "there is no version 3 of");
    assert_no_table(tree.root, INT64_MAX, TDM_E_INPUT, "the newest is 2");
}

TEST(gaps_and_empty_logs_are_named)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    assert_no_table(tree.root, -1, TDM_E_INPUT, "cannot list the log");
    tree_folder(&tree, "_delta_log");
    assert_no_table(tree.root, -1, TDM_E_INPUT,
                    "holds no commit (as 00000000000000000000.json) and no whole checkpoint");
    log_text(&tree, "0.json", PROTOCOL METADATA ADD("a"));
    log_text(&tree, "2.json", ADD("b"));
    assert_no_table(tree.root, -1, TDM_E_INPUT, "version 2 of '");
    assert_no_table(tree.root, -1, TDM_E_INPUT,
                    "the commit _delta_log/00000000000000000001.json is missing");
    assert_no_table(tree.root, 1, TDM_E_INPUT, "00000000000000000001.json is missing");
    assert_table(tree.root, 0, "0: a");
    remove(tree_path(&tree, "_delta_log/00000000000000000000.json"));
    assert_no_table(tree.root, -1, TDM_E_INPUT, "00000000000000000000.json is missing");
}

TEST(damaged_commits_are_named_with_file_and_line)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    log_text(&tree, "0.json", PROTOCOL METADATA ADD("a"));
    log_text(&tree, "1.json", ADD("b") "{\"add\":{\"path\":\"c");
    assert_no_table(tree.root, -1, TDM_E_INPUT, "_delta_log/00000000000000000001.json, line 2");
    assert_table(tree.root, 0, "0: a");
    log_text(&tree, "1.json", "");
    assert_no_table(tree.root, -1, TDM_E_INPUT, "00000000000000000001.json is empty");
    assert_int_equal(remove(tree_path(&tree, "_delta_log/00000000000000000001.json")), 0);
    tree_folder(&tree, "_delta_log/00000000000000000001.json");
    assert_table(tree.root, -1, "0: a");
}

TEST(checkpoints_of_the_second_kind_may_be_json)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    log_text(&tree, "3" SECOND ".json",
             "{\"checkpointMetadata\":{\"version\":3}}\n" PROTOCOL METADATA ADD("a"));
    log_text(&tree, "4.json", ADD("b"));
    assert_table(tree.root, -1, "4: a b");
    assert_table(tree.root, 3, "3: a");
    assert_no_table(tree.root, 2, TDM_E_INPUT, "00000000000000000000.json is missing");
    log_text(&tree, "5" SECOND ".json", PROTOCOL METADATA SIDECAR("none.parquet"));
    assert_no_table(tree.root, -1, no_parquet(), "_delta_log/_sidecars/none.parquet");
}

TEST(checkpoints_in_parts_count_when_all_are_there)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    log_text(&tree, "0.json", PROTOCOL METADATA ADD("a"));
    log_text(&tree, "1.checkpoint.0000000001.0000000002.parquet", "x");
    log_text(&tree, "1.checkpoint.0000000003.0000000002.parquet", "x");
    log_text(&tree, "2.checkpoint.0000000002.0000000002.parquet", "x");
    assert_table(tree.root, -1, "0: a");
    log_text(&tree, "1.checkpoint.0000000002.0000000002.parquet", "x");
    assert_no_table(tree.root, 1, no_parquet(), "checkpoint.0000000001.0000000002.parquet");
}

TEST(a_path_may_name_a_version)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_folder(&tree, "pets");
    tree_folder(&tree, "cats@v3");
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    static const struct {
        const char *path, *table;
        int version;
    } cases[] = {
        {"pets", "pets", -1},
        {"pets@v12", "pets", 12},
        {"pets@v0", "pets", 0},
        {"cats@v3", "cats@v3", -1},
        {"pets@v", "pets@v", -1},
        {"pets@1", "pets@1", -1},
        {"pets@v-1", "pets@v-1", -1},
        {"pets@v1x", "pets@v1x", -1},
        {"cats@v3@v4", "cats@v3", 4},
        {"pets@v99999999999999999999", "pets@v99999999999999999999", -1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char path[200], expected[200];
        const char *table = NULL;
        int64_t version = 0;
        snprintf(path, sizeof path, "%s/%s", tree.root, cases[c].path);
        snprintf(expected, sizeof expected, "%s/%s", tree.root, cases[c].table);
        assert_true(tdmi_delta_path_version(path, &arena, &table, &version));
        assert_string_equal(table, expected);
        assert_int_equal(version, cases[c].version);
    }
}

/* ---- tables of other programs -------------------------------------------------------------- */

/* Rows of all files less the deleted ones. The log knows rows only where the statistics do. */
static int64_t count_rows(const struct tdmi_delta_table *table)
{
    tdm_error err = {0};
    int64_t n_rows = 0;
    for (int64_t i = 0; i < table->n_files; i++) {
        const struct tdmi_delta_file *file = &table->files[i];
        char path[2000];
        tdmi_arrow_file *parquet = NULL;
        snprintf(path, sizeof path, "%s/%s", table->path, file->path);
        assert_ok(tdmi_arrow_file_open(path, &parquet, &err), &err);
        int64_t n = tdmi_arrow_file_rows(parquet);
        assert_true(file->n_rows < 0 || file->n_rows == n);
        assert_int_equal(tdmi_arrow_file_bytes(parquet), file->size_bytes);
        tdmi_arrow_file_close(parquet);
        n_rows += n;
        if (file->deleted.kind != 0) {
            TDMI_AT_END(tdmi_free_at) int64_t *rows = NULL;
            assert_ok(tdmi_delta_vector_read(table, file, &rows, &err), &err);
            n_rows -= file->deleted.n_rows;
        }
    }
    return n_rows;
}

/* Every table below shared/data/delta-golden at every version: how many files and rows, as delta-rs
 * 1.6 counts them too, or why it is refused. */
static const struct golden {
    const char *name;
    int version, n_files, n_rows;
    const char *refusal;
} golden[] = {
    {"basic-with-inserts-updates", 0, 2, 100, NULL},
    {"basic-with-inserts-updates", -1, 2, 100, NULL},
    {"basic-with-inserts-updates", 2, 0, 0, "the newest is 1"},
    {"data-reader-partition-values", -1, 3, 3, NULL},
    {"deltalog-state-reconstruction-without-protocol", -1, 0, 0,
     "up to version 0 has no protocol: an action \"protocol\" is missing"},
    {"dv-partitioned-with-checkpoint", 0, 20, 50, NULL},
    {"dv-partitioned-with-checkpoint", 1, 20, 49, NULL},
    {"dv-partitioned-with-checkpoint", 8, 20, 42, NULL},
    {"dv-partitioned-with-checkpoint", 9, 19, 41, NULL},
    {"dv-partitioned-with-checkpoint", 10, 18, 40, NULL}, /* a checkpoint */
    {"dv-partitioned-with-checkpoint", 13, 15, 37, NULL},
    {"dv-partitioned-with-checkpoint", 14, 15, 36, NULL},
    {"dv-partitioned-with-checkpoint", -1, 15, 35, NULL},
    {"log-replay-special-characters", 0, 1, -1, NULL}, /* its file is not there */
    {"log-replay-special-characters", -1, 0, 0, NULL},
    {"snapshot-data0", -1, 2, 10, NULL},
    {"snapshot-data1", 0, 2, 10, NULL},
    {"snapshot-data1", -1, 4, 20, NULL},
    {"snapshot-data2", 0, 2, 10, NULL},
    {"snapshot-data2", 1, 4, 20, NULL},
    {"snapshot-data2", -1, 2, 10, NULL},
    {"snapshot-data3", 0, 2, 10, NULL},
    {"snapshot-data3", 1, 4, 20, NULL},
    {"snapshot-data3", 2, 2, 10, NULL},
    {"snapshot-data3", -1, 4, 30, NULL},
    {"time-travel-start", -1, 2, 10, NULL},
    {"time-travel-start-start20", 0, 2, 10, NULL},
    {"time-travel-start-start20", -1, 4, 20, NULL},
    {"v2-checkpoint-parquet", 0, 0, 0, NULL},
    {"v2-checkpoint-parquet", 1, 0, 0, NULL},
    {"v2-checkpoint-parquet", -1, 4, 10, NULL}, /* a checkpoint with sidecars */
};
enum { N_GOLDEN = sizeof golden / sizeof golden[0] };

TEST(golden_tables_are_as_written_down)
{
    char root[1024];
    snprintf(root, sizeof root, "%s", test_data("delta-golden"));
    for (int i = 0; i < N_GOLDEN; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", root, golden[i].name);
        assert_true(tdmi_delta_is_table(path));
        if (golden[i].refusal != NULL) {
            assert_no_table(path, golden[i].version, TDM_E_INPUT, golden[i].refusal);
            continue;
        }
        tdm_error err = {0};
        TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
        tdm_status status = tdmi_delta_log_read(path, golden[i].version, &table, &err);
        if (status == TDM_E_ABSENT && !has_arrow())
            continue; /* a checkpoint */
        if (status != TDM_OK)
            fail_msg("%s: %s", golden[i].name, tdm_error_sentence(&err, 0));
        print_message("# %s version %d: %d files\n", golden[i].name, (int)table.version,
                      (int)table.n_files);
        assert_int_equal(table.n_files, golden[i].n_files);
        if (has_arrow() && golden[i].n_rows >= 0)
            assert_int_equal(count_rows(&table), golden[i].n_rows);
    }
}

/* The table above is whole: no golden table is without a line. */
TEST(every_golden_table_has_a_line)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    assert_ok(tdmi_folder_list(test_data("delta-golden"), &arena, &entries, &n_entries, &err),
              &err);
    for (size_t e = 0; e < n_entries; e++) {
        bool is_there = entries[e].kind != TDMI_FILE_FOLDER;
        for (int i = 0; i < N_GOLDEN && !is_there; i++)
            is_there = strcmp(golden[i].name, entries[e].name) == 0;
        if (!is_there)
            fail_msg("%s", entries[e].name);
    }
}

TEST(partition_values_and_paths_of_spark_are_read)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    assert_ok(tdmi_delta_log_read(test_data("delta-golden/data-reader-partition-values"), -1,
                                  &table, &err),
              &err);
    assert_int_equal(table.n_fields, 15);
    assert_int_equal(table.n_partition_columns, 12);
    assert_string_equal(table.partition_columns[11], "as_big_decimal");
    assert_non_null(
        strstr(table.files[0].path, "/as_timestamp=2021-09-08 11%3A11%3A11/as_big_decimal=0/"));
    assert_string_equal(table.files[1].values[10], "2021-09-08 11:11:11");
    for (int c = 0; c < 12; c++) {
        assert_non_null(table.files[0].values[c]);
        assert_null(table.files[2].values[c]); /* as_int=__HIVE_DEFAULT_PARTITION__/… */
    }
}

/* Any byte of a checkpoint may be another one, or the last ones may be missing: a table or a
 * sentence comes of it. */
TEST(damaged_checkpoints_are_survived)
{
    if (!has_arrow())
        skip();
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char from[] =
        CHECKOUT "/tests/fixtures/delta/pets/_delta_log/00000000000000000003.checkpoint.parquet";
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n_bytes = 0;
    tdm_error err = {0};
    assert_ok(tdmi_file_read(from, 1 << 20, &bytes, &n_bytes, &err), &err);
    int n_read = 0, n_refused = 0;
    for (size_t i = 0; i < 2 * n_bytes; i += 41) {
        uint8_t *at = (uint8_t *)bytes + i / 2;
        bool is_cut = i % 2 == 1;
        *at ^= 0x41;
        tree_file(&tree, "_delta_log/00000000000000000003.checkpoint.parquet", bytes,
                  is_cut ? i / 2 : n_bytes);
        *at ^= 0x41;
        TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
        tdm_status status = tdmi_delta_log_read(tree.root, -1, &table, &err);
        assert_true(status == TDM_OK || status == TDM_E_INPUT || status == TDM_E_MEMORY);
        assert_true(status != TDM_OK || !is_cut);
        n_read += status == TDM_OK;
        n_refused += status != TDM_OK;
    }
    assert_true(n_read > 0 && n_refused > n_read / 4);
}

static const char *scene_table;

static tdm_status read_scene(tdm_error *err)
{
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_TRY(tdmi_delta_log_read(scene_table, -1, &table, err));
    assert_int_equal(table.n_files, 2);
    return TDM_OK;
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    log_text(&tree, "0" SECOND ".json", PROTOCOL METADATA ADD("a"));
    log_text(&tree, "1.json", ADD("b"));
    scene_table = tree.root;
    assert_true(fail_each_allocation(read_scene) > 10);
}

TEST_MAIN(NULL, NULL)

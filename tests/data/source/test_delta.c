/* Delta tables as data sets: versions, partitions, deleted rows, files that are gone or changed. */
#include "unit.h"
#include "data/parquet/parquet_files.h"

#include "base/file/file.h"
#include "data/delta/write.h"

static bool arrow_or_skip(void)
{
    if (has_arrow())
        return true;
    print_message("skipped: this build has no Arrow\n");
    skip();
    return false;
}

/* ---- tables of delta-rs -------------------------------------------------------------------- */

static const char *fixture(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, CHECKOUT "/tests/fixtures/delta/%s", name);
    return path;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines "path class split number" of all items, sorted. */
static void describe(const tdmi_source *source, const char *prefix, tdmi_text *text)
{
    static const char *const parts[] = {"-", "train", "val", "test"};
    int64_t n = tdmi_source_items(source);
    char **lines = calloc((size_t)n + 1, sizeof *lines);
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    assert_non_null(lines);
    for (int64_t i = 0; i < n; i++) {
        tdm_error err = {0};
        struct tdmi_item item = tdmi_source_item(source, i);
        assert_ok(tdmi_source_read(source, i, &bytes, &err), &err);
        assert_int_equal(bytes.length_bytes, 23);
        for (int pixel = 0; pixel < 4; pixel++) {
            assert_int_equal(bytes.bytes[11 + 3 * pixel], bytes.bytes[11]);
            assert_int_equal(bytes.bytes[12 + 3 * pixel], 7);
        }
        lines[i] = malloc(300);
        assert_non_null(lines[i]);
        snprintf(lines[i], 300, "%s\t%s\t%s\t%s\t%d\n", prefix, item.path,
                 tdmi_source_class(source, item.label), parts[item.part], bytes.bytes[11]);
    }
    qsort(lines, (size_t)n, sizeof *lines, by_text);
    for (int64_t i = 0; i < n; i++) {
        tdmi_text_add(text, lines[i], strlen(lines[i]));
        free(lines[i]);
    }
    free(lines);
}

TEST(tables_of_delta_rs_have_their_rows_at_every_version)
{
    if (!arrow_or_skip())
        return;
    static const char *const tables[] = {"parts@v2", "parts@v3", "pets@v0", "pets@v1",
                                         "pets@v2",  "pets@v3",  "pets@v4"};
    tdmi_text text = {0}, expected = {0};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(fixture(tables[t]));
        assert_string_equal(tdmi_source_kind(source), "delta");
        describe(source, tables[t], &text);
    }
    FILE *file = fopen(fixture("expected.txt"), "rb");
    assert_non_null(file);
    char line[400];
    while (fgets(line, sizeof line, file) != NULL)
        tdmi_text_add(&expected, line, strlen(line));
    fclose(file);
    assert_string_equal(tdmi_text_string(&text), tdmi_text_string(&expected));
    tdmi_text_release(&text);
    tdmi_text_release(&expected);
    /* Without a version it is the newest; as a URI of this machine it is the same. */
    char uri[1100];
    snprintf(uri, sizeof uri, "file://%s", fixture("pets"));
    tdmi_source *same = open_source(uri);
    assert_int_equal(tdmi_source_items(same), 7);
    tdmi_source_close(same);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(fixture("pets"));
    assert_int_equal(tdmi_source_items(source), 7);
    assert_classes(source, "a=b cat dog 100%/\xc3\xa9#");
}

TEST(versions_that_are_not_there_are_refused)
{
    if (!arrow_or_skip())
        return;
    assert_refused(fixture("pets@v5"), TDM_E_INPUT, "there is no version 5");
    assert_refused(fixture("parts@v1"), TDM_E_INPUT,
                   "the commit _delta_log/00000000000000000000.json is missing, and no checkpoint");
    assert_refused(fixture("none@v1"), TDM_E_INPUT, "no such file or folder");
    assert_refused(fixture("expected.txt@v1"), TDM_E_INPUT, "no such file or folder");
}

/* ---- tables made here ---------------------------------------------------------------------- */

/* The log of files as write_parquet_file() wrote them, with more of each add. */
static void write_log(const struct tree *tree, const char *const *paths, const char *const *more,
                      int n, const char *features)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdmi_text_printf(&text,
                     "{\"protocol\":{\"minReaderVersion\":3,\"minWriterVersion\":7,"
                     "\"readerFeatures\":[%s]}}\n{\"metaData\":{\"schemaString\":\"{\\\"fields\\\":"
                     "[{\\\"name\\\":\\\"image\\\",\\\"type\\\":\\\"binary\\\"}]}\"}}\n",
                     features);
    for (int i = 0; i < n; i++) {
        struct stat found;
        assert_int_equal(stat(tree_path(tree, paths[i]), &found), 0);
        tdmi_text_printf(&text, "{\"add\":{\"path\":\"%s\",\"size\":%lld%s}}\n", paths[i],
                         (long long)found.st_size, more[i]);
    }
    tree_file(tree, "_delta_log/00000000000000000000.json", text.bytes, text.length_bytes);
}

#define ROWS(n) ",\"stats\":\"{\\\"numRecords\\\":" n "}\""
/* Rows 3, 4, 7, 11, 18, 29 are deleted. */
#define SIX_ROWS                                                                      \
    ",\"deletionVector\":{\"storageType\":\"i\",\"pathOrInlineDv\":"                  \
    "\"^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L\",\"sizeInBytes\":44," \
    "\"cardinality\":6}"

static void assert_picture(const tdmi_source *source, int64_t item, int row)
{
    uint8_t expected[150];
    size_t n = picture_of(row, expected);
    assert_bytes(source, item, expected, n);
    assert_int_equal(tdmi_source_hash(source, item), 0x100 + row);
}

TEST(deleted_rows_are_no_items)
{
    if (!arrow_or_skip())
        return;
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const paths[] = {"a.parquet", "b.parquet", "c.parquet"};
    static const char *const more[] = {ROWS("10"), ROWS("30") SIX_ROWS, ""};
    write_parquet_file(&tree, paths[0], &(struct written){.n_rows = 10, .n_classes = 3});
    write_parquet_file(&tree, paths[1], &(struct written){.n_rows = 30, .n_classes = 3});
    write_parquet_file(&tree, paths[2], &(struct written){.n_rows = 5, .n_classes = 3});
    write_log(&tree, paths, more, 3, "\"deletionVectors\"");
    tdmi_source *source = open_source(tree.root);
    assert_int_equal(tdmi_source_items(source), 10 + 24 + 5);
    int64_t item = 0;
    for (int row = 0; row < 10; row++)
        assert_picture(source, item++, row);
    for (int row = 0; row < 30; row++) {
        if (row == 3 || row == 4 || row == 7 || row == 11 || row == 18 || row == 29)
            continue;
        assert_int_equal(tdmi_source_item(source, item).label, row % 3);
        assert_picture(source, item++, row);
    }
    for (int row = 0; row < 5; row++)
        assert_picture(source, item++, row);
    int64_t n_groups = tdmi_source_groups(source);
    for (int64_t g = 0; g < n_groups; g++)
        assert_true(tdmi_source_group_first(source, g) < tdmi_source_group_first(source, g + 1));
    if (n_groups > 0)
        assert_int_equal(tdmi_source_group_first(source, n_groups), item);
    tdmi_source_close(source);

    /* The feature of the log is what makes it legal; the count must be the files'. */
    static const char *const wrong[] = {ROWS("9"), ROWS("30") SIX_ROWS, ""};
    write_log(&tree, paths, wrong, 3, "\"deletionVectors\"");
    assert_refused(tree.root, TDM_E_INPUT, "counts 9 rows in 'a.parquet', which has 10");
    static const char *const many[] = {ROWS("46"), ROWS("30") SIX_ROWS, ""};
    write_log(&tree, paths, many, 3, "\"deletionVectors\"");
    assert_refused(tree.root, TDM_E_INPUT, "counts 46 rows in 'a.parquet', which has 10");
    static const char *const shifted[] = {ROWS("11"), ROWS("29") SIX_ROWS, ""}; /* the sum fits */
    write_log(&tree, paths, shifted, 3, "\"deletionVectors\"");
    assert_refused(tree.root, TDM_E_INPUT, "counts 11 rows in 'a.parquet', which has 10");
    static const char *const unknown[] = {ROWS("10"), SIX_ROWS, ""};
    write_log(&tree, paths, unknown, 3, "\"deletionVectors\"");
    assert_refused(tree.root, TDM_E_INPUT, "must give its numRecords");
}

TEST(a_class_without_rows_is_none)
{
    if (!arrow_or_skip())
        return;
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const paths[] = {"a.parquet", "b.parquet"};
    static const char *const more[] = {ROWS("30") SIX_ROWS, ROWS("3")};
    /* Every row a class of its own, but for the first three. */
    write_parquet_file(&tree, paths[0], &(struct written){.n_rows = 30, .n_classes = 30});
    write_parquet_file(&tree, paths[1], &(struct written){.n_rows = 3, .n_classes = 3});
    write_log(&tree, paths, more, 2, "\"deletionVectors\"");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_int_equal(tdmi_source_classes(source), 24);
    for (int64_t i = 0; i < tdmi_source_items(source); i++) {
        struct tdmi_item item = tdmi_source_item(source, i);
        char name[16];
        snprintf(name, sizeof name, "%s", tdmi_source_class(source, item.label));
        assert_int_equal(strncmp(item.path, name, strlen(name)), 0); /* "c5/5.jpg" */
    }
}

TEST(files_that_are_gone_or_changed_are_named)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    static const char *const paths[] = {"a.parquet"};
    static const char *const more[] = {""};
    tree_text(&tree, "a.parquet", "short");
    write_log(&tree, paths, more, 1, "");
    tree_text(&tree, "a.parquet", "longer");
    assert_refused(tree.root, TDM_E_INPUT,
                   "a.parquet' has 6 bytes, and _delta_log/00000000000000000000.json, line 3 says "
                   "5: it was cut short or replaced");
    assert_int_equal(remove(tree_path(&tree, "a.parquet")), 0);
    assert_refused(tree.root, TDM_E_INPUT,
                   "_delta_log/00000000000000000000.json, line 3 makes 'a.parquet' part of version "
                   "0: was the table vacuumed");
    tree_text(&tree, "a.parquet", "short");
    if (has_arrow())
        assert_refused(tree.root, TDM_E_INPUT, "a.parquet");
    else
        assert_refused(tree.root, TDM_E_ABSENT, "a.parquet");
}

/* Opens the table and reads its last picture; allowed, it is there. */
static void assert_needs_follow(const char *table, const char *word)
{
    const struct tdm_source_options follow = {.follow = true};
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
    tdm_error err = {0};
    assert_refused(table, TDM_E_INPUT, word);
    assert_refused(table, TDM_E_INPUT, "--follow reads it all the same");
    if (!has_arrow())
        return;
    assert_ok(tdmi_source_open(table, &follow, &source, &err), &err);
    assert_int_equal(tdmi_source_items(source), 4);
    assert_picture(source, 3, 3);
}

/* The log of one file, whatever it is called. */
static void write_log_of(const struct tree *tree, const char *path, long long size_bytes)
{
    char log[600];
    snprintf(log, sizeof log,
             "{\"protocol\":{\"minReaderVersion\":1}}\n{\"metaData\":{\"schemaString\":\"{"
             "\\\"fields\\\":[{\\\"name\\\":\\\"image\\\",\\\"type\\\":\\\"binary\\\"}]}\"}}\n"
             "{\"add\":{\"path\":\"%s\",\"size\":%lld}}\n",
             path, size_bytes);
    tree_text(tree, "table/_delta_log/00000000000000000000.json", log);
}

/* A log is data, perhaps of somebody else. */
TEST(files_outside_of_the_table_need_follow)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct stat found;
    char table[100], absolute[100], uri[100];
    if (has_arrow())
        write_parquet_file(&tree, "other/a.parquet",
                           &(struct written){.n_rows = 4, .n_classes = 2});
    else
        tree_text(&tree, "other/a.parquet", "any");
    snprintf(absolute, sizeof absolute, "%s/other/a.parquet", tree.root);
    snprintf(uri, sizeof uri, "file://%s/other/a.parquet", tree.root);
    snprintf(table, sizeof table, "%s/table", tree.root);
    tree_path(&tree, "table/x/");
    assert_int_equal(symlink("../other", tree_path(&tree, "table/far")), 0);
    assert_int_equal(symlink("a.parquet", tree_path(&tree, "other/near.parquet")), 0);
    assert_int_equal(stat(absolute, &found), 0);
    const char *const cases[][2] = {
        {absolute, "other/a.parquet' by an absolute path"},
        {uri, "other/a.parquet' by an absolute path"},
        {"../other/a.parquet", "names '../other/a.parquet' by a path with '..'"},
        {"%2e%2e/other/a.parquet", "names '../other/a.parquet' by a path with '..'"},
        {"x/..//%2E./other/a.parquet", "by a path with '..'"},
        {"far/a.parquet", "names 'far/a.parquet' through a link that leaves the table's folder"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        write_log_of(&tree, cases[c][0], found.st_size);
        assert_needs_follow(table, cases[c][1]);
    }
    /* Nobody is asked over the network. */
    write_log_of(&tree, "s3a://bucket/a.parquet", 3);
    assert_refused(table, TDM_E_INPUT, "_delta_log/00000000000000000000.json, line 3");
    assert_refused(table, TDM_E_INPUT,
                   "names 's3://bucket/a.parquet', which is remote, and the table lies on this");
    /* Links within the table, and one to the whole of it, are as good as files. */
    static const char *const near[] = {"near.parquet"};
    static const char *const more[] = {""};
    struct tree other = {{0}};
    snprintf(other.root, sizeof other.root, "%s/other", tree.root);
    write_log(&other, near, more, 1, "");
    assert_int_equal(symlink("other", tree_path(&tree, "link")), 0);
    if (has_arrow()) {
        tdmi_source *source = open_source(tree_path(&tree, "link"));
        assert_int_equal(tdmi_source_items(source), 4);
        tdmi_source_close(source);
    }
}

TEST(a_file_that_a_checkpoint_names_has_a_row)
{
    if (!arrow_or_skip())
        return;
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    void *bytes = NULL;
    size_t n_bytes = 0;
    tdm_error err = {0};
    assert_int_equal(
        tdmi_file_read(fixture("pets/_delta_log/00000000000000000003.checkpoint.parquet"), 1 << 20,
                       &bytes, &n_bytes, &err),
        TDM_OK);
    tree_file(&tree, "_delta_log/00000000000000000003.checkpoint.parquet", bytes, n_bytes);
    tdmi_free(bytes);
    assert_refused(tree.root, TDM_E_INPUT,
                   "_delta_log/00000000000000000003.checkpoint.parquet, row ");
}

TEST(tables_without_pictures_are_refused)
{
    if (!arrow_or_skip())
        return;
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    write_log(&tree, NULL, NULL, 0, "");
    assert_refused(tree.root, TDM_E_INPUT, "version 0 of the Delta table");
    assert_refused(tree.root, TDM_E_INPUT, "has no files, so no images");
    write_log(&tree, NULL, NULL, 0, "\"columnMapping\"");
    assert_refused(tree.root, TDM_E_INPUT, "requires its readers to know columnMapping");
}

/* Tables of others hold no pictures: the sentence that everyone gets who tries. */
TEST(golden_tables_are_refused_as_data_sets)
{
    static const struct {
        const char *name, *word;
    } cases[] = {
        {"basic-with-inserts-updates", "no column"},
        {"data-reader-partition-values", "no column"},
        {"deltalog-state-reconstruction-without-protocol", "an action \"protocol\" is missing"},
        {"dv-partitioned-with-checkpoint", "no column"},
        {"log-replay-special-characters", "has no files, so no images"},
        {"log-replay-special-characters@v0",
         "_delta_log/00000000000000000000.json, line 4 makes 'special p@#h' part of version 0"},
        {"snapshot-data0", "no column"},
        {"snapshot-data1", "no column"},
        {"snapshot-data2", "no column"},
        {"snapshot-data3", "no column"},
        {"time-travel-start", "no column"},
        {"time-travel-start-start20", "no column"},
        {"v2-checkpoint-parquet", "no column"},
        {"v2-checkpoint-parquet@v1", "has no files, so no images"},
    };
    char root[1024], path[1200];
    snprintf(root, sizeof root, "%s", test_data("delta-golden"));
    if (!arrow_or_skip())
        return;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        snprintf(path, sizeof path, "%s/%s", root, cases[c].name);
        assert_refused(path, TDM_E_INPUT, cases[c].word);
    }
}

TEST(a_written_table_is_a_data_set)
{
    if (!arrow_or_skip())
        return;
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct stat found;
    tdm_error err = {0};
    write_parquet_file(&tree, "part-0.parquet", &(struct written){.n_rows = 20, .n_classes = 4});
    assert_int_equal(stat(tree_path(&tree, "part-0.parquet"), &found), 0);
    static const struct tdmi_delta_column columns[] = {{"image", "binary", false},
                                                       {"label", "integer", false}};
    struct tdmi_delta_part part = {"part-0.parquet", found.st_size, 20};
    struct tdmi_delta_commit commit = {.columns = columns,
                                       .n_columns = 2,
                                       .parts = &part,
                                       .n_parts = 1,
                                       .time_ms = 1700000000000,
                                       .engine = "tandem/test"};
    assert_int_equal(tdmi_delta_write(tree.root, &commit, &err), TDM_OK);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_string_equal(tdmi_source_kind(source), "delta");
    assert_int_equal(tdmi_source_items(source), 20);
    assert_classes(source, "c0 c1 c2 c3");
    for (int i = 0; i < 20; i++)
        assert_picture(source, i, i);
}

TEST(running_out_of_memory_is_an_error)
{
    if (!arrow_or_skip())
        return;
    struct tree tree = tree_new();
    static const char *const paths[] = {"a.parquet"};
    static const char *const more[] = {ROWS("30") SIX_ROWS};
    write_parquet_file(&tree, paths[0], &(struct written){.n_rows = 30, .n_classes = 3});
    write_log(&tree, paths, more, 1, "\"deletionVectors\"");
    assert_survives_lack_of_memory(tree.root);
    tree_free(&tree);
    assert_survives_lack_of_memory(fixture("parts"));
}

TEST_MAIN(NULL, NULL)

/* The state of a Delta table: which actions count, what a log may not say, and in which words. */
#include "unit.h"
#include "base/each_allocation.h"
#include "data/tree.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "data/delta/path.h"
#include "data/delta/replay.h"
#include "data/delta/state.h"

#define PROTOCOL "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
#define FIELD(name, type)                                   \
    "{\\\"name\\\":\\\"" name "\\\",\\\"type\\\":\\\"" type \
    "\\\",\\\"nullable\\\":true,\\\"metadata\\\":{}}"
#define METADATA(fields, partitions)                                                    \
    "{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\",\"options\":{}}," \
    "\"schemaString\":\"{\\\"type\\\":\\\"struct\\\",\\\"fields\\\":[" fields "]}\","   \
    "\"partitionColumns\":[" partitions "],\"configuration\":{}}}\n"
#define PLAIN METADATA(FIELD("image", "binary") "," FIELD("label", "integer"), "")
#define ADD(path, more) \
    "{\"add\":{\"path\":\"" path "\",\"size\":7,\"partitionValues\":{}" more "}}\n"
#define REMOVE(path, more) "{\"remove\":{\"path\":\"" path "\"" more "}}\n"
#define VECTOR(kind, text, offset)                                                             \
    ",\"deletionVector\":{\"storageType\":\"" kind "\",\"pathOrInlineDv\":\"" text "\"" offset \
    ",\"sizeInBytes\":34,\"cardinality\":1}"

/* Commits of a log, "" ends them; the table or the error of their replay. */
static tdm_status replay(const char *const *commits, struct tdmi_delta_table *table, tdm_error *err)
{
    tdmi_delta_replay *replay = NULL;
    int64_t version = 0;
    tdm_status status = tdmi_delta_replay_new("pets", &replay, err);
    for (; status == TDM_OK && commits[version] != NULL; version++) {
        char origin[64];
        snprintf(origin, sizeof origin, "_delta_log/%d.json", (int)version);
        status = tdmi_delta_replay_commit(replay, origin, commits[version],
                                          strlen(commits[version]), err);
    }
    if (status == TDM_OK)
        status = tdmi_delta_replay_finish(replay, version - 1, table, err);
    tdmi_delta_replay_free(replay);
    return status;
}

static void assert_files(const char *const *commits, const char *expected)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    assert_ok(replay(commits, &table, &err), &err);
    for (int64_t i = 0; i < table.n_files; i++) {
        const struct tdmi_delta_file *file = &table.files[i];
        tdmi_text_printf(&text, "%s%s %d", i == 0 ? "" : ", ", file->path, (int)file->n_rows);
        for (int c = 0; c < table.n_partition_columns; c++)
            tdmi_text_printf(&text, " %s=%s", table.partition_columns[c],
                             file->values[c] == NULL ? "null" : file->values[c]);
        if (file->deleted.kind != 0)
            tdmi_text_printf(&text, " less %c%s@%d", file->deleted.kind, file->deleted.text,
                             (int)file->deleted.offset_bytes);
    }
    assert_string_equal(tdmi_text_string(&text), expected);
}

static void assert_refused_log(const char *const *commits, const char *word)
{
    tdm_error err = {0};
    struct tdmi_delta_table table = {0};
    assert_failure(replay(commits, &table, &err), TDM_E_INPUT, &err, word);
    assert_int_equal(table.n_files, 0);
}

TEST(the_last_action_of_a_file_counts)
{
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", "") ADD("a", ""), NULL}, "a -1, b -1");
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", "") ADD("a", ""), REMOVE("b", ""), NULL},
                 "a -1");
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", ""), REMOVE("b", ""), ADD("b", ""), NULL},
                 "b -1");
    /* A file named again has the statistics of the last time. */
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", ""),
                                  ADD("b", ",\"stats\":\"{\\\"numRecords\\\":5}\""), NULL},
                 "b 5");
    assert_files((const char *[]){PROTOCOL PLAIN REMOVE("b", ""), NULL}, "");
}

TEST(a_deletion_vector_is_part_of_what_a_file_is)
{
    static const char u1[] = "{\"add\":{\"path\":\"b\",\"size\":7,\"partitionValues\":{}" VECTOR(
        "u", "x", ",\"offset\":1") "}}\n" REMOVE("b", "");
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", ""), u1, NULL}, "b -1 less ux@1");
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", ""), u1,
                                  ADD("b", VECTOR("u", "x", ",\"offset\":43"))
                                      REMOVE("b", VECTOR("u", "x", ",\"offset\":1")),
                                  NULL},
                 "b -1 less ux@43");
    assert_files((const char *[]){PROTOCOL PLAIN ADD("b", VECTOR("i", "x", "")), NULL},
                 "b -1 less ix@-1");
    assert_refused_log((const char *[]){PROTOCOL PLAIN ADD("b", ""),
                                        ADD("b", VECTOR("u", "x", ",\"offset\":1")), NULL},
                       "twice, with different deletion vectors");
}

TEST(rows_come_from_statistics_that_can_be_read)
{
    assert_files((const char *[]){PROTOCOL PLAIN ADD("a", ",\"stats\":\"{\\\"numRecords\\\":12}\"")
                                      ADD("b", ",\"stats\":\"{numRecords\"")
                                          ADD("c", ",\"stats_parsed\":{\"numRecords\":3}")
                                              ADD("d", ",\"stats\":null"),
                                  NULL},
                 "a 12, b -1, c 3, d -1");
}

TEST(partition_values_have_the_types_of_their_columns)
{
#define DIVIDED                                                                                    \
    PROTOCOL METADATA(FIELD("image", "binary") "," FIELD("day", "date") "," FIELD("n", "integer"), \
                      "\"day\",\"n\"")
#define ADD_AT(day, n) \
    "{\"add\":{\"path\":\"x\",\"size\":7,\"partitionValues\":{\"n\":" n ",\"day\":" day "}}}"
    assert_files((const char *[]){DIVIDED ADD_AT("\"2021-09-08\"", "\"-3\""), NULL},
                 "x -1 day=2021-09-08 n=-3");
    assert_files((const char *[]){DIVIDED ADD_AT("null", "\"\""), NULL}, "x -1 day=null n=null");
    assert_refused_log((const char *[]){DIVIDED ADD_AT("\"8.9.2021\"", "null"), NULL},
                       "the partition column 'day' is of type date, and the file 'x' has "
                       "'8.9.2021' there");
    assert_refused_log((const char *[]){DIVIDED ADD_AT("null", "\"3000000000\""), NULL},
                       "'n' is of type integer");
    assert_refused_log((const char *[]){DIVIDED ADD_AT("null", "3"), NULL},
                       "neither a string nor null");
    assert_refused_log((const char *[]){DIVIDED ADD("x", ""), NULL},
                       "_delta_log/0.json, line 3: the file 'x' has no value of the partition "
                       "column 'day'");
    assert_refused_log((const char *[]){PROTOCOL METADATA(FIELD("a", "long"), "\"b\""), NULL},
                       "'b' is none of the schema's columns");
    assert_refused_log((const char *[]){PROTOCOL METADATA(FIELD("a", "long"), "\"a\",\"a\""), NULL},
                       "'a' is named twice");
    assert_refused_log((const char *[]){PROTOCOL METADATA(FIELD("a", "variant"), "\"a\""), NULL},
                       "no partition can have");
}

TEST(texts_fit_types_or_do_not)
{
    static const struct {
        const char *type, *fits, *fits_not;
    } cases[] = {
        {"string", "anything", NULL},
        {"binary", "\x01", NULL},
        {"long", "-9223372036854775808", "9223372036854775808"},
        {"long", "+5", " 5"},
        {"integer", "2147483647", "2147483648"},
        {"short", "-32768", "32768"},
        {"byte", "127", "128"},
        {"byte", "0", "1.0"},
        {"float", "1.5e3", "1,5"},
        {"double", "NaN", " 1"},
        {"double", "-Infinity", "x"},
        {"decimal(1,0)", "1", "one"},
        {"decimal", "-0.5", ""},
        {"boolean", "true", "TRUE"},
        {"date", "2021-09-08", "2021-9-8"},
        {"date", "0001-01-01", "2021-09-08 11:11:11"},
        {"timestamp", "2021-09-08 11:11:11", "11:11:11"},
        {"timestamp", "2021-09-08 11:11:11.123456", "2021-09-08 11:11:11."},
        {"timestamp", "2021-09-08T11:11:11.1Z", "2021-09-08 11:11:11+1"},
        {"timestamp_ntz", "2021-09-08 11:11:11+01:00", "2021-09-08 11:11"},
        {"variant", NULL, "1"},
        {"decim", NULL, "1"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        assert_int_equal(tdmi_delta_type_divides(cases[c].type), cases[c].fits != NULL);
        if (cases[c].fits != NULL && !tdmi_delta_value_fits(cases[c].type, cases[c].fits))
            fail_msg("%s: %s", cases[c].type, cases[c].fits);
        if (cases[c].fits_not != NULL && tdmi_delta_value_fits(cases[c].type, cases[c].fits_not))
            fail_msg("%s: not %s", cases[c].type, cases[c].fits_not);
    }
}

TEST(paths_are_decoded)
{
    static const struct {
        const char *text, *path;
    } cases[] = {
        {"part-0.parquet", "part-0.parquet"},
        {"a%20b/%C3%A9%23.parquet", "a b/\xc3\xa9#.parquet"},
        {"time=10%3A30/x", "time=10:30/x"},
        {"time=10:30/x", "time=10:30/x"},
        {"100%25/x", "100%/x"},
        {"/abs/x%20y", "/abs/x y"},
        {"file:/abs/x%20y", "/abs/x y"},
        {"file:///abs/x", "/abs/x"},
        {"file://localhost/abs/x", "/abs/x"},
        {"s3a://bucket/a%20b", "s3://bucket/a b"},
        {"s3n://bucket/a", "s3://bucket/a"},
        {"gs://bucket/a", "gs://bucket/a"},
        {"", NULL},
        {"a%2", NULL},
        {"a%zz", NULL},
        {"a%00b", NULL},
        {"file://elsewhere/x", NULL},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tdmi_arena arena;
        tdmi_arena_init(&arena, 0);
        const char *why = NULL, *path = tdmi_delta_path_read(&arena, cases[c].text, &why);
        assert_int_equal(why == NULL, cases[c].path != NULL);
        if (cases[c].path == NULL)
            assert_null(path);
        else
            assert_string_equal(path, cases[c].path);
        tdmi_arena_release(&arena);
    }
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    assert_string_equal(tdmi_delta_path_write(&arena, "a b/\xc3\xa9#%:x=1.parquet"),
                        "a%20b/%C3%A9%23%25%3Ax=1.parquet");
    tdmi_arena_release(&arena);
    /* Where they lie; NULL: where follow is needed. */
    static const struct {
        const char *table, *path, *place;
    } places[] = {
        {"no/t", "a/b", "no/t/a/b"},
        {"no/t", "a/..b/.../c", "no/t/a/..b/.../c"},
        {"no/t", "../b", NULL},
        {"no/t", "a/..", NULL},
        {"no/t", "a/..//b", NULL},
        {"no/t", "/no/t/b", NULL},
        {"no/t", "s3://b/a", NULL},
        {"s3://b/t", "a", "s3://b/t/a"},
        {"s3://b/t", "s3://c/a", "s3://c/a"},
        {"s3://b/t", "/etc/a", NULL},
    };
    for (size_t c = 0; c < sizeof places / sizeof places[0]; c++) {
        tdmi_arena room;
        tdm_error err = {0};
        const char *place = NULL;
        tdmi_arena_init(&room, 0);
        tdm_status status =
            tdmi_delta_path_place(&room, places[c].table, places[c].path, false, &place, &err);
        assert_int_equal(status, places[c].place != NULL ? TDM_OK : TDM_E_INPUT);
        if (places[c].place != NULL)
            assert_string_equal(place, places[c].place);
        assert_ok(tdmi_delta_path_place(&room, places[c].table, places[c].path, true, &place, &err),
                  &err);
        tdmi_arena_release(&room);
    }
    assert_files((const char *[]){PROTOCOL PLAIN ADD("a%20b", ""), REMOVE("a b", ""), NULL}, "");
    assert_refused_log((const char *[]){PROTOCOL PLAIN ADD("a%2", ""), NULL},
                       "0.json, line 3: the path 'a%2' of \"add\" cannot be used: a % in it");
}

TEST(what_is_asked_of_readers_is_refused_by_name)
{
#define ASKS(version, features)                    \
    "{\"protocol\":{\"minReaderVersion\":" version \
    ",\"minWriterVersion\":7,\"readerFeatures\":" features "}}\n"
    assert_files((const char *[]){ASKS("3", "[]") PLAIN ADD("a", ""), NULL}, "a -1");
    assert_files(
        (const char *[]){ASKS("3", "[\"deletionVectors\",\"v2Checkpoint\",\"timestampNtz\","
                                   "\"vacuumProtocolCheck\"]") PLAIN,
                         NULL},
        "");
    static const char *const unknown[] = {"columnMapping", "typeWidening", "variantType",
                                          "catalogManaged", "somethingNew"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char commit[600], word[200];
        snprintf(commit, sizeof commit, ASKS("3", "[\"deletionVectors\",\"%s\"]") "%s", unknown[i],
                 PLAIN);
        snprintf(word, sizeof word,
                 "the Delta table 'pets' requires its readers to know %s, which is not read",
                 unknown[i]);
        assert_refused_log((const char *[]){commit, NULL}, word);
    }
    assert_refused_log(
        (const char *[]){ASKS("3", "[\"variantType\",\"typeWidening\"]") PLAIN, NULL},
        "variantType and typeWidening");
    assert_refused_log((const char *[]){ASKS("4", "[]") PLAIN, NULL}, "protocol version 4");
    assert_refused_log((const char *[]){ASKS("0", "[]") PLAIN, NULL}, "protocol version 0");
    /* Version 2 lists nothing; only a table that maps columns needs more than version 1. */
    assert_files((const char *[]){ASKS("2", "null") PLAIN ADD("a", ""), NULL}, "a -1");
    static const char mapped[] = "{\"metaData\":{\"schemaString\":\"{\\\"fields\\\":[" FIELD(
        "a", "long") "]}\","
                     "\"configuration\":{\"delta.columnMapping.mode\":\"%s\"}}}";
    char text[400];
    snprintf(text, sizeof text, mapped, "name");
    assert_refused_log((const char *[]){ASKS("2", "null"), text, NULL}, "to know columnMapping");
    assert_files((const char *[]){PROTOCOL, text, NULL}, "");
    snprintf(text, sizeof text, mapped, "none");
    assert_files((const char *[]){ASKS("2", "null"), text, NULL}, "");
    /* Features that an older version required no longer count. */
    assert_files((const char *[]){ASKS("3", "[\"somethingNew\"]") PLAIN, PROTOCOL, NULL}, "");
}

TEST(actions_that_cannot_be_are_refused_with_file_and_line)
{
    static const struct {
        const char *commit, *word;
    } cases[] = {
        {"", "has no protocol"},
        {PROTOCOL, "has no columns"},
        {PLAIN, "an action \"protocol\" is missing"},
        {PROTOCOL "{\"add\":", "_delta_log/0.json, line 2"},
        {PROTOCOL "{\"add\":", "the end of the text"},
        {PROTOCOL "\n\n[]", "line 4: an action is expected"},
        {"3", "an action is expected"},
        {"\xff", "at byte 0"},
        {"{\"add\":1}", "\"add\" is no object"},
        {"{\"add\":{},\"remove\":{}}", "stands beside another one"},
        {"{\"add\":{}}", "\"add\" has no \"path\""},
        {"{\"add\":{\"path\":3}}", "has no \"path\", which is a string"},
        {"{\"add\":{\"path\":\"a\"}}", "has no \"size\""},
        {"{\"add\":{\"path\":\"a\",\"size\":-1}}", "has no \"size\""},
        {"{\"add\":{\"path\":\"a\",\"size\":1,\"partitionValues\":[]}}", "no object"},
        {"{\"add\":{\"path\":\"a\",\"size\":1,\"deletionVector\":{}}}", "storageType"},
        {"{\"add\":{\"path\":\"a\",\"size\":1" VECTOR("x", "a", "") "}}", "storageType"},
        {"{\"add\":{\"path\":\"a\",\"size\":1" VECTOR("u", "a", ",\"offset\":-7") "}}", "negative"},
        {"{\"remove\":{\"path\":\"\"}}", "it is empty"},
        {"{\"protocol\":{}}", "no \"minReaderVersion\""},
        {"{\"protocol\":{\"minReaderVersion\":3,\"readerFeatures\":{}}}", "no array of strings"},
        {"{\"protocol\":{\"minReaderVersion\":3,\"readerFeatures\":[1]}}", "no array of strings"},
        {"{\"metaData\":{\"format\":{\"provider\":\"orc\"}}}", "not Parquet"},
        {"{\"metaData\":{}}", "no \"schemaString\""},
        {PROTOCOL "{\"metaData\":{\"schemaString\":\"{\"}}", "the schemaString as JSON"},
        {PROTOCOL "{\"metaData\":{\"schemaString\":\"{}\"}}", "has no columns"},
        {PROTOCOL METADATA("{}", ""), "no name for its column number 1"},
        {PROTOCOL METADATA("{\\\"name\\\":\\\"a\\\"}", ""), "no type for its column number 1"},
        {PROTOCOL METADATA(FIELD("a", "long") "," FIELD("a", "long"), ""), "two columns 'a'"},
        {"{\"sidecar\":{}}", "\"sidecar\" has no \"path\""},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        assert_refused_log((const char *[]){cases[c].commit, NULL}, cases[c].word);
}

TEST(what_is_not_known_is_passed_over)
{
    assert_files(
        (const char *[]){"{\"commitInfo\":{\"timestamp\":1}}\n{\"txn\":{}}\n{\"cdc\":3}\n{}\r\n\n"
                         "{\"add\":null,\"protocol\":{\"minReaderVersion\":1,\"new\":[]}}\n" PLAIN
                         "{\"add\":{\"path\":\"a\",\"size\":1,\"baseRowId\":7}}",
                         NULL},
        "a -1");
}

TEST(columns_have_names_and_types)
{
    tdm_error err = {0};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    static const char nested[] =
        "{\\\"name\\\":\\\"image\\\",\\\"type\\\":{\\\"type\\\":\\\"struct\\\",\\\"fields\\\":[]},"
        "\\\"nullable\\\":false}";
    char commit[1000];
    snprintf(commit, sizeof commit,
             PROTOCOL "{\"metaData\":{\"schemaString\":\"{\\\"fields\\\":[%s,%s]}\","
                      "\"partitionColumns\":[\"n\"]}}",
             nested, FIELD("n", "integer"));
    assert_ok(replay((const char *[]){commit, NULL}, &table, &err), &err);
    assert_int_equal(table.n_fields, 2);
    assert_string_equal(table.fields[0].type, "struct");
    assert_false(table.fields[0].is_nullable);
    assert_false(table.fields[0].is_partition);
    assert_true(table.fields[1].is_nullable);
    assert_true(table.fields[1].is_partition);
    assert_string_equal(table.partition_columns[0], "n");
    assert_int_equal(table.version, 0);
}

TEST(many_files_are_kept_apart)
{
    enum { N = 3000 };
    tdm_error err = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text first = {0}, second = {0};
    tdmi_text_printf(&first, "%s%s", PROTOCOL, PLAIN);
    for (int i = 0; i < N; i++)
        tdmi_text_printf(&first, "{\"add\":{\"path\":\"f%d\",\"size\":%d}}\n", i, i);
    for (int i = 0; i < N; i += 3)
        tdmi_text_printf(&second, "{\"remove\":{\"path\":\"f%d\"}}\n", i);
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    assert_ok(replay((const char *[]){first.bytes, second.bytes, NULL}, &table, &err), &err);
    assert_int_equal(table.n_files, N - N / 3);
    for (int64_t i = 0; i < table.n_files; i++) {
        int number = 0;
        assert_int_equal(sscanf(table.files[i].path, "f%d", &number), 1);
        assert_int_equal(table.files[i].size_bytes, number);
        assert_int_not_equal(number % 3, 0);
        assert_true(i == 0 || strcmp(table.files[i - 1].path, table.files[i].path) < 0);
    }
}

static tdm_status replay_scene(tdm_error *err)
{
    static const char *const commits[] = {
        ASKS("3", "[\"deletionVectors\"]") METADATA(
            FIELD("image", "binary") "," FIELD("n", "integer"),
            "\"n\"") "{\"add\":{\"path\":\"a%20b\",\"size\":1,\"partitionValues\":{\"n\":\"1\"},"
                     "\"stats\":\"{\\\"numRecords\\\":5}\"" VECTOR("u", "x",
                                                                   "") "}}\n{\"sidecar\":{"
                                                                       "\"path\":\"x\"}}",
        "{\"remove\":{\"path\":\"c\"}}", NULL};
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_TRY(replay(commits, &table, err));
    assert_int_equal(table.n_files, 1);
    return TDM_OK;
}

TEST(running_out_of_memory_is_an_error)
{
    assert_true(fail_each_allocation(replay_scene) > 10);
}

TEST_MAIN(NULL, NULL)

/* Helpers for tests of every kind of source: does it open, what does it list, how does it refuse.
 */
#pragma once

#include "base/memory.h"
#include "io/compress/inflate.h"
#include "data/source/source.h"
#include "io/storage/storage.h"
#include "tandem/log.h"

#include "data/pack.h"
#include "data/tree.h"
#include "unit.h"

static inline tdmi_source *open_source(const char *path)
{
    tdm_error err = {0};
    tdmi_source *source = NULL;
    assert_ok(tdmi_source_open(path, NULL, &source, &err), &err);
    return source;
}

/* The same without its warnings. */
static inline tdmi_source *open_quietly(const char *path)
{
    tdm_log_set_level(TDM_LOG_SILENT);
    tdmi_source *source = open_source(path);
    tdm_log_set_level(TDM_LOG_WARNING);
    return source;
}

/* "path label part" of every item, separated by commas. */
static inline void assert_items(const tdmi_source *source, const char *expected)
{
    tdmi_text text = {0};
    for (int64_t i = 0; i < tdmi_source_items(source); i++) {
        struct tdmi_item item = tdmi_source_item(source, i);
        tdmi_text_printf(&text, "%s%s %d %d", i == 0 ? "" : ", ", item.path, item.label, item.part);
    }
    assert_string_equal(tdmi_text_string(&text), expected);
    tdmi_text_release(&text);
}

static inline void assert_classes(const tdmi_source *source, const char *expected)
{
    tdmi_text text = {0};
    for (int i = 0; i < tdmi_source_classes(source); i++)
        tdmi_text_printf(&text, "%s%s", i == 0 ? "" : " ", tdmi_source_class(source, i));
    assert_string_equal(tdmi_text_string(&text), expected);
    tdmi_text_release(&text);
}

/* Opened without its warnings, and listed so. */
static inline tdmi_source *open_listed(const char *path, const char *kind, const char *classes,
                                       const char *items, int64_t n_ignored)
{
    tdmi_source *source = open_quietly(path);
    assert_string_equal(tdmi_source_kind(source), kind);
    assert_classes(source, classes);
    assert_items(source, items);
    assert_int_equal(tdmi_source_ignored(source), n_ignored);
    return source;
}

static inline void assert_bytes(const tdmi_source *source, int64_t index, const void *expected,
                                size_t n)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_ok(tdmi_source_read(source, index, &bytes, &err), &err);
    assert_int_equal(bytes.length_bytes, n);
    assert_memory_equal(tdmi_text_string(&bytes), expected, n);
}

/* Reading the item fails, and some sentence of the error holds the word. */
static inline void assert_unreadable(const tdmi_source *source, int64_t index, const char *word)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_int_equal(tdmi_source_read(source, index, &bytes, &err), TDM_E_INPUT);
    assert_says(&err, word);
}

/* The sentence holds the word. */
static inline void assert_refused(const char *path, tdm_status code, const char *word)
{
    tdm_error err = {0};
    tdmi_source *source = NULL;
    assert_int_equal(tdmi_source_open(path, NULL, &source, &err), code);
    assert_null(source);
    assert_says(&err, word);
}

/* The file's place is taken by itself compressed, with ".gz". */
static inline void tree_gzip(const struct tree *tree, const char *name)
{
    tdmi_text plain = {0}, packed = {0};
    char compressed[300];
    snprintf(compressed, sizeof compressed, "%s.gz", name);
    assert_int_equal(tdmi_storage_read_file(tree_path(tree, name), 1 << 30, &plain, NULL), TDM_OK);
    pack_gzip(&packed, plain.bytes, plain.length_bytes);
    assert_int_equal(unlink(tree_path(tree, name)), 0);
    tree_file(tree, compressed, packed.bytes, packed.length_bytes);
    tdmi_text_release(&plain);
    tdmi_text_release(&packed);
}

/* Each allocation of opening and of reading the last picture fails in turn: an error of that kind
 * with a sentence, until all succeed. */
static inline void assert_survives_lack_of_memory(const char *path)
{
    for (int64_t n = 1;; n++) {
        assert_true(n < 1000);
        tdm_error err = {0};
        tdmi_source *source = NULL;
        tdmi_text bytes = {0};
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_source_open(path, NULL, &source, &err);
        if (status == TDM_OK)
            status = tdmi_source_read(source, tdmi_source_items(source) - 1, &bytes, &err);
        tdmi_memory_fail_from(0);
        tdmi_text_release(&bytes);
        tdmi_source_close(source);
        if (status == TDM_OK)
            return;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_true(err.n_frames > 0);
    }
}

/* The path below TANDEM_TEST_DATA; the test ends as skipped where it is missing. */
static inline const char *test_data(const char *name)
{
    static char path[1024];
    const char *data = getenv("TANDEM_TEST_DATA");
    snprintf(path, sizeof path, "%s/%s", data == NULL ? "../shared/data" : data, name);
    if (access(path, R_OK) != 0) {
        print_message("skipped: there is no %s (see TANDEM_TEST_DATA)\n", path);
        skip();
    }
    return path;
}

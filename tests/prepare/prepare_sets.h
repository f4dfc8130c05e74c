/* Sets of pictures for the tests of prepare, and what they ask of every table. */
#pragma once

#include "io/arrow/has_arrow.h"
#include "data/parquet/write.h"
#include "image/image.h"
#include "tandem/prepare.h"
#include "tandem/event.h"

#include "data/sources.h"
#include "unit.h"

#include <dirent.h>

/* A case of a build that can write Parquet. */
#define TEST_PREPARE(name) TEST_IF(has_arrow(), name)

/* A picture of its own for every seed, of width x height. */
static inline void picture(const struct tree *tree, const char *name, int width, int height,
                           uint32_t seed)
{
    static uint8_t bytes[64 + 3 * 100 * 100];
    int n = snprintf((char *)bytes, 64, "P6\n%d %d\n255\n", width, height);
    for (int i = 0; i < width * height; i++)
        for (int c = 0; c < 3; c++)
            bytes[n++] = (uint8_t)((uint32_t)(i / width * 3 + c * 40) + seed * 29u + (seed >> 3));
    tree_file(tree, name, bytes, (size_t)n);
}

enum { N_CLASSES = 3, PER_CLASS = 20 };

static inline struct tree pictures(void)
{
    struct tree tree = tree_new();
    for (int i = 0; i < N_CLASSES * PER_CLASS; i++) {
        char name[64];
        snprintf(name, sizeof name, "in/class%d/p%02d.ppm", i % N_CLASSES, i);
        picture(&tree, name, 20 + i % 7, 30 - i % 5, (uint32_t)i);
    }
    return tree;
}

static inline struct tdm_prepare_options options_of(const char *source, const char *folder)
{
    struct tdm_prepare_options options = tdm_prepare_options_default();
    options.source = source;
    options.folder = folder;
    options.size = 24;
    options.codec = "raw";
    options.threads = 1;
    return options;
}

static inline struct tdm_prepare_result prepared(const struct tdm_prepare_options *options)
{
    struct tdm_prepare_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    assert_ok(tdm_prepare(options, (tdm_sink){0}, &result, &err), &err);
    return result;
}

static inline void refused(const struct tdm_prepare_options *options, tdm_status code,
                           const char *word)
{
    struct tdm_prepare_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    assert_int_equal(tdm_prepare(options, (tdm_sink){0}, &result, &err), code);
    assert_says(&err, word);
}

/* The n-th allocation and all after it fail: TDM_E_MEMORY with a sentence, or enough of them. */
static inline tdm_status prepare_failing(const struct tdm_prepare_options *options, int64_t n)
{
    struct tdm_prepare_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    tdmi_memory_fail_from(n);
    tdm_status status = tdm_prepare(options, (tdm_sink){0}, &result, &err);
    tdmi_memory_fail_from(0);
    if (status != TDM_OK && (status != TDM_E_MEMORY || err.n_frames == 0))
        fail_msg("allocation %d: %s", (int)n, tdm_error_sentence(&err, 0));
    return status;
}

/* A path below the root, kept until the program ends. */
static inline const char *in(const struct tree *tree, const char *name)
{
    static char *kept[8192];
    static int n_kept;
    char path[1024];
    assert_true(n_kept < 8192);
    snprintf(path, sizeof path, "%s/%s", tree->root, name);
    return kept[n_kept++] = strdup(path);
}

/* A tree of pictures in "in", and two folders beside it to prepare into. */
struct set {
    struct tree tree;
    const char *from, *out, *other;
    struct tdm_prepare_options options; /* from -> out */
};

/* Takes the tree. */
static inline struct set set_of(struct tree tree)
{
    struct set set = {.tree = tree};
    set.from = in(&set.tree, "in");
    set.out = in(&set.tree, "out");
    set.other = in(&set.tree, "other");
    set.options = options_of(set.from, set.out);
    return set;
}

static inline void set_free(struct set *set)
{
    tree_free(&set->tree);
}

/* ---- equal folders ------------------------------------------------------------------------ */

static inline void read_all(const char *path, tdmi_text *bytes)
{
    assert_int_equal(tdmi_storage_read_file(path, 1 << 30, bytes, NULL), TDM_OK);
}

static inline int count_entries(const char *path)
{
    int n = 0;
    DIR *list = opendir(path);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return n;
}

/* The same names with the same bytes. */
static inline void assert_equal_folders(const char *a, const char *b)
{
    tdmi_text left = {0}, right = {0};
    DIR *list = opendir(a);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char from[1500], to[1500];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(from, sizeof from, "%.1200s/%.255s", a, entry->d_name);
        snprintf(to, sizeof to, "%.1200s/%.255s", b, entry->d_name);
        struct stat found;
        assert_int_equal(stat(from, &found), 0);
        if (stat(to, &found) != 0)
            fail_msg("%s is missing", to);
        if (S_ISDIR(found.st_mode)) {
            assert_equal_folders(from, to);
            continue;
        }
        read_all(from, &left);
        read_all(to, &right);
        assert_int_equal(left.length_bytes, right.length_bytes);
        assert_memory_equal(left.bytes, right.bytes, left.length_bytes);
    }
    closedir(list);
    assert_int_equal(count_entries(a), count_entries(b));
    tdmi_text_release(&left);
    tdmi_text_release(&right);
}

/* A folder of small pictures, and its split. */
#pragma once

#include "base/hash/hash.h"
#include "base/memory.h"
#include "data/audit/split.h"
#include "tandem/log.h"
#include "data/tree.h"
#include "unit.h"

struct fixture {
    struct tree tree;
    tdmi_source *source;
    tdmi_pool *pool;
    tdmi_split split;
    tdmi_contents contents;
};

static const struct tdmi_split_options nine_to_one = {
    .train_fraction = 0.9, .val_fraction = 0.1, .fraction = 1, .seed = 42};
static const struct tdmi_split_stored nothing_stored;

static inline void open_fixture(struct fixture *f, int n_threads)
{
    tdm_error err = {0};
    assert_ok(tdmi_source_open(f->tree.root, NULL, &f->source, &err), &err);
    assert_int_equal(tdmi_pool_new(n_threads, NULL, &f->pool, &err), TDM_OK);
}

static inline void close_fixture(struct fixture *f)
{
    tdmi_split_release(&f->split);
    tdmi_contents_release(&f->contents);
    tdmi_source_close(f->source);
    tdmi_pool_free(f->pool);
    f->source = NULL;
    f->pool = NULL;
}

static inline void fixture_free(struct fixture *f)
{
    close_fixture(f);
    tree_free(&f->tree);
}

static inline tdm_status split_stored(struct fixture *f, struct tdmi_split_options options,
                                      struct tdmi_split_stored stored, tdm_error *err)
{
    tdm_status status =
        tdmi_contents_read(f->source, f->pool, "reading", (tdm_sink){0}, &f->contents, err);
    if (status != TDM_OK)
        tdmi_split_release(&f->split);
    return status == TDM_OK
               ? tdmi_split_make(f->source, &f->contents, options, stored, &f->split, err)
               : status;
}

static inline tdm_status split_with(struct fixture *f, struct tdmi_split_options options,
                                    tdm_error *err)
{
    return split_stored(f, options, nothing_stored, err);
}

static inline void split_or_fail(struct fixture *f, struct tdmi_split_options options)
{
    tdm_error err = {0};
    assert_ok(split_with(f, options, &err), &err);
}

static inline void assert_refused(struct fixture *f, struct tdmi_split_options options,
                                  tdm_status code, const char *word)
{
    tdm_error err = {0};
    assert_int_equal(split_with(f, options, &err), code);
    assert_null(f->split.train);
    assert_says(&err, word);
}

/* n pictures in a class, numbered from first so that contents differ or repeat as wanted. */
static inline void add_pictures(struct tree *tree, const char *class_name, int n, uint32_t first)
{
    char name[200];
    snprintf(name, sizeof name, "%s/", class_name);
    tree_path(tree, name); /* makes the folder, where n is 0 */
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/%05d.ppm", class_name, i);
        tree_picture(tree, name, first + (uint32_t)i);
    }
}

/* Opened, with a tree of entries "folder n first", separated by commas: see add_pictures. */
static inline struct fixture fixture_of(const char *entries, int n_threads)
{
    struct fixture f = {.tree = tree_new()};
    char folder[100];
    unsigned first;
    for (int n, length; sscanf(entries, "%99s %d %u%n", folder, &n, &first, &length) == 3;) {
        add_pictures(&f.tree, folder, n, first);
        entries += length + (entries[length] == ',');
    }
    open_fixture(&f, n_threads);
    return f;
}

static inline int count_of_class(const struct fixture *f, const int64_t *items, int64_t n,
                                 int label)
{
    int count = 0;
    for (int64_t i = 0; i < n; i++)
        count += tdmi_source_item(f->source, items[i]).label == label;
    return count;
}

static inline int n_train(const struct fixture *f, int label)
{
    return count_of_class(f, f->split.train, f->split.n_train, label);
}

static inline int n_val(const struct fixture *f, int label)
{
    return count_of_class(f, f->split.val, f->split.n_val, label);
}

/* 't', 'v' or '-' for the item with this path. */
static inline char side_of(const struct fixture *f, const char *path)
{
    for (int64_t i = 0; i < f->split.n_train; i++)
        if (strcmp(tdmi_source_item(f->source, f->split.train[i]).path, path) == 0)
            return 't';
    for (int64_t i = 0; i < f->split.n_val; i++)
        if (strcmp(tdmi_source_item(f->source, f->split.val[i]).path, path) == 0)
            return 'v';
    return '-';
}

static inline void assert_ascending_and_apart(const tdmi_split *split)
{
    for (int64_t i = 1; i < split->n_train; i++)
        assert_true(split->train[i - 1] < split->train[i]);
    for (int64_t i = 1; i < split->n_val; i++)
        assert_true(split->val[i - 1] < split->val[i]);
    for (int64_t t = 0; t < split->n_train; t++)
        for (int64_t v = 0; v < split->n_val; v++)
            assert_true(split->train[t] != split->val[v]);
}

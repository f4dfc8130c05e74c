/* Stores with rows that are a function of their content and view, for the tests of features. */
#pragma once

#include "features/store.h"

#include "data/tree.h"
#include "unit.h"
#include <dirent.h>

enum { STORE_WIDTH = 37 };

#define STORE_KEY "{\"weights\":\"some\",\"size\":224}"

static inline tdm_status store_try(const struct tree *tree, const char *key, int64_t limit,
                                   tdmi_store **store, tdm_error *err)
{
    const struct tdmi_store_options options = {
        .folder = tree->root, .key = key, .width = STORE_WIDTH, .limit_bytes = limit};
    return tdmi_store_open(&options, store, err);
}

static inline tdmi_store *store_open(const struct tree *tree, const char *key)
{
    tdmi_store *store = NULL;
    tdm_error err = {0};
    assert_ok(store_try(tree, key, (int64_t)1 << 40, &store, &err), &err);
    return store;
}

static inline struct tdmi_store_row store_row(uint64_t number)
{
    return (struct tdmi_store_row){(number / 2 + 1) * 0x9e3779b97f4a7c15u, number % 2};
}

/* Whole numbers, which f16 holds too. */
static inline void store_values(uint64_t number, float values[STORE_WIDTH])
{
    for (int i = 0; i < STORE_WIDTH; i++)
        values[i] = (float)((number * 31 + (uint64_t)i * 7) % 2048) - 1000;
}

static inline tdm_status store_add(tdmi_store *store, uint64_t from, uint64_t to, tdm_error *err)
{
    float values[STORE_WIDTH];
    for (uint64_t i = from; i < to; i++) {
        store_values(i, values);
        tdm_status status = tdmi_store_fill_add(store, store_row(i), values, err);
        if (status != TDM_OK)
            return status;
    }
    return TDM_OK;
}

static inline tdm_status store_try_fill(tdmi_store *store, uint64_t from, uint64_t to,
                                        tdm_error *err)
{
    tdm_status status = tdmi_store_fill_begin(store, (int64_t)(to - from), TDMI_DTYPE_F32, err);
    if (status == TDM_OK)
        status = store_add(store, from, to, err);
    if (status == TDM_OK)
        status = tdmi_store_fill_commit(store, err);
    return status;
}

static inline void store_fill(tdmi_store *store, uint64_t from, uint64_t to)
{
    tdm_error err = {0};
    assert_ok(store_try_fill(store, from, to, &err), &err);
    tdmi_store_fill_abandon(store);
}

/* How many of these rows are there; each must be right. */
static inline int64_t store_has(const tdmi_store *store, uint64_t from, uint64_t to)
{
    int64_t n = 0;
    for (uint64_t i = from; i < to; i++) {
        float values[STORE_WIDTH], wanted[STORE_WIDTH];
        tdm_error err = {0};
        const int64_t place = tdmi_store_find(store, store_row(i));
        if (place < 0)
            continue;
        assert_ok(tdmi_store_read(store, place, values, &err), &err);
        store_values(i, wanted);
        assert_memory_equal(values, wanted, sizeof wanted);
        n++;
    }
    return n;
}

/* Files of a key's folder whose name has that ending; path: of one of them. */
static inline int store_files(const char *folder, const char *ending, char path[512])
{
    int n = 0;
    DIR *listing = opendir(folder);
    if (listing == NULL)
        return -1;
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length < strlen(ending) || strcmp(entry->d_name + length - strlen(ending), ending) != 0)
            continue;
        if (path != NULL)
            snprintf(path, 512, "%s/%s", folder, entry->d_name);
        n++;
    }
    closedir(listing);
    return n;
}

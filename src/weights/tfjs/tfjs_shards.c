/*
 * What a TensorFlow.js manifest may read. Shards are named by the file, so a name is held to the
 * folder: no absolute path, no "..", nothing empty; and it stands there once. Links give one file
 * many names: what is read is bounded by what there is, before anything is read.
 */
#include "base/memory.h"
#include "io/storage/storage.h"
#include "weights/tfjs/tfjs_group.h"

#include <stdlib.h>
#include <string.h>
#include "base/banned.h"

enum { MOST_SHARDS = 4096, MOST_READINGS = 16 };
#define ALWAYS_READ ((uint64_t)64 << 20)

struct named {
    const char *path;
    uint64_t identity[2], n_bytes;
};

bool tdmi_tfjs_stays_inside(const char *path)
{
    for (const char *at = path;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && memcmp(at, "..", 2) == 0))
            return false;
        at += n;
        if (*at == '\0')
            return strchr(path, '\\') == NULL;
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->path, ((const struct named *)b)->path);
}

static int by_identity(const void *a, const void *b)
{
    const uint64_t *x = ((const struct named *)a)->identity;
    const uint64_t *y = ((const struct named *)b)->identity;
    int i = x[0] == y[0];
    return (x[i] > y[i]) - (x[i] < y[i]);
}

/* What is no path at all, or leads to no file, is refused by the group. */
static tdm_status look(const tdmi_weights *weights, const char *folder, struct named *shard,
                       tdm_error *err)
{
    struct tdmi_place place = {0};
    tdmi_arena arena;
    if (!tdmi_tfjs_stays_inside(shard->path))
        return TDM_OK;
    tdmi_arena_init(&arena, 1024);
    const char *path = tdmi_path_join(&arena, folder, shard->path);
    tdm_status status =
        path ? tdmi_storage_look(path, &place, err)
             : TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s", tdmi_weights_path(weights));
    tdmi_arena_release(&arena);
    shard->n_bytes = (uint64_t)place.size_bytes;
    memcpy(shard->identity, place.identity, sizeof shard->identity);
    return status;
}

static tdm_status check_bytes(const tdmi_weights *weights, const char *folder, struct named *all,
                              size_t n, tdm_error *err)
{
    uint64_t named = 0, there = 0;
    for (size_t i = 0; i < n; i++)
        TDM_TRY(look(weights, folder, &all[i], err), err, "cannot read %s",
                tdmi_weights_path(weights));
    qsort(all, n, sizeof *all, by_identity);
    for (size_t i = 0; i < n; i++) {
        const bool has_none = all[i].identity[0] == 0 && all[i].identity[1] == 0;
        named += all[i].n_bytes;
        there += i == 0 || has_none || by_identity(&all[i - 1], &all[i]) != 0 ? all[i].n_bytes : 0;
    }
    if (named <= ALWAYS_READ || named / MOST_READINGS <= there)
        return TDM_OK;
    return TDMI_WEIGHTS_BAD(err, weights,
                            "its shards are links to files of %llu bytes and would be read as "
                            "%llu: at most %d times what there is, and 64 MiB always, is accepted",
                            (unsigned long long)there, (unsigned long long)named, MOST_READINGS);
}

tdm_status tdmi_tfjs_check_shards(const tdmi_weights *weights, const char *folder,
                                  const tdm_json_value *groups, tdm_error *err)
{
    size_t n = 0, n_all = 0;
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < tdm_json_count(groups); i++)
        n_all += tdm_json_count(tdm_json_member(tdm_json_at(groups, i), "paths"));
    if (n_all > MOST_SHARDS)
        return TDMI_WEIGHTS_BAD(err, weights, "it names %zu shards; at most %d are read", n_all,
                                MOST_SHARDS);
    struct named *all = tdmi_alloc(n_all + 1, sizeof *all);
    if (all == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s", tdmi_weights_path(weights));
    for (size_t i = 0; i < tdm_json_count(groups); i++) {
        const tdm_json_value *paths = tdm_json_member(tdm_json_at(groups, i), "paths");
        for (size_t k = 0; k < tdm_json_count(paths); k++)
            all[n++].path = tdm_json_as_string(tdm_json_at(paths, k), "");
    }
    qsort(all, n, sizeof *all, by_path);
    for (size_t i = 1; status == TDM_OK && i < n; i++)
        if (*all[i].path != '\0' && by_path(&all[i - 1], &all[i]) == 0)
            status = TDMI_WEIGHTS_BAD(err, weights, "shard '%.200s' is listed twice", all[i].path);
    if (status == TDM_OK)
        status = check_bytes(weights, folder, all, n, err);
    tdmi_free(all);
    return status;
}

/* Every part is opened as the Parquet file that it is: its small columns say all that is needed. */
#include "prepare/stored.h"

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "data/parquet/write.h"
#include "prepare/part.h"
#include <stdlib.h>
#include <string.h>

const char *tdmi_prepare_split_name(enum tdmi_prepare_split split)
{
    static const char *const names[TDMI_PREPARE_SPLITS] = {"train", "val", "test", ""};
    return names[split];
}

static tdm_status out_of_memory(const char *folder, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for what '%s' holds", folder);
}

static tdm_status fail_damaged(const char *folder, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT,
                    "'%s/_dataset.json' has %s, which no finished table has: prepare into another "
                    "folder",
                    folder, what);
}

void tdmi_prepare_stored_release(tdmi_prepare_stored *stored)
{
    tdmi_arena_release(&stored->arena);
    *stored = (tdmi_prepare_stored){0};
}

/* ---- _dataset.json ------------------------------------------------------------------------ */

static bool find_split(const char *name, enum tdmi_prepare_split *split)
{
    for (enum tdmi_prepare_split s = 0; s < TDMI_PREPARE_SPLITS; s++)
        if (strcmp(name, tdmi_prepare_split_name(s)) == 0) {
            *split = s;
            return true;
        }
    return false;
}

static const char *copy_of(tdmi_arena *arena, const tdm_json_value *object, const char *key)
{
    return tdmi_arena_copy(arena, tdm_json_as_string(tdm_json_member(object, key), ""));
}

static tdm_status list_classes(const char *folder, const tdm_json_value *dataset,
                               tdmi_prepare_stored *stored, tdm_error *err)
{
    const tdm_json_value *classes = tdm_json_member(dataset, "classes");
    stored->n_classes = (int)tdm_json_count(classes);
    stored->classes =
        tdmi_arena_alloc(&stored->arena, (size_t)stored->n_classes + 1, sizeof *stored->classes);
    for (int c = 0; stored->classes != NULL && c < stored->n_classes; c++)
        if ((stored->classes[c] = tdmi_arena_copy(
                 &stored->arena, tdm_json_as_string(tdm_json_at(classes, (size_t)c), ""))) == NULL)
            return out_of_memory(folder, err);
    return stored->classes != NULL ? TDM_OK : out_of_memory(folder, err);
}

static tdm_status list_parts(const char *folder, const tdm_json_value *dataset,
                             tdmi_prepare_stored *stored, tdm_error *err)
{
    const tdm_json_value *parts = tdm_json_member(dataset, "parts");
    const size_t n = tdm_json_count(parts);
    stored->parts = tdmi_arena_alloc(&stored->arena, n + 1, sizeof *stored->parts);
    if (stored->parts == NULL)
        return out_of_memory(folder, err);
    for (size_t p = 0; p < n; p++) {
        const tdm_json_value *one = tdm_json_at(parts, p);
        struct tdmi_prepare_stored_part *part = &stored->parts[stored->n_parts++];
        *part = (struct tdmi_prepare_stored_part){
            .name = copy_of(&stored->arena, one, "path"),
            .n_rows = tdm_json_as_integer(tdm_json_member(one, "rows"), -1),
            .n_bytes = tdm_json_as_integer(tdm_json_member(one, "bytes"), -1)};
        if (part->name == NULL)
            return out_of_memory(folder, err);
        if (!tdmi_parquet_is_part_name(part->name) || part->n_rows < 0 ||
            !find_split(tdm_json_as_string(tdm_json_member(one, "split"), "?"), &part->split))
            return fail_damaged(folder, "a part that is none", err);
        const int number = (int)strtol(part->name + strlen("part-"), NULL, 10);
        if (number >= stored->next_number)
            stored->next_number = number + 1;
        stored->n_rows += part->n_rows;
    }
    return TDM_OK;
}

static tdm_status list_drops(const char *folder, const tdm_json_value *dataset,
                             tdmi_prepare_stored *stored, tdm_error *err)
{
    const tdm_json_value *list = tdm_json_member(tdm_json_member(dataset, "audit"), "quarantined");
    const size_t n = tdm_json_count(list);
    stored->drops = tdmi_arena_alloc(&stored->arena, n + 1, sizeof *stored->drops);
    if (stored->drops == NULL)
        return out_of_memory(folder, err);
    for (size_t i = 0; i < n; i++) {
        const tdm_json_value *one = tdm_json_at(list, i);
        const char *hash = tdm_json_as_string(tdm_json_member(one, "hash"), "");
        if (*hash == '\0')
            continue; /* seen by the first look, which comes again */
        struct tdmi_prepare_stored_drop *drop = &stored->drops[stored->n_drops++];
        *drop =
            (struct tdmi_prepare_stored_drop){.hash = strtoull(hash, NULL, 16),
                                              .path = copy_of(&stored->arena, one, "path"),
                                              .verdict = copy_of(&stored->arena, one, "verdict"),
                                              .reason = copy_of(&stored->arena, one, "reason")};
        if (drop->path == NULL || drop->verdict == NULL || drop->reason == NULL)
            return out_of_memory(folder, err);
    }
    return TDM_OK;
}

/* ---- rows --------------------------------------------------------------------------------- */

static int label_of(const tdmi_prepare_stored *stored, const char *name)
{
    for (int c = 0; c < stored->n_classes; c++)
        if (strcmp(stored->classes[c], name) == 0)
            return c;
    return -1;
}

static tdm_status take_rows(const tdmi_source *source, const char *folder, int part,
                            tdmi_prepare_stored *stored, int64_t *at, tdm_error *err)
{
    const int n_classes = tdmi_source_classes(source);
    int *labels = tdmi_alloc((size_t)n_classes, sizeof *labels);
    if (labels == NULL)
        return out_of_memory(folder, err);
    for (int c = 0; c < n_classes; c++)
        labels[c] = label_of(stored, tdmi_source_class(source, c));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < stored->parts[part].n_rows && status == TDM_OK; i++) {
        const struct tdmi_item item = tdmi_source_item(source, i);
        const char *path = tdmi_arena_copy(&stored->arena, item.path);
        stored->rows[(*at)++] =
            (struct tdmi_prepare_stored_row){.hash = tdmi_source_hash(source, i),
                                             .path = path,
                                             .label = item.label < 0 ? -1 : labels[item.label],
                                             .part = part,
                                             .split = stored->parts[part].split};
        if (path == NULL)
            status = out_of_memory(folder, err);
    }
    tdmi_free(labels);
    return status;
}

static tdm_status read_part(const char *folder, int part, tdmi_prepare_stored *stored, int64_t *at,
                            tdm_error *err)
{
    const struct tdmi_prepare_stored_part *expected = &stored->parts[part];
    const char *path = tdmi_path_join(&stored->arena, folder, expected->name);
    tdmi_source *source = NULL;
    if (path == NULL)
        return out_of_memory(folder, err);
    if (expected->n_rows == 0)
        return TDM_OK;
    tdm_status status = tdmi_source_open(path, NULL, &source, err);
    if (status == TDM_OK && tdmi_source_items(source) != expected->n_rows)
        status = TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld rows; its _dataset.json says %lld", path,
                          (long long)tdmi_source_items(source), (long long)expected->n_rows);
    if (status == TDM_OK)
        status = take_rows(source, folder, part, stored, at, err);
    tdmi_source_close(source);
    return status;
}

/* One array behind the other; each ascending. */
static tdm_status find_sides(const char *folder, tdmi_prepare_stored *stored, tdm_error *err)
{
    uint64_t *sorted[TDMI_PREPARE_SPLITS] = {0};
    int64_t n[TDMI_PREPARE_SPLITS] = {0};
    for (int s = 0; s < TDMI_PREPARE_NONE; s++) {
        sorted[s] = tdmi_arena_alloc(&stored->arena, (size_t)stored->n_rows + 1, sizeof *sorted[s]);
        if (sorted[s] == NULL)
            return out_of_memory(folder, err);
        for (int64_t r = 0; r < stored->n_rows; r++)
            if ((int)stored->rows[r].split == s)
                sorted[s][n[s]++] = stored->rows[r].hash;
        tdmi_hashes_sort(sorted[s], n[s]);
    }
    stored->sides = (struct tdmi_split_stored){.train = sorted[TDMI_PREPARE_TRAIN],
                                               .n_train = n[TDMI_PREPARE_TRAIN],
                                               .val = sorted[TDMI_PREPARE_VAL],
                                               .n_val = n[TDMI_PREPARE_VAL],
                                               .rest = sorted[TDMI_PREPARE_TEST],
                                               .n_rest = n[TDMI_PREPARE_TEST]};
    return TDM_OK;
}

static tdm_status read_all(const char *folder, const tdm_json_value *dataset,
                           tdmi_prepare_stored *stored, tdm_error *err)
{
    int64_t at = 0;
    TDM_TRY(list_classes(folder, dataset, stored, err), err, "cannot read its classes");
    TDM_TRY(list_parts(folder, dataset, stored, err), err, "cannot read its parts");
    TDM_TRY(list_drops(folder, dataset, stored, err), err, "cannot read what was dropped");
    stored->rows =
        tdmi_arena_alloc(&stored->arena, (size_t)stored->n_rows + 1, sizeof *stored->rows);
    if (stored->rows == NULL)
        return out_of_memory(folder, err);
    for (int p = 0; p < stored->n_parts; p++)
        TDM_TRY(read_part(folder, p, stored, &at, err), err, "cannot read its rows");
    return find_sides(folder, stored, err);
}

tdm_status tdmi_prepare_stored_read(const char *folder, const tdm_json_value *dataset,
                                    tdmi_prepare_stored *stored, tdm_error *err)
{
    tdmi_prepare_stored_release(stored);
    tdmi_arena_init(&stored->arena, 0);
    stored->is_there = true;
    return TDM_WRAP(err, read_all(folder, dataset, stored, err), "cannot see what '%s' holds",
                    folder);
}

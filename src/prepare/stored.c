/* Every part is opened as the Parquet file that it is: its small columns hold all that is needed.
 */
#include "prepare/plan.h"

#include "base/file/file.h"
#include "base/hash/hash.h"
#include "data/parquet/write.h"
#include <stdlib.h>

const char *tdmi_prepare_split_name(enum tdmi_prepare_split split)
{
    static const char *const names[TDMI_PREPARE_SPLITS] = {"train", "val", "test", ""};
    return names[split];
}

void tdmi_prepare_stored_release(tdmi_prepare_stored *stored)
{
    tdmi_arena_release(&stored->arena);
    *stored = (tdmi_prepare_stored){0};
}

/* ---- _dataset.json ------------------------------------------------------------------------ */

/* SPLITS: no such name. */
static enum tdmi_prepare_split find_split(const char *name)
{
    enum tdmi_prepare_split split = 0;
    while (split < TDMI_PREPARE_SPLITS && strcmp(name, tdmi_prepare_split_name(split)) != 0)
        split++;
    return split;
}

static const char *copy_of(tdmi_arena *arena, const tdm_json_value *object, const char *key)
{
    return tdmi_arena_copy(arena, tdm_json_as_string(tdm_json_member(object, key), ""));
}

static tdm_status list_classes(const tdm_json_value *dataset, tdmi_prepare_stored *stored,
                               tdm_error *err)
{
    const tdm_json_value *classes = tdm_json_member(dataset, "classes");
    const size_t n = tdm_json_count(classes);
    stored->n_classes = (int)n;
    stored->classes = tdmi_arena_alloc(&stored->arena, n + 1, sizeof *stored->classes);
    TDMI_CHECK_MEMORY(stored->classes, err);
    for (size_t c = 0; c < n; c++) {
        stored->classes[c] =
            tdmi_arena_copy(&stored->arena, tdm_json_as_string(tdm_json_at(classes, c), ""));
        TDMI_CHECK_MEMORY(stored->classes[c], err);
    }
    return TDM_OK;
}

static tdm_status list_parts(const char *folder, const tdm_json_value *dataset,
                             tdmi_prepare_stored *stored, tdm_error *err)
{
    const tdm_json_value *parts = tdm_json_member(dataset, "parts");
    const size_t n = tdm_json_count(parts);
    stored->parts = tdmi_arena_alloc(&stored->arena, n + 1, sizeof *stored->parts);
    TDMI_CHECK_MEMORY(stored->parts, err);
    for (size_t p = 0; p < n; p++) {
        const tdm_json_value *one = tdm_json_at(parts, p);
        struct tdmi_prepare_stored_part *part = &stored->parts[stored->n_parts++];
        *part = (struct tdmi_prepare_stored_part){
            .name = copy_of(&stored->arena, one, "path"),
            .n_rows = tdm_json_as_integer(tdm_json_member(one, "rows"), -1),
            .n_bytes = tdm_json_as_integer(tdm_json_member(one, "bytes"), -1),
            .split = find_split(tdm_json_as_string(tdm_json_member(one, "split"), "?"))};
        TDMI_CHECK_MEMORY(part->name, err);
        if (!tdmi_parquet_is_part_name(part->name) || part->n_rows < 0 ||
            part->split == TDMI_PREPARE_SPLITS)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s/_dataset.json' has a part that is none, which no finished table "
                            "has: prepare into another folder",
                            folder);
        const int number = (int)strtol(part->name + strlen("part-"), NULL, 10);
        if (number >= stored->next_number)
            stored->next_number = number + 1;
        stored->n_rows += part->n_rows;
    }
    return TDM_OK;
}

static tdm_status list_drops(const tdm_json_value *dataset, tdmi_prepare_stored *stored,
                             tdm_error *err)
{
    const tdm_json_value *list = tdm_json_member(tdm_json_member(dataset, "audit"), "quarantined");
    const size_t n = tdm_json_count(list);
    stored->drops = tdmi_arena_alloc(&stored->arena, n + 1, sizeof *stored->drops);
    TDMI_CHECK_MEMORY(stored->drops, err);
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
        TDMI_CHECK_MEMORY(drop->path && drop->verdict && drop->reason, err);
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

static tdm_status take_rows(const tdmi_source *source, int part, tdmi_prepare_stored *stored,
                            int64_t *at, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int *labels = NULL;
    const int n_classes = tdmi_source_classes(source);
    TDMI_TRY(TDMI_NEW(labels, n_classes, err));
    for (int c = 0; c < n_classes; c++)
        labels[c] = label_of(stored, tdmi_source_class(source, c));
    for (int64_t i = 0; i < stored->parts[part].n_rows; i++) {
        const struct tdmi_item item = tdmi_source_item(source, i);
        const char *path = tdmi_arena_copy(&stored->arena, item.path);
        TDMI_CHECK_MEMORY(path, err);
        stored->rows[(*at)++] =
            (struct tdmi_prepare_stored_row){.hash = tdmi_source_hash(source, i),
                                             .path = path,
                                             .label = item.label < 0 ? -1 : labels[item.label],
                                             .part = part,
                                             .split = stored->parts[part].split};
    }
    return TDM_OK;
}

static tdm_status read_part(const char *folder, int part, tdmi_prepare_stored *stored, int64_t *at,
                            tdm_error *err)
{
    const struct tdmi_prepare_stored_part *expected = &stored->parts[part];
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
    const char *path = tdmi_path_join(&stored->arena, folder, expected->name);
    TDMI_CHECK_MEMORY(path, err);
    if (expected->n_rows == 0)
        return TDM_OK;
    TDMI_TRY(tdmi_source_open(path, NULL, &source, err));
    if (tdmi_source_items(source) != expected->n_rows)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld rows; its _dataset.json says %lld", path,
                        (long long)tdmi_source_items(source), (long long)expected->n_rows);
    return take_rows(source, part, stored, at, err);
}

/* One array behind the other; each ascending. */
static tdm_status find_sides(tdmi_prepare_stored *stored, tdm_error *err)
{
    uint64_t *sorted[TDMI_PREPARE_SPLITS] = {0};
    int64_t n[TDMI_PREPARE_SPLITS] = {0};
    for (int s = 0; s < TDMI_PREPARE_NONE; s++) {
        sorted[s] = tdmi_arena_alloc(&stored->arena, (size_t)stored->n_rows + 1, sizeof *sorted[s]);
        TDMI_CHECK_MEMORY(sorted[s], err);
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
    TDM_TRY(list_classes(dataset, stored, err), err, "cannot read its classes");
    TDM_TRY(list_parts(folder, dataset, stored, err), err, "cannot read its parts");
    TDM_TRY(list_drops(dataset, stored, err), err, "cannot read its dropped images");
    stored->rows =
        tdmi_arena_alloc(&stored->arena, (size_t)stored->n_rows + 1, sizeof *stored->rows);
    TDMI_CHECK_MEMORY(stored->rows, err);
    for (int p = 0; p < stored->n_parts; p++)
        TDM_TRY(read_part(folder, p, stored, &at, err), err, "cannot read its rows");
    return find_sides(stored, err);
}

tdm_status tdmi_prepare_stored_read(const char *folder, const tdm_json_value *dataset,
                                    tdmi_prepare_stored *stored, tdm_error *err)
{
    tdmi_prepare_stored_release(stored);
    stored->is_there = true;
    return TDM_WRAP(err, read_all(folder, dataset, stored, err), "cannot see what '%s' holds",
                    folder);
}

/*
 * The next version of a table that we write: the difference between what its newest version has and
 * what it shall have. Since that is looked up in the log itself, a call that was killed after its
 * commit finds no difference when it comes again.
 */
#include "data/delta/write.h"

#include "base/file/file.h"
#include "data/delta/log.h"
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_name(const char *const *sorted, int64_t n, const char *name)
{
    return n > 0 && bsearch(&name, sorted, (size_t)n, sizeof *sorted, compare_names) != NULL;
}

static tdm_status check_ours(const char *folder, const struct tdmi_delta_table *table,
                             bool (*is_ours)(const char *path), tdm_error *err)
{
    for (int64_t f = 0; f < table->n_files; f++)
        if (!is_ours(table->files[f].path) || table->files[f].deleted.kind != 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "another program has changed '%s': version %lld has '%s'%s; prepare "
                            "into another folder",
                            folder, (long long)table->version, table->files[f].path,
                            table->files[f].deleted.kind != 0 ? " with rows deleted" : "");
    return TDM_OK;
}

/* Both lists sorted by their bytes; next gets what differs. */
static tdm_status write_difference(const char *folder, const struct tdmi_delta_commit *commit,
                                   const struct tdmi_delta_table *table, int64_t *version,
                                   tdm_error *err)
{
    struct tdmi_delta_commit next = *commit;
    TDMI_AT_END(tdmi_free_at) const char **planned = NULL, **held = NULL, **removed = NULL;
    TDMI_AT_END(tdmi_free_at) struct tdmi_delta_part *added = NULL;
    TDMI_TRY(TDMI_NEW(planned, commit->n_parts, err));
    TDMI_TRY(TDMI_NEW(held, table->n_files, err));
    TDMI_TRY(TDMI_NEW(removed, table->n_files, err));
    TDMI_TRY(TDMI_NEW(added, commit->n_parts, err));
    next.n_parts = next.n_removed = 0;
    for (int64_t p = 0; p < commit->n_parts; p++)
        planned[p] = commit->parts[p].path;
    for (int64_t f = 0; f < table->n_files; f++)
        held[f] = table->files[f].path;
    qsort(planned, (size_t)commit->n_parts, sizeof *planned, compare_names);
    for (int64_t f = 0; f < table->n_files; f++)
        if (!has_name(planned, commit->n_parts, held[f]))
            removed[next.n_removed++] = held[f];
    for (int64_t p = 0; p < commit->n_parts; p++)
        if (!has_name(held, table->n_files, commit->parts[p].path))
            added[next.n_parts++] = commit->parts[p];
    *version = table->version;
    if (next.n_parts == 0 && next.n_removed == 0)
        return TDM_OK;
    next.version = ++*version;
    next.parts = added;
    next.removed = removed;
    return tdmi_delta_write(folder, &next, err);
}

tdm_status tdmi_delta_write_next(const char *folder, const struct tdmi_delta_commit *commit,
                                 bool (*is_ours)(const char *path), int64_t *version,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *first = tdmi_path_join(&arena, folder, "_delta_log/00000000000000000000.json");
    *version = 0;
    TDMI_CHECK_MEMORY(first, err);
    if (tdmi_file_kind_of(first) != TDMI_FILE_REGULAR)
        return tdmi_delta_write(folder, commit, err);
    TDMI_TRY(tdmi_delta_log_read(folder, -1, &table, err));
    TDMI_TRY(check_ours(folder, &table, is_ours, err));
    return write_difference(folder, commit, &table, version, err);
}

/* ---- names -------------------------------------------------------------------------------- */

static tdm_status add_names(const struct tdmi_delta_table *table, tdmi_arena *arena,
                            const char ***names, int64_t *n, tdm_error *err)
{
    const char **more = tdmi_arena_alloc(arena, (size_t)(*n + table->n_files) + 1, sizeof *more);
    TDMI_CHECK_MEMORY(more, err);
    if (*n > 0)
        memcpy(more, *names, (size_t)*n * sizeof *more);
    *names = more;
    for (int64_t f = 0; f < table->n_files; f++) {
        more[*n] = tdmi_arena_copy(arena, table->files[f].path);
        TDMI_CHECK_MEMORY(more[(*n)++], err);
    }
    return TDM_OK;
}

tdm_status tdmi_delta_names(const char *folder, int64_t version, tdmi_arena *arena,
                            const char ***names, int64_t *n, bool *is_whole, tdm_error *err)
{
    *names = NULL;
    *n = 0;
    *is_whole = true;
    for (int64_t v = 0; v <= version; v++) {
        TDMI_AT_END(tdmi_delta_table_release) struct tdmi_delta_table table = {0};
        tdm_status status = tdmi_delta_log_read(folder, v, &table, err);
        *is_whole = status == TDM_OK;
        if (status != TDM_OK)
            return status == TDM_E_INPUT ? TDM_OK : status;
        TDMI_TRY(add_names(&table, arena, names, n, err));
    }
    return TDM_OK;
}

/*
 * The next version of a table that we write: the difference between what its newest version has and
 * what it shall have. Since that is looked up in the log itself, a call that was killed after its
 * commit finds no difference when it comes again.
 */
#include "data/delta/write.h"

#include "base/file/file.h"
#include "base/memory.h"
#include "data/delta/log.h"
#include <stdlib.h>
#include <string.h>

static tdm_status out_of_memory(const char *folder, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the next version of '%s'", folder);
}

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
    const char **planned = tdmi_alloc((size_t)commit->n_parts, sizeof *planned);
    const char **held = tdmi_alloc((size_t)table->n_files, sizeof *held);
    const char **removed = tdmi_alloc((size_t)table->n_files, sizeof *removed);
    struct tdmi_delta_part *added = tdmi_alloc((size_t)commit->n_parts, sizeof *added);
    tdm_status status = TDM_OK;
    next.n_parts = next.n_removed = 0;
    if (planned == NULL || held == NULL || removed == NULL || added == NULL) {
        status = out_of_memory(folder, err);
        goto out;
    }
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
        goto out;
    next.version = ++*version;
    next.parts = added;
    next.removed = removed;
    status = tdmi_delta_write(folder, &next, err);
out:
    tdmi_free(planned);
    tdmi_free(held);
    tdmi_free(removed);
    tdmi_free(added);
    return status;
}

static tdm_status has_log(const char *folder, bool *is_there, tdm_error *err)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const char *first = tdmi_path_join(&arena, folder, "_delta_log/00000000000000000000.json");
    tdm_status status = first ? TDM_OK : out_of_memory(folder, err);
    *is_there = first && tdmi_file_kind_of(first) == TDMI_FILE_REGULAR;
    tdmi_arena_release(&arena);
    return status;
}

tdm_status tdmi_delta_write_next(const char *folder, const struct tdmi_delta_commit *commit,
                                 bool (*is_ours)(const char *path), int64_t *version,
                                 tdm_error *err)
{
    struct tdmi_delta_table table = {0};
    bool is_there = false;
    *version = 0;
    tdm_status status = has_log(folder, &is_there, err);
    if (status == TDM_OK && !is_there)
        return tdmi_delta_write(folder, commit, err);
    if (status == TDM_OK)
        status = tdmi_delta_log_read(folder, -1, &table, err);
    if (status == TDM_OK)
        status = check_ours(folder, &table, is_ours, err);
    if (status == TDM_OK)
        status = write_difference(folder, commit, &table, version, err);
    tdmi_delta_table_release(&table);
    return status;
}

/* ---- names -------------------------------------------------------------------------------- */

static tdm_status add_names(const char *folder, const struct tdmi_delta_table *table,
                            tdmi_arena *arena, const char ***names, int64_t *n, tdm_error *err)
{
    const char **more = tdmi_arena_alloc(arena, (size_t)(*n + table->n_files) + 1, sizeof *more);
    if (more == NULL)
        return out_of_memory(folder, err);
    if (*n > 0)
        memcpy(more, *names, (size_t)*n * sizeof *more);
    *names = more;
    for (int64_t f = 0; f < table->n_files; f++)
        if ((more[(*n)++] = tdmi_arena_copy(arena, table->files[f].path)) == NULL)
            return out_of_memory(folder, err);
    return TDM_OK;
}

tdm_status tdmi_delta_names(const char *folder, int64_t version, tdmi_arena *arena,
                            const char ***names, int64_t *n, bool *is_whole, tdm_error *err)
{
    tdm_status status = TDM_OK;
    *names = NULL;
    *n = 0;
    *is_whole = true;
    for (int64_t v = 0; v <= version && status == TDM_OK && *is_whole; v++) {
        struct tdmi_delta_table table = {0};
        status = tdmi_delta_log_read(folder, v, &table, err);
        *is_whole = status == TDM_OK;
        if (*is_whole)
            status = add_names(folder, &table, arena, names, n, err);
        else if (status == TDM_E_INPUT)
            status = TDM_OK;
        tdmi_delta_table_release(&table);
    }
    return status;
}

/*
 * The smallest files first, in groups that reach a GiB or a 32nd of all: so the disk needs room for
 * one group twice, a key never keeps more than about a hundred files, and a file that has reached
 * half of that is not copied again. Files of another precision than the smallest are left alone.
 */
#include "features/inside.h"

#include "base/file/file.h"
#include "base/memory.h"
#include "features/table.h"
#include "tandem/event.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t group_bytes = (int64_t)1 << 30;

struct part {
    const char *path;
    int64_t size_bytes;
};

static int by_size(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

static tdm_status list_parts(const char *folder, tdmi_arena *arena, struct part **parts, size_t *n,
                             tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    *n = 0;
    tdm_status status = tdmi_folder_list(folder, arena, &entries, &n_entries, err);
    if (status != TDM_OK)
        return status;
    *parts = tdmi_arena_alloc(arena, n_entries, sizeof **parts);
    for (size_t i = 0; *parts != NULL && i < n_entries; i++) {
        if (!tdmi_store_is_rows_name(entries[i].name))
            continue;
        const char *path = tdmi_path_join(arena, folder, entries[i].name);
        if (path == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "merging the files of %s: no memory", folder);
        (*parts)[(*n)++] = (struct part){path, tdmi_file_bytes(path)};
    }
    if (*parts == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "merging the files of %s: no memory", folder);
    qsort(*parts, *n, sizeof **parts, by_size);
    return TDM_OK;
}

/* Rows that a file before has too are left out. */
static tdm_status copy_rows(const struct tdmi_store_table *group, tdmi_store_writer *writer,
                            void *stored, tdm_error *err)
{
    for (int f = 0; f < group->n_files; f++) {
        int64_t row = 0;
        const int64_t first = (int64_t)f << 32;
        const struct tdmi_store_file *file = tdmi_store_table_at(group, first, &row);
        for (int64_t i = 0; i < file->n_rows; i++) {
            const struct tdmi_store_entry *entry = &file->entries[i];
            const struct tdmi_store_row key = {entry->content, entry->view};
            if (tdmi_store_table_find(group, key) != first + i)
                continue;
            if (tdm_stop_is_requested())
                return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request");
            tdm_status status = tdmi_store_file_read_stored(file, i, stored, err);
            if (status == TDM_OK)
                status = tdmi_store_writer_add_stored(writer, *entry, stored, err);
            if (status != TDM_OK)
                return status;
        }
    }
    return TDM_OK;
}

static tdm_status merge_group(const char *folder, const struct tdmi_store_form *form,
                              const struct tdmi_store_table *group, enum tdmi_dtype precision,
                              tdm_error *err)
{
    char *path = NULL;
    tdmi_store_writer *writer = NULL;
    void *stored = tdmi_alloc(tdmi_store_row_bytes(form->width, precision), 1);
    if (stored == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "merging the files of %s: no memory", folder);
    tdm_status status = tdmi_store_writer_new(folder, form, precision, &writer, err);
    if (status == TDM_OK)
        status = copy_rows(group, writer, stored, err);
    if (status == TDM_OK)
        status = tdmi_store_writer_commit(writer, &path, err);
    else
        tdmi_store_writer_abort(writer);
    for (int f = 0; status == TDM_OK && f < group->n_files; f++) {
        int64_t row = 0;
        const struct tdmi_store_file *file = tdmi_store_table_at(group, (int64_t)f << 32, &row);
        if (strcmp(file->path, path) != 0)
            (void)unlink(file->path); /* rows that stay twice are harmless */
    }
    tdmi_free(path);
    tdmi_free(stored);
    return status;
}

/* Files from *next on, until they are enough; those of another precision are passed over. */
static tdm_status open_group(const struct part *parts, size_t n, int64_t enough,
                             const struct tdmi_store_form *form, size_t *next,
                             struct tdmi_store_table *group, enum tdmi_dtype *precision,
                             tdm_error *err)
{
    int64_t n_rows = 0;
    tdm_status status = TDM_OK;
    while (status == TDM_OK && *next < n && group->size_bytes < enough) {
        struct tdmi_store_file *file = NULL;
        status = tdmi_store_file_open(parts[*next].path, form, &file, err);
        if (status != TDM_OK)
            break;
        if (*next == 0)
            *precision = file->precision;
        ++*next;
        if (file->precision != *precision || n_rows + file->n_rows > INT32_MAX) {
            tdmi_store_file_close(file);
            continue;
        }
        n_rows += file->n_rows;
        status = tdmi_store_table_reserve(group, n_rows, err);
        if (status != TDM_OK)
            tdmi_store_file_close(file);
        else
            status = tdmi_store_table_add(group, file, err);
    }
    return status;
}

tdm_status tdmi_store_merge(const char *folder, const struct tdmi_store_form *form, tdm_error *err)
{
    tdmi_arena arena;
    struct part *parts = NULL;
    size_t n = 0, next = 0;
    int64_t all_bytes = 0;
    enum tdmi_dtype precision = TDMI_DTYPE_F32;
    tdmi_arena_init(&arena, 0);
    tdm_status status = list_parts(folder, &arena, &parts, &n, err);
    for (size_t i = 0; i < n; i++)
        all_bytes += parts[i].size_bytes;
    const int64_t enough = all_bytes / 32 > group_bytes ? all_bytes / 32 : group_bytes;
    bool is_worth_it = status == TDM_OK && n > TDMI_STORE_MANY_FILES;
    while (is_worth_it && next < n && parts[next].size_bytes < enough / 2) {
        struct tdmi_store_table group = {.n_files = 0};
        status = open_group(parts, n, enough, form, &next, &group, &precision, err);
        if (status == TDM_OK && tdmi_disk_spare_bytes(folder) < group.size_bytes)
            is_worth_it = false;
        else if (status == TDM_OK && group.n_files > 1)
            status = merge_group(folder, form, &group, precision, err);
        tdmi_store_table_release(&group);
        is_worth_it = is_worth_it && status == TDM_OK;
    }
    tdmi_arena_release(&arena);
    return status;
}

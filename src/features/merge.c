/*
 * The smallest files first, in groups that reach a GiB or a 32nd of all: so the disk needs room for
 * one group twice, a key never keeps more than about a hundred files, and a file that has reached
 * half of that is not copied again. Files of another precision than the smallest are left alone.
 */
#include "features/inside.h"

#include "base/file/file.h"
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
    TDMI_TRY(tdmi_folder_list(folder, arena, &entries, &n_entries, err));
    *parts = tdmi_arena_alloc(arena, n_entries, sizeof **parts);
    TDMI_CHECK_MEMORY(*parts, err);
    for (size_t i = 0; i < n_entries; i++) {
        if (!tdmi_store_is_rows_name(entries[i].name))
            continue;
        const char *path = tdmi_path_join(arena, folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        (*parts)[(*n)++] = (struct part){path, tdmi_file_bytes(path)};
    }
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
            TDMI_TRY(tdmi_store_file_read_stored(file, i, stored, err));
            TDMI_TRY(tdmi_store_writer_add_stored(writer, *entry, stored, err));
        }
    }
    return TDM_OK;
}

static tdm_status merge_group(const char *folder, const struct tdmi_store_form *form,
                              const struct tdmi_store_table *group, enum tdmi_dtype precision,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_store_writer_abort_at) tdmi_store_writer *writer = NULL;
    TDMI_AT_END(tdmi_free_at) char *path = NULL;
    TDMI_AT_END(tdmi_free_at) char *stored = NULL;
    TDMI_TRY(TDMI_NEW(stored, tdmi_store_row_bytes(form->width, precision), err));
    TDMI_TRY(tdmi_store_writer_new(folder, form, precision, &writer, err));
    TDMI_TRY(copy_rows(group, writer, stored, err));
    TDMI_TRY(tdmi_store_writer_commit(tdmi_take(&writer), &path, err));
    for (int f = 0; f < group->n_files; f++) {
        int64_t row = 0;
        const struct tdmi_store_file *file = tdmi_store_table_at(group, (int64_t)f << 32, &row);
        if (strcmp(file->path, path) != 0)
            (void)unlink(file->path); /* rows that stay twice are harmless */
    }
    return TDM_OK;
}

/* Files from *next on, until they are enough; those of another precision are passed over. */
static tdm_status open_group(const struct part *parts, size_t n, int64_t enough,
                             const struct tdmi_store_form *form, size_t *next,
                             struct tdmi_store_table *group, enum tdmi_dtype *precision,
                             tdm_error *err)
{
    int64_t n_rows = 0;
    while (*next < n && group->size_bytes < enough) {
        TDMI_AT_END(tdmi_store_file_close_at) struct tdmi_store_file *file = NULL;
        TDMI_TRY(tdmi_store_file_open(parts[*next].path, form, &file, err));
        if ((*next)++ == 0)
            *precision = file->precision;
        if (file->precision != *precision || n_rows + file->n_rows > INT32_MAX)
            continue;
        n_rows += file->n_rows;
        TDMI_TRY(tdmi_store_table_reserve(group, n_rows, err));
        TDMI_TRY(tdmi_store_table_add(group, tdmi_take(&file), err));
    }
    return TDM_OK;
}

tdm_status tdmi_store_merge(const char *folder, const struct tdmi_store_form *form, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct part *parts = NULL;
    size_t n = 0, next = 0;
    int64_t all_bytes = 0;
    enum tdmi_dtype precision = TDMI_DTYPE_F32;
    TDMI_TRY(list_parts(folder, &arena, &parts, &n, err));
    for (size_t i = 0; i < n; i++)
        all_bytes += parts[i].size_bytes;
    const int64_t enough = all_bytes / 32 > group_bytes ? all_bytes / 32 : group_bytes;
    while (n > TDMI_STORE_MANY_FILES && next < n && parts[next].size_bytes < enough / 2) {
        TDMI_AT_END(tdmi_store_table_release) struct tdmi_store_table group = {.n_files = 0};
        TDMI_TRY(open_group(parts, n, enough, form, &next, &group, &precision, err));
        if (tdmi_disk_spare_bytes(folder) < group.size_bytes)
            return TDM_OK;
        if (group.n_files > 1)
            TDMI_TRY(merge_group(folder, form, &group, precision, err));
    }
    return TDM_OK;
}

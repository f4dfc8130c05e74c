/* Only files of prepare are removed: every name is checked. */
#include "prepare/folder.h"

#include "data/parquet/write.h"
#include "io/storage/storage.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGEST_LOOK_BYTES ((size_t)1 << 36)
#define LARGEST_DATASET_BYTES ((size_t)1 << 30)

/* ---- state ------------------------------------------------------------------------------ */

/* Read a file of the folder and compare the options in it. */
static tdm_status read_options(const char *path, const struct tdmi_prepare_form *form,
                               const char *folder, tdm_json_document **document, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *text = NULL;
    size_t n_bytes = 0;
    TDM_TRY(tdmi_file_read(path, LARGEST_DATASET_BYTES, &text, &n_bytes, err), err,
            "cannot see what '%s' holds", folder);
    TDM_TRY(tdm_json_read(text, n_bytes, path, document, err), err, "cannot see what '%s' holds",
            folder);
    const tdm_json_value *root = tdm_json_root(*document);
    const int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), -1);
    if (version != TDMI_PREPARE_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' is of format version %lld, and this build writes %d: name another "
                        "folder",
                        path, (long long)version, TDMI_PREPARE_FORMAT_VERSION);
    return tdmi_prepare_form_compare(form, tdm_json_member(root, "options"), folder, err);
}

static tdm_status check_begun(tdmi_prepare_folder *folder, const struct tdmi_prepare_form *form,
                              tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    folder->state = TDMI_PREPARE_BEGUN;
    if (tdmi_file_kind_of(folder->options) == TDMI_FILE_MISSING)
        return TDM_OK; /* killed before anything was made */
    return read_options(folder->options, form, folder->path, &document, err);
}

static tdm_status check_empty(tdmi_prepare_folder *folder, tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    TDM_TRY(tdmi_folder_list(folder->path, &folder->arena, &entries, &n, err), err,
            "cannot see what '%s' holds", folder->path);
    if (n > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' holds something else (%s): name a folder that is empty or does not "
                        "exist",
                        folder->path, entries[0].name);
    return TDM_OK;
}

static tdm_status find_state(tdmi_prepare_folder *folder, const struct tdmi_prepare_form *form,
                             tdm_error *err)
{
    switch (tdmi_file_kind_of(folder->path)) {
    case TDMI_FILE_MISSING:
        return TDM_OK;
    case TDMI_FILE_FOLDER:
        break;
    case TDMI_FILE_FORBIDDEN:
        return TDM_FAIL(err, TDM_E_SYSTEM, "'%s' is closed to this user", folder->path);
    case TDMI_FILE_REGULAR:
    case TDMI_FILE_OTHER:
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' is a file: name a folder that is empty or does not exist",
                        folder->path);
    }
    if (tdmi_file_kind_of(folder->dataset) == TDMI_FILE_REGULAR) {
        folder->state = TDMI_PREPARE_FINISHED;
        return read_options(folder->dataset, form, folder->path, &folder->document, err);
    }
    if (tdmi_file_kind_of(folder->work) == TDMI_FILE_FOLDER)
        return check_begun(folder, form, err);
    return check_empty(folder, err);
}

tdm_status tdmi_prepare_folder_open(tdmi_prepare_folder *folder, const char *path,
                                    const struct tdmi_prepare_form *form, tdm_error *err)
{
    tdmi_arena *arena = &folder->arena;
    if (tdmi_storage_is_uri(path))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot prepare into '%s': name a local folder, and copy it there when it "
                        "is complete",
                        path);
    folder->path = tdmi_arena_copy(arena, path);
    folder->work = tdmi_path_join(arena, path, "_prepare");
    folder->dataset = tdmi_path_join(arena, path, "_dataset.json");
    folder->options = tdmi_path_join(arena, path, "_prepare/options.json");
    folder->look = tdmi_path_join(arena, path, "_prepare/look");
    TDMI_CHECK_MEMORY(
        folder->path && folder->work && folder->dataset && folder->options && folder->look, err);
    return find_state(folder, form, err);
}

void tdmi_prepare_folder_close(tdmi_prepare_folder *folder)
{
    tdmi_lock_give(folder->lock);
    tdm_json_document_free(folder->document);
    tdmi_arena_release(&folder->arena);
    *folder = (tdmi_prepare_folder){0};
}

/* ---- beside its source -------------------------------------------------------------------- */

/* Remove the last name; false: there is none left. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || path[1] == '\0')
        return false;
    slash[slash == path] = '\0';
    return true;
}

tdm_status tdmi_prepare_folder_check_beside(const char *path, const char *source, tdm_error *err)
{
    char resolved[PATH_MAX], named[PATH_MAX];
    struct tdmi_place of_source = {0}, above = {0};
    const int n = snprintf(named, sizeof named, "%s%s", path[0] == '/' ? "" : "./", path);
    if (n < 0 || n >= (int)sizeof named || tdmi_storage_is_uri(source) ||
        tdmi_storage_look(source, &of_source, NULL) != TDM_OK || of_source.kind != TDMI_FILE_FOLDER)
        return TDM_OK;
    /* The first existing folder above it gives the real path. */
    while (realpath(named, resolved) == NULL)
        if (!go_up(named))
            return TDM_OK;
    const bool is_itself = strlen(named) == (size_t)n;
    for (bool is_more = !is_itself || go_up(resolved); is_more; is_more = go_up(resolved))
        if (tdmi_storage_look(resolved, &above, NULL) == TDM_OK &&
            memcmp(above.identity, of_source.identity, sizeof above.identity) == 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "'%s' lies in '%s', where it would count as a class: name a folder "
                            "outside",
                            path, source);
    return TDM_OK;
}

/* ---- working ------------------------------------------------------------------------------ */

static tdm_status remove_file(const char *path, tdm_error *err)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot remove '%s': %s", path, strerror(errno));
    return TDM_OK;
}

/* Remove the files of a folder, if it is there, whose names begin and end so. */
static tdm_status remove_files(tdmi_prepare_folder *folder, const char *path, const char *start,
                               const char *end, tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    if (tdmi_file_kind_of(path) != TDMI_FILE_FOLDER)
        return TDM_OK;
    TDM_TRY(tdmi_folder_list(path, &folder->arena, &entries, &n, err), err, "cannot tidy '%s'",
            path);
    for (size_t i = 0; i < n; i++) {
        const char *name = entries[i].name;
        if (strncmp(name, start, strlen(start)) != 0 || !tdmi_ends_with(name, end))
            continue;
        const char *file = tdmi_path_join(&folder->arena, path, name);
        TDMI_CHECK_MEMORY(file, err);
        TDM_TRY(remove_file(file, err), err, "cannot tidy '%s'", path);
    }
    return TDM_OK;
}

/* Remove the temporary files of killed processes (base/file/file.h has the names). Slices leave
 * this to the process that has the whole folder. */
static tdm_status tidy(tdmi_prepare_folder *folder, tdm_error *err)
{
    const char *log = tdmi_path_join(&folder->arena, folder->path, "_delta_log");
    TDMI_CHECK_MEMORY(log, err);
    TDMI_TRY(remove_files(folder, folder->work, ".", ".tmp", err));
    TDMI_TRY(remove_files(folder, folder->path, "._dataset.json.", ".tmp", err));
    return remove_files(folder, log, ".0", ".tmp", err);
}

static tdm_status take_lock(tdmi_prepare_folder *folder, const struct tdmi_prepare_form *form,
                            tdm_error *err)
{
    const struct tdm_prepare_options *options = form->options;
    const char *path = options->slices > 0
                           ? tdmi_arena_printf(&folder->arena, "%s/lock-%d-of-%d", folder->work,
                                               options->slice % options->slices, options->slices)
                           : tdmi_path_join(&folder->arena, folder->work, "lock");
    TDMI_CHECK_MEMORY(path, err);
    TDM_TRY(tdmi_lock_take(path, &folder->lock, err), err, "another process prepares '%s' already",
            folder->path);
    return options->slices > 0 ? TDM_OK : tidy(folder, err);
}

static tdm_status write_options(tdmi_prepare_folder *folder, const struct tdmi_prepare_form *form,
                                tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    const char *text = NULL;
    size_t n_bytes = 0;
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "format_version", TDMI_PREPARE_FORMAT_VERSION);
    tdmi_prepare_form_to_json(form, json, "options");
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &text, &n_bytes, err));
    return tdmi_file_write(folder->options, text, n_bytes, err);
}

tdm_status tdmi_prepare_folder_begin(tdmi_prepare_folder *folder,
                                     const struct tdmi_prepare_form *form, tdm_error *err)
{
    TDMI_TRY(tdmi_folder_make(folder->work, err));
    TDMI_TRY(take_lock(folder, form, err));
    if (tdmi_file_kind_of(folder->options) != TDMI_FILE_REGULAR)
        return write_options(folder, form, err);
    return TDM_OK;
}

tdm_status tdmi_prepare_folder_read_look(const tdmi_prepare_folder *folder, int64_t n_items,
                                         tdmi_prepare_look *look, bool *is_known, tdm_error *err)
{
    TDMI_AT_END(tdmi_prepare_look_release) tdmi_prepare_look kept = {0};
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n_bytes = 0;
    *is_known = false;
    if (look->listing == 0 || tdmi_file_kind_of(folder->look) != TDMI_FILE_REGULAR)
        return TDM_OK;
    TDM_TRY(tdmi_file_read(folder->look, LARGEST_LOOK_BYTES, &bytes, &n_bytes, err), err,
            "cannot resume in '%s'", folder->path);
    /* Ignore a look that is damaged or belongs to other images. */
    tdm_status status = tdmi_prepare_look_parse(bytes, n_bytes, folder->look, n_items, &kept, NULL);
    TDMI_CHECK_MEMORY(status != TDM_E_MEMORY, err);
    *is_known = status == TDM_OK && kept.listing == look->listing;
    if (*is_known) {
        const tdmi_prepare_look listed = *look;
        *look = kept;
        kept = listed;
    }
    return TDM_OK;
}

tdm_status tdmi_prepare_folder_write_look(const tdmi_prepare_folder *folder,
                                          const tdmi_prepare_look *look, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDMI_TRY(tdmi_prepare_look_write(look, &text, err));
    return tdmi_file_write(folder->look, text.bytes, text.length_bytes, err);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* names are in numeric order, which is byte order up to 99,999 parts only. */
tdm_status tdmi_prepare_folder_keep_parts(const tdmi_prepare_folder *folder,
                                          const char *const *names, int n, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    const char **sorted = tdmi_arena_alloc(&arena, (size_t)n, sizeof *sorted);
    TDMI_CHECK_MEMORY(sorted, err);
    TDMI_TRY(tdmi_folder_list(folder->path, &arena, &entries, &n_entries, err));
    if (n > 0) {
        memcpy(sorted, names, (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, tdmi_compare_names);
    }
    for (size_t i = 0; i < n_entries; i++) {
        if (!tdmi_parquet_is_part_name(entries[i].name) ||
            (n > 0 &&
             bsearch(&entries[i].name, sorted, (size_t)n, sizeof *sorted, tdmi_compare_names)))
            continue;
        const char *path = tdmi_path_join(&arena, folder->path, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        TDMI_TRY(remove_file(path, err));
    }
    return TDM_OK;
}

tdm_status tdmi_prepare_folder_clean(tdmi_prepare_folder *folder, tdm_error *err)
{
    if (tdmi_file_kind_of(folder->work) != TDMI_FILE_FOLDER)
        return TDM_OK;
    TDMI_TRY(remove_files(folder, folder->work, "", "", err));
    tdmi_lock_give(folder->lock);
    folder->lock = NULL;
    if (rmdir(folder->work) != 0 && errno != ENOENT)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot remove '%s': %s", folder->work, strerror(errno));
    return TDM_OK;
}

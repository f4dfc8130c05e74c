/*
 * Lists of images: a CSV or JSONL file with the path, label and perhaps part of each. Paths are
 * relative to the list's own folder; absolute paths and URIs stay as they are. A local list may
 * name any file of this machine, but a local list that names a remote file, or a remote list that
 * names a local one, is read only with the option follow. A missing image shows when it is read, as
 * in every source.
 */
#include "data/source/listing.h"
#include "data/source/list_file.h"
#include "io/storage/records.h"
#include <stdio.h>
#include <string.h>

/* Larger than any image. */
#define LARGEST_FILE_BYTES ((int64_t)1 << 30)
#define LARGEST_LIST_BYTES ((int64_t)1 << 30)

struct list {
    struct tdmi_listing listing;
    struct tdmi_labels labels;
    const char *path;   /* lent while opening */
    const char *folder; /* with its slash, or "" */
    bool follows;
};

static const char *const csv_endings[] = {".csv", ".csv.gz", NULL};
static const char *const json_endings[] = {".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", NULL};

static bool list_can_open(const char *path)
{
    return (tdmi_has_ending(path, csv_endings) || tdmi_has_ending(path, json_endings)) &&
           tdmi_storage_kind(path) == TDMI_FILE_REGULAR;
}

static void list_release(void *self)
{
    tdmi_labels_release(&((struct list *)self)->labels);
}

/* Absolute, or a URI. */
static bool is_absolute(const char *path)
{
    return path[0] == '/' || tdmi_storage_local(path) != path || tdmi_storage_is_uri(path);
}

static tdm_status add_row(void *self, const struct tdmi_list_row *row, tdm_error *err)
{
    struct list *list = self;
    int label = -1;
    if (!list->follows && is_absolute(row->path) &&
        tdmi_storage_is_uri(row->path) != tdmi_storage_is_uri(list->path))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' names '%.200s', and the list itself lies %s: "
                        "--follow reads it all the same",
                        (long long)row->line, list->path, row->path,
                        tdmi_storage_is_uri(list->path) ? "in a store" : "on this machine");
    if (row->label[0] != '\0')
        TDM_TRY(tdmi_labels_number(&list->labels, row->label, strlen(row->label), &label, err), err,
                "cannot take line %lld", (long long)row->line);
    return tdmi_listing_add_item(
        &list->listing, (struct tdmi_item){.path = row->path, .label = label, .part = row->part},
        err);
}

static tdm_status read_rows(struct list *list, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_records_close) struct tdmi_records records = {0};
    TDMI_AT_END(tdmi_free_at) char *text = NULL;
    TDMI_TRY(tdmi_records_open(&records, path, err));
    if (records.size_bytes > LARGEST_LIST_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld bytes; a list has at most %lld", path,
                        (long long)records.size_bytes, (long long)LARGEST_LIST_BYTES);
    const size_t n_bytes = (size_t)records.size_bytes;
    TDMI_TRY(TDMI_NEW(text, n_bytes, err));
    TDMI_TRY(tdmi_records_read(&records, 0, text, n_bytes, err));
    return tdmi_has_ending(path, csv_endings)
               ? tdmi_list_csv(path, text, n_bytes, add_row, list, err)
               : tdmi_list_jsonl(path, text, n_bytes, add_row, list, err);
}

static tdm_status list_open(const char *path, const struct tdm_source_options *options, void *self,
                            tdm_error *err)
{
    struct list *list = self;
    list->path = path;
    list->follows = options->follow;
    list->folder =
        tdmi_arena_printf(&list->listing.arena, "%.*s", (int)(tdmi_path_name(path) - path), path);
    TDMI_CHECK_MEMORY(list->folder, err);
    TDMI_TRY(read_rows(list, path, err));
    tdmi_listing_drop_unlabelled(&list->listing, "rows", path);
    tdmi_listing_forget_lone_part(&list->listing);
    return tdmi_labels_finish(&list->labels, &list->listing, err);
}

static tdm_status list_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct list *list = self;
    const char *path = list->listing.items[index].path;
    char full[TDMI_PATH_BYTES]; /* reading allocates nothing */
    int length = snprintf(full, sizeof full, "%s%s", is_absolute(path) ? "" : list->folder, path);
    if (length < 0 || length >= (int)sizeof full)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read an image: its path is too long: '%.100s…'",
                        path);
    return TDM_WRAP(err, tdmi_storage_read_file(full, LARGEST_FILE_BYTES, bytes, err),
                    "cannot read the image '%s' of the list", path);
}

const struct tdmi_source_table tdmi_source_list = {
    .name = "list",
    .summary = "a CSV or JSONL list of path, label and part",
    .state_bytes = sizeof(struct list),
    .can_open = list_can_open,
    .open = list_open,
    .release = list_release,
    .read = list_read,
};

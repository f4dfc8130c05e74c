/*
 * Lists of pictures: a CSV or JSONL file that says path, label and perhaps part of each. Paths are
 * relative to the list's own folder; absolute ones and URIs are taken as they are. Naming files
 * anywhere on this machine is what lists are for, but a local list that names a remote place, or a
 * remote one that names a local file, is read only when the options say follow. Whether a picture
 * is there shows when it is read, as everywhere.
 */
#include "data/source/labels.h"
#include "data/source/list_file.h"
#include "data/source/listing.h"
#include "io/storage/records.h"

#include "base/memory.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What no picture reaches. */
#define LARGEST_FILE_BYTES ((int64_t)1 << 30)
#define LARGEST_LIST_BYTES ((int64_t)1 << 30)

struct list {
    struct tdmi_listing listing; /* first: the table's queries take it */
    struct tdmi_labels labels;
    const char *path;   /* lent while opening */
    const char *folder; /* with its slash, or "" */
    bool follows;
    int64_t n_unlabelled;
};

/* The reader for the path's ending, with or without ".gz"; NULL: no list. */
static bool is_list(const char *path, bool *is_csv)
{
    static const struct {
        const char *ending;
        bool is_csv;
    } endings[] = {{".csv", true}, {".jsonl", false}, {".ndjson", false}};
    size_t length = strlen(path);
    if (length > 3 && strcasecmp(path + length - 3, ".gz") == 0)
        length -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i].ending);
        *is_csv = endings[i].is_csv;
        if (length > ending && strncasecmp(path + length - ending, endings[i].ending, ending) == 0)
            return true;
    }
    return false;
}

static bool list_can_open(const char *path)
{
    bool is_csv = false;
    return is_list(path, &is_csv) && tdmi_storage_kind(path) == TDMI_FILE_REGULAR;
}

static void list_close(void *self)
{
    struct list *list = self;
    tdmi_labels_release(&list->labels);
    tdmi_listing_release(&list->listing);
    tdmi_free(list);
}

/* Absolute, or a URI. */
static bool is_alone(const char *path)
{
    return path[0] == '/' || tdmi_storage_is_uri(path);
}

static tdm_status add_row(void *self, const struct tdmi_list_row *row, tdm_error *err)
{
    struct list *list = self;
    int label = -1;
    if (!list->follows && is_alone(row->path) &&
        tdmi_storage_is_uri(row->path) != tdmi_storage_is_uri(list->path))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' names '%.200s', and the list itself lies %s: --follow "
                        "reads it all the same",
                        (long long)row->line, list->path, row->path,
                        tdmi_storage_is_uri(list->path) ? "in a store" : "on this machine");
    if (row->label[0] == '\0')
        list->n_unlabelled++;
    else
        TDM_TRY(tdmi_labels_number(&list->labels, row->label, strlen(row->label), &label, err), err,
                "cannot take line %lld", (long long)row->line);
    return tdmi_listing_add_item(&list->listing, row->path, label, row->part, err);
}

/* Where some pictures have a label, those without one are of no class and are left out. */
static void drop_unlabelled(struct list *list, const char *path)
{
    struct tdmi_listing *listing = &list->listing;
    int64_t kept = 0;
    if (list->n_unlabelled == 0 || list->n_unlabelled == listing->n_items)
        return;
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[kept++] = listing->items[i];
    listing->n_items = kept;
    listing->n_ignored += list->n_unlabelled;
    tdm_log(TDM_LOG_WARNING, "%lld rows of '%s' have no label and are left out",
            (long long)list->n_unlabelled, path);
}

static tdm_status read_rows(struct list *list, const char *path, tdm_error *err)
{
    struct tdmi_records records = {0};
    tdmi_text text = {0};
    char *room = NULL;
    bool is_csv = false;
    tdm_status status = tdmi_records_open(&records, path, err);
    if (status != TDM_OK)
        return status;
    if (records.size_bytes > LARGEST_LIST_BYTES) {
        status = TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld bytes; a list has at most %lld", path,
                          (long long)records.size_bytes, (long long)LARGEST_LIST_BYTES);
        goto out;
    }
    room = tdmi_text_room(&text, (size_t)records.size_bytes);
    if (room == NULL) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %lld bytes of '%s'",
                          (long long)records.size_bytes, path);
        goto out;
    }
    status = tdmi_records_read(&records, 0, room, (size_t)records.size_bytes, err);
    if (status == TDM_OK && is_list(path, &is_csv))
        status = (is_csv ? tdmi_list_csv : tdmi_list_jsonl)(path, room, (size_t)records.size_bytes,
                                                            add_row, list, err);
out:
    tdmi_text_release(&text);
    tdmi_records_close(&records);
    return status;
}

static tdm_status list_open(const char *path, const struct tdm_source_options *options, void **self,
                            tdm_error *err)
{
    *self = NULL;
    struct list *list = tdmi_alloc(1, sizeof *list);
    if (list == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    tdmi_listing_init(&list->listing);
    list->path = path;
    list->follows = options->follow;
    list->folder =
        tdmi_arena_printf(&list->listing.arena, "%.*s", (int)(tdmi_path_name(path) - path), path);
    tdm_status status = list->folder == NULL
                            ? TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path)
                            : read_rows(list, path, err);
    if (status == TDM_OK) {
        drop_unlabelled(list, path);
        tdmi_listing_forget_lone_part(&list->listing);
        status = tdmi_labels_finish(&list->labels, &list->listing, err);
    }
    if (status == TDM_OK)
        *self = list;
    else
        list_close(list);
    return status;
}

static tdm_status list_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct list *list = self;
    const char *path = tdmi_listing_item(self, index).path;
    char full[TDMI_PATH_BYTES]; /* reading allocates nothing */
    int length = snprintf(full, sizeof full, "%s%s", is_alone(path) ? "" : list->folder, path);
    if (length < 0 || length >= (int)sizeof full)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read a picture: its path is too long: '%.100s…'",
                        path);
    return TDM_WRAP(err, tdmi_storage_read_file(full, LARGEST_FILE_BYTES, bytes, err),
                    "cannot read the picture '%s' of the list", path);
}

const struct tdmi_source_table tdmi_source_list = {
    .name = "list",
    .summary = "a CSV or JSONL list of path, label and part",
    .can_open = list_can_open,
    .open = list_open,
    .close = list_close,
    .n_classes = tdmi_listing_n_classes,
    .class_name = tdmi_listing_class_name,
    .n_items = tdmi_listing_n_items,
    .item = tdmi_listing_item,
    .n_ignored = tdmi_listing_n_ignored,
    .read = list_read,
};

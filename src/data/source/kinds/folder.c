/*
 * Class folders of pictures, on disk or in an object store. class_tree.h has the rules.
 */
#include "data/source/listing.h"

#include "base/memory.h"
#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include <stdio.h>

/* What no picture reaches; it guards against reading a disk image by mistake. */
#define LARGEST_FILE_BYTES ((int64_t)1 << 30)

struct folder {
    struct tdmi_listing listing; /* first: the table's queries take it */
    const char *root;            /* ends with a slash */
    int64_t *listed_bytes;       /* by item, in an object store; else NULL */
};

static bool folder_can_open(const char *path)
{
    return tdmi_storage_kind(path) == TDMI_FILE_FOLDER;
}

static void folder_close(void *self)
{
    struct folder *folder = self;
    tdmi_listing_release(&folder->listing);
    tdmi_free(folder);
}

static tdm_status folder_open(const char *path, const struct tdm_source_options *options,
                              void **self, tdm_error *err)
{
    (void)options; /* none of them is for this kind; source.c sees to that */
    *self = NULL;
    struct folder *folder = tdmi_alloc(1, sizeof *folder);
    if (folder == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the folder '%s'", path);
    tdmi_listing_init(&folder->listing);
    folder->root = tdmi_path_join(&folder->listing.arena, path, "");
    struct tdmi_tree tree;
    tdmi_tree_init(&tree, path);
    tdm_status status = folder->root == NULL
                            ? TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path)
                            : tdmi_tree_walk(&tree, err);
    if (status == TDM_OK)
        status = tdmi_tree_classes(&tree, &folder->listing,
                                   tdmi_storage_is_uri(path) ? &folder->listed_bytes : NULL, err);
    tdmi_tree_release(&tree);
    if (status == TDM_OK)
        *self = folder;
    else
        folder_close(folder);
    return status;
}

/* false: too long to be opened. */
static bool find_path(const struct folder *folder, const char *path, char full[TDMI_PATH_BYTES])
{
    int length = snprintf(full, TDMI_PATH_BYTES, "%s%s", folder->root, path);
    return length >= 0 && length < TDMI_PATH_BYTES;
}

/* An object store answers over the network, so one by one would take as long as reading. */
static bool folder_stamp(const void *self, int64_t index, struct tdmi_stamp *stamp)
{
    const struct folder *folder = self;
    char full[TDMI_PATH_BYTES];
    struct tdmi_place place = {0};
    if (tdmi_storage_is_uri(folder->root) ||
        !find_path(folder, tdmi_listing_item(self, index).path, full) ||
        tdmi_storage_look(full, &place, NULL) != TDM_OK || place.kind != TDMI_FILE_REGULAR)
        return false;
    *stamp = (struct tdmi_stamp){place.size_bytes, place.modified_ns};
    return true;
}

static tdm_status folder_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct folder *folder = self;
    const char *path = tdmi_listing_item(self, index).path;
    const int64_t listed_bytes = folder->listed_bytes == NULL ? -1 : folder->listed_bytes[index];
    char full[TDMI_PATH_BYTES]; /* reading allocates nothing */
    if (!find_path(folder, path, full))
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the picture '%s': its path is too long",
                        path);
    return TDM_WRAP(err,
                    tdmi_storage_read_listed(full, listed_bytes, LARGEST_FILE_BYTES, bytes, err),
                    "cannot read the picture '%s'", path);
}

const struct tdmi_source_table tdmi_source_folder = {
    .name = "folder",
    .summary = "a folder of class folders of pictures",
    .can_open = folder_can_open,
    .open = folder_open,
    .close = folder_close,
    .n_classes = tdmi_listing_n_classes,
    .class_name = tdmi_listing_class_name,
    .n_items = tdmi_listing_n_items,
    .item = tdmi_listing_item,
    .n_ignored = tdmi_listing_n_ignored,
    .read = folder_read,
    .stamp = folder_stamp,
};

/*
 * Class folders of images, on disk or in an object store. class_tree.h has the rules.
 */
#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include <stdio.h>

/* Larger than any image; it guards against reading a disk image by mistake. */
#define LARGEST_FILE_BYTES ((int64_t)1 << 30)

struct folder {
    struct tdmi_listing listing; /* an item's place is its size in the folder's listing, or -1 */
    const char *root;            /* ends with a slash */
};

static bool folder_can_open(const char *path)
{
    return tdmi_storage_kind(path) == TDMI_FILE_FOLDER;
}

static tdm_status folder_open(const char *path, const struct tdm_source_options *options,
                              void *self, tdm_error *err)
{
    (void)options; /* source.c has refused those of other kinds */
    struct folder *folder = self;
    TDMI_AT_END(tdmi_tree_release) struct tdmi_tree tree = {.root = path};
    folder->root = tdmi_path_join(&folder->listing.arena, path, "");
    TDMI_CHECK_MEMORY(folder->root, err);
    TDMI_TRY(tdmi_tree_walk(&tree, err));
    return tdmi_tree_classes(&tree, &folder->listing, err);
}

/* false: too long to be opened. */
static bool find_path(const struct folder *folder, const char *path, char full[TDMI_PATH_BYTES])
{
    int length = snprintf(full, TDMI_PATH_BYTES, "%s%s", folder->root, path);
    return length >= 0 && length < TDMI_PATH_BYTES;
}

/* In an object store, looking up every file would take as long as reading it. */
static bool folder_stamp(const void *self, int64_t index, struct tdmi_stamp *stamp)
{
    const struct folder *folder = self;
    char full[TDMI_PATH_BYTES];
    struct tdmi_place place = {0};
    if (tdmi_storage_is_uri(folder->root) ||
        !find_path(folder, folder->listing.items[index].path, full) ||
        tdmi_storage_look(full, &place, NULL) != TDM_OK || place.kind != TDMI_FILE_REGULAR)
        return false;
    *stamp = (struct tdmi_stamp){place.size_bytes, place.modified_ns};
    return true;
}

static tdm_status folder_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct folder *folder = self;
    const char *path = folder->listing.items[index].path;
    const int64_t listed_bytes =
        tdmi_storage_is_uri(folder->root) ? folder->listing.items[index].place : -1;
    char full[TDMI_PATH_BYTES]; /* reading allocates nothing */
    if (!find_path(folder, path, full))
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the image '%s': its path is too long", path);
    return TDM_WRAP(err,
                    tdmi_storage_read_listed(full, listed_bytes, LARGEST_FILE_BYTES, bytes, err),
                    "cannot read the image '%s'", path);
}

const struct tdmi_source_table tdmi_source_folder = {
    .name = "folder",
    .summary = "a folder of class folders of images",
    .state_bytes = sizeof(struct folder),
    .can_open = folder_can_open,
    .open = folder_open,
    .read = folder_read,
    .stamp = folder_stamp,
};

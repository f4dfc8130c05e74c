/*
 * Trees of images: which paths are images of which class and part. Folders on disk and archives
 * collect their paths here, so the same tree gives the same listing wherever it is stored.
 *
 *     cat/a.jpg              class = the first folder, images at any depth below it
 *     dog/2024/b.png
 *
 *     train/cat/a.jpg        when every folder is named train, val, valid, validation or test, they
 *     test/cat/c.jpg         are the parts and the classes stand below them
 *
 *     a.jpg                  without folders the images are unlabelled
 *
 * Names that begin with "." or "_" belong to tools, not to data sets, and are skipped, and so is a
 * folder that holds a run.json: a run written among the images is no class.
 */
#pragma once

#include "base/file/file.h"
#include "data/source/listing.h"

struct tdmi_tree_entry {
    const char *path; /* relative, without "." and ".." and empty names */
    enum tdmi_file_kind kind;
    int64_t place; /* becomes the item's; of two entries with one path the greater one counts */
};

struct tdmi_tree {    /* start from an object that has only root */
    const char *root; /* for messages; lent */
    tdmi_arena arena;
    struct tdmi_tree_entry *entries;
    int64_t n_entries, capacity;
    /* Read the first bytes of an entry whose name shows no format; returns how many, 0: failed. */
    size_t (*peek)(void *self, const struct tdmi_tree_entry *entry, uint8_t *bytes,
                   size_t room_bytes);
    void *self;
    bool skips_top;     /* a folder around everything is no class, as in archives */
    int64_t n_left_out; /* links that the walk could not follow; they count as ignored */
};

void tdmi_tree_release(struct tdmi_tree *tree);
/* Copies the path, cleaned. Hidden and empty paths are not added. */
tdm_status tdmi_tree_add(struct tdmi_tree *tree, const char *path, enum tdmi_file_kind kind,
                         int64_t place, tdm_error *err) TDM_MUST_USE;
bool tdmi_tree_is_hidden(const char *name);

/* Sort the entries, drop those to skip and list the images by the rules above. */
tdm_status tdmi_tree_classes(struct tdmi_tree *tree, struct tdmi_listing *listing,
                             tdm_error *err) TDM_MUST_USE;
/* List all images, in whatever folder, unlabelled. */
tdm_status tdmi_tree_pictures(struct tdmi_tree *tree, struct tdmi_listing *listing,
                              tdm_error *err) TDM_MUST_USE;

/* Add everything at any depth below the folder tree->root of a storage, following links. Links that
 * form a circle or lead to a folder above them are left out with a warning, as are paths of
 * TDMI_PATH_BYTES and more; a folder that holds nothing but such links is no class. A folder that
 * cannot be listed is an error that names it. Sets peek. An entry's place is its size in bytes, -1
 * where the store's listing has none. */
tdm_status tdmi_tree_walk(struct tdmi_tree *tree, tdm_error *err) TDM_MUST_USE;

/*
 * Trees of pictures: which paths are pictures of which class and part. Folders on disk and archives
 * collect their paths here, and the rules stand in one place, so the same tree gives the same
 * listing wherever it lies.
 *
 *     cat/a.jpg              class = the first folder, pictures at any depth below it
 *     dog/2024/b.png
 *
 *     train/cat/a.jpg        when every folder is named train, val, valid, validation or test, they
 *     test/cat/c.jpg         are the parts and the classes stand below them
 *
 *     a.jpg                  without folders the pictures are unlabelled
 *
 * Names that begin with "." or "_" belong to tools, not to data sets, and are passed over, and so
 * is a folder with a run.json in it: a run written among the pictures is no class.
 */
#ifndef TANDEM_DATA_CLASS_TREE_H
#define TANDEM_DATA_CLASS_TREE_H

#include "base/arena.h"
#include "base/file/file.h"
#include "data/source/listing.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_tree_entry {
    const char *path; /* relative, without "." and ".." and empty names */
    enum tdmi_file_kind kind;
    int64_t place; /* the collector's own number of it; of two of one path the greater counts */
};

struct tdmi_tree {    /* start from a zeroed object, then init */
    const char *root; /* for messages; lent */
    tdmi_arena arena;
    struct tdmi_tree_entry *entries;
    int64_t n_entries, capacity;
    /* The first bytes of an entry whose name does not say what it is; how many, 0: cannot be read.
     */
    size_t (*peek)(void *self, const struct tdmi_tree_entry *entry, uint8_t *bytes,
                   size_t room_bytes);
    void *self;
    bool skips_top;     /* folders around everything are no class: archives have them */
    int64_t n_left_out; /* names that the walk could not follow; they count as ignored */
};

void tdmi_tree_init(struct tdmi_tree *tree, const char *root);
void tdmi_tree_release(struct tdmi_tree *tree);
/* Copies the path, cleaned. What is hidden, or bears no name, is not added. */
tdm_status tdmi_tree_add(struct tdmi_tree *tree, const char *path, enum tdmi_file_kind kind,
                         int64_t place, tdm_error *err) TDM_MUST_USE;
bool tdmi_tree_is_hidden(const char *name);

/* Sorts, drops what is passed over and lists what the rules say. places, in the listing's arena,
 * has the entry's place for every item; NULL: not wanted. */
tdm_status tdmi_tree_classes(struct tdmi_tree *tree, struct tdmi_listing *listing, int64_t **places,
                             tdm_error *err) TDM_MUST_USE;
/* All pictures, whatever folder they lie in, unlabelled. */
tdm_status tdmi_tree_pictures(struct tdmi_tree *tree, struct tdmi_listing *listing,
                              tdm_error *err) TDM_MUST_USE;

/* Adds everything at any depth below the folder at tree->root, from storage. Links are followed.
 * Those that lead in a circle or to a folder they lie in are left out with a warning, as are paths
 * of TDMI_PATH_BYTES and more; a folder that holds nothing but such links is no class. A folder
 * that cannot be listed is an error that names it. Sets peek. An entry's place is its size in
 * bytes, -1 where the listing did not tell. */
tdm_status tdmi_tree_walk(struct tdmi_tree *tree, tdm_error *err) TDM_MUST_USE;

#endif

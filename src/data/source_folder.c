/*
 * Class folders of pictures.
 *
 *     pets/cat/a.jpg            class = name of the first folder, pictures at any depth below it
 *     pets/dog/2024/b.png
 *
 *     pets/train/cat/a.jpg      when every folder is named train, val, valid, validation or test,
 *     pets/test/cat/c.jpg       they are the parts and the classes stand below them
 *
 *     pets/a.jpg                without folders the pictures are unlabelled
 *
 * The disk is read once, in byte order of names, so equal trees give equal listings everywhere.
 * Names that begin with "." or "_" belong to tools, not to data sets, and are passed over.
 * Symbolic links are followed, except one that leads to a folder it lies in.
 */
#include "data/listing.h"

#include "base/file.h"
#include "base/memory.h"
#include "tandem/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* What no picture reaches; it guards against reading a disk image by mistake. */
#define LARGEST_FILE_BYTES ((int64_t)1 << 30)
enum { CHUNK_BYTES = 64 * 1024, SNIFF_BYTES = 64, LONGEST_ENDING = 5 };

struct folder {
    struct tdmi_listing listing; /* first: the table's queries take it */
    int root_fd;
};

/* A folder on the way down to the one being read. */
struct ancestor {
    const struct ancestor *above;
    dev_t device;
    ino_t inode;
};

struct scan {
    struct folder *folder;
    const char *root;
    bool is_parted;     /* the folders below the root are parts */
    int64_t n_homeless; /* pictures beside class folders: of no class, left out */
};

/* ---- names --------------------------------------------------------------------------------- */

static bool is_hidden(const char *name)
{
    return name[0] == '.' || name[0] == '_';
}

static enum tdmi_part part_named(const char *name)
{
    static const struct {
        const char *name;
        enum tdmi_part part;
    } parts[] = {{"train", TDMI_PART_TRAIN},
                 {"val", TDMI_PART_VAL},
                 {"valid", TDMI_PART_VAL},
                 {"validation", TDMI_PART_VAL},
                 {"test", TDMI_PART_TEST}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasecmp(name, parts[i].name) == 0)
            return parts[i].part;
    return TDMI_PART_NONE;
}

/* ".txt" is an ending; ".0001" and ". and more" belong to the name. */
static bool has_ending(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL)
        return false;
    size_t length = strlen(dot + 1);
    bool starts_with_letter = (dot[1] | 0x20) >= 'a' && (dot[1] | 0x20) <= 'z';
    return starts_with_letter && length <= LONGEST_ENDING && strchr(dot, ' ') == NULL;
}

static bool is_folder(const struct tdmi_folder_entry *entry)
{
    return entry->kind == TDMI_FILE_FOLDER && !is_hidden(entry->name);
}

/* ---- looking at files ---------------------------------------------------------------------- */

static bool begins_like_a_picture(const struct folder *folder, const char *path)
{
    char bytes[SNIFF_BYTES];
    int fd = openat(folder->root_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, bytes, sizeof bytes);
    close(fd);
    return got > 0 && tdmi_image_sniff(bytes, (size_t)got) != TDMI_IMAGE_UNKNOWN;
}

/* A dangling link named like a picture counts: reading it will say what is wrong, where leaving it
 * out would hide it. */
static bool is_picture(const struct folder *folder, const struct tdmi_folder_entry *entry,
                       const char *path)
{
    if (entry->kind == TDMI_FILE_REGULAR || entry->kind == TDMI_FILE_MISSING ||
        entry->kind == TDMI_FILE_FORBIDDEN) {
        if (tdmi_image_has_extension(entry->name))
            return true;
        return entry->kind == TDMI_FILE_REGULAR && !has_ending(entry->name) &&
               begins_like_a_picture(folder, path);
    }
    return false;
}

/* ---- walking ------------------------------------------------------------------------------- */

static tdm_status list(const struct scan *scan, const char *path, tdmi_arena *arena,
                       struct tdmi_folder_entry **entries, size_t *n_entries, tdm_error *err)
{
    const char *full = path[0] == '\0' ? scan->root : tdmi_path_join(arena, scan->root, path);
    if (full == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list the folder '%s'", path);
    return TDM_WRAP(err, tdmi_folder_list(full, arena, entries, n_entries, err),
                    "cannot list the folder '%s' of the data set", full);
}

static bool is_loop(const struct ancestor *above, const struct stat *found)
{
    for (; above != NULL; above = above->above)
        if (above->device == found->st_dev && above->inode == found->st_ino)
            return true;
    return false;
}

/* Adds every picture at any depth below path. */
static tdm_status walk(struct scan *scan, const char *path, int label, enum tdmi_part part,
                       const struct ancestor *above, tdm_error *err)
{
    struct folder *folder = scan->folder;
    struct stat found;
    if (fstatat(folder->root_fd, path, &found, 0) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot enter the folder '%s/%s': %s", scan->root, path,
                        strerror(errno));
    if (is_loop(above, &found)) {
        tdm_log(TDM_LOG_WARNING, "'%s/%s' leads back to a folder it lies in and is not followed",
                scan->root, path);
        return TDM_OK;
    }
    struct ancestor here = {.above = above, .device = found.st_dev, .inode = found.st_ino};

    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    struct tdmi_folder_entry *entries = NULL;
    size_t n_entries = 0;
    tdm_status status = list(scan, path, &arena, &entries, &n_entries, err);
    for (size_t i = 0; i < n_entries && status == TDM_OK; i++) {
        if (is_hidden(entries[i].name))
            continue;
        const char *below = tdmi_path_join(&arena, path, entries[i].name);
        if (below == NULL)
            status = TDM_FAIL(err, TDM_E_MEMORY, "no memory to list the folder '%s'", path);
        else if (entries[i].kind == TDMI_FILE_FOLDER)
            status = walk(scan, below, label, part, &here, err);
        else if (is_picture(folder, &entries[i], below))
            status = tdmi_listing_add_item(&folder->listing, below, label, part, err);
        else
            folder->listing.n_ignored++;
    }
    tdmi_arena_release(&arena);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Index of the class; every folder's name was added before. */
static int class_named(const struct tdmi_listing *listing, const char *name)
{
    const char **found = bsearch(&name, listing->classes, (size_t)listing->n_classes,
                                 sizeof *listing->classes, compare_names);
    return (int)(found - listing->classes);
}

/* A folder whose sub-folders are the classes. */
struct container {
    const char *path; /* "" is the root */
    enum tdmi_part part;
    struct tdmi_folder_entry *entries;
    size_t n_entries;
};

static tdm_status add_classes_of(struct scan *scan, const struct container *container,
                                 tdm_error *err)
{
    for (size_t i = 0; i < container->n_entries; i++)
        if (is_folder(&container->entries[i]))
            TDM_TRY(tdmi_listing_add_class(&scan->folder->listing, container->entries[i].name, err),
                    err, "cannot list the classes of '%s'", scan->root);
    return TDM_OK;
}

static void sort_classes(struct tdmi_listing *listing)
{
    if (listing->n_classes == 0)
        return;
    qsort(listing->classes, (size_t)listing->n_classes, sizeof *listing->classes, compare_names);
    int kept = 1;
    for (int i = 1; i < listing->n_classes; i++)
        if (strcmp(listing->classes[i], listing->classes[kept - 1]) != 0)
            listing->classes[kept++] = listing->classes[i];
    listing->n_classes = kept;
}

/* The classes of a container, then the pictures that lie directly in it: they are unlabelled where
 * no class folder holds any, and of no class where one does. */
static tdm_status walk_container(struct scan *scan, const struct container *container,
                                 tdmi_arena *arena, const struct ancestor *above, tdm_error *err)
{
    struct tdmi_listing *listing = &scan->folder->listing;
    int64_t n_before = listing->n_items;
    for (size_t i = 0; i < container->n_entries; i++) {
        const struct tdmi_folder_entry *entry = &container->entries[i];
        if (!is_folder(entry))
            continue;
        const char *path = tdmi_path_join(arena, container->path, entry->name);
        if (path == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", scan->root);
        TDM_TRY(walk(scan, path, class_named(listing, entry->name), container->part, above, err),
                err, "cannot list the pictures of class '%s'", entry->name);
    }
    bool is_flat = listing->n_items == n_before;
    for (size_t i = 0; i < container->n_entries; i++) {
        const struct tdmi_folder_entry *entry = &container->entries[i];
        if (entry->kind == TDMI_FILE_FOLDER || is_hidden(entry->name))
            continue;
        const char *path = tdmi_path_join(arena, container->path, entry->name);
        if (path == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", scan->root);
        bool is_wanted = is_picture(scan->folder, entry, path);
        if (is_wanted && is_flat)
            TDM_TRY(tdmi_listing_add_item(listing, path, -1, container->part, err), err,
                    "cannot list the pictures of '%s'", scan->root);
        else
            listing->n_ignored++;
        if (is_wanted && !is_flat)
            scan->n_homeless++;
    }
    return TDM_OK;
}

/* Does every folder of the root bear the name of a part? */
static bool is_parted(const struct container *root)
{
    size_t n_parts = 0;
    for (size_t i = 0; i < root->n_entries; i++) {
        if (!is_folder(&root->entries[i]))
            continue;
        if (part_named(root->entries[i].name) == TDMI_PART_NONE)
            return false;
        n_parts++;
    }
    return n_parts > 0;
}

/* The containers that hold classes: the root itself, or the folders of its parts. A part that
 * stands alone says nothing about the others, so its pictures are still to be split. */
static tdm_status find_containers(struct scan *scan, tdmi_arena *arena, struct container *root,
                                  struct container **containers, size_t *n_containers,
                                  tdm_error *err)
{
    *containers = tdmi_arena_alloc(arena, root->n_entries + 1, sizeof **containers);
    if (*containers == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", scan->root);
    *n_containers = 0;
    scan->is_parted = is_parted(root);
    if (!scan->is_parted) {
        (*containers)[(*n_containers)++] = *root;
        return TDM_OK;
    }
    for (size_t i = 0; i < root->n_entries; i++) {
        if (!is_folder(&root->entries[i]))
            continue;
        struct container *part = &(*containers)[(*n_containers)++];
        part->path = root->entries[i].name;
        part->part = part_named(part->path);
        TDM_TRY(list(scan, part->path, arena, &part->entries, &part->n_entries, err), err,
                "cannot list the part '%s'", part->path);
    }
    if (*n_containers == 1)
        (*containers)[0].part = TDMI_PART_NONE;
    return TDM_OK;
}

static tdm_status scan_root(struct scan *scan, tdmi_arena *arena, tdm_error *err)
{
    struct container root = {.path = "", .part = TDMI_PART_NONE};
    struct tdmi_listing *listing = &scan->folder->listing;
    TDM_TRY(list(scan, "", arena, &root.entries, &root.n_entries, err), err,
            "cannot read the data set '%s'", scan->root);
    struct container *containers = NULL;
    size_t n_containers = 0;
    TDM_TRY(find_containers(scan, arena, &root, &containers, &n_containers, err), err,
            "cannot read the data set '%s'", scan->root);
    for (size_t i = 0; i < n_containers; i++)
        TDM_TRY(add_classes_of(scan, &containers[i], err), err, "cannot list the classes of '%s'",
                scan->root);
    sort_classes(listing);

    struct stat found;
    if (fstat(scan->folder->root_fd, &found) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot look at '%s': %s", scan->root, strerror(errno));
    struct ancestor above = {.device = found.st_dev, .inode = found.st_ino};
    bool has_label = false;
    for (size_t i = 0; i < n_containers; i++)
        TDM_TRY(walk_container(scan, &containers[i], arena, &above, err), err,
                "cannot list the pictures of '%s'", scan->root);
    for (int64_t i = 0; i < listing->n_items && !has_label; i++)
        has_label = listing->items[i].label >= 0;
    if (!has_label)
        listing->n_classes = 0;
    for (size_t i = 0; scan->is_parted && i < root.n_entries; i++)
        if (root.entries[i].kind != TDMI_FILE_FOLDER && !is_hidden(root.entries[i].name)) {
            listing->n_ignored++;
            scan->n_homeless += is_picture(scan->folder, &root.entries[i], root.entries[i].name);
        }
    if (scan->n_homeless > 0)
        tdm_log(TDM_LOG_WARNING,
                "%lld pictures of '%s' lie beside the class folders, not in one, and are left out",
                (long long)scan->n_homeless, scan->root);
    return TDM_OK;
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool folder_can_open(const char *path)
{
    return tdmi_file_kind_of(path) == TDMI_FILE_FOLDER;
}

static void folder_close(void *self)
{
    struct folder *folder = self;
    if (folder->root_fd >= 0)
        close(folder->root_fd);
    tdmi_listing_release(&folder->listing);
    tdmi_free(folder);
}

static tdm_status folder_open(const char *path, const struct tdmi_source_options *options,
                              void **self, tdm_error *err)
{
    (void)options; /* none of them is for this kind; source.c sees to that */
    *self = NULL;
    struct folder *folder = tdmi_alloc(1, sizeof *folder);
    if (folder == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the folder '%s'", path);
    tdmi_listing_init(&folder->listing);
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    tdm_status status = TDM_OK;

    folder->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->root_fd < 0) {
        status =
            TDM_FAIL(err, TDM_E_INPUT, "cannot enter the folder '%s': %s", path, strerror(errno));
        goto out;
    }
    struct scan scan = {.folder = folder, .root = path};
    status = scan_root(&scan, &arena, err);
    if (status == TDM_OK) {
        *self = folder;
        folder = NULL;
    }
out:
    tdmi_arena_release(&arena);
    if (folder != NULL)
        folder_close(folder);
    return status;
}

static tdm_status folder_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct folder *folder = self;
    const char *path = tdmi_listing_item(self, index).path;
    tdm_status status = TDM_OK;
    tdmi_text_clear(bytes);
    /* Should the file have become a pipe since it was listed, opening it must not wait. */
    int fd = openat(folder->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot open the picture '%s': %s", path,
                        strerror(errno));
    char chunk[CHUNK_BYTES];
    for (int64_t total = 0;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = TDM_FAIL(err, TDM_E_INPUT, "cannot read the picture '%s' past byte %lld: %s",
                              path, (long long)total, strerror(errno));
            break;
        }
        if (got == 0)
            break;
        total += got;
        if (total > LARGEST_FILE_BYTES) {
            status = TDM_FAIL(err, TDM_E_INPUT, "the picture '%s' is larger than %lld bytes", path,
                              (long long)LARGEST_FILE_BYTES);
            break;
        }
        tdmi_text_add(bytes, chunk, (size_t)got);
        if (bytes->is_broken) {
            status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the picture '%s'", path);
            break;
        }
    }
    close(fd);
    return status;
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
};

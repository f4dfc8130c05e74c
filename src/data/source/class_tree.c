/*
 * Entries sorted so that what lies in a folder follows it, then one pass for the classes and one
 * for the pictures of each container: the root, or the folders of the parts.
 */
#include "data/source/class_tree.h"

#include "base/memory.h"
#include "tandem/log.h"
#include <stdlib.h>
#include <string.h>

enum { SNIFF_BYTES = 64, LONGEST_ENDING = 5 };

/* ---- collecting ------------------------------------------------------------------------------ */

void tdmi_tree_init(struct tdmi_tree *tree, const char *root)
{
    *tree = (struct tdmi_tree){.root = root};
    tdmi_arena_init(&tree->arena, 0);
}

void tdmi_tree_release(struct tdmi_tree *tree)
{
    tdmi_free(tree->entries);
    tdmi_arena_release(&tree->arena);
    *tree = (struct tdmi_tree){0};
}

bool tdmi_tree_is_hidden(const char *name)
{
    return name[0] == '.' || name[0] == '_';
}

static tdm_status no_memory(const struct tdmi_tree *tree, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list more than %lld names of '%s'",
                    (long long)tree->n_entries, tree->root);
}

/* Drops empty names, "." and "..", which lead nowhere here: names are only names. False: the path
 * is hidden, or nothing is left of it. */
static bool clean(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        size_t length = strcspn(from, "/");
        bool is_dots = length <= 2 && strspn(from, ".") >= length;
        if (!is_dots && tdmi_tree_is_hidden(from))
            return false;
        if (!is_dots) {
            if (to != path)
                *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from += length + (from[length] == '/');
    }
    *to = '\0';
    return to != path;
}

tdm_status tdmi_tree_add(struct tdmi_tree *tree, const char *path, enum tdmi_file_kind kind,
                         int64_t place, tdm_error *err)
{
    if (!TDMI_GROW(tree->entries, tree->capacity, tree->n_entries))
        return no_memory(tree, err);
    char *copy = tdmi_arena_copy(&tree->arena, path);
    if (copy == NULL)
        return no_memory(tree, err);
    if (clean(copy))
        tree->entries[tree->n_entries++] = (struct tdmi_tree_entry){copy, kind, place};
    return TDM_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* Names of one folder by bytes, and what lies in a folder right after it: a slash counts less than
 * any byte of a name. */
static int compare_paths(const char *a, const char *b)
{
    while (*a == *b && *a != '\0')
        a++, b++;
    int left = *a == '/' ? 1 : *a == '\0' ? 0 : (uint8_t)*a + 1;
    int right = *b == '/' ? 1 : *b == '\0' ? 0 : (uint8_t)*b + 1;
    return left - right;
}

static int compare_entries(const void *left, const void *right)
{
    const struct tdmi_tree_entry *a = left, *b = right;
    int order = compare_paths(a->path, b->path);
    return order != 0 ? order : a->place < b->place ? -1 : a->place > b->place;
}

static bool is_below(const char *path, const char *folder, size_t folder_bytes)
{
    return strncmp(path, folder, folder_bytes) == 0 &&
           (folder_bytes == 0 || path[folder_bytes] == '/');
}

/* The path after folder and its slash. */
static const char *rest_of(const char *path, size_t folder_bytes)
{
    return path + folder_bytes + (folder_bytes > 0);
}

/* Of equal paths the last stays: it is what unpacking would leave. */
static void drop_copies(struct tdmi_tree *tree)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->n_entries; i++) {
        if (kept > 0 && strcmp(tree->entries[kept - 1].path, tree->entries[i].path) == 0)
            kept--;
        tree->entries[kept++] = tree->entries[i];
    }
    tree->n_entries = kept;
}

/* The folder of a run.json takes everything in it along; the root itself stays. */
static void drop_runs(struct tdmi_tree *tree)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->n_entries; i++) {
        const char *path = tree->entries[i].path, *name = tdmi_path_name(path);
        tree->entries[kept++] = tree->entries[i];
        if (strcmp(name, "run.json") != 0 || name == path ||
            tree->entries[i].kind != TDMI_FILE_REGULAR)
            continue;
        size_t folder_bytes = (size_t)(name - path) - 1;
        while (kept > 0 && (is_below(tree->entries[kept - 1].path, path, folder_bytes) ||
                            (strlen(tree->entries[kept - 1].path) == folder_bytes &&
                             memcmp(tree->entries[kept - 1].path, path, folder_bytes) == 0)))
            kept--;
        while (i + 1 < tree->n_entries && is_below(tree->entries[i + 1].path, path, folder_bytes))
            i++;
        tdm_log(TDM_LOG_INFO, "'%.*s' of '%s' is the folder of a run and is passed over",
                (int)folder_bytes, path, tree->root);
    }
    tree->n_entries = kept;
}

static void sort_entries(struct tdmi_tree *tree)
{
    if (tree->n_entries == 0)
        return;
    qsort(tree->entries, (size_t)tree->n_entries, sizeof *tree->entries, compare_entries);
    drop_copies(tree);
    drop_runs(tree);
}

/* ---- what is a picture ------------------------------------------------------------------------
 */

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

/* A dangling link named like a picture counts, and so does one that may not be followed: reading it
 * will say what is wrong, where leaving it out would hide it. */
static bool is_picture(const struct tdmi_tree *tree, const struct tdmi_tree_entry *entry)
{
    uint8_t bytes[SNIFF_BYTES];
    if (entry->kind != TDMI_FILE_REGULAR && entry->kind != TDMI_FILE_MISSING &&
        entry->kind != TDMI_FILE_FORBIDDEN)
        return false;
    if (tdmi_image_has_extension(entry->path))
        return true;
    if (entry->kind != TDMI_FILE_REGULAR || has_ending(tdmi_path_name(entry->path)))
        return false;
    size_t length = tree->peek(tree->self, entry, bytes, sizeof bytes);
    return length > 0 && tdmi_image_sniff(bytes, length) != TDMI_IMAGE_UNKNOWN;
}

/* ---- the rules --------------------------------------------------------------------------------
 */

/* A folder whose sub-folders are the classes: entries [first, end) lie below it. */
struct container {
    const char *path; /* of the first entry; its first path_bytes name the container */
    size_t path_bytes;
    enum tdmi_part part;
    int64_t first, end;
};

struct sorting {
    const struct tdmi_tree *tree;
    struct tdmi_listing *listing;
    int64_t *places, places_capacity; /* NULL: not wanted */
    bool has_places;
    int64_t n_homeless; /* pictures beside class folders: of no class, left out */
};

static tdm_status add_picture(struct sorting *sorting, const struct tdmi_tree_entry *entry,
                              size_t top_bytes, int label, enum tdmi_part part, tdm_error *err)
{
    struct tdmi_listing *listing = sorting->listing;
    if (!TDMI_GROW(sorting->places, sorting->places_capacity,
                   sorting->has_places && listing->n_items))
        return no_memory(sorting->tree, err);
    if (sorting->has_places)
        sorting->places[listing->n_items] = entry->place;
    return tdmi_listing_add_item(listing, rest_of(entry->path, top_bytes), label, part, err);
}

/* The folder that stands first below a container: its name up to the slash; 0: a file. */
static size_t folder_bytes_of(const struct tdmi_tree_entry *entry, size_t container_bytes)
{
    const char *rest = rest_of(entry->path, container_bytes);
    size_t length = strcspn(rest, "/");
    return rest[length] == '/' || entry->kind == TDMI_FILE_FOLDER ? length : 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int class_named(const struct tdmi_listing *listing, const char *name)
{
    const char **found = bsearch(&name, listing->classes, (size_t)listing->n_classes,
                                 sizeof *listing->classes, compare_names);
    return (int)(found - listing->classes);
}

/* name[0 .. length) as a string of its own. */
static const char *copy_name(struct tdmi_listing *listing, const char *name, size_t length)
{
    return tdmi_arena_printf(&listing->arena, "%.*s", (int)length, name);
}

static tdm_status add_classes_of(struct sorting *sorting, const struct container *container,
                                 tdm_error *err)
{
    const char *last = "";
    size_t last_bytes = 0;
    for (int64_t i = container->first; i < container->end; i++) {
        const struct tdmi_tree_entry *entry = &sorting->tree->entries[i];
        const char *name = rest_of(entry->path, container->path_bytes);
        size_t length = folder_bytes_of(entry, container->path_bytes);
        if (length == 0 || (length == last_bytes && memcmp(name, last, length) == 0))
            continue;
        last = name;
        last_bytes = length;
        const char *copy = copy_name(sorting->listing, name, length);
        if (copy == NULL)
            return no_memory(sorting->tree, err);
        TDM_TRY(tdmi_listing_add_class(sorting->listing, copy, err), err,
                "cannot list the classes of '%s'", sorting->tree->root);
    }
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

/* The pictures in the class folders of a container. */
static tdm_status add_labelled(struct sorting *sorting, const struct container *container,
                               size_t top_bytes, tdm_error *err)
{
    struct tdmi_listing *listing = sorting->listing;
    char *name = NULL;
    int label = -1;
    for (int64_t i = container->first; i < container->end; i++) {
        const struct tdmi_tree_entry *entry = &sorting->tree->entries[i];
        size_t length = folder_bytes_of(entry, container->path_bytes);
        if (length == 0 || entry->kind == TDMI_FILE_FOLDER)
            continue;
        const char *rest = rest_of(entry->path, container->path_bytes);
        if (label < 0 || strncmp(listing->classes[label], rest, length) != 0 ||
            listing->classes[label][length] != '\0') {
            name = tdmi_arena_printf(&listing->arena, "%.*s", (int)length, rest);
            if (name == NULL)
                return no_memory(sorting->tree, err);
            label = class_named(listing, name);
        }
        if (is_picture(sorting->tree, entry))
            TDM_TRY(add_picture(sorting, entry, top_bytes, label, container->part, err), err,
                    "cannot list the pictures of '%s'", sorting->tree->root);
        else
            listing->n_ignored++;
    }
    return TDM_OK;
}

/* The pictures that lie directly in a container: they are unlabelled where no class folder holds
 * any, and of no class where one does. */
static tdm_status add_direct(struct sorting *sorting, const struct container *container,
                             size_t top_bytes, bool is_flat, tdm_error *err)
{
    for (int64_t i = container->first; i < container->end; i++) {
        const struct tdmi_tree_entry *entry = &sorting->tree->entries[i];
        if (folder_bytes_of(entry, container->path_bytes) > 0)
            continue;
        bool is_wanted = is_picture(sorting->tree, entry);
        if (is_wanted && is_flat)
            TDM_TRY(add_picture(sorting, entry, top_bytes, -1, container->part, err), err,
                    "cannot list the pictures of '%s'", sorting->tree->root);
        else
            sorting->listing->n_ignored++;
        if (is_wanted && !is_flat)
            sorting->n_homeless++;
    }
    return TDM_OK;
}

/* The next folder directly below container, as a container of its own; false: no more. *at runs
 * over the entries of the container. */
static bool next_folder(const struct tdmi_tree *tree, const struct container *container,
                        int64_t *at, struct container *folder)
{
    for (; *at < container->end; (*at)++) {
        const struct tdmi_tree_entry *entry = &tree->entries[*at];
        size_t length = folder_bytes_of(entry, container->path_bytes);
        if (length == 0)
            continue;
        size_t path_bytes = (size_t)(rest_of(entry->path, container->path_bytes) - entry->path);
        *folder = (struct container){.path = entry->path,
                                     .path_bytes = path_bytes + length,
                                     .first = *at,
                                     .part = container->part};
        if (strlen(entry->path) == folder->path_bytes)
            folder->first++; /* the folder itself */
        while (*at < container->end &&
               ((strlen(tree->entries[*at].path) == folder->path_bytes &&
                 memcmp(tree->entries[*at].path, folder->path, folder->path_bytes) == 0) ||
                is_below(tree->entries[*at].path, folder->path, folder->path_bytes)))
            (*at)++;
        folder->end = *at;
        return true;
    }
    return false;
}

/* The part a folder's name says. */
static enum tdmi_part part_of(const struct container *folder, size_t container_bytes)
{
    char name[16] = "";
    const char *rest = rest_of(folder->path, container_bytes);
    size_t length = folder->path_bytes - (size_t)(rest - folder->path);
    if (length >= sizeof name)
        return TDMI_PART_NONE;
    memcpy(name, rest, length);
    return tdmi_part_named(name);
}

/* Folders around everything: as long as one folder alone, of no part's name, holds all pictures,
 * and has folders with pictures in it, it is the top. */
static void descend(const struct tdmi_tree *tree, struct container *top)
{
    for (;;) {
        struct container folder = {0}, only = {0};
        int n_folders = 0;
        for (int64_t at = top->first; next_folder(tree, top, &at, &folder); n_folders++)
            only = folder;
        if (n_folders != 1 || part_of(&only, top->path_bytes) != TDMI_PART_NONE)
            return;
        bool has_direct = false, has_deep = false;
        for (int64_t i = top->first; i < top->end && !has_direct; i++)
            has_direct = folder_bytes_of(&tree->entries[i], top->path_bytes) == 0 &&
                         is_picture(tree, &tree->entries[i]);
        for (int64_t i = only.first; i < only.end && !has_deep; i++)
            has_deep = tree->entries[i].kind != TDMI_FILE_FOLDER &&
                       folder_bytes_of(&tree->entries[i], only.path_bytes) > 0 &&
                       is_picture(tree, &tree->entries[i]);
        if (has_direct || !has_deep)
            return;
        *top = only;
    }
}

/* The containers that hold classes: the top itself, or the folders of its parts, when every folder
 * bears the name of one. A part that stands alone says nothing about the others, so its pictures
 * are still to be split. */
static tdm_status find_containers(struct sorting *sorting, const struct container *top,
                                  struct container **containers, int *n_containers, bool *is_parted,
                                  tdm_error *err)
{
    struct container folder = {0};
    int n_folders = 0;
    *is_parted = false;
    for (int64_t at = top->first; next_folder(sorting->tree, top, &at, &folder); n_folders++) {
        if (part_of(&folder, top->path_bytes) == TDMI_PART_NONE) {
            *is_parted = false;
            break;
        }
        *is_parted = true;
    }
    *n_containers = *is_parted ? n_folders : 1;
    *containers =
        tdmi_arena_alloc(&sorting->listing->arena, (size_t)*n_containers, sizeof **containers);
    if (*containers == NULL)
        return no_memory(sorting->tree, err);
    if (!*is_parted) {
        (*containers)[0] = *top;
        return TDM_OK;
    }
    int n = 0;
    for (int64_t at = top->first; next_folder(sorting->tree, top, &at, &folder);) {
        if (n_folders > 1)
            folder.part = part_of(&folder, top->path_bytes);
        (*containers)[n++] = folder;
    }
    return TDM_OK;
}

static tdm_status sort_pictures(struct sorting *sorting, const struct container *top,
                                tdm_error *err)
{
    struct tdmi_listing *listing = sorting->listing;
    struct container *containers = NULL;
    int n_containers = 0;
    bool is_parted = false, has_label = false;
    TDM_TRY(find_containers(sorting, top, &containers, &n_containers, &is_parted, err), err,
            "cannot list '%s'", sorting->tree->root);
    for (int i = 0; i < n_containers; i++)
        TDM_TRY(add_classes_of(sorting, &containers[i], err), err, "cannot list '%s'",
                sorting->tree->root);
    sort_classes(listing);
    for (int i = 0; i < n_containers; i++) {
        int64_t n_before = listing->n_items;
        TDM_TRY(add_labelled(sorting, &containers[i], top->path_bytes, err), err,
                "cannot list '%s'", sorting->tree->root);
        bool is_flat = listing->n_items == n_before;
        has_label = has_label || !is_flat;
        TDM_TRY(add_direct(sorting, &containers[i], top->path_bytes, is_flat, err), err,
                "cannot list '%s'", sorting->tree->root);
    }
    if (!has_label)
        listing->n_classes = 0;
    listing->n_ignored += sorting->tree->n_left_out;
    /* What lies beside the folders of parts, or of the top. */
    if (is_parted)
        TDM_TRY(add_direct(sorting, top, top->path_bytes, false, err), err, "cannot list '%s'",
                sorting->tree->root);
    for (int64_t i = 0; i < sorting->tree->n_entries; i++)
        listing->n_ignored +=
            (i < top->first || i >= top->end) && sorting->tree->entries[i].kind != TDMI_FILE_FOLDER;
    if (sorting->n_homeless > 0)
        tdm_log(TDM_LOG_WARNING,
                "%lld pictures of '%s' lie beside the class folders, not in one, and are left out",
                (long long)sorting->n_homeless, sorting->tree->root);
    return TDM_OK;
}

tdm_status tdmi_tree_classes(struct tdmi_tree *tree, struct tdmi_listing *listing, int64_t **places,
                             tdm_error *err)
{
    struct sorting sorting = {.tree = tree, .listing = listing, .has_places = places != NULL};
    sort_entries(tree);
    struct container top = {.path = "", .end = tree->n_entries};
    if (tree->skips_top)
        descend(tree, &top);
    tdm_status status = sort_pictures(&sorting, &top, err);
    if (status == TDM_OK && places != NULL) {
        *places = tdmi_arena_alloc(&listing->arena, (size_t)listing->n_items, sizeof **places);
        if (*places == NULL)
            status = no_memory(tree, err);
        else if (listing->n_items > 0)
            memcpy(*places, sorting.places, (size_t)listing->n_items * sizeof **places);
    }
    tdmi_free(sorting.places);
    return status;
}

tdm_status tdmi_tree_pictures(struct tdmi_tree *tree, struct tdmi_listing *listing, tdm_error *err)
{
    sort_entries(tree);
    listing->n_ignored += tree->n_left_out;
    for (int64_t i = 0; i < tree->n_entries; i++) {
        if (tree->entries[i].kind == TDMI_FILE_FOLDER)
            continue;
        if (!is_picture(tree, &tree->entries[i]))
            listing->n_ignored++;
        else
            TDM_TRY(tdmi_listing_add_item(listing, tree->entries[i].path, -1, TDMI_PART_NONE, err),
                    err, "cannot list the pictures of '%s'", tree->root);
    }
    return TDM_OK;
}

/*
 * Entries are sorted so that the content of a folder follows it; then one pass lists the classes
 * and one the images of each container: the root, or the folders of the parts.
 */
#include "data/source/class_tree.h"

#include "tandem/log.h"
#include <stdlib.h>

enum { SNIFF_BYTES = 64, LONGEST_ENDING = 5 };

/* ---- collecting ------------------------------------------------------------------------------ */

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

/* Drop empty names, "." and ".." from a path. False: the path is hidden, or nothing is left. */
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
    char *copy = tdmi_arena_copy(&tree->arena, path);
    TDMI_CHECK_MEMORY(copy, err);
    TDMI_TRY(TDMI_MAKE_ROOM(tree->entries, tree->capacity, tree->n_entries, err));
    if (clean(copy))
        tree->entries[tree->n_entries++] = (struct tdmi_tree_entry){copy, kind, place};
    return TDM_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* Order the names of one folder by bytes and put a folder's content right after it: a slash sorts
 * before any byte of a name. */
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

/* Is it the folder, or below it? */
static bool is_in(const char *path, const char *folder, size_t folder_bytes)
{
    return strncmp(path, folder, folder_bytes) == 0 &&
           (folder_bytes == 0 || path[folder_bytes] == '/' || path[folder_bytes] == '\0');
}

/* The path after folder and its slash. */
static const char *rest_of(const char *path, size_t folder_bytes)
{
    return path + folder_bytes + (folder_bytes > 0);
}

/* Keep the last of equal paths: unpacking would leave that one. */
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

/* Is an entry a folder above path, with nothing in it from the entry next on? */
static bool holds_nothing_else(const struct tdmi_tree *tree, int64_t folder, int64_t next,
                               const char *path)
{
    const struct tdmi_tree_entry *entry = &tree->entries[folder];
    const size_t path_bytes = strlen(entry->path);
    return entry->kind == TDMI_FILE_FOLDER && is_in(path, entry->path, path_bytes) &&
           (next == tree->n_entries || !is_in(tree->entries[next].path, entry->path, path_bytes));
}

/* Drop every folder that holds a run.json, with its content, and every folder that holds only such
 * folders; the root itself stays. */
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
        while (kept > 0 && is_in(tree->entries[kept - 1].path, path, folder_bytes))
            kept--;
        while (i + 1 < tree->n_entries && is_in(tree->entries[i + 1].path, path, folder_bytes))
            i++;
        while (kept > 0 && holds_nothing_else(tree, kept - 1, i + 1, path))
            kept--;
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

/* ---- images ---------------------------------------------------------------------------------- */

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

/* A dangling link named like an image counts, and so does one that may not be followed: reading it
 * reports the reason, which leaving it out would hide. */
static bool is_image(const struct tdmi_tree *tree, const struct tdmi_tree_entry *entry)
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

/* Count the files of kinds that no build reads, and say so. */
static void count_unread(const struct tdmi_tree *tree, struct tdmi_listing *listing)
{
    int64_t n = 0;
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    for (int64_t i = 0; i < tree->n_entries; i++) {
        const enum tdmi_image_unread kind = tdmi_image_unread_of_name(tree->entries[i].path);
        if (tree->entries[i].kind == TDMI_FILE_REGULAR && kind < TDMI_UNREAD_KINDS)
            listing->n_unread[kind]++;
    }
    for (int kind = 0; kind < TDMI_UNREAD_KINDS; kind++) {
        if (listing->n_unread[kind] > 0)
            tdmi_text_printf(&text, "%s%s (%lld)", n > 0 ? ", " : "",
                             tdmi_image_unread_words((enum tdmi_image_unread)kind),
                             (long long)listing->n_unread[kind]);
        n += listing->n_unread[kind];
    }
    if (n > 0)
        tdm_log(TDM_LOG_WARNING,
                "left out of '%s': %s, which tandem does not read; convert them to TIFF, PNG or "
                "JPEG",
                tree->root, tdmi_text_string(&text));
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
    struct container top; /* its path is left out of the items' paths */
    int n_parts;          /* folders in the top, when each is named after a part; else 0 */
    int64_t n_unclassed;  /* images beside class folders, which are left out */
};

static tdm_status add_image(struct sorting *sorting, const struct tdmi_tree_entry *entry, int label,
                            enum tdmi_part part, tdm_error *err)
{
    const struct tdmi_item item = {rest_of(entry->path, sorting->top.path_bytes), label, part,
                                   entry->place};
    return tdmi_listing_add_item(sorting->listing, item, err);
}

/* Length of the name of the first folder below a container; 0: the entry is a file in it. */
static size_t folder_bytes_of(const struct tdmi_tree_entry *entry, size_t container_bytes)
{
    const char *rest = rest_of(entry->path, container_bytes);
    size_t length = strcspn(rest, "/");
    return rest[length] == '/' || entry->kind == TDMI_FILE_FOLDER ? length : 0;
}

static int class_named(const struct tdmi_listing *listing, const char *name)
{
    const char **found = bsearch(&name, listing->classes, (size_t)listing->n_classes,
                                 sizeof *listing->classes, tdmi_compare_names);
    return (int)(found - listing->classes);
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
               is_in(tree->entries[*at].path, folder->path, folder->path_bytes))
            (*at)++;
        folder->end = *at;
        return true;
    }
    return false;
}

/* The name of a class folder of a container, in the listing's arena. */
static const char *class_name(struct sorting *sorting, const struct container *container,
                              const struct container *folder)
{
    const char *name = rest_of(folder->path, container->path_bytes);
    return tdmi_arena_printf(&sorting->listing->arena, "%.*s",
                             (int)(folder->path + folder->path_bytes - name), name);
}

static tdm_status add_classes_of(struct sorting *sorting, const struct container *container,
                                 tdm_error *err)
{
    struct container folder;
    for (int64_t at = container->first; next_folder(sorting->tree, container, &at, &folder);) {
        const char *name = class_name(sorting, container, &folder);
        TDMI_CHECK_MEMORY(name, err);
        TDMI_TRY(tdmi_listing_add_class(sorting->listing, name, err));
    }
    return TDM_OK;
}

static void sort_classes(struct tdmi_listing *listing)
{
    if (listing->n_classes == 0)
        return;
    qsort(listing->classes, (size_t)listing->n_classes, sizeof *listing->classes,
          tdmi_compare_names);
    int kept = 1;
    for (int i = 1; i < listing->n_classes; i++)
        if (strcmp(listing->classes[i], listing->classes[kept - 1]) != 0)
            listing->classes[kept++] = listing->classes[i];
    listing->n_classes = kept;
}

/* List the images in the class folders of a container. */
static tdm_status add_labelled(struct sorting *sorting, const struct container *container,
                               tdm_error *err)
{
    struct container folder;
    for (int64_t at = container->first; next_folder(sorting->tree, container, &at, &folder);) {
        const char *name = class_name(sorting, container, &folder);
        TDMI_CHECK_MEMORY(name, err);
        const int label = class_named(sorting->listing, name);
        for (int64_t i = folder.first; i < folder.end; i++) {
            const struct tdmi_tree_entry *entry = &sorting->tree->entries[i];
            if (is_image(sorting->tree, entry))
                TDMI_TRY(add_image(sorting, entry, label, container->part, err));
            else
                sorting->listing->n_ignored += entry->kind != TDMI_FILE_FOLDER;
        }
    }
    return TDM_OK;
}

/* The images directly in a container: unlabelled where no class folder holds any (is_flat), left
 * out where one does. */
static tdm_status add_direct(struct sorting *sorting, const struct container *container,
                             bool is_flat, tdm_error *err)
{
    for (int64_t i = container->first; i < container->end; i++) {
        const struct tdmi_tree_entry *entry = &sorting->tree->entries[i];
        if (folder_bytes_of(entry, container->path_bytes) > 0)
            continue;
        const bool is_one = is_image(sorting->tree, entry), is_listed = is_one && is_flat;
        if (is_listed)
            TDMI_TRY(add_image(sorting, entry, -1, container->part, err));
        sorting->listing->n_ignored += !is_listed;
        sorting->n_unclassed += is_one && !is_flat;
    }
    return TDM_OK;
}

/* The part that a folder is named after. */
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

/* Folders around everything: as long as one folder alone, of no part's name, holds all images, and
 * has folders with images in it, it is the top. */
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
                         is_image(tree, &tree->entries[i]);
        for (int64_t i = only.first; i < only.end && !has_deep; i++)
            has_deep = tree->entries[i].kind != TDMI_FILE_FOLDER &&
                       folder_bytes_of(&tree->entries[i], only.path_bytes) > 0 &&
                       is_image(tree, &tree->entries[i]);
        if (has_direct || !has_deep)
            return;
        *top = only;
    }
}

static int count_parts(const struct tdmi_tree *tree, const struct container *top)
{
    struct container folder = {0};
    int n_parts = 0;
    for (int64_t at = top->first; next_folder(tree, top, &at, &folder); n_parts++)
        if (part_of(&folder, top->path_bytes) == TDMI_PART_NONE)
            return 0;
    return n_parts;
}

/* The next container of classes: the top itself, or a folder of a part. False: no more. The images
 * of a part that stands alone are still to be split. */
static bool next_container(const struct sorting *sorting, int64_t *at, struct container *container)
{
    const struct container *top = &sorting->top;
    const bool is_more = *at < top->end;
    if (sorting->n_parts == 0) {
        *container = *top;
        *at = top->end;
        return is_more;
    }
    if (!next_folder(sorting->tree, top, at, container))
        return false;
    if (sorting->n_parts > 1)
        container->part = part_of(container, top->path_bytes);
    return true;
}

static tdm_status sort_images(struct sorting *sorting, tdm_error *err)
{
    struct tdmi_listing *listing = sorting->listing;
    const struct tdmi_tree *tree = sorting->tree;
    const struct container *top = &sorting->top;
    struct container container = {0};
    bool has_label = false;
    for (int64_t at = top->first; next_container(sorting, &at, &container);)
        TDMI_TRY(add_classes_of(sorting, &container, err));
    sort_classes(listing);
    for (int64_t at = top->first; next_container(sorting, &at, &container);) {
        int64_t n_before = listing->n_items;
        TDMI_TRY(add_labelled(sorting, &container, err));
        bool is_flat = listing->n_items == n_before;
        has_label = has_label || !is_flat;
        TDMI_TRY(add_direct(sorting, &container, is_flat, err));
    }
    if (!has_label)
        listing->n_classes = 0;
    listing->n_ignored += tree->n_left_out;
    /* Files beside the folders of parts, or outside the top. */
    if (sorting->n_parts > 0)
        TDMI_TRY(add_direct(sorting, top, false, err));
    for (int64_t i = 0; i < tree->n_entries; i++)
        listing->n_ignored +=
            (i < top->first || i >= top->end) && tree->entries[i].kind != TDMI_FILE_FOLDER;
    if (sorting->n_unclassed > 0)
        tdm_log(TDM_LOG_WARNING,
                "left out of '%s': %lld image%s beside the class folders, not in one", tree->root,
                (long long)sorting->n_unclassed, sorting->n_unclassed == 1 ? "" : "s");
    return TDM_OK;
}

tdm_status tdmi_tree_classes(struct tdmi_tree *tree, struct tdmi_listing *listing, tdm_error *err)
{
    struct sorting sorting = {.tree = tree, .listing = listing};
    sort_entries(tree);
    count_unread(tree, listing);
    sorting.top = (struct container){.path = "", .end = tree->n_entries};
    if (tree->skips_top)
        descend(tree, &sorting.top);
    sorting.n_parts = count_parts(tree, &sorting.top);
    return TDM_WRAP(err, sort_images(&sorting, err), "cannot list '%s'", tree->root);
}

tdm_status tdmi_tree_pictures(struct tdmi_tree *tree, struct tdmi_listing *listing, tdm_error *err)
{
    sort_entries(tree);
    count_unread(tree, listing);
    listing->n_ignored += tree->n_left_out;
    for (int64_t i = 0; i < tree->n_entries; i++) {
        const struct tdmi_item item = {.path = tree->entries[i].path, .label = -1};
        if (is_image(tree, &tree->entries[i]))
            TDM_TRY(tdmi_listing_add_item(listing, item, err), err,
                    "cannot list the images of '%s'", tree->root);
        else
            listing->n_ignored += tree->entries[i].kind != TDMI_FILE_FOLDER;
    }
    return TDM_OK;
}

/*
 * The walk over folders in storage: names are read once, in byte order, so equal trees give equal
 * listings everywhere.
 */
#include "data/source/class_tree.h"

#include "io/storage/storage.h"
#include "tandem/log.h"

enum { WARNINGS = 5, SHOWN_BEGIN = 80, SHOWN_END = 60 };

/* A folder above the one being read, or that one. */
struct ancestor {
    const struct ancestor *above;
    uint64_t identity[2];
};

static bool is_loop(const struct ancestor *above, const struct tdmi_place *found)
{
    bool has_identity = found->identity[0] != 0 || found->identity[1] != 0;
    for (; has_identity && above != NULL; above = above->above)
        if (above->identity[0] == found->identity[0] && above->identity[1] == found->identity[1])
            return true;
    return false;
}

/* The path of an entry in storage, of tdmi_text. */
static const char *full_path(const struct tdmi_tree *tree, const char *path, tdmi_text *text)
{
    size_t length = strlen(tree->root);
    bool has_slash = path[0] == '\0' || (length > 0 && tree->root[length - 1] == '/');
    tdmi_text_clear(text);
    tdmi_text_printf(text, "%s%s%s", tree->root, has_slash ? "" : "/", path);
    return text->is_broken ? NULL : text->bytes;
}

static size_t peek(void *self, const struct tdmi_tree_entry *entry, uint8_t *bytes,
                   size_t room_bytes)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text path = {0};
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *file = NULL;
    if (full_path(self, entry->path, &path) == NULL ||
        tdmi_storage_open(path.bytes, &file, NULL) != TDM_OK)
        return 0;
    int64_t size = tdmi_storage_size(file);
    size_t length = size < (int64_t)room_bytes ? (size_t)size : room_bytes;
    return tdmi_storage_read(file, 0, bytes, length, NULL) == TDM_OK ? length : 0;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Counts a path that is left out, and names the first few by beginning and end. */
static void leave_out(struct tdmi_tree *tree, const char *path, const char *why)
{
    size_t length = strlen(path), begin = length, end = length;
    if (tree->n_left_out++ >= WARNINGS)
        return;
    if (length > SHOWN_BEGIN + SHOWN_END) {
        begin = SHOWN_BEGIN;
        end = length - SHOWN_END;
    }
    while (begin < length && is_inside_character(path[begin]))
        begin--;
    while (is_inside_character(path[end]))
        end++;
    tdm_log(TDM_LOG_WARNING, "left out of '%s': '%.*s%s%s': %s", tree->root, (int)begin, path,
            begin < length ? "…" : "", path + end, why);
}

static tdm_status walk(struct tdmi_tree *tree, const char *path, const struct ancestor *above,
                       bool *is_circle, tdm_error *err);

/* Adds an entry of the folder full and what lies below it. *is_circle: it is a link in a circle, or
 * a folder of nothing else, and was not added. */
static tdm_status walk_entry(struct tdmi_tree *tree, const char *full, const char *below,
                             const struct tdmi_place_entry *entry, const struct ancestor *here,
                             bool *is_circle, tdm_error *err)
{
    *is_circle = entry->is_loop;
    if (entry->is_loop) {
        leave_out(tree, below, "it is a link that leads in a circle");
        return TDM_OK;
    }
    if (strlen(full) + 1 + strlen(entry->name) >= TDMI_PATH_BYTES) {
        leave_out(tree, below, "its path is longer than the 4095 bytes that the system takes");
        return TDM_OK;
    }
    if (entry->kind == TDMI_FILE_FOLDER) {
        TDMI_TRY(walk(tree, below, here, is_circle, err));
        if (*is_circle)
            return TDM_OK;
    }
    return TDM_WRAP(err, tdmi_tree_add(tree, below, entry->kind, entry->size_bytes, err),
                    "cannot list the folder '%s'", full);
}

static tdm_status walk(struct tdmi_tree *tree, const char *path, const struct ancestor *above,
                       bool *is_circle, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text full = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place found = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0, n_circles = 0, n_others = 0;
    TDMI_CHECK_MEMORY(full_path(tree, path, &full), err);
    TDMI_TRY(tdmi_storage_look(full.bytes, &found, err));
    if (is_loop(above, &found)) {
        leave_out(tree, path, "it is a link that leads back to a folder it lies in");
        *is_circle = true;
        return TDM_OK;
    }
    struct ancestor here = {.above = above, .identity = {found.identity[0], found.identity[1]}};
    TDM_TRY(tdmi_storage_list(full.bytes, false, &arena, &entries, &n_entries, err), err,
            "cannot list the folder '%s' of the data set", full.bytes);
    for (size_t i = 0; i < n_entries; i++) {
        if (tdmi_tree_is_hidden(entries[i].name))
            continue;
        const char *below = tdmi_path_join(&arena, path, entries[i].name);
        TDMI_CHECK_MEMORY(below, err);
        bool is_left_out = false;
        TDMI_TRY(walk_entry(tree, full.bytes, below, &entries[i], &here, &is_left_out, err));
        n_circles += is_left_out;
        n_others += !is_left_out;
    }
    *is_circle = n_circles > 0 && n_others == 0;
    return TDM_OK;
}

tdm_status tdmi_tree_walk(struct tdmi_tree *tree, tdm_error *err)
{
    tree->peek = peek;
    tree->self = tree;
    bool is_circle = false;
    tdm_status status = walk(tree, "", NULL, &is_circle, err);
    if (tree->n_left_out > WARNINGS)
        tdm_log(TDM_LOG_WARNING, "and %lld more of '%s' are left out",
                (long long)(tree->n_left_out - WARNINGS), tree->root);
    return status;
}

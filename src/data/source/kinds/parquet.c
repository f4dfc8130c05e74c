/*
 * Parquet files as a data set: one file, or a folder of them at any depth. Folders called key=value
 * are columns, as Hive and Spark write them. Without a column `split`, names that begin with train,
 * test and validation say the part, as data sets of Hugging Face do.
 */
#include "data/parquet/member.h"
#include "data/parquet/columns.h"
#include "data/source/class_tree.h"
#include "image/image.h"
#include "io/storage/storage.h"
#include "tandem/log.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum { LARGEST_DEPTH = 8, VALUES_AT_MOST = LARGEST_DEPTH + 1 };

struct found {
    tdmi_arena arena;
    struct tdmi_parquet_member *members;
    int64_t n_members, capacity, n_ignored;
};

static void found_release(struct found *found)
{
    tdmi_free(found->members);
    tdmi_arena_release(&found->arena);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_parquet_name(const char *name)
{
    static const char *const endings[] = {".parquet", ".parq", ".pq", NULL};
    return tdmi_has_ending(name, endings);
}

/* The part that a file's name begins with; NULL: none. */
static const char *split_of_name(const char *name)
{
    static const char *const parts[] = {"train", "test", "validation", "valid", "val"};
    name = tdmi_path_name(name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t n = strlen(parts[i]);
        if (strncasecmp(name, parts[i], n) == 0 && strchr("-_.0123456789", name[n]) != NULL)
            return parts[i];
    }
    return NULL;
}

/* ---- probing ----------------------------------------------------------------------------- */

enum answer { NOTHING_KNOWN, NO, YES };

/* The first file with a known name decides, so that a large folder of images is not walked to its
 * end. */
static enum answer probe(const char *folder, int depth)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    enum answer answer = NOTHING_KNOWN;
    if (depth <= LARGEST_DEPTH &&
        tdmi_storage_list(folder, false, &arena, &entries, &n, NULL) != TDM_OK)
        n = 0;
    for (size_t i = 0; i < n && answer == NOTHING_KNOWN; i++)
        if (entries[i].kind == TDMI_FILE_REGULAR && !tdmi_tree_is_hidden(entries[i].name))
            answer = is_parquet_name(entries[i].name)            ? YES
                     : tdmi_image_has_extension(entries[i].name) ? NO
                                                                 : NOTHING_KNOWN;
    for (size_t i = 0; i < n && answer == NOTHING_KNOWN; i++) {
        const char *below =
            entries[i].kind == TDMI_FILE_FOLDER && !tdmi_tree_is_hidden(entries[i].name)
                ? tdmi_path_join(&arena, folder, entries[i].name)
                : NULL;
        if (below != NULL)
            answer = probe(below, depth + 1);
    }
    return answer;
}

/* The name of a file in a store ends before the query. */
static int name_bytes(const char *path)
{
    return (int)(tdmi_storage_is_uri(path) ? strcspn(path, "?") : strlen(path));
}

static bool is_parquet_path(const char *path)
{
    char name[TDMI_PATH_BYTES];
    snprintf(name, sizeof name, "%.*s", name_bytes(path), path);
    return is_parquet_name(name);
}

static bool begins_as_parquet(const char *path)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *file = NULL;
    char magic[4] = {0};
    return tdmi_storage_open(path, &file, NULL) == TDM_OK && tdmi_storage_size(file) >= 12 &&
           tdmi_storage_read(file, 0, magic, sizeof magic, NULL) == TDM_OK &&
           memcmp(magic, "PAR1", 4) == 0;
}

static bool parquet_can_open(const char *path)
{
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_FOLDER)
        return probe(path, 0) == YES;
    return kind == TDMI_FILE_REGULAR && (is_parquet_path(path) || begins_as_parquet(path));
}

/* ---- finding the files ------------------------------------------------------------------- */

/* The value after key= in a folder's name, with escapes such as %20 undone. */
static char *unescaped(tdmi_arena *arena, const char *text)
{
    char *copy = tdmi_arena_copy(arena, text), *to = copy;
    if (copy == NULL)
        return NULL;
    for (const char *from = text; *from != '\0'; from++) {
        unsigned code = 0;
        const bool is_escape = from[0] == '%' && isxdigit((unsigned char)from[1]) &&
                               isxdigit((unsigned char)from[2]) &&
                               sscanf(from + 1, "%2x", &code) == 1 && code > 0;
        *to++ = is_escape ? (char)code : *from;
        from += is_escape ? 2 : 0;
    }
    *to = '\0';
    return copy;
}

/* The values in the folders of a name (relative to the table). */
static tdm_status read_folders(struct found *found, struct tdmi_parquet_member *member,
                               tdm_error *err)
{
    struct tdmi_parquet_value *values =
        tdmi_arena_alloc(&found->arena, VALUES_AT_MOST, sizeof *values);
    char *name = tdmi_arena_copy(&found->arena, member->name);
    TDMI_CHECK_MEMORY(values != NULL && name != NULL, err);
    member->values = values;
    for (char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        *slash = '\0';
        char *equals = strchr(name, '=');
        if (equals == NULL || equals == name || member->n_values == LARGEST_DEPTH)
            continue;
        *equals = '\0';
        char *value = unescaped(&found->arena, equals + 1);
        TDMI_CHECK_MEMORY(value, err);
        values[member->n_values++] = (struct tdmi_parquet_value){name, value};
    }
    return TDM_OK;
}

static tdm_status add_member(struct found *found, const char *path, const char *name,
                             tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(found->members, found->capacity, found->n_members, err));
    struct tdmi_parquet_member *member = &found->members[found->n_members];
    *member = (struct tdmi_parquet_member){.path = tdmi_arena_copy(&found->arena, path),
                                           .name = tdmi_arena_copy(&found->arena, name)};
    TDMI_CHECK_MEMORY(member->path != NULL && member->name != NULL, err);
    TDMI_TRY(read_folders(found, member, err));
    found->n_members++;
    return TDM_OK;
}

static tdm_status add_single(struct found *found, const char *path, tdm_error *err)
{
    const char *before = tdmi_arena_printf(&found->arena, "%.*s", name_bytes(path), path);
    TDMI_CHECK_MEMORY(before, err);
    return add_member(found, path, tdmi_path_name(before), err);
}

/* All Parquet files below the folder, in the order of their names. */
static tdm_status find(struct found *found, const char *folder, tdm_error *err)
{
    TDMI_AT_END(tdmi_tree_release) struct tdmi_tree tree = {.root = folder};
    TDMI_TRY(tdmi_tree_walk(&tree, err));
    for (int64_t i = 0; i < tree.n_entries; i++) {
        const struct tdmi_tree_entry *entry = &tree.entries[i];
        if (entry->kind == TDMI_FILE_FOLDER)
            continue;
        const char *path = tdmi_path_join(&tree.arena, folder, entry->path);
        TDMI_CHECK_MEMORY(path, err);
        if (is_parquet_name(entry->path))
            TDM_TRY(add_member(found, path, entry->path, err), err, "cannot list '%s'", folder);
        else
            found->n_ignored++;
    }
    return TDM_OK;
}

/* Names give parts only where all of them do. */
static void take_parts_of_names(struct found *found)
{
    for (int64_t m = 0; m < found->n_members; m++)
        if (split_of_name(found->members[m].name) == NULL)
            return;
    for (int64_t m = 0; m < found->n_members; m++) {
        struct tdmi_parquet_member *member = &found->members[m];
        struct tdmi_parquet_value *values = (struct tdmi_parquet_value *)member->values;
        values[member->n_values++] =
            (struct tdmi_parquet_value){TDMI_PARQUET_SPLIT_OF_NAME, split_of_name(member->name)};
    }
}

/* ---- the source -------------------------------------------------------------------------- */

static tdm_status parquet_open(const char *path, const struct tdm_source_options *options,
                               void *self, tdm_error *err)
{
    TDMI_AT_END(found_release) struct found found = {0};
    const bool is_folder = tdmi_storage_kind(path) == TDMI_FILE_FOLDER;
    TDMI_TRY(is_folder ? find(&found, path, err) : add_single(&found, path, err));
    take_parts_of_names(&found);
    TDMI_TRY(tdmi_parquet_table_open(path, found.members, found.n_members, options, self, err));
    ((struct tdmi_listing *)self)->n_ignored = found.n_ignored;
    return TDM_OK;
}

const struct tdmi_source_table tdmi_source_parquet = {
    .name = "parquet",
    .summary = "Parquet files with a column of images",
    .state_bytes = sizeof(struct tdmi_parquet_table),
    .is_prepared = true,
    .can_open = parquet_can_open,
    .open = parquet_open,
    TDMI_PARQUET_TABLE_ENTRIES,
};

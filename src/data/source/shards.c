/* Files of a folder by their endings, ranges unrolled, parts by the words of the names. */
#include "data/source/shards.h"

#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include <stdlib.h>

enum { MOST_SHARDS = 1 << 20, MOST_DIGITS = 9 };

void tdmi_shards_release(struct tdmi_shards *shards)
{
    tdmi_free(shards->list);
    *shards = (struct tdmi_shards){0};
}

static tdm_status add_shard(struct tdmi_shards *shards, const char *path, const char *name,
                            enum tdmi_part part, tdm_error *err)
{
    if (shards->n == MOST_SHARDS)
        return TDM_FAIL(err, TDM_E_INPUT, "more than %d shards, up to '%s'", MOST_SHARDS, path);
    TDMI_TRY(TDMI_MAKE_ROOM(shards->list, shards->capacity, shards->n, err));
    shards->list[shards->n++] = (struct tdmi_source_shard){path, name, part};
    return TDM_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct range {
    const char *open, *close; /* the braces */
    long first, last;
    int digits; /* width, filled with zeros in front; 0: as short as possible */
};

static bool take_number(const char **at, long *value, int *digits)
{
    *digits = (int)strspn(*at, "0123456789");
    if (*digits == 0 || *digits > MOST_DIGITS)
        return false;
    *value = strtol(*at, NULL, 10);
    *at += *digits;
    return true;
}

static bool find_range(const char *path, struct range *range)
{
    for (const char *open = path; (open = strchr(open, '{')) != NULL; open++) {
        const char *at = open + 1;
        int digits = 0, last_digits = 0;
        if (!take_number(&at, &range->first, &digits) || strncmp(at, "..", 2) != 0)
            continue;
        at += 2;
        if (!take_number(&at, &range->last, &last_digits) || *at != '}')
            continue;
        bool has_zeros = (digits > 1 && open[1] == '0') || digits == last_digits;
        *range = (struct range){open, at, range->first, range->last, has_zeros ? digits : 0};
        return true;
    }
    return false;
}

bool tdmi_shards_is_pattern(const char *path)
{
    struct range range;
    return find_range(path, &range);
}

/* Unroll the first range; recursion unrolls those after it. */
static tdm_status unroll(const char *path, size_t folder_bytes, tdmi_arena *arena,
                         struct tdmi_shards *shards, tdm_error *err)
{
    struct range range;
    if (!find_range(path, &range))
        return add_shard(shards, path, path + folder_bytes, TDMI_PART_NONE, err);
    if (range.last < range.first || range.last - range.first >= MOST_SHARDS)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the range in '%s' goes from %ld to %ld; it has to rise, by at most %d",
                        path, range.first, range.last, MOST_SHARDS);
    for (long i = range.first; i <= range.last; i++) {
        const char *one = tdmi_arena_printf(arena, "%.*s%0*ld%s", (int)(range.open - path), path,
                                            range.digits, i, range.close + 1);
        TDMI_CHECK_MEMORY(one, err);
        TDMI_TRY(unroll(one, folder_bytes, arena, shards, err));
    }
    return TDM_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

static bool is_shard_name(const char *name)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz", NULL};
    return tdmi_has_ending(name, endings) && !tdmi_tree_is_hidden(name);
}

/* The shards in the folder `below` of root; where root itself has none, those in its folders named
 * like parts. */
static tdm_status add_folder(const char *root, const char *below, enum tdmi_part part,
                             tdmi_arena *arena, struct tdmi_shards *shards, tdm_error *err)
{
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0;
    const char *folder = below[0] == '\0' ? root : tdmi_path_join(arena, root, below);
    TDMI_CHECK_MEMORY(folder, err);
    TDM_TRY(tdmi_storage_list(folder, false, arena, &entries, &n_entries, err), err,
            "cannot look for shards in '%s'", folder);
    for (size_t i = 0; i < n_entries; i++) {
        if (entries[i].kind != TDMI_FILE_REGULAR || !is_shard_name(entries[i].name))
            continue;
        const char *path = tdmi_path_join(arena, folder, entries[i].name);
        const char *name = tdmi_path_join(arena, below, entries[i].name);
        TDMI_CHECK_MEMORY(path != NULL && name != NULL, err);
        TDMI_TRY(add_shard(shards, path, name, part, err));
    }
    const bool has_shards = shards->n > 0;
    for (size_t i = 0; i < n_entries && below[0] == '\0' && !has_shards; i++) {
        part = tdmi_part_named(entries[i].name);
        if (entries[i].kind == TDMI_FILE_FOLDER && part != TDMI_PART_NONE)
            TDMI_TRY(add_folder(root, entries[i].name, part, arena, shards, err));
    }
    return TDM_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* "imagenet-train-000012.tar": the word between signs and digits that names a part. */
static enum tdmi_part part_in(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (const char *at = name; *at != '\0';) {
        size_t length = strspn(at, letters);
        char word[16] = "";
        if (length > 0 && length < sizeof word) {
            memcpy(word, at, length);
            if (tdmi_part_named(word) != TDMI_PART_NONE)
                return tdmi_part_named(word);
        }
        at += length > 0 ? length : 1;
    }
    return TDMI_PART_NONE;
}

/* Take parts from the names where every shard names one, and not all the same. */
static void name_parts(struct tdmi_shards *shards)
{
    bool has_part[TDMI_PART_TEST + 1] = {false};
    int n_parts = 0;
    for (int64_t i = 0; i < shards->n; i++)
        if (shards->list[i].part == TDMI_PART_NONE)
            shards->list[i].part = part_in(shards->list[i].name);
    for (int64_t i = 0; i < shards->n; i++)
        has_part[shards->list[i].part] = true;
    for (int p = TDMI_PART_NONE + 1; p <= TDMI_PART_TEST; p++)
        n_parts += has_part[p];
    if (n_parts < 2 || has_part[TDMI_PART_NONE])
        for (int64_t i = 0; i < shards->n; i++)
            shards->list[i].part = TDMI_PART_NONE;
}

tdm_status tdmi_shards_find(const char *path, tdmi_arena *arena, struct tdmi_shards *shards,
                            tdm_error *err)
{
    const char *copy = tdmi_arena_copy(arena, path);
    TDMI_CHECK_MEMORY(copy, err);
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return add_shard(shards, copy, tdmi_path_name(copy), TDMI_PART_NONE, err);
    if (kind == TDMI_FILE_FOLDER)
        TDM_TRY(add_folder(copy, "", TDMI_PART_NONE, arena, shards, err), err,
                "cannot look for shards in '%s'", path);
    else
        TDM_TRY(unroll(copy, (size_t)(tdmi_path_name(copy) - copy), arena, shards, err), err,
                "cannot find the shards of '%s'", path);
    name_parts(shards);
    return TDM_OK;
}

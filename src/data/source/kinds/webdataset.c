/*
 * WebDataset: tars whose files stand together by key.
 *
 *     sample.tar                     itself
 *     shards/                        every .tar, .tar.gz and .tgz in it, by bytes; where it has
 *                                    none, those in its folders train, val and test
 *     shards/train-{000..127}.tar    a range, as a shell would write it; several are allowed
 *
 *     000017.jpg 000017.cls      key = the name up to the first dot after the last slash;
 *     000018.jpg 000018.cls      neighbours with one key are one image and its label
 *
 * The label is the text of .cls; else "label", "cls" or "class" of the object in .json; else the
 * text of .txt. Images come in the order of the shards, so reading in order reads a shard once.
 */
#include "base/text/json.h"
#include "data/source/class_tree.h"
#include "io/archive/archive.h"
#include "io/storage/storage.h"
#include <stdlib.h>
#include <strings.h>

enum { PROBED_ENTRIES = 64, LONGEST_LABEL = 200, LONGEST_JSON_BYTES = 1 << 20, ENTRY_BITS = 40 };

enum { MOST_SHARDS = 1 << 20, MOST_DIGITS = 9 };

struct shard {
    const char *path; /* to open */
    const char *name; /* below the path given, for the items' paths */
    enum tdmi_part part;
};

struct shards {         /* start from a zeroed object */
    struct shard *list; /* of tdmi_alloc; the strings in the arena */
    int64_t n, capacity;
};

struct webdataset {
    struct tdmi_listing listing; /* an item's place is archive << ENTRY_BITS | entry */
    tdmi_archive **archives;     /* one a shard */
    int64_t n_archives;
    struct tdmi_labels labels;
    tdmi_text text; /* the current label file */
};

/* The files of one key: indices of entries, -1: none. */
struct group {
    const char *name; /* of its first entry */
    size_t key_bytes;
    int64_t picture, cls, json, txt;
    int64_t n_files;
};

static void release_shards(struct shards *shards)
{
    tdmi_free(shards->list);
    *shards = (struct shards){0};
}

static tdm_status list_shard(struct shards *shards, const char *path, const char *name,
                             enum tdmi_part part, tdm_error *err)
{
    if (shards->n == MOST_SHARDS)
        return TDM_FAIL(err, TDM_E_INPUT, "more than %d shards, up to '%s'", MOST_SHARDS, path);
    TDMI_TRY(TDMI_MAKE_ROOM(shards->list, shards->capacity, shards->n, err));
    shards->list[shards->n++] = (struct shard){path, name, part};
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

/* Unroll the first range; recursion unrolls those after it. */
static tdm_status unroll(const char *path, size_t folder_bytes, tdmi_arena *arena,
                         struct shards *shards, tdm_error *err)
{
    struct range range;
    if (!find_range(path, &range))
        return list_shard(shards, path, path + folder_bytes, TDMI_PART_NONE, err);
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
                             tdmi_arena *arena, struct shards *shards, tdm_error *err)
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
        TDMI_TRY(list_shard(shards, path, name, part, err));
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

/* Take parts from the names where every shard names one. */
static void name_parts(struct shards *shards)
{
    bool all_named = true;
    for (int64_t i = 0; i < shards->n; i++) {
        if (shards->list[i].part == TDMI_PART_NONE)
            shards->list[i].part = part_in(shards->list[i].name);
        all_named &= shards->list[i].part != TDMI_PART_NONE;
    }
    for (int64_t i = 0; i < shards->n && !all_named; i++)
        shards->list[i].part = TDMI_PART_NONE;
}

/* All shards of the path, perhaps none. Shards of a pattern may be missing: opening them reports
 * it.
 */
static tdm_status find_shards(const char *path, tdmi_arena *arena, struct shards *shards,
                              tdm_error *err)
{
    const char *copy = tdmi_arena_copy(arena, path);
    TDMI_CHECK_MEMORY(copy, err);
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return list_shard(shards, copy, tdmi_path_name(copy), TDMI_PART_NONE, err);
    if (kind == TDMI_FILE_FOLDER)
        TDM_TRY(add_folder(copy, "", TDMI_PART_NONE, arena, shards, err), err,
                "cannot look for shards in '%s'", path);
    else
        TDM_TRY(unroll(copy, (size_t)(tdmi_path_name(copy) - copy), arena, shards, err), err,
                "cannot find the shards of '%s'", path);
    name_parts(shards);
    return TDM_OK;
}

/* ---- names ------------------------------------------------------------------------------------
 */

/* Length up to the first dot after the last slash; 0: there is no dot. */
static size_t key_bytes_of(const char *name)
{
    const char *dot = strchr(tdmi_path_name(name), '.');
    return dot == NULL ? 0 : (size_t)(dot - name);
}

static bool is_member(const struct tdmi_archive_entry *entry)
{
    const char *name = tdmi_path_name(entry->name);
    return !entry->is_folder && name[0] != '.' && name[0] != '_' && key_bytes_of(entry->name) > 0;
}

/* The group that begins at entry *at; *at moves past it. False: no more. */
static bool next_group(const tdmi_archive *archive, int64_t *at, struct group *group)
{
    *group = (struct group){.picture = -1, .cls = -1, .json = -1, .txt = -1};
    bool is_plain = false;
    for (; *at < tdmi_archive_entries(archive); (*at)++) {
        const struct tdmi_archive_entry *entry = tdmi_archive_entry(archive, *at);
        if (!is_member(entry))
            continue;
        size_t key_bytes = key_bytes_of(entry->name);
        if (group->n_files > 0 &&
            (key_bytes != group->key_bytes || memcmp(entry->name, group->name, key_bytes) != 0))
            return true;
        const char *ending = entry->name + key_bytes + 1;
        if (group->n_files++ == 0) {
            group->name = entry->name;
            group->key_bytes = key_bytes;
        }
        /* "17.jpg" is the image where "17.mask.png" stands beside it. */
        bool ends_plain = strchr(ending, '.') == NULL;
        if (tdmi_image_has_extension(entry->name) &&
            (group->picture < 0 || (ends_plain && !is_plain))) {
            group->picture = *at;
            is_plain = ends_plain;
        } else if (strcasecmp(ending, "cls") == 0) {
            group->cls = *at;
        } else if (strcasecmp(ending, "json") == 0) {
            group->json = *at;
        } else if (strcasecmp(ending, "txt") == 0) {
            group->txt = *at;
        }
    }
    return group->n_files > 0;
}

/* ---- labels -----------------------------------------------------------------------------------
 */

/* One line of text, without blanks around it; false: empty, or more than a label. */
static bool take_line(const tdmi_text *text, const char **word, size_t *length_bytes)
{
    const char *first = tdmi_text_string(text), *end = first + text->length_bytes;
    while (first < end && strchr(" \t\r\n", *first) != NULL)
        first++;
    while (end > first && (end[-1] == '\0' || strchr(" \t\r\n", end[-1]) != NULL))
        end--;
    *word = first;
    *length_bytes = (size_t)(end - first);
    return *length_bytes > 0 && *length_bytes <= LONGEST_LABEL &&
           memchr(first, '\n', *length_bytes) == NULL && memchr(first, '\0', *length_bytes) == NULL;
}

/* The label in an object, as text; word stays empty where it has none, as in damaged JSON. */
static tdm_status take_json(const tdmi_text *text, const char *name, tdmi_text *word,
                            tdm_error *err)
{
    static const char *const keys[] = {"label", "cls", "class"};
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    tdm_status status =
        tdm_json_read(tdmi_text_string(text), text->length_bytes, name, &document, err);
    if (status != TDM_OK)
        return status == TDM_E_MEMORY ? status : TDM_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (tdmi_labels_word(tdm_json_member(tdm_json_root(document), keys[i]), word) &&
            word->length_bytes <= LONGEST_LABEL)
            return TDM_OK;
        TDMI_TRY(tdmi_text_status(word, err));
        tdmi_text_clear(word);
    }
    return TDM_OK;
}

/* Store the label of a group in word, which stays empty where there is none. *entry: the file that
 * was to hold it, or -1. */
static tdm_status find_label(const tdmi_archive *archive, const struct group *group,
                             tdmi_text *text, tdmi_text *word, int64_t *entry, tdm_error *err)
{
    const int64_t files[] = {group->cls, group->json, group->txt};
    const char *line = NULL;
    size_t length = 0;
    tdmi_text_clear(word);
    *entry = -1;
    for (int i = 0; i < 3 && word->length_bytes == 0; i++) {
        if (files[i] < 0)
            continue;
        *entry = files[i];
        TDM_TRY(tdmi_archive_read(archive, files[i], LONGEST_JSON_BYTES, text, err), err,
                "cannot read the label of '%.*s'", (int)group->key_bytes, group->name);
        if (files[i] == group->json)
            TDMI_TRY(take_json(text, group->name, word, err));
        else if (take_line(text, &line, &length))
            tdmi_text_add(word, line, length);
        TDMI_TRY(tdmi_text_status(word, err));
    }
    return TDM_OK;
}

/* ---- listing ----------------------------------------------------------------------------------
 */

static tdm_status add_group(struct webdataset *set, const struct shard *shard,
                            const struct group *group, tdmi_text *word, tdm_error *err)
{
    const int64_t number = set->n_archives - 1;
    const tdmi_archive *archive = set->archives[number];
    int64_t entry = -1;
    int label = -1;
    if (group->picture < 0) {
        set->listing.n_ignored += group->n_files;
        return TDM_OK;
    }
    TDM_TRY(find_label(archive, group, &set->text, word, &entry, err), err, "cannot list '%s'",
            shard->path);
    if (word->length_bytes == 0 && entry >= 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' is no label: one line of text in .cls or .txt, or \"label\", "
                        "\"cls\" or \"class\" in .json, is expected",
                        tdmi_archive_entry(archive, entry)->name, shard->path);
    if (word->length_bytes > 0)
        TDM_TRY(tdmi_labels_number(&set->labels, word->bytes, word->length_bytes, &label, err), err,
                "cannot list '%s'", shard->path);
    tdmi_text_clear(&set->text);
    tdmi_text_printf(&set->text, "%s/%s", shard->name,
                     tdmi_archive_entry(archive, group->picture)->name);
    TDMI_TRY(tdmi_text_status(&set->text, err));
    const struct tdmi_item item = {set->text.bytes, label, shard->part,
                                   number << ENTRY_BITS | group->picture};
    return tdmi_listing_add_item(&set->listing, item, err);
}

static tdm_status add_shard(struct webdataset *set, const struct shard *shard, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text word = {0};
    tdmi_archive **archive = &set->archives[set->n_archives];
    struct group group;
    TDMI_TRY(tdmi_archive_open(shard->path, archive, err));
    set->n_archives++;
    for (int64_t at = 0; next_group(*archive, &at, &group);)
        TDMI_TRY(add_group(set, shard, &group, &word, err));
    return TDM_OK;
}

/* ---- the table --------------------------------------------------------------------------------
 */

/* A caption in .txt is no label, so it counts only where nothing looks like class folders. */
static bool looks_like_groups(const char *path)
{
    TDMI_AT_END(tdmi_archive_close_at) tdmi_archive *archive = NULL;
    struct group group;
    if (tdmi_archive_form_of(path) != TDMI_ARCHIVE_TAR ||
        tdmi_archive_open_beginning(path, PROBED_ENTRIES, &archive, NULL) != TDM_OK)
        return false;
    for (int64_t at = 0; next_group(archive, &at, &group);) {
        bool is_deep =
            memchr(group.name, '/', group.key_bytes) != NULL && strncmp(group.name, "./", 2) != 0;
        if (group.picture >= 0 &&
            (group.cls >= 0 || group.json >= 0 || (group.txt >= 0 && !is_deep)))
            return true;
    }
    return false;
}

/* One shard decides for all. A pattern always means shards. */
static bool webdataset_can_open(const char *path)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(release_shards) struct shards shards = {0};
    struct range range;
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return looks_like_groups(path);
    if (kind == TDMI_FILE_MISSING)
        return find_range(path, &range);
    return kind == TDMI_FILE_FOLDER && find_shards(path, &arena, &shards, NULL) == TDM_OK &&
           shards.n > 0 && looks_like_groups(shards.list[0].path);
}

static void webdataset_release(void *self)
{
    struct webdataset *set = self;
    for (int64_t i = 0; i < set->n_archives; i++)
        tdmi_archive_close(set->archives[i]);
    tdmi_free(set->archives);
    tdmi_labels_release(&set->labels);
    tdmi_text_release(&set->text);
}

static tdm_status webdataset_open(const char *path, const struct tdm_source_options *options,
                                  void *self, tdm_error *err)
{
    (void)options; /* source.c has refused those of other kinds */
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(release_shards) struct shards shards = {0};
    struct webdataset *set = self;
    TDMI_TRY(find_shards(path, &arena, &shards, err));
    TDMI_TRY(TDMI_NEW(set->archives, shards.n, err));
    for (int64_t i = 0; i < shards.n; i++)
        TDMI_TRY(add_shard(set, &shards.list[i], err));
    tdmi_listing_drop_unlabelled(&set->listing, "images", path);
    tdmi_listing_forget_lone_part(&set->listing);
    return tdmi_labels_finish(&set->labels, &set->listing, err);
}

static tdm_status webdataset_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct webdataset *set = self;
    const int64_t place = set->listing.items[index].place;
    return tdmi_archive_read(set->archives[place >> ENTRY_BITS],
                             place & (((int64_t)1 << ENTRY_BITS) - 1), TDMI_ARCHIVE_PICTURE_BYTES,
                             bytes, err);
}

const struct tdmi_source_table tdmi_source_webdataset = {
    .name = "webdataset",
    .summary = "WebDataset tars, one or a folder or range of them",
    .state_bytes = sizeof(struct webdataset),
    .can_open = webdataset_can_open,
    .open = webdataset_open,
    .release = webdataset_release,
    .read = webdataset_read,
};

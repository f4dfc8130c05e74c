/*
 * WebDataset: tars whose files stand together by key.
 *
 *     000017.jpg 000017.cls      key = the name up to the first dot after the last slash;
 *     000018.jpg 000018.cls      neighbours with one key are one image and its label
 *
 * The label is the text of .cls; else "label", "cls" or "class" of the object in .json; else the
 * text of .txt. Images come in the order of the shards, so reading in order reads a shard once.
 */
#include "base/text/json.h"
#include "data/source/labels.h"
#include "data/source/shards.h"
#include "io/archive/archive.h"
#include "io/storage/storage.h"
#include <strings.h>

enum { PROBED_ENTRIES = 64, LONGEST_LABEL = 200, LONGEST_JSON_BYTES = 1 << 20, ENTRY_BITS = 40 };

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

static tdm_status add_group(struct webdataset *set, const struct tdmi_source_shard *shard,
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

static tdm_status add_shard(struct webdataset *set, const struct tdmi_source_shard *shard,
                            tdm_error *err)
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
    TDMI_AT_END(tdmi_shards_release) struct tdmi_shards shards = {0};
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return looks_like_groups(path);
    if (kind == TDMI_FILE_MISSING)
        return tdmi_shards_is_pattern(path);
    return kind == TDMI_FILE_FOLDER && tdmi_shards_find(path, &arena, &shards, NULL) == TDM_OK &&
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
    TDMI_AT_END(tdmi_shards_release) struct tdmi_shards shards = {0};
    struct webdataset *set = self;
    TDMI_TRY(tdmi_shards_find(path, &arena, &shards, err));
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

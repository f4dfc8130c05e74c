/*
 * WebDataset: tars whose files stand together by key.
 *
 *     000017.jpg 000017.cls      key = the name up to the first dot after the last slash; what
 *     000018.jpg 000018.cls      stands together without a gap is one picture and what is said of
 * it
 *
 * The label is the text of .cls; else "label", "cls" or "class" of the object in .json; else the
 * text of .txt. Pictures come in the order of the shards, so reading in order reads a shard once.
 */
#include "io/archive/archive.h"
#include "data/source/labels.h"
#include "data/source/listing.h"
#include "data/source/shards.h"

#include "base/memory.h"
#include "io/storage/storage.h"
#include "tandem/json.h"
#include "tandem/log.h"
#include <string.h>
#include <strings.h>

enum { PROBED_ENTRIES = 64, LONGEST_LABEL = 200, LONGEST_JSON_BYTES = 1 << 20 };

struct webdataset {
    struct tdmi_listing listing; /* first: the table's queries take it */
    tdmi_archive **archives;     /* of the shards */
    int64_t n_archives;
    struct location {
        int64_t archive, entry;
    } * locations; /* of the items */
    int64_t capacity;
    struct tdmi_labels labels;
    tdmi_text text; /* of the label file at hand */
    int64_t n_unlabelled;
};

/* What stands together: indices of entries, -1: none. */
struct group {
    const char *name; /* of its first entry */
    size_t key_bytes;
    int64_t picture, cls, json, txt;
    int64_t n_files;
};

/* ---- names ------------------------------------------------------------------------------------
 */

/* Up to the first dot after the last slash; the whole name has no dot there: nothing. */
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

/* The group that begins at entry *at; *at moves behind it. False: no more. */
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
        /* "17.jpg" is the picture where "17.mask.png" stands beside it. */
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

/* The label in an object, as text; word stays empty where it has none. What is no JSON has none. */
static tdm_status take_json(const tdmi_text *text, const char *name, tdmi_text *word,
                            tdm_error *err)
{
    static const char *const keys[] = {"label", "cls", "class"};
    tdm_json_document *document = NULL;
    bool is_found = false;
    tdmi_text_clear(word);
    tdm_status status =
        tdm_json_read(tdmi_text_string(text), text->length_bytes, name, &document, err);
    if (status != TDM_OK)
        return status == TDM_E_MEMORY ? status : TDM_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !is_found; i++)
        is_found = tdmi_labels_word(tdm_json_member(tdm_json_root(document), keys[i]), word) &&
                   word->length_bytes <= LONGEST_LABEL;
    tdm_json_document_free(document);
    if (word->is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the label of '%s'", name);
    if (!is_found)
        tdmi_text_clear(word);
    return TDM_OK;
}

/* The label of a group into word; it stays empty where there is none. entry: the file that should
 * have said it, or -1. */
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
            TDM_TRY(take_json(text, group->name, word, err), err, "cannot read '%.*s'",
                    (int)group->key_bytes, group->name);
        else if (take_line(text, &line, &length))
            tdmi_text_add(word, line, length);
        if (word->is_broken)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the label of '%.*s'",
                            (int)group->key_bytes, group->name);
    }
    return TDM_OK;
}

/* ---- listing ----------------------------------------------------------------------------------
 */

static tdm_status add_item(struct webdataset *set, const struct tdmi_source_shard *shard,
                           const struct group *group, int label, tdm_error *err)
{
    struct tdmi_listing *listing = &set->listing;
    const char *name = tdmi_archive_entry(set->archives[set->n_archives - 1], group->picture)->name;
    if (!TDMI_GROW(set->locations, set->capacity, listing->n_items))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", shard->path);
    set->locations[listing->n_items] = (struct location){set->n_archives - 1, group->picture};
    tdmi_text_clear(&set->text);
    tdmi_text_printf(&set->text, "%s/%s", shard->name, name);
    if (set->text.is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", shard->path);
    return tdmi_listing_add_item(listing, set->text.bytes, label, shard->part, err);
}

static tdm_status add_group(struct webdataset *set, const struct tdmi_source_shard *shard,
                            const struct group *group, tdmi_text *word, tdm_error *err)
{
    const tdmi_archive *archive = set->archives[set->n_archives - 1];
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
    else
        set->n_unlabelled++;
    return add_item(set, shard, group, label, err);
}

static tdm_status add_shard(struct webdataset *set, const struct tdmi_source_shard *shard,
                            tdm_error *err)
{
    tdmi_archive **archive = &set->archives[set->n_archives];
    tdm_status status = tdmi_archive_open(shard->path, archive, err);
    if (status != TDM_OK)
        return status;
    set->n_archives++;
    tdmi_text word = {0};
    struct group group;
    for (int64_t at = 0; status == TDM_OK && next_group(*archive, &at, &group);)
        status = add_group(set, shard, &group, &word, err);
    tdmi_text_release(&word);
    return status;
}

/* Where some pictures have a label, those without one are of no class and are left out. */
static void drop_unlabelled(struct webdataset *set, const char *path)
{
    struct tdmi_listing *listing = &set->listing;
    int64_t kept = 0;
    if (set->n_unlabelled == 0 || set->n_unlabelled == listing->n_items)
        return;
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0) {
            set->locations[kept] = set->locations[i];
            listing->items[kept++] = listing->items[i];
        }
    listing->n_items = kept;
    listing->n_ignored += set->n_unlabelled;
    tdm_log(TDM_LOG_WARNING, "%lld pictures of '%s' have no label and are left out",
            (long long)set->n_unlabelled, path);
}

/* ---- the table --------------------------------------------------------------------------------
 */

/* A caption in .txt is no label, so it counts only where nothing looks like class folders. */
static bool looks_like_groups(const char *path)
{
    tdmi_archive *archive = NULL;
    struct group group;
    bool is_set = false;
    if (tdmi_archive_form_of(path) != TDMI_ARCHIVE_TAR ||
        tdmi_archive_open_beginning(path, PROBED_ENTRIES, &archive, NULL) != TDM_OK)
        return false;
    for (int64_t at = 0; !is_set && next_group(archive, &at, &group);) {
        bool is_deep =
            memchr(group.name, '/', group.key_bytes) != NULL && strncmp(group.name, "./", 2) != 0;
        is_set = group.picture >= 0 &&
                 (group.cls >= 0 || group.json >= 0 || (group.txt >= 0 && !is_deep));
    }
    tdmi_archive_close(archive);
    return is_set;
}

/* One shard tells for all. A pattern is meant to be one. */
static bool webdataset_can_open(const char *path)
{
    struct tdmi_shards shards = {0};
    tdmi_arena arena;
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return looks_like_groups(path);
    if (kind == TDMI_FILE_MISSING)
        return tdmi_shards_is_pattern(path);
    if (kind != TDMI_FILE_FOLDER)
        return false;
    tdmi_arena_init(&arena, 0);
    bool is_set = tdmi_shards_find(path, &arena, &shards, NULL) == TDM_OK && shards.n > 0 &&
                  looks_like_groups(shards.list[0].path);
    tdmi_shards_release(&shards);
    tdmi_arena_release(&arena);
    return is_set;
}

static void webdataset_close(void *self)
{
    struct webdataset *set = self;
    for (int64_t i = 0; i < set->n_archives; i++)
        tdmi_archive_close(set->archives[i]);
    tdmi_free(set->archives);
    tdmi_free(set->locations);
    tdmi_labels_release(&set->labels);
    tdmi_text_release(&set->text);
    tdmi_listing_release(&set->listing);
    tdmi_free(set);
}

static tdm_status list_shards(struct webdataset *set, const char *path, tdm_error *err)
{
    struct tdmi_shards shards = {0};
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    tdm_status status = tdmi_shards_find(path, &arena, &shards, err);
    if (status == TDM_OK) {
        set->archives = tdmi_alloc((size_t)shards.n, sizeof(tdmi_archive *));
        if (set->archives == NULL)
            status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for %lld shards", (long long)shards.n);
    }
    for (int64_t i = 0; i < shards.n && status == TDM_OK; i++)
        status = add_shard(set, &shards.list[i], err);
    if (status == TDM_OK) {
        drop_unlabelled(set, path);
        tdmi_listing_forget_lone_part(&set->listing);
        status = tdmi_labels_finish(&set->labels, &set->listing, err);
    }
    tdmi_shards_release(&shards);
    tdmi_arena_release(&arena);
    return status;
}

static tdm_status webdataset_open(const char *path, const struct tdm_source_options *options,
                                  void **self, tdm_error *err)
{
    (void)options; /* none of them is for this kind; source.c sees to that */
    *self = NULL;
    struct webdataset *set = tdmi_alloc(1, sizeof *set);
    if (set == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    tdmi_listing_init(&set->listing);
    tdm_status status = list_shards(set, path, err);
    if (status == TDM_OK)
        *self = set;
    else
        webdataset_close(set);
    return status;
}

static tdm_status webdataset_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct webdataset *set = self;
    const struct location *at = &set->locations[index];
    return tdmi_archive_read(set->archives[at->archive], at->entry, TDMI_ARCHIVE_PICTURE_BYTES,
                             bytes, err);
}

const struct tdmi_source_table tdmi_source_webdataset = {
    .name = "webdataset",
    .summary = "WebDataset tars, one or a folder or range of them",
    .can_open = webdataset_can_open,
    .open = webdataset_open,
    .close = webdataset_close,
    .n_classes = tdmi_listing_n_classes,
    .class_name = tdmi_listing_class_name,
    .n_items = tdmi_listing_n_items,
    .item = tdmi_listing_item,
    .n_ignored = tdmi_listing_n_ignored,
    .read = webdataset_read,
};

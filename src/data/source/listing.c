/* Two growing arrays and an arena for the strings they point to. */
#include "data/source/listing.h"

#include "base/hash/hash.h"
#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LARGEST_NUMBER = 255 };

void tdmi_listing_release(struct tdmi_listing *listing)
{
    tdmi_free(listing->items);
    tdmi_free(listing->classes);
    tdmi_free(listing->kept);
    tdmi_arena_release(&listing->arena);
    *listing = (struct tdmi_listing){0};
}

bool tdmi_file_names_fit(const char *folder, const struct tdmi_file_names *names)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    if (tdmi_storage_list(folder, false, &arena, &entries, &n, NULL) == TDM_OK)
        for (size_t i = 0; i < n; i++)
            if (entries[i].kind == TDMI_FILE_REGULAR && names->is_data(entries[i].name))
                return true;
    return false;
}

static int compare_with_entry(const void *name, const void *entry)
{
    return strcmp(name, ((const struct tdmi_place_entry *)entry)->name);
}

/* Is it compressed (.gz), and does the same file stand there uncompressed? */
static bool is_beside_plain(const struct tdmi_place_entry *entries, size_t n, const char *name)
{
    char plain[256];
    if (!tdmi_ends_with(name, ".gz"))
        return false;
    snprintf(plain, sizeof plain, "%.*s", (int)(strlen(name) - strlen(".gz")), name);
    const struct tdmi_place_entry *found =
        bsearch(plain, entries, n, sizeof *entries, compare_with_entry);
    return found && found->kind == TDMI_FILE_REGULAR;
}

tdm_status tdmi_listing_add_files(struct tdmi_listing *self, const char *folder,
                                  const struct tdmi_file_names *names, tdm_error *err)
{
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    TDM_TRY(tdmi_storage_list(folder, false, &self->arena, &entries, &n, err), err,
            "cannot list the folder '%s'", folder);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].kind != TDMI_FILE_REGULAR || !names->is_data(entries[i].name) ||
            is_beside_plain(entries, n, entries[i].name))
            continue;
        const char *path = tdmi_path_join(&self->arena, folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        TDM_TRY(names->add(self, path, err), err, "cannot use the files of '%s'", folder);
    }
    for (size_t i = 0; i < n; i++)
        self->n_ignored +=
            entries[i].kind != TDMI_FILE_FOLDER && !tdmi_tree_is_hidden(entries[i].name) &&
            !names->is_data(entries[i].name) && !names->is_companion(self, entries[i].name);
    return TDM_OK;
}

tdm_status tdmi_listing_add_item(struct tdmi_listing *listing, struct tdmi_item item,
                                 tdm_error *err)
{
    item.path = tdmi_arena_copy(&listing->arena, item.path);
    TDMI_CHECK_MEMORY(item.path, err);
    TDMI_TRY(TDMI_MAKE_ROOM(listing->items, listing->item_capacity, listing->n_items, err));
    listing->items[listing->n_items++] = item;
    return TDM_OK;
}

tdm_status tdmi_listing_add_record(struct tdmi_listing *listing, const char *name, int64_t number,
                                   int label, enum tdmi_part part, tdm_error *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%.990s#%lld", name, (long long)number);
    const struct tdmi_item item = {.path = path, .label = label, .part = part};
    return tdmi_listing_add_item(listing, item, err);
}

tdm_status tdmi_listing_add_class(struct tdmi_listing *listing, const char *name, tdm_error *err)
{
    const char *copy = tdmi_arena_copy(&listing->arena, name);
    TDMI_CHECK_MEMORY(copy != NULL && listing->n_classes < INT_MAX, err);
    TDMI_TRY(TDMI_MAKE_ROOM(listing->classes, listing->class_capacity, listing->n_classes, err));
    listing->classes[listing->n_classes++] = copy;
    return TDM_OK;
}

enum tdmi_part tdmi_part_named(const char *name)
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

void tdmi_listing_forget_lone_part(struct tdmi_listing *listing)
{
    for (int64_t i = 1; i < listing->n_items; i++)
        if (listing->items[i].part != listing->items[0].part)
            return;
    for (int64_t i = 0; i < listing->n_items; i++)
        listing->items[i].part = TDMI_PART_NONE;
}

void tdmi_listing_drop_unlabelled(struct tdmi_listing *listing, const char *noun, const char *path)
{
    int64_t n_labelled = 0, kept = 0;
    for (int64_t i = 0; i < listing->n_items; i++)
        n_labelled += listing->items[i].label >= 0;
    const int64_t n_unlabelled = listing->n_items - n_labelled;
    if (n_labelled == 0 || n_unlabelled == 0)
        return;
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[kept++] = listing->items[i];
    listing->n_items = kept;
    listing->n_ignored += n_unlabelled;
    tdm_log(TDM_LOG_WARNING, "%lld %s of '%s' have no label and are left out",
            (long long)n_unlabelled, noun, path);
}

tdm_status tdmi_listing_classes_of_numbers(struct tdmi_listing *listing, tdm_error *err)
{
    int index_of[LARGEST_NUMBER + 1] = {0};
    for (int64_t i = 0; i < listing->n_items; i++) {
        assert(listing->items[i].label >= 0 && listing->items[i].label <= LARGEST_NUMBER);
        index_of[listing->items[i].label] = 1;
    }
    for (int number = 0; number <= LARGEST_NUMBER; number++) {
        if (index_of[number] == 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "%d", number);
        index_of[number] = listing->n_classes;
        TDM_TRY(tdmi_listing_add_class(listing, name, err), err, "name class %d", number);
    }
    for (int64_t i = 0; i < listing->n_items; i++)
        listing->items[i].label = index_of[listing->items[i].label];
    return TDM_OK;
}

/* ---- labels: a hash table of words, and their order at the end ------------------------------ */

enum { FIRST_SLOTS = 64 };

void tdmi_labels_release(struct tdmi_labels *labels)
{
    tdmi_arena_release(&labels->arena);
    tdmi_free(labels->list);
    tdmi_free(labels->slots);
    *labels = (struct tdmi_labels){0};
}

static int *slot_of(const struct tdmi_labels *labels, const char *word, size_t length_bytes)
{
    uint64_t at = tdmi_xxh64_of(word, length_bytes, 0);
    for (;; at++) {
        int *slot = &labels->slots[at & (uint64_t)(labels->n_slots - 1)];
        if (*slot == 0)
            return slot;
        const char *known = labels->list[*slot - 1].word;
        if (strlen(known) == length_bytes && memcmp(known, word, length_bytes) == 0)
            return slot;
    }
}

/* At most half of the slots are taken. */
static tdm_status grow(struct tdmi_labels *labels, tdm_error *err)
{
    if (labels->n > INT_MAX / 8)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for more than %d classes", labels->n);
    TDMI_TRY(TDMI_MAKE_ROOM(labels->list, labels->capacity, labels->n, err));
    if (2 * (labels->n + 1) <= labels->n_slots)
        return TDM_OK;
    int n_slots = labels->n_slots == 0 ? FIRST_SLOTS : 2 * labels->n_slots, *slots;
    TDMI_TRY(TDMI_NEW(slots, n_slots, err));
    tdmi_free(labels->slots);
    labels->slots = slots;
    labels->n_slots = n_slots;
    for (int i = 0; i < labels->n; i++)
        *slot_of(labels, labels->list[i].word, strlen(labels->list[i].word)) = i + 1;
    return TDM_OK;
}

/* Is it a number in its usual form: no plus, no leading zero? */
static bool is_whole_number(const char *word, int64_t *number)
{
    char usual[32];
    errno = 0;
    *number = strtoll(word, NULL, 10);
    snprintf(usual, sizeof usual, "%lld", (long long)*number);
    return errno == 0 && strcmp(usual, word) == 0;
}

tdm_status tdmi_labels_number(struct tdmi_labels *labels, const char *word, size_t length_bytes,
                              int *number, tdm_error *err)
{
    if (memchr(word, '\0', length_bytes) != NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "a label holds a zero byte: labels are integers or text");
    TDM_TRY(grow(labels, err), err, "cannot take the label '%.*s'",
            length_bytes > 100 ? 100 : (int)length_bytes, word);
    int *slot = slot_of(labels, word, length_bytes);
    if (*slot == 0) {
        char *copy = tdmi_arena_alloc(&labels->arena, length_bytes + 1, 1);
        TDMI_CHECK_MEMORY(copy, err);
        memcpy(copy, word, length_bytes);
        struct tdmi_label *label = &labels->list[labels->n++];
        *label = (struct tdmi_label){.word = copy};
        labels->has_texts = !is_whole_number(copy, &label->number) || labels->has_texts;
        *slot = labels->n;
    }
    *number = *slot - 1;
    return TDM_OK;
}

bool tdmi_labels_word(const tdm_json_value *value, tdmi_text *word)
{
    tdmi_text_clear(word);
    if (tdm_json_kind_of(value) == TDM_JSON_STRING)
        tdmi_text_printf(word, "%s", tdm_json_as_string(value, ""));
    /* A whole number does not need the fallback, so both calls return it. */
    else if (tdm_json_as_integer(value, 0) == tdm_json_as_integer(value, 1))
        tdmi_text_printf(word, "%lld", (long long)tdm_json_as_integer(value, 0));
    return word->length_bytes > 0 && !word->is_broken;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int compare_labels(const void *left, const void *right)
{
    const struct tdmi_label *a = *(struct tdmi_label *const *)left,
                            *b = *(struct tdmi_label *const *)right;
    const int order = (a->number > b->number) - (a->number < b->number);
    return order != 0 ? order : strcmp(a->word, b->word);
}

/* A label's number is the index of its name; -1: without label. */
static tdm_status take_names(struct tdmi_labels *labels, struct tdmi_listing *listing,
                             tdm_error *err)
{
    for (int i = 0; i < labels->n; i++) {
        struct tdmi_label *label = &labels->list[i];
        if (labels->has_texts || label->number < -1 || label->number >= labels->n_names)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "label '%s' is none of the %d classes that the table names, which are "
                            "numbered from 0",
                            label->word, labels->n_names);
        label->index = (int)label->number;
    }
    for (int i = 0; i < labels->n_names; i++)
        TDMI_TRY(tdmi_listing_add_class(listing, labels->names[i], err));
    return TDM_OK;
}

static tdm_status sort_labels(struct tdmi_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_label **sorted = NULL;
    TDMI_TRY(TDMI_NEW(sorted, labels->n, err));
    for (int i = 0; i < labels->n; i++) {
        sorted[i] = &labels->list[i];
        if (labels->has_texts)
            sorted[i]->number = 0; /* the order is that of the words */
    }
    qsort(sorted, (size_t)labels->n, sizeof *sorted, compare_labels);
    for (int i = 0; i < labels->n; i++) {
        sorted[i]->index = i;
        TDMI_TRY(tdmi_listing_add_class(
            listing, sorted[i]->name != NULL ? sorted[i]->name : sorted[i]->word, err));
    }
    return TDM_OK;
}

static tdm_status check_names(const struct tdmi_listing *listing, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) const char **sorted = NULL;
    const size_t n = (size_t)listing->n_classes;
    TDMI_TRY(TDMI_NEW(sorted, n, err));
    for (size_t i = 0; i < n; i++)
        sorted[i] = listing->classes[i];
    qsort(sorted, n, sizeof *sorted, tdmi_compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "two labels have the class name '%s'", sorted[i]);
    return TDM_OK;
}

tdm_status tdmi_labels_finish(struct tdmi_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err)
{
    TDMI_TRY((labels->n_names > 0 ? take_names : sort_labels)(labels, listing, err));
    TDMI_TRY(check_names(listing, err));
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[i].label = labels->list[listing->items[i].label].index;
    return TDM_OK;
}

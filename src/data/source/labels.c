/* A hash table of words, and their order at the end. */
#include "data/source/labels.h"

#include "base/hash/hash.h"
#include <limits.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

void tdmi_labels_release(struct tdmi_labels *labels)
{
    tdmi_arena_release(&labels->arena);
    tdmi_free(labels->words);
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
        const char *known = labels->words[*slot - 1];
        if (strlen(known) == length_bytes && memcmp(known, word, length_bytes) == 0)
            return slot;
    }
}

/* At most half of the slots are taken. */
static tdm_status grow(struct tdmi_labels *labels, tdm_error *err)
{
    if (labels->n_words > INT_MAX / 8)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for more than %d classes", labels->n_words);
    TDMI_TRY(TDMI_MAKE_ROOM(labels->words, labels->capacity, labels->n_words, err));
    if (2 * (labels->n_words + 1) <= labels->n_slots)
        return TDM_OK;
    int n_slots = labels->n_slots == 0 ? FIRST_SLOTS : 2 * labels->n_slots, *slots;
    TDMI_TRY(TDMI_NEW(slots, n_slots, err));
    tdmi_free(labels->slots);
    labels->slots = slots;
    labels->n_slots = n_slots;
    for (int i = 0; i < labels->n_words; i++)
        *slot_of(labels, labels->words[i], strlen(labels->words[i])) = i + 1;
    return TDM_OK;
}

tdm_status tdmi_labels_number(struct tdmi_labels *labels, const char *word, size_t length_bytes,
                              int *number, tdm_error *err)
{
    TDM_TRY(grow(labels, err), err, "cannot take the label '%.*s'",
            length_bytes > 100 ? 100 : (int)length_bytes, word);
    int *slot = slot_of(labels, word, length_bytes);
    if (*slot == 0) {
        char *copy = tdmi_arena_alloc(&labels->arena, length_bytes + 1, 1);
        TDMI_CHECK_MEMORY(copy, err);
        memcpy(copy, word, length_bytes);
        labels->words[labels->n_words++] = copy;
        *slot = labels->n_words;
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

/* ---- order ----------------------------------------------------------------------------------- */

/* Is it a number in its usual form: no plus, no leading zero, few enough digits to compare? */
static bool is_whole_number(const char *word)
{
    const char *digits = word[0] == '-' ? word + 1 : word;
    size_t length = strspn(digits, "0123456789");
    return length > 0 && length <= 18 && digits[length] == '\0' &&
           (digits[0] != '0' || strcmp(word, "0") == 0);
}

struct word {
    const char *text;
    long long value;
    int number;
};

static int by_bytes(const void *left, const void *right)
{
    return strcmp(((const struct word *)left)->text, ((const struct word *)right)->text);
}

static int by_value(const void *left, const void *right)
{
    long long a = ((const struct word *)left)->value, b = ((const struct word *)right)->value;
    return a < b ? -1 : a > b;
}

static void sort_words(const struct tdmi_labels *labels, struct word *words)
{
    bool are_numbers = true;
    for (int i = 0; i < labels->n_words; i++)
        are_numbers = are_numbers && is_whole_number(labels->words[i]);
    for (int i = 0; i < labels->n_words; i++)
        words[i] = (struct word){labels->words[i],
                                 are_numbers ? strtoll(labels->words[i], NULL, 10) : 0, i};
    if (labels->n_words > 0)
        qsort(words, (size_t)labels->n_words, sizeof *words, are_numbers ? by_value : by_bytes);
}

tdm_status tdmi_labels_finish(const struct tdmi_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct word *words = NULL;
    TDMI_AT_END(tdmi_free_at) int *index_of = NULL;
    TDMI_TRY(TDMI_NEW(words, labels->n_words, err));
    TDMI_TRY(TDMI_NEW(index_of, labels->n_words, err));
    sort_words(labels, words);
    for (int i = 0; i < labels->n_words; i++) {
        index_of[words[i].number] = i;
        TDMI_TRY(tdmi_listing_add_class(listing, words[i].text, err));
    }
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[i].label = index_of[listing->items[i].label];
    return TDM_OK;
}

/*
 * Labels as words: lists, shards and tables give an image's class as text. Every distinct word
 * becomes a class. Classes are in numeric order where all words are whole numbers, whatever the
 * first one is, else in byte order; the words stay the names, so the mapping is kept.
 */
#ifndef TANDEM_DATA_SOURCE_LABELS_H
#define TANDEM_DATA_SOURCE_LABELS_H

#include "data/source/listing.h"
#include "tandem/json.h"

struct tdmi_labels { /* start from a zeroed object */
    tdmi_arena arena;
    const char **words; /* in the order they came, in the arena */
    int64_t capacity;
    int n_words;
    int *slots; /* a hash table: index of a word + 1, or 0 */
    int n_slots;
};

void tdmi_labels_release(struct tdmi_labels *labels);
/* A provisional number of the word: the same for equal words. */
tdm_status tdmi_labels_number(struct tdmi_labels *labels, const char *word, size_t length_bytes,
                              int *number, tdm_error *err) TDM_MUST_USE;
/* A string, or a whole number, as the word it is; false: neither, or empty. */
bool tdmi_labels_word(const tdm_json_value *value, tdmi_text *word);
/* Add the words as classes of the listing, in order, and replace the provisional numbers of its
 * items by the indices of the classes (-1 stays). The listing has no classes before. */
tdm_status tdmi_labels_finish(const struct tdmi_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err) TDM_MUST_USE;

#endif

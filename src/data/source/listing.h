/*
 * A listing: the items and classes that a source finds when it opens a path, held in memory. The
 * state of every kind of source begins with one.
 */
#pragma once

#include "base/arena.h"
#include "data/source/source.h"
#include "tandem/json.h"

struct tdmi_listing { /* start from a zeroed object */
    tdmi_arena arena; /* names and paths */
    struct tdmi_item *items;
    const char **classes;
    int64_t n_items, item_capacity, class_capacity, n_ignored;
    int n_classes;
    int64_t n_unread[TDMI_UNREAD_KINDS]; /* files of kinds that nothing reads, which are ignored */
    /* Indices of the items that the source has, ascending; NULL: all of them. */
    int64_t *kept;
    int64_t n_kept;
};

void tdmi_listing_release(struct tdmi_listing *listing);

struct tdmi_source {
    const struct tdmi_source_table *table;
    struct tdmi_listing *listing; /* the state of the kind, which begins with it */
    const char *path;             /* in its arena */
    int64_t n_quarantined;
};
/* A source with a zeroed state. path is its name in messages. */
tdm_status tdmi_source_new(const struct tdmi_source_table *table, const char *path,
                           tdmi_source **source, tdm_error *err) TDM_MUST_USE;

/* "train", "val", "valid", "validation", "test" in any case; anything else is NONE. */
enum tdmi_part tdmi_part_named(const char *name);

/* Items that all belong to one part are still to be split: it says nothing about the others. */
void tdmi_listing_forget_lone_part(struct tdmi_listing *listing);
/* Where some items have a label, leave out those without one and warn about them as noun, such as
 * "rows", of path. */
void tdmi_listing_drop_unlabelled(struct tdmi_listing *listing, const char *noun, const char *path);

/* How a kind finds its files in a folder. */
struct tdmi_file_names {
    bool (*is_data)(const char *name);
    tdm_status (*add)(void *self, const char *path, tdm_error *err);
    bool (*is_companion)(const void *self, const char *name); /* labels or names, for instance */
};
/* Does the folder hold a data file? */
bool tdmi_file_names_fit(const char *folder, const struct tdmi_file_names *names);
/* Add the data files of a folder: a compressed one (.gz) only where it is not there uncompressed.
 * Other visible files, companions excepted, count as ignored. */
tdm_status tdmi_listing_add_files(struct tdmi_listing *self, const char *folder,
                                  const struct tdmi_file_names *names, tdm_error *err) TDM_MUST_USE;

/* All copy the string. */
tdm_status tdmi_listing_add_item(struct tdmi_listing *listing, struct tdmi_item item,
                                 tdm_error *err) TDM_MUST_USE;
/* The record `number` of the file `name`, as "name#number". */
tdm_status tdmi_listing_add_record(struct tdmi_listing *listing, const char *name, int64_t number,
                                   int label, enum tdmi_part part, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_listing_add_class(struct tdmi_listing *listing, const char *name,
                                  tdm_error *err) TDM_MUST_USE;
/* For formats that number their classes (0–255) without naming them: the numbers that occur become
 * the names of the classes, in order, and the labels of the items indices of these. */
tdm_status tdmi_listing_classes_of_numbers(struct tdmi_listing *listing,
                                           tdm_error *err) TDM_MUST_USE;

/* ---- labels -------------------------------------------------------------------------------- */

/* Lists, shards and tables give an image's class as a word. Every distinct word becomes a class.
 * Classes are in numeric order where all words are whole numbers, whatever the first one is, else
 * in byte order; the words stay the names, so the mapping is kept, unless the source has names. */
struct tdmi_label {
    const char *word; /* in the arena */
    const char *name; /* of its class; NULL: the word */
    int64_t number;   /* of a word that is a whole number */
    int index;        /* of its class */
};

struct tdmi_labels { /* start from a zeroed object */
    tdmi_arena arena;
    struct tdmi_label *list; /* in the order they came */
    int64_t capacity;
    int n;
    int *slots; /* a hash table: index of a label + 1, or 0 */
    int n_slots;
    bool has_texts;     /* some word is no whole number */
    const char **names; /* of all classes by number, where the source has them */
    int n_names;
};

void tdmi_labels_release(struct tdmi_labels *labels);
/* A provisional number of the word: the same for equal words. TDM_E_INPUT: a zero byte in it. */
tdm_status tdmi_labels_number(struct tdmi_labels *labels, const char *word, size_t length_bytes,
                              int *number, tdm_error *err) TDM_MUST_USE;
/* A string, or a whole number, as the word it is; false: neither, or empty. */
bool tdmi_labels_word(const tdm_json_value *value, tdmi_text *word);
/* Add the classes to the listing, in order, and replace the provisional numbers of its items by the
 * indices of the classes (-1 stays). The listing has no classes before. TDM_E_INPUT: two classes
 * have one name, or labels->names has no name for a word. */
tdm_status tdmi_labels_finish(struct tdmi_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err) TDM_MUST_USE;

/*
 * A listing: what the sources of this room find when they open a path, held in memory. A source
 * whose struct begins with a listing takes the query entries of its table from here.
 */
#ifndef TANDEM_DATA_LISTING_H
#define TANDEM_DATA_LISTING_H

#include "base/arena.h"
#include "data/source/source.h"

struct tdmi_listing { /* start from a zeroed object, then init */
    tdmi_arena arena; /* names and paths */
    struct tdmi_item *items;
    const char **classes;
    int64_t n_items, item_capacity, n_ignored, class_capacity;
    int n_classes;
};

void tdmi_listing_init(struct tdmi_listing *listing);
void tdmi_listing_release(struct tdmi_listing *listing);

/* "train", "val", "valid", "validation", "test" in any case; anything else is NONE. */
enum tdmi_part tdmi_part_named(const char *name);

/* A part that stands alone says nothing about the others: its items are still to be split. */
void tdmi_listing_forget_lone_part(struct tdmi_listing *listing);

/* Both copy the string. */
tdm_status tdmi_listing_add_item(struct tdmi_listing *listing, const char *path, int label,
                                 enum tdmi_part part, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_listing_add_class(struct tdmi_listing *listing, const char *name,
                                  tdm_error *err) TDM_MUST_USE;
/* For formats that number their classes without naming them (labels 0–255): the numbers that occur
 * become the classes, in order, and the labels of the items their indices. */
tdm_status tdmi_listing_classes_of_numbers(struct tdmi_listing *listing,
                                           tdm_error *err) TDM_MUST_USE;

/* Entries of struct tdmi_source_table; self points at a struct that begins with a listing. */
int tdmi_listing_n_classes(const void *self);
const char *tdmi_listing_class_name(const void *self, int index);
int64_t tdmi_listing_n_items(const void *self);
struct tdmi_item tdmi_listing_item(const void *self, int64_t index);
int64_t tdmi_listing_n_ignored(const void *self);

#endif

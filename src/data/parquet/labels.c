/* A hash table of distinct values; sorted once when all are known. */
#include "data/parquet/labels.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 4096, LARGEST_CLASSES = 1 << 20 };

void tdmi_parquet_labels_init(struct tdmi_parquet_labels *labels)
{
    *labels = (struct tdmi_parquet_labels){.are_numbers = true};
    tdmi_arena_init(&labels->arena, 0);
}

void tdmi_parquet_labels_release(struct tdmi_parquet_labels *labels)
{
    tdmi_free(labels->labels);
    tdmi_free(labels->chains);
    tdmi_arena_release(&labels->arena);
    *labels = (struct tdmi_parquet_labels){0};
}

static tdm_status out_of_memory(tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the labels of a table");
}

/* "7" and "-1", but not "07", "+7" or "": the text of a number must be its only one. */
static bool is_integer(const char *key, int64_t *number)
{
    char back[32], *end;
    errno = 0;
    *number = strtoll(key, &end, 10);
    if (errno != 0 || *end != '\0' || end == key)
        return false;
    snprintf(back, sizeof back, "%lld", (long long)*number);
    return strcmp(back, key) == 0;
}

static tdm_status grow(struct tdmi_parquet_labels *labels, tdm_error *err)
{
    if (labels->chains == NULL) {
        labels->chains = tdmi_alloc(CHAINS, sizeof *labels->chains);
        if (labels->chains == NULL)
            return out_of_memory(err);
        for (int c = 0; c < CHAINS; c++)
            labels->chains[c] = -1;
        labels->n_chains = CHAINS;
    }
    if (labels->n_labels < labels->capacity)
        return TDM_OK;
    if (labels->n_labels == LARGEST_CLASSES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the column of labels has more than %d different values, which cannot be "
                        "classes: name another column",
                        LARGEST_CLASSES);
    return TDMI_GROW(labels->labels, labels->capacity, labels->n_labels) ? TDM_OK
                                                                         : out_of_memory(err);
}

tdm_status tdmi_parquet_labels_add(struct tdmi_parquet_labels *labels, const char *key,
                                   size_t key_bytes, int *id, tdm_error *err)
{
    TDM_TRY(grow(labels, err), err, "cannot add the label '%.*s'",
            (int)(key_bytes < 80 ? key_bytes : 80), key);
    if (memchr(key, '\0', key_bytes) != NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "a label holds a zero byte: labels are integers or text");
    int *chain = &labels->chains[tdmi_xxh64_of(key, key_bytes, 0) % (uint64_t)labels->n_chains];
    for (int i = *chain; i >= 0; i = labels->labels[i].next)
        if (strncmp(labels->labels[i].key, key, key_bytes) == 0 &&
            labels->labels[i].key[key_bytes] == '\0') {
            *id = i;
            return TDM_OK;
        }
    char *copy = tdmi_arena_printf(&labels->arena, "%.*s", (int)key_bytes, key);
    if (copy == NULL)
        return out_of_memory(err);
    struct tdmi_label *label = &labels->labels[labels->n_labels];
    *label = (struct tdmi_label){.key = copy, .next = *chain};
    labels->are_numbers = is_integer(copy, &label->number) && labels->are_numbers;
    *chain = *id = labels->n_labels++;
    return TDM_OK;
}

tdm_status tdmi_parquet_labels_name(struct tdmi_parquet_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err)
{
    struct tdmi_label *label = &labels->labels[id];
    if (label->name == NULL) {
        label->name = tdmi_arena_printf(&labels->arena, "%.*s", (int)name_bytes, name);
        return label->name == NULL ? out_of_memory(err) : TDM_OK;
    }
    if (strncmp(label->name, name, name_bytes) != 0 || label->name[name_bytes] != '\0')
        return TDM_FAIL(err, TDM_E_INPUT,
                        "label %s is class '%s' in one row and '%.*s' in another: the table "
                        "contradicts itself",
                        label->key, label->name, (int)name_bytes, name);
    return TDM_OK;
}

static int compare_numbers(const void *a_, const void *b_)
{
    const struct tdmi_label *const *a = a_, *const *b = b_;
    return ((*a)->number > (*b)->number) - ((*a)->number < (*b)->number);
}

static int compare_texts(const void *a_, const void *b_)
{
    const struct tdmi_label *const *a = a_, *const *b = b_;
    return strcmp((*a)->key, (*b)->key);
}

/* The label's number says which of the names it is. */
static tdm_status take_names(struct tdmi_parquet_labels *labels, const char *const *names,
                             int n_names, struct tdmi_listing *listing, tdm_error *err)
{
    for (int i = 0; i < labels->n_labels; i++) {
        struct tdmi_label *label = &labels->labels[i];
        if (!labels->are_numbers || label->number < -1 || label->number >= n_names)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "label '%s' is none of the %d classes that the table names, which are "
                            "numbered from 0",
                            label->key, n_names);
        label->index = (int)label->number; /* -1: without label */
    }
    for (int i = 0; i < n_names; i++)
        TDM_TRY(tdmi_listing_add_class(listing, names[i], err), err, "cannot list the classes");
    return TDM_OK;
}

static tdm_status take_labels(struct tdmi_parquet_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err)
{
    size_t n = (size_t)labels->n_labels;
    struct tdmi_label **sorted = tdmi_alloc(n, sizeof *sorted);
    if (sorted == NULL)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &labels->labels[i];
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, labels->are_numbers ? compare_numbers : compare_texts);
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < n && status == TDM_OK; i++) {
        sorted[i]->index = (int)i;
        status = tdmi_listing_add_class(
            listing, sorted[i]->name != NULL ? sorted[i]->name : sorted[i]->key, err);
    }
    tdmi_free(sorted);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tdm_status check_names(const struct tdmi_listing *listing, tdm_error *err)
{
    size_t n = (size_t)listing->n_classes;
    const char **sorted = tdmi_alloc(n, sizeof *sorted);
    if (sorted == NULL)
        return out_of_memory(err);
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < n; i++)
        sorted[i] = listing->classes[i];
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < n && status == TDM_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = TDM_FAIL(err, TDM_E_INPUT, "two labels have the class name '%s'", sorted[i]);
    tdmi_free(sorted);
    return status;
}

tdm_status tdmi_parquet_labels_finish(struct tdmi_parquet_labels *labels, const char *const *names,
                                      int n_names, struct tdmi_listing *listing, tdm_error *err)
{
    TDM_TRY(n_names > 0 ? take_names(labels, names, n_names, listing, err)
                        : take_labels(labels, listing, err),
            err, "cannot make classes of the labels");
    TDM_TRY(check_names(listing, err), err, "cannot make classes of the labels");
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[i].label = labels->labels[listing->items[i].label].index;
    return TDM_OK;
}

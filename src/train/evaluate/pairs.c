/*
 * Both lists are sorted by content and class and must be equal to the last entry, or nothing is
 * counted: a test on the images that two lists share would be one of other images than either was
 * chosen by. Entries of one content count once, and as right only where all of them are.
 */
#include "train/evaluate/pairs.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct evaluated {
    uint64_t content;
    int32_t label; /* in A's classes; -1: A lacks it */
    bool is_right;
};

static int by_image(const void *a, const void *b)
{
    const struct evaluated *left = a, *right = b;
    if (left->content != right->content)
        return left->content < right->content ? -1 : 1;
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return (int)left->is_right - (int)right->is_right;
}

struct named {
    const char *name;
    int index;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* map[class of b] is the class of a with this name, or -1. */
static void match_classes(const tdmi_outcomes *a, const tdmi_outcomes *b, struct named *sorted,
                          int *map)
{
    for (int c = 0; c < a->n_classes; c++)
        sorted[c] = (struct named){a->classes[c], c};
    qsort(sorted, (size_t)a->n_classes, sizeof *sorted, by_name);
    for (int c = 0; c < b->n_classes; c++) {
        const struct named key = {b->classes[c], -1};
        const struct named *found =
            bsearch(&key, sorted, (size_t)a->n_classes, sizeof *sorted, by_name);
        map[c] = found ? found->index : -1;
    }
}

static void sort_images(const tdmi_outcomes *outcomes, const int *map, struct evaluated *images)
{
    for (int64_t i = 0; i < outcomes->n; i++) {
        const int label = outcomes->labels[i];
        images[i] = (struct evaluated){outcomes->contents[i], map ? map[label] : label,
                                       label == outcomes->predicted[i]};
    }
    if (outcomes->n > 0)
        qsort(images, (size_t)outcomes->n, sizeof *images, by_image);
}

static bool are_equal(const struct evaluated *a, const struct evaluated *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i].content == 0 || a[i].content != b[i].content || a[i].label != b[i].label)
            return false;
    return true;
}

static void count(const struct evaluated *a, const struct evaluated *b, int64_t n,
                  struct tdmi_pairs *pairs)
{
    for (int64_t i = 0, end; i < n; i = end) {
        bool is_a = true, is_b = true;
        for (end = i; end < n && a[end].content == a[i].content; end++) {
            is_a &= a[end].is_right;
            is_b &= b[end].is_right;
        }
        pairs->both += is_a && is_b;
        pairs->only_a += is_a && !is_b;
        pairs->only_b += !is_a && is_b;
        pairs->neither += !is_a && !is_b;
    }
}

tdm_status tdmi_outcomes_pair(const tdmi_outcomes *a, const tdmi_outcomes *b,
                              struct tdmi_pairs *pairs, bool *are_same, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct evaluated *left = NULL;
    TDMI_AT_END(tdmi_free_at) struct evaluated *right = NULL;
    TDMI_AT_END(tdmi_free_at) struct named *sorted = NULL;
    TDMI_AT_END(tdmi_free_at) int *map = NULL;
    *pairs = (struct tdmi_pairs){0};
    *are_same = a->n == b->n;
    if (!*are_same)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(left, a->n, err));
    TDMI_TRY(TDMI_NEW(right, b->n, err));
    TDMI_TRY(TDMI_NEW(sorted, a->n_classes, err));
    TDMI_TRY(TDMI_NEW(map, b->n_classes, err));
    match_classes(a, b, sorted, map);
    sort_images(a, NULL, left);
    sort_images(b, map, right);
    *are_same = are_equal(left, right, a->n);
    if (*are_same)
        count(left, right, a->n, pairs);
    return TDM_OK;
}

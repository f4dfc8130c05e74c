/*
 * Placing buffers with known lifetimes: largest first, each at the lowest offset where nothing that
 * lives at the same time is in the way. Known to come close to the best possible on networks.
 */
#include "graph/plan.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const struct tdmi_buffer *x = *(struct tdmi_buffer *const *)a;
    const struct tdmi_buffer *y = *(struct tdmi_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->last > y->last) - (x->last < y->last);
}

static bool live_together(const struct tdmi_buffer *a, const struct tdmi_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset for `it` among the placed ones: try 0 and the end of each in the way. */
static size_t lowest_offset(struct tdmi_buffer *const *placed, int n, const struct tdmi_buffer *it)
{
    size_t offset = 0;
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int i = 0; i < n; i++) {
            const struct tdmi_buffer *other = placed[i];
            if (live_together(other, it) && offset < other->offset + other->bytes &&
                other->offset < offset + it->bytes) {
                offset = other->offset + other->bytes;
                has_moved = true;
            }
        }
    }
    return offset;
}

size_t tdmi_place_buffers(struct tdmi_buffer **buffers, int n)
{
    size_t total = 0;
    int n_placed = 0;
    qsort(buffers, (size_t)n, sizeof *buffers, larger_first);
    for (int i = 0; i < n; i++) {
        struct tdmi_buffer *it = buffers[i];
        if (it->bytes == 0)
            continue;
        it->bytes = (it->bytes + 63) / 64 * 64;
        it->offset = lowest_offset(buffers, n_placed, it);
        if (it->offset + it->bytes > total)
            total = it->offset + it->bytes;
        buffers[n_placed++] = it; /* those without bytes sort last: nothing is overwritten */
    }
    return total;
}

/* The fixed tree of additions. */
#include "dist/tree.h"
#include "base/system/multiversion.h"

/* block_values: of each array at a time, so that sums that are not kept still are in the first
 * cache when they are added on; fewer where so many of those wait that they would not be: a frame
 * of 16 KiB holds them. */
enum { block_values = 512, kept_values = 8 * block_values };

TDMI_MULTIVERSION
static void add(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

TDMI_MULTIVERSION
static void add_both(float *restrict to, const float *restrict left, const float *restrict right,
                     int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = left[i] + right[i];
}

bool tdmi_tree_is_subtree(int first, int end, int n_groups)
{
    int span = 1;
    while (span < end - first)
        span *= 2;
    return first % span == 0 && (first + span == end || end == n_groups);
}

int tdmi_tree_roots(int first, int end, int n_groups, int roots[TDMI_TREE_ROOTS])
{
    int n = 0;
    while (first < end) {
        int span = 1;
        while (first % (2 * span) == 0 && (first + 2 * span <= end || end == n_groups) &&
               span < end - first)
            span *= 2;
        roots[n++] = first;
        first += span;
    }
    return n;
}

/* Parts come from the left; the last two are added as soon as they are a subtree together, and then
 * perhaps again with the one before. Two subtrees side by side that are one together are its two
 * children: the left one's size is the largest power of two below the whole's. A sum is kept only
 * where nothing is added to it any more. */
int tdmi_tree_plan(const struct tdmi_tree_part *parts, int n_parts, int end, int n_groups,
                   struct tdmi_tree_addition *additions)
{
    struct {
        int first, part, at; /* its first group and part, and where its sum is */
        int last;            /* the addition that made it; -1: it is a part */
    } waiting[TDMI_TREE_ROOTS];
    int n_waiting = 0, n = 0;
    for (int i = 0; i < n_parts; i++) {
        const int until = i + 1 < n_parts ? parts[i + 1].first : end;
        waiting[n_waiting].first = parts[i].first;
        waiting[n_waiting].part = waiting[n_waiting].at = i;
        waiting[n_waiting++].last = -1;
        while (n_waiting > 1 &&
               tdmi_tree_is_subtree(waiting[n_waiting - 2].first, until, n_groups)) {
            const int to = -(n_waiting - 1);
            n_waiting--;
            additions[n] =
                (struct tdmi_tree_addition){to, waiting[n_waiting - 1].at, waiting[n_waiting].at};
            waiting[n_waiting - 1].at = to;
            waiting[n_waiting - 1].last = n++;
        }
    }
    for (int i = 0; i < n_waiting; i++)
        if (waiting[i].last >= 0)
            additions[waiting[i].last].to = waiting[i].part;
    return n;
}

void tdmi_tree_sum(const struct tdmi_tree_part *parts, const struct tdmi_tree_addition *additions,
                   int n_additions, int64_t first, int64_t n)
{
    float sums[kept_values];
    int n_levels = kept_values / block_values;
    for (int i = 0; i < n_additions; i++)
        n_levels = -additions[i].to > n_levels ? -additions[i].to : n_levels;
    const int64_t block = kept_values / n_levels / 16 * 16; /* whole vectors */
    for (int64_t at = first; at < first + n; at += block) {
        const int64_t left = first + n - at, n_now = left < block ? left : block;
        for (int i = 0; i < n_additions; i++) {
            const struct tdmi_tree_addition *it = &additions[i];
            float *to = it->to < 0 ? sums + (-it->to - 1) * block : parts[it->to].values + at;
            const float *a =
                it->left < 0 ? sums + (-it->left - 1) * block : parts[it->left].values + at;
            const float *b =
                it->right < 0 ? sums + (-it->right - 1) * block : parts[it->right].values + at;
            if (to == a)
                add(to, b, n_now);
            else
                add_both(to, a, b, n_now);
        }
    }
}

void tdmi_tree_sum_rows(double *rows, int n_groups, int64_t n)
{
    for (int distance = 1; distance < n_groups; distance *= 2) {
        for (int left = 0; left + distance < n_groups; left += 2 * distance) {
            double *to = rows + left * n;
            const double *from = rows + (left + distance) * n;
            for (int64_t i = 0; i < n; i++)
                to[i] += from[i];
        }
    }
}

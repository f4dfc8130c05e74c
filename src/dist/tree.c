/* The fixed tree of additions. */
#include "dist/tree.h"
#include "base/multiversion.h"

/* Of each array at a time, so that sums of a level still are in the first cache at the next. */
enum { block_values = 512 };

TDMI_MULTIVERSION
static void add(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void sum_block(float *const *arrays, int n_shards, int64_t first, int64_t n)
{
    for (int distance = 1; distance < n_shards; distance *= 2)
        for (int left = 0; left + distance < n_shards; left += 2 * distance)
            add(arrays[left] + first, arrays[left + distance] + first, n);
}

void tdmi_tree_sum(float *const *arrays, int n_shards, int64_t first, int64_t n)
{
    for (int64_t at = 0; at < n; at += block_values)
        sum_block(arrays, n_shards, first + at, n - at < block_values ? n - at : block_values);
}

void tdmi_tree_sum_rows(double *rows, int n_shards, int64_t n)
{
    for (int distance = 1; distance < n_shards; distance *= 2) {
        for (int left = 0; left + distance < n_shards; left += 2 * distance) {
            double *to = rows + left * n;
            const double *from = rows + (left + distance) * n;
            for (int64_t i = 0; i < n; i++)
                to[i] += from[i];
        }
    }
}

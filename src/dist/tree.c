/* The fixed tree of additions. */
#include "dist/tree.h"

void tdmi_tree_sum(float *const *arrays, int n_shards, int64_t first, int64_t n)
{
    for (int distance = 1; distance < n_shards; distance *= 2) {
        for (int left = 0; left + distance < n_shards; left += 2 * distance) {
            float *to = arrays[left] + first;
            const float *from = arrays[left + distance] + first;
            for (int64_t i = 0; i < n; i++)
                to[i] += from[i];
        }
    }
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

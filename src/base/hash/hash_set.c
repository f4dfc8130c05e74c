/* Sets of 64-bit hashes as sorted arrays. */
#include "base/hash/hash.h"
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void tdmi_hashes_sort(uint64_t *hashes, int64_t n)
{
    if (n > 1)
        qsort(hashes, (size_t)n, sizeof *hashes, ascending);
}

bool tdmi_hashes_have(const uint64_t *hashes, int64_t n, uint64_t hash)
{
    return n > 0 && bsearch(&hash, hashes, (size_t)n, sizeof hash, ascending) != NULL;
}

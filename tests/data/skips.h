/* Number of images that a loader skipped, as far as it keeps them (100). */
#ifndef TANDEM_TESTS_DATA_SKIPS_H
#define TANDEM_TESTS_DATA_SKIPS_H

#include "data/loader/loader.h"

static inline int64_t loader_skips(const tdmi_loader *loader)
{
    char text[TDMI_PROBLEM_BYTES];
    int64_t n = 0;
    while (tdmi_loader_skip_at(loader, n, text, sizeof text))
        n++;
    return n;
}

#endif

/*
 * Memory full of NaN, so that what is read before it is written shows; and values beside the ones
 * they should be, of which NaN is none.
 */
#pragma once

#include "backend/backend.h"
#include "base/memory.h"
#include "unit.h"

#include <math.h>

static inline void *poisoned(tdmi_device *device, size_t bytes)
{
    (void)device;
    void *memory = tdmi_alloc_aligned(bytes);
    if (memory)
        memset(memory, 0xff, bytes);
    return memory;
}

static inline void released(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_free(memory);
}

/* A backend of the host with such memory. */
static inline struct tdmi_backend poisoned_backend(const struct tdmi_backend *of)
{
    struct tdmi_backend backend = *of;
    backend.memory.alloc = poisoned;
    backend.memory.free = released;
    return backend;
}

/* Zeros, to be freed. */
static inline float *room(int64_t n)
{
    float *values = calloc((size_t)n + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

/* By the largest of those wanted. */
static inline void compare(const float *got, const float *wanted, int64_t n, const char *what)
{
    double largest = 1e-3;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)wanted[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)wanted[i]) <= 2e-5 * largest))
            fail_msg("%s[%lld] is %g, wanted %g", what, (long long)i, (double)got[i],
                     (double)wanted[i]);
}

/* One huge page a task. */
#include "base/touch.h"

#include <stdint.h>

enum { step_bytes = 2 << 20, page_bytes = 4096, small_bytes = 4 << 20 };

struct block {
    char *memory;
    size_t bytes;
};

static tdm_status touch(void *self, int index, int worker, tdm_error *err)
{
    const struct block *block = self;
    (void)worker;
    (void)err;
    size_t at = (size_t)index * step_bytes, end = at + step_bytes;
    for (end = end < block->bytes ? end : block->bytes; at < end; at += page_bytes)
        ((volatile char *)block->memory)[at] = 0;
    return TDM_OK;
}

void tdmi_touch_spread(tdmi_pool *pool, void *memory, size_t bytes)
{
    struct block block = {memory, bytes};
    const size_t n = (bytes + step_bytes - 1) / step_bytes;
    if (bytes < small_bytes || tdmi_pool_threads(pool) == 1 || n > INT32_MAX)
        return;
    const tdm_status never_fails = tdmi_pool_run(pool, (int)n, touch, &block, NULL);
    (void)never_fails;
}

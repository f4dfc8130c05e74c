/*
 * The one place that calls malloc. The call counter and the injected failure are process-wide and
 * atomic: besides the log level and the stop flag they are the only mutable file-scope data,
 * because a test must be able to break an allocation that happens deep inside any thread.
 */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic int64_t calls;
static _Atomic int64_t fail_from; /* number of the first call that fails; 0: none */

static bool must_fail(void)
{
    int64_t number = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    int64_t first = atomic_load_explicit(&fail_from, memory_order_relaxed);
    return first != 0 && number >= first;
}

/* Objects above PTRDIFF_MAX break pointer differences, so they are refused like an overflow. */
static bool product_fits(size_t count, size_t item_bytes)
{
    return item_bytes == 0 || count <= (size_t)PTRDIFF_MAX / item_bytes;
}

void *tdmi_alloc(size_t count, size_t item_bytes)
{
    if (must_fail() || !product_fits(count, item_bytes))
        return NULL;
    if (count == 0 || item_bytes == 0)
        return calloc(1, 1);
    return calloc(count, item_bytes);
}

/* alignment is a power of two. */
static void *alloc_at(size_t alignment, size_t bytes, bool is_large)
{
    if (must_fail() || bytes > (size_t)PTRDIFF_MAX - alignment)
        return NULL;
    size_t rounded = bytes ? (bytes + alignment - 1) / alignment * alignment : alignment;
    void *block = aligned_alloc(alignment, rounded);
    if (block && is_large)
        (void)madvise(block, rounded, MADV_HUGEPAGE); /* small pages do as well, only slower */
    if (block)
        memset(block, 0, rounded);
    return block;
}

void *tdmi_alloc_aligned(size_t bytes)
{
    return alloc_at(64, bytes, false);
}

void *tdmi_alloc_large(size_t bytes)
{
    const size_t huge_page = (size_t)2 << 20;
    bool is_large = bytes >= 2 * huge_page;
    return alloc_at(is_large ? huge_page : 64, bytes, is_large);
}

void *tdmi_realloc(void *block, size_t count, size_t item_bytes)
{
    if (must_fail() || !product_fits(count, item_bytes))
        return NULL;
    size_t bytes = count * item_bytes;
    return realloc(block, bytes ? bytes : 1);
}

void tdmi_free(void *block)
{
    free(block);
}

void tdmi_memory_fail_from(int64_t n)
{
    int64_t first = n > 0 ? atomic_load_explicit(&calls, memory_order_relaxed) + n : 0;
    atomic_store_explicit(&fail_from, first, memory_order_relaxed);
}

int64_t tdmi_memory_calls(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

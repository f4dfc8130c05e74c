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

/* Sanitizers that watch what malloc gives. */
#if defined(__has_feature) /* Clang */
#define IS_WATCHED __has_feature(address_sanitizer)
#define IS_THREADS_WATCHED __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define IS_WATCHED 1
#else
#define IS_WATCHED 0
#endif
#ifdef __SANITIZE_THREAD__
#define IS_THREADS_WATCHED 1
#else
#define IS_THREADS_WATCHED 0
#endif
#endif

/* Objects above PTRDIFF_MAX break pointer differences, so they are refused like an overflow. Under
 * a sanitizer less is: its malloc ends the program from 2^40 bytes on, where others give NULL. */
#if IS_WATCHED || IS_THREADS_WATCHED
static const size_t most_bytes = (size_t)1 << 39;
#else
static const size_t most_bytes = (size_t)PTRDIFF_MAX;
#endif

static bool product_fits(size_t count, size_t item_bytes)
{
    return item_bytes == 0 || count <= most_bytes / item_bytes;
}

void *tdmi_alloc(size_t count, size_t item_bytes)
{
    if (must_fail() || !product_fits(count, item_bytes))
        return NULL;
    if (count == 0 || item_bytes == 0)
        return calloc(1, 1);
    return calloc(count, item_bytes);
}

void *tdmi_alloc_aligned(size_t bytes)
{
    const size_t line = 64;
    if (must_fail() || bytes > most_bytes - line)
        return NULL;
    size_t rounded = bytes ? (bytes + line - 1) / line * line : line;
    void *block = aligned_alloc(line, rounded);
    if (block)
        memset(block, 0, rounded);
    return block;
}

/* ---- large blocks: pages of their own ------------------------------------------------------- */

/* In the line right before a large block. */
struct large {
    void *mapped;
    size_t mapped_bytes; /* 0: of malloc */
};

enum { LINE = 64 };

/* AddressSanitizer must see writes past a large block, too. */
#if IS_WATCHED
static const size_t large_from = SIZE_MAX;
#else
static const size_t large_from = (size_t)4 << 20;
#endif

static struct large *large_of(void *block)
{
    return (struct large *)(void *)((char *)block - LINE);
}

/* Nothing is touched here but one page: the others come zeroed from the system when the thread that
 * works there first writes to them, and those that nobody needs never come. */
static void *map_large(size_t bytes)
{
    const size_t huge_page = (size_t)2 << 20;
    size_t mapped_bytes = bytes + 2 * huge_page;
    void *mapped =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    uintptr_t first = ((uintptr_t)mapped + LINE + huge_page - 1) / huge_page * huge_page;
    void *block = (char *)mapped + (first - (uintptr_t)mapped);
    size_t whole_bytes = (bytes + huge_page / 2) / huge_page * huge_page; /* else 256 small ones */
    if (whole_bytes < bytes)
        whole_bytes = bytes;
    (void)madvise(block, whole_bytes, MADV_HUGEPAGE); /* small pages do as well, only slower */
    *large_of(block) = (struct large){mapped, mapped_bytes};
    return block;
}

void *tdmi_alloc_large(size_t bytes)
{
    if (bytes < large_from) {
        char *mapped = tdmi_alloc_aligned(bytes + LINE);
        if (!mapped)
            return NULL;
        *large_of(mapped + LINE) = (struct large){mapped, 0};
        return mapped + LINE;
    }
    if (must_fail() || bytes > (size_t)PTRDIFF_MAX - large_from)
        return NULL;
    return map_large(bytes);
}

void tdmi_free_large(void *block)
{
    if (!block)
        return;
    struct large large = *large_of(block);
    if (large.mapped_bytes)
        (void)munmap(large.mapped, large.mapped_bytes);
    else
        tdmi_free(large.mapped);
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

/* Not counted, but failing where the next allocation is to fail. */
bool tdmi_memory_has_room(size_t bytes)
{
    const size_t of_pages = 64 * 1024; /* malloc would remember a larger one that was freed */
    int64_t first = atomic_load_explicit(&fail_from, memory_order_relaxed);
    if (first != 0 && atomic_load_explicit(&calls, memory_order_relaxed) + 1 >= first)
        return false;
    if (bytes < of_pages) {
        void *volatile block = malloc(bytes); /* volatile: else it is not called */
        bool has_room = block != NULL;
        free(block);
        return has_room;
    }
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    (void)munmap(mapped, bytes);
    return true;
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

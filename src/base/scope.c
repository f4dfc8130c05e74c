/* Arrays that grow, and allocations that fail with a sentence; the rest of scope.h is macros. */
#include "base/scope.h"

#include <unistd.h>

void tdmi_close_at(const int *descriptor)
{
    if (*descriptor >= 0)
        (void)close(*descriptor);
}

/* memcpy: array is the address of a pointer of any type. */
bool tdmi_grow(void *array, int64_t *capacity, int64_t n, size_t item_bytes)
{
    void *block;
    if (n < *capacity)
        return true;
    memcpy(&block, array, sizeof block);
    const int64_t grown = *capacity == 0 ? 16 : 2 * *capacity;
    block = tdmi_realloc(block, (size_t)grown, item_bytes);
    if (block == NULL)
        return false;
    memcpy(array, &block, sizeof block);
    *capacity = grown;
    return true;
}

static tdm_status no_memory(size_t count, size_t item_bytes, const char *file, int line,
                            tdm_error *err)
{
    return tdm_error_start(err, TDM_E_MEMORY, file, line, "no memory for %zu x %zu bytes", count,
                           item_bytes);
}

tdm_status tdmi_new(void *pointer, size_t count, size_t item_bytes, const char *file, int line,
                    tdm_error *err)
{
    void *block = tdmi_alloc(count, item_bytes);
    memcpy(pointer, &block, sizeof block);
    return block == NULL ? no_memory(count, item_bytes, file, line, err) : TDM_OK;
}

tdm_status tdmi_make_room(void *array, int64_t *capacity, int64_t n, size_t item_bytes,
                          const char *file, int line, tdm_error *err)
{
    return tdmi_grow(array, capacity, n, item_bytes)
               ? TDM_OK
               : no_memory((size_t)n + 1, item_bytes, file, line, err);
}

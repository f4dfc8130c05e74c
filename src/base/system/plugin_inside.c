/*
 * Part of every libtandem_<name>.so and of no other library: its one symbol, and the functions of
 * libtandem that its files call, which go back to the libtandem that opened it. (Errors are plain
 * values, so base/error.c is simply linked again.)
 */
#include "base/memory.h"
#include "base/system/plugin.h"
#include "tandem/api.h"
#include "tandem/event.h"

#include <stdatomic.h>

/* Written before anything else here can run, with the same value each time. */
static const struct tdmi_plugin_host *_Atomic host;

void *tdmi_alloc(size_t count, size_t item_bytes)
{
    return atomic_load_explicit(&host, memory_order_relaxed)->alloc(count, item_bytes);
}

void *tdmi_alloc_aligned(size_t bytes)
{
    return atomic_load_explicit(&host, memory_order_relaxed)->alloc_aligned(bytes);
}

void *tdmi_realloc(void *block, size_t count, size_t item_bytes)
{
    return atomic_load_explicit(&host, memory_order_relaxed)->realloc(block, count, item_bytes);
}

void tdmi_free(void *block)
{
    atomic_load_explicit(&host, memory_order_relaxed)->free(block);
}

bool tdmi_memory_has_room(size_t bytes)
{
    return atomic_load_explicit(&host, memory_order_relaxed)->has_room(bytes);
}

bool tdm_stop_is_requested(void)
{
    return atomic_load_explicit(&host, memory_order_relaxed)->is_stop_requested();
}

/* Defined by the files of the library. */
const void *tdmi_plugin_table(size_t *table_bytes);

TDM_API const void *tdmi_plugin(const struct tdmi_plugin_host *loader, const char **made_by,
                                size_t *table_bytes);

const void *tdmi_plugin(const struct tdmi_plugin_host *loader, const char **made_by,
                        size_t *table_bytes)
{
    atomic_store_explicit(&host, loader, memory_order_release);
    *made_by = tdm_version();
    return tdmi_plugin_table(table_bytes);
}

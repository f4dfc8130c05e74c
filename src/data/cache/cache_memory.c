/*
 * One block, filled from its start by an atomic counter, and one entry a sample. An entry goes from
 * empty to being written to complete, never back, so readers need no lock: "complete" is stored
 * after the bytes.
 */
#include "data/cache/cache_memory.h"

#include <stdatomic.h>

enum { EMPTY, WRITTEN_NOW, COMPLETE };

struct entry {
    int64_t offset;
    uint32_t length_bytes;
    _Atomic uint32_t state;
};

struct tdmi_memory_cache {
    struct entry *entries;
    char *bytes;
    int64_t capacity_bytes;
    _Atomic int64_t used;
};

int64_t tdmi_memory_cache_overhead(int64_t n_samples)
{
    return n_samples * (int64_t)sizeof(struct entry) + (int64_t)sizeof(struct tdmi_memory_cache);
}

tdm_status tdmi_memory_cache_new(int64_t n_samples, int64_t capacity_bytes,
                                 tdmi_memory_cache **cache, tdm_error *err)
{
    TDMI_AT_END(tdmi_memory_cache_free_at) tdmi_memory_cache *made = NULL;
    *cache = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(TDMI_NEW(made->entries, n_samples, err));
    TDMI_TRY(TDMI_NEW(made->bytes, capacity_bytes, err));
    made->capacity_bytes = capacity_bytes;
    *cache = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_memory_cache_free(tdmi_memory_cache *cache)
{
    if (cache == NULL)
        return;
    tdmi_free(cache->bytes);
    tdmi_free(cache->entries);
    tdmi_free(cache);
}

const void *tdmi_memory_cache_get(const tdmi_memory_cache *cache, int64_t sample,
                                  size_t *length_bytes)
{
    struct entry *entry = &cache->entries[sample];
    if (atomic_load_explicit(&entry->state, memory_order_acquire) != COMPLETE)
        return NULL;
    *length_bytes = entry->length_bytes;
    return cache->bytes + entry->offset;
}

/* Offset where so many bytes may be written, or -1. */
static int64_t reserve(tdmi_memory_cache *cache, int64_t bytes)
{
    int64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    do
        if (bytes > cache->capacity_bytes - used)
            return -1;
    while (!atomic_compare_exchange_weak_explicit(&cache->used, &used, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed));
    return used;
}

void tdmi_memory_cache_put(tdmi_memory_cache *cache, int64_t sample, const void *bytes,
                           size_t length_bytes)
{
    struct entry *entry = &cache->entries[sample];
    uint32_t state = EMPTY;
    if (length_bytes > UINT32_MAX ||
        !atomic_compare_exchange_strong_explicit(&entry->state, &state, WRITTEN_NOW,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    int64_t offset = reserve(cache, (int64_t)length_bytes);
    if (offset < 0) {
        atomic_store_explicit(&entry->state, EMPTY, memory_order_relaxed);
        return;
    }
    memcpy(cache->bytes + offset, bytes, length_bytes);
    entry->offset = offset;
    entry->length_bytes = (uint32_t)length_bytes;
    atomic_store_explicit(&entry->state, COMPLETE, memory_order_release);
}

/*
 * A cache in memory: byte strings by sample, for any number of threads. Nothing is ever evicted: an
 * epoch reads every sample once in a new order, so eviction would not raise the hit rate.
 */
#pragma once

#include "base/scope.h"

typedef struct tdmi_memory_cache tdmi_memory_cache;

/* Bytes that a cache of so many samples needs beside what it keeps. */
int64_t tdmi_memory_cache_overhead(int64_t n_samples);
/* Allocated once, filled up to capacity_bytes. */
tdm_status tdmi_memory_cache_new(int64_t n_samples, int64_t capacity_bytes,
                                 tdmi_memory_cache **cache, tdm_error *err) TDM_MUST_USE;
void tdmi_memory_cache_free(tdmi_memory_cache *cache);
TDMI_POINTER_RELEASE(tdmi_memory_cache, tdmi_memory_cache_free)

/* Lent for the cache's life; NULL: not here. */
const void *tdmi_memory_cache_get(const tdmi_memory_cache *cache, int64_t sample,
                                  size_t *length_bytes);
/* Copies the bytes, if there is room and the sample is not cached yet. */
void tdmi_memory_cache_put(tdmi_memory_cache *cache, int64_t sample, const void *bytes,
                           size_t length_bytes);

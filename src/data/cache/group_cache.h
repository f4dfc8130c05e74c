/*
 * A cache of decoded groups, shared by threads: the first thread that needs a group loads it, the
 * others wait for it, and the least recently used group is evicted first.
 */
#pragma once

#include "base/scope.h"

typedef struct tdmi_group_cache tdmi_group_cache;

struct tdmi_group_loader {
    void *self;
    /* *n_bytes is what the group counts for. Called by one thread for one group, by several for
     * several. */
    tdm_status (*load)(void *self, int64_t group, void **value, int64_t *n_bytes, tdm_error *err);
    void (*drop)(void *self, void *value);
};

/* A group larger than limit_bytes is loaded all the same. The group used last always stays, so that
 * reading its items one after the other loads it once. */
tdm_status tdmi_group_cache_new(int64_t limit_bytes, const struct tdmi_group_loader *loader,
                                tdmi_group_cache **cache, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL; no group may be taken. */
void tdmi_group_cache_free(tdmi_group_cache *cache);
TDMI_POINTER_RELEASE(tdmi_group_cache, tdmi_group_cache_free)

/* *value stays until every take was matched by a give. Any thread. The next take repeats a failed
 * load. */
tdm_status tdmi_group_cache_take(tdmi_group_cache *cache, int64_t group, const void **value,
                                 tdm_error *err) TDM_MUST_USE;
void tdmi_group_cache_give(tdmi_group_cache *cache, int64_t group);

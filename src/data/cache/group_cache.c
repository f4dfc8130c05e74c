/*
 * A table of chains by group number, and a list of the idle groups from the one idle longest to the
 * latest. One lock for all: it is held for the length of a few pointers, never while loading.
 */
#include "data/cache/group_cache.h"

#include <assert.h>
#include <pthread.h>

enum { CHAINS = 1024 };

struct entry {
    int64_t group, n_bytes;
    void *value;
    int n_users; /* idle at 0 */
    bool is_loading;
    struct entry *next_of_chain, *older, *newer; /* older, newer: among the idle */
};

struct tdmi_group_cache {
    struct tdmi_group_loader loader;
    int64_t limit_bytes, held_bytes;
    pthread_mutex_t lock;
    pthread_cond_t was_loaded;
    struct entry *chains[CHAINS];
    struct entry *oldest, *newest;
};

tdm_status tdmi_group_cache_new(int64_t limit_bytes, const struct tdmi_group_loader *loader,
                                tdmi_group_cache **cache, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(*cache, 1, err));
    (*cache)->loader = *loader;
    (*cache)->limit_bytes = limit_bytes;
    pthread_mutex_init(&(*cache)->lock, NULL);
    pthread_cond_init(&(*cache)->was_loaded, NULL);
    return TDM_OK;
}

static struct entry **chain_of(tdmi_group_cache *cache, int64_t group)
{
    return &cache->chains[(uint64_t)group % CHAINS];
}

static struct entry *find(tdmi_group_cache *cache, int64_t group)
{
    struct entry *entry = *chain_of(cache, group);
    while (entry != NULL && entry->group != group)
        entry = entry->next_of_chain;
    return entry;
}

static void unlink_idle(tdmi_group_cache *cache, struct entry *entry)
{
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void link_idle(tdmi_group_cache *cache, struct entry *entry)
{
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static void forget(tdmi_group_cache *cache, struct entry *entry)
{
    struct entry **at = chain_of(cache, entry->group);
    while (*at != entry)
        at = &(*at)->next_of_chain;
    *at = entry->next_of_chain;
    cache->held_bytes -= entry->n_bytes;
    if (entry->value != NULL)
        cache->loader.drop(cache->loader.self, entry->value);
    tdmi_free(entry);
}

static void make_room(tdmi_group_cache *cache)
{
    while (cache->held_bytes > cache->limit_bytes && cache->oldest != NULL &&
           cache->oldest != cache->newest) {
        struct entry *entry = cache->oldest;
        unlink_idle(cache, entry);
        forget(cache, entry);
    }
}

void tdmi_group_cache_free(tdmi_group_cache *cache)
{
    if (cache == NULL)
        return;
    for (int c = 0; c < CHAINS; c++)
        while (cache->chains[c] != NULL) {
            assert(cache->chains[c]->n_users == 0);
            forget(cache, cache->chains[c]);
        }
    pthread_cond_destroy(&cache->was_loaded);
    pthread_mutex_destroy(&cache->lock);
    tdmi_free(cache);
}

/* Called with the lock held by the one user of a fresh entry; returns with it held. */
static tdm_status load(tdmi_group_cache *cache, struct entry *entry, tdm_error *err)
{
    entry->is_loading = true;
    pthread_mutex_unlock(&cache->lock);
    void *value = NULL;
    int64_t n_bytes = 0;
    tdm_status status = cache->loader.load(cache->loader.self, entry->group, &value, &n_bytes, err);
    pthread_mutex_lock(&cache->lock);
    entry->is_loading = false;
    if (status == TDM_OK) {
        entry->value = value;
        entry->n_bytes = n_bytes;
        cache->held_bytes += n_bytes;
        make_room(cache);
    }
    pthread_cond_broadcast(&cache->was_loaded);
    return status;
}

static void unlock(tdmi_group_cache **cache)
{
    pthread_mutex_unlock(&(*cache)->lock);
}

tdm_status tdmi_group_cache_take(tdmi_group_cache *cache, int64_t group, const void **value,
                                 tdm_error *err)
{
    TDMI_AT_END(unlock) tdmi_group_cache *locked = cache;
    tdm_status status = TDM_OK;
    *value = NULL;
    pthread_mutex_lock(&locked->lock);
    struct entry *entry = find(cache, group);
    if (entry == NULL) {
        TDMI_TRY(TDMI_NEW(entry, 1, err));
        entry->group = group;
        entry->next_of_chain = *chain_of(cache, group);
        *chain_of(cache, group) = entry;
    } else if (entry->n_users == 0) {
        unlink_idle(cache, entry);
    }
    entry->n_users++;
    while (entry->is_loading)
        pthread_cond_wait(&cache->was_loaded, &cache->lock);
    if (entry->value == NULL) /* fresh, or the load of another failed */
        status = load(cache, entry, err);
    *value = entry->value;
    if (status != TDM_OK && --entry->n_users == 0)
        forget(cache, entry);
    return status;
}

void tdmi_group_cache_give(tdmi_group_cache *cache, int64_t group)
{
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = find(cache, group);
    assert(entry != NULL && entry->n_users > 0);
    if (--entry->n_users == 0) {
        link_idle(cache, entry);
        make_room(cache);
    }
    pthread_mutex_unlock(&cache->lock);
}

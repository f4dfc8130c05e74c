/* The cache of groups: one loads while others wait, the longest unused goes first, failures pass.
 */

#include "unit.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/cache/group_cache.h"

#include <stdatomic.h>
#include <time.h>

enum { GROUPS = 8, GROUP_BYTES = 100 };

struct loads {
    atomic_int of_group[GROUPS], dropped;
    atomic_int failures_left;
    bool is_slow;
};

static tdm_status load(void *self, int64_t group, void **value, int64_t *n_bytes, tdm_error *err)
{
    struct loads *loads = self;
    atomic_fetch_add(&loads->of_group[group], 1);
    if (loads->is_slow)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (atomic_load(&loads->failures_left) > 0) {
        atomic_fetch_sub(&loads->failures_left, 1);
        return TDM_FAIL(err, TDM_E_INPUT, "group %lld is damaged", (long long)group);
    }
    int64_t *number = tdmi_alloc(1, sizeof *number);
    if (number == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory");
    *number = group;
    *value = number;
    *n_bytes = GROUP_BYTES;
    return TDM_OK;
}

static void drop(void *self, void *value)
{
    struct loads *loads = self;
    atomic_fetch_add(&loads->dropped, 1);
    tdmi_free(value);
}

static tdmi_group_cache *cache_of(struct loads *loads, int64_t limit_bytes)
{
    struct tdmi_group_loader loader = {loads, load, drop};
    tdmi_group_cache *cache = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_group_cache_new(limit_bytes, &loader, &cache, &err), TDM_OK);
    return cache;
}

/* Groups that the cache holds: all that were loaded and not dropped. */
static int n_held(const struct loads *loads)
{
    int n = -loads->dropped;
    for (int g = 0; g < GROUPS; g++)
        n += loads->of_group[g];
    return n;
}

static void use(tdmi_group_cache *cache, int64_t group)
{
    const void *value;
    tdm_error err = {0};
    assert_int_equal(tdmi_group_cache_take(cache, group, &value, &err), TDM_OK);
    assert_int_equal(*(const int64_t *)value, group);
    tdmi_group_cache_give(cache, group);
}

TEST(the_longest_unused_goes_first)
{
    struct loads loads = {0};
    tdmi_group_cache *cache = cache_of(&loads, 3 * GROUP_BYTES);
    for (int64_t g = 0; g < 3; g++)
        use(cache, g);
    use(cache, 0);
    assert_int_equal(n_held(&loads), 3);
    use(cache, 3); /* in place of 1 */
    assert_int_equal(n_held(&loads), 3);
    use(cache, 0);
    use(cache, 2);
    assert_int_equal(loads.of_group[0], 1);
    assert_int_equal(loads.of_group[2], 1);
    use(cache, 1);
    assert_int_equal(loads.of_group[1], 2);
    tdmi_group_cache_free(cache);
    assert_int_equal(loads.dropped, 5);
}

TEST(what_is_held_stays)
{
    struct loads loads = {0};
    TDMI_AT_END(tdmi_group_cache_free_at) tdmi_group_cache *cache = cache_of(&loads, 1);
    const void *value;
    assert_int_equal(tdmi_group_cache_take(cache, 5, &value, NULL), TDM_OK);
    for (int64_t g = 0; g < 4; g++)
        use(cache, g);
    assert_int_equal(*(const int64_t *)value, 5);
    assert_int_equal(n_held(&loads), 2); /* it and the latest */
    use(cache, 5);
    assert_int_equal(loads.of_group[5], 1);
    tdmi_group_cache_give(cache, 5);
    assert_int_equal(n_held(&loads), 1);
}

TEST(one_beyond_the_limit_is_not_loaded_for_each_of_its_items)
{
    struct loads loads = {0};
    tdmi_group_cache *cache = cache_of(&loads, 1);
    for (int i = 0; i < 3; i++)
        use(cache, 4);
    assert_int_equal(loads.of_group[4], 1);
    use(cache, 6); /* in its place */
    assert_int_equal(n_held(&loads), 1);
    tdmi_group_cache_free(cache);
    assert_int_equal(loads.dropped, 2);
}

TEST(a_failed_load_is_reported_and_tried_again)
{
    struct loads loads = {.failures_left = 1};
    TDMI_AT_END(tdmi_group_cache_free_at) tdmi_group_cache *cache = cache_of(&loads, 1000);
    const void *value;
    tdm_error err = {0};
    assert_int_equal(tdmi_group_cache_take(cache, 2, &value, &err), TDM_E_INPUT);
    assert_null(value);
    assert_string_equal(tdm_error_sentence(&err, 0), "group 2 is damaged");
    use(cache, 2);
    assert_int_equal(loads.of_group[2], 2);
}

static tdm_status use_as_task(void *self, int index, int worker, tdm_error *err)
{
    const void *value;
    (void)worker;
    TDM_TRY(tdmi_group_cache_take(self, index % 2, &value, err), err, "cannot take");
    bool is_right = *(const int64_t *)value == index % 2;
    tdmi_group_cache_give(self, index % 2);
    return is_right ? TDM_OK : TDM_FAIL(err, TDM_E_BUG, "wrong group");
}

TEST(threads_load_a_group_once)
{
    struct loads loads = {.is_slow = true};
    TDMI_AT_END(tdmi_group_cache_free_at) tdmi_group_cache *cache = cache_of(&loads, 1000);
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_pool_new(6, NULL, &pool, &err), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, 500, use_as_task, cache, &err), TDM_OK);
    assert_int_equal(loads.of_group[0], 1);
    assert_int_equal(loads.of_group[1], 1);
}

static tdm_status churn(void *self, int index, int worker, tdm_error *err)
{
    const void *value;
    int64_t group = (index * 7 + worker) % GROUPS;
    tdm_status status = tdmi_group_cache_take(self, group, &value, err);
    if (status != TDM_OK)
        return status == TDM_E_INPUT ? TDM_OK : status; /* those that were made to fail */
    bool is_right = *(const int64_t *)value == group;
    tdmi_group_cache_give(self, group);
    return is_right ? TDM_OK : TDM_FAIL(err, TDM_E_BUG, "wrong group");
}

TEST(threads_may_load_drop_and_fail_at_once)
{
    struct loads loads = {.failures_left = 50};
    TDMI_AT_END(tdmi_group_cache_free_at)
    tdmi_group_cache *cache = cache_of(&loads, 2 * GROUP_BYTES);
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_pool_new(6, NULL, &pool, &err), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, 20000, churn, cache, &err), TDM_OK);
    assert_in_range(n_held(&loads) - 50, 0, 2) /* 50 loads failed */;
}

TEST_MAIN(NULL, NULL)

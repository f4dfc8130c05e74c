/*
 * The memory cache of pictures: what it gives is what was put, it never outgrows its capacity, and
 * threads that put the same sample at once do no harm.
 */
#include "unit.h"
#include "data/cache/cache_memory.h"

#include "base/each_allocation.h"
#include <pthread.h>

enum { N = 200, LENGTH = 64 };

static void bytes_of(int64_t sample, char bytes[LENGTH])
{
    memset(bytes, (int)(sample % 251), LENGTH);
}

static size_t length_of(int64_t sample)
{
    return (size_t)(sample % LENGTH) + 1;
}

static tdmi_memory_cache *new_cache(int64_t capacity)
{
    tdmi_memory_cache *cache = NULL;
    assert_int_equal(tdmi_memory_cache_new(N, capacity, &cache, NULL), TDM_OK);
    return cache;
}

static int check(const tdmi_memory_cache *cache, int64_t *n_bytes)
{
    int n = 0;
    *n_bytes = 0;
    for (int64_t i = 0; i < N; i++) {
        char bytes[LENGTH];
        size_t length = 0;
        const void *found = tdmi_memory_cache_get(cache, i, &length);
        if (found == NULL)
            continue;
        bytes_of(i, bytes);
        assert_int_equal(length, length_of(i));
        assert_memory_equal(found, bytes, length);
        *n_bytes += (int64_t)length;
        n++;
    }
    return n;
}

static void *put_all(void *cache)
{
    char bytes[LENGTH];
    for (int turn = 0; turn < 20; turn++)
        for (int64_t i = 0; i < N; i++) {
            bytes_of(i, bytes);
            tdmi_memory_cache_put(cache, i, bytes, length_of(i));
        }
    return NULL;
}

TEST(threads_keep_every_sample_once)
{
    int64_t capacity = 0; /* exactly what all samples take once */
    for (int64_t i = 0; i < N; i++)
        capacity += (int64_t)length_of(i);
    TDMI_AT_END(tdmi_memory_cache_free_at) tdmi_memory_cache *cache = new_cache(capacity);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_all, cache), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    int64_t n_bytes = 0;
    assert_int_equal(check(cache, &n_bytes), N);
}

TEST(what_does_not_fit_is_left_out)
{
    TDMI_AT_END(tdmi_memory_cache_free_at) tdmi_memory_cache *cache = new_cache(1000);
    put_all(cache);
    int64_t n_bytes = 0;
    int n = check(cache, &n_bytes);
    assert_true(n_bytes <= 1000);
    assert_true(n > 0 && n < N);
    put_all(cache);
    assert_true(check(cache, &n_bytes) >= n);
    tdmi_memory_cache_free(NULL);
}

static tdm_status allocating(tdm_error *err)
{
    tdmi_memory_cache *cache = NULL;
    tdm_status status = tdmi_memory_cache_new(10, 100, &cache, err);
    tdmi_memory_cache_free(cache);
    return status;
}

TEST(running_out_of_memory_is_an_error)
{
    assert_int_equal(fail_each_allocation(allocating), 3);
}

TEST_MAIN(NULL, NULL)

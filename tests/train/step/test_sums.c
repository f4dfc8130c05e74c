/*
 * Arrays that are used again: the sums of a batch have the bits of the tree over all groups,
 * whatever the threads and the order in which groups end, and there are no more arrays than
 * promised.
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "base/thread.h"
#include "dist/tree.h"
#include "train/step/sums.h"
#include "unit.h"

#include <sched.h>

/* values: so many that arrays are worth using again from twelve groups on. */
enum { values = 96 * 1024, most_groups = 70, most_threads = 9 };

struct work {
    tdmi_sums *sums;
    int n_early, n_groups;
    uint64_t batch;
    int wave[most_threads];
    uint8_t has_run[most_groups];
};

/* Values of very different magnitudes, so that the order of additions shows in the bits. */
static float value_of(uint64_t batch, int group, int i)
{
    const uint64_t mixed =
        (batch * 977 + (uint64_t)group * 131 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    return ((float)(mixed >> 40) - 0x1p23f) * (float)(1u << (mixed & 15));
}

static void fill(const struct work *work, int group)
{
    float *values_of_group = tdmi_sums_of(work->sums, group);
    for (int i = 0; i < values; i++)
        values_of_group[i] = value_of(work->batch, group, i);
}

/* Groups take unequal time: some let others go first. */
static void dawdle(const struct work *work, int group)
{
    tdmi_rng rng = tdmi_rng_at(7, TDMI_RNG_TEST, (uint32_t)work->batch, (uint64_t)group);
    for (uint32_t i = tdmi_rng_below(&rng, 4) ? 0 : tdmi_rng_below(&rng, 200); i > 0; i--)
        sched_yield();
}

static tdm_status early_task(void *self, int index, int worker, tdm_error *err)
{
    struct work *work = self;
    (void)worker;
    (void)err;
    const int group = tdmi_sums_take(work->sums, index);
    work->has_run[group]++;
    dawdle(work, group);
    fill(work, group);
    tdmi_sums_give(work->sums, group);
    return TDM_OK;
}

static tdm_status wave_task(void *self, int index, int worker, tdm_error *err)
{
    struct work *work = self;
    (void)worker;
    (void)err;
    work->wave[index] = tdmi_sums_take(work->sums, work->n_early + index);
    work->has_run[work->wave[index]]++;
    fill(work, work->wave[index]);
    return TDM_OK;
}

/* The tree read from its root. */
static float drawn(uint64_t batch, int first, int n, int i)
{
    int left = 1;
    if (n == 1)
        return value_of(batch, first, i);
    while (2 * left < n)
        left *= 2;
    return drawn(batch, first, left, i) + drawn(batch, first + left, n - left, i);
}

static void check_batch(struct work *work, tdmi_pool *pool, int n_groups, int n_wave)
{
    work->batch++;
    work->n_groups = n_groups;
    work->n_early = n_groups - n_wave;
    memset(work->has_run, 0, sizeof work->has_run);
    tdmi_sums_begin(work->sums, (struct tdmi_sums_groups){n_groups, 0, n_groups});
    float *total = tdmi_sums_of(work->sums, 0);
    assert_int_equal(tdmi_pool_run(pool, work->n_early, early_task, work, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, n_wave, wave_task, work, NULL), TDM_OK);
    tdmi_sums_settle(work->sums);
    tdmi_sums_add(work->sums, 1000, values - 1000);
    tdmi_sums_add(work->sums, 0, 1000);
    assert_ptr_equal(tdmi_sums_of(work->sums, 0), total);
    for (int s = 0; s < n_groups; s++)
        assert_int_equal(work->has_run[s], 1);
    for (int i = 0; i < values; i += i < 1100 ? 11 : 997) {
        const float wanted = drawn(work->batch, 0, n_groups, i);
        if (memcmp(&total[i], &wanted, sizeof wanted) != 0)
            fail_msg("%d groups, %d of them in the wave: value %d is %a, wanted %a", n_groups,
                     n_wave, i, (double)total[i], (double)wanted);
    }
}

static tdmi_sums *opened(int max_groups, int threads, bool runs_together)
{
    tdmi_sums *sums;
    assert_int_equal(tdmi_sums_open(&tdmi_backend_ref, NULL,
                                    &(struct tdmi_sums_options){.n_values = values,
                                                                .max_groups = max_groups,
                                                                .n_threads = threads,
                                                                .runs_together = runs_together},
                                    &sums, NULL),
                     TDM_OK);
    return sums;
}

TEST(every_order_gives_the_bits_of_the_tree)
{
    struct work work = {0};
    for (int threads = 1; threads <= most_threads; threads += threads < 4 ? 1 : 5) {
        tdmi_pool *pool;
        assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
        work.sums = opened(most_groups, threads, false);
        for (int n = 1; n <= most_groups; n += n < 18 ? 1 : 13)
            for (int n_wave = 0; n_wave <= threads && n_wave <= n; n_wave += threads)
                check_batch(&work, pool, n, n_wave);
        tdmi_sums_close(work.sums);
        tdmi_pool_free(pool);
    }
}

/* One thread, so the order is known: 2 of 12 groups at a time, the first of all the last to end. */
TEST(a_group_that_is_slow_keeps_few_waiting)
{
    struct work work = {.sums = opened(12, 2, false), .batch = 1};
    int first, n_before = 0;
    tdmi_sums_begin(work.sums, (struct tdmi_sums_groups){12, 0, 12});
    first = tdmi_sums_take(work.sums, n_before);
    assert_int_equal(first, 0);
    fill(&work, first);
    for (int s = 1; s < 12; s++) {
        assert_int_equal(tdmi_sums_take(work.sums, s), s);
        fill(&work, s);
        tdmi_sums_give(work.sums, s);
    }
    tdmi_sums_give(work.sums, first);
    tdmi_sums_settle(work.sums);
    tdmi_sums_add(work.sums, 0, values);
    for (int i = 0; i < values; i += 101)
        assert_true(tdmi_sums_of(work.sums, 0)[i] == drawn(1, 0, 12, i));
    tdmi_sums_close(work.sums);
}

TEST(arrays_go_with_threads_and_levels)
{
    struct tdmi_sums_options options = {.n_values = 23 << 20, .max_groups = 64, .n_threads = 2};
    assert_int_equal(tdmi_sums_arrays(&options), 3 + 6);
    options.max_groups = 65;
    assert_int_equal(tdmi_sums_arrays(&options), 3 + 7);
    options.n_threads = 16;
    options.max_groups = 1024;
    assert_int_equal(tdmi_sums_arrays(&options), 24 + 10);
    options.max_groups = 8; /* never more than groups */
    assert_int_equal(tdmi_sums_arrays(&options), 8);
    options = (struct tdmi_sums_options){.n_values = 60000, .max_groups = 16, .n_threads = 2};
    assert_int_equal(tdmi_sums_arrays(&options), 16); /* small: one each */
    options.n_values = 1 << 20;
    assert_int_equal(tdmi_sums_arrays(&options), 3 + 4);
    options.runs_together = true;
    assert_int_equal(tdmi_sums_arrays(&options), 16);
}

static int bits_of(int number)
{
    return number ? number % 2 + bits_of(number / 2) : 0;
}

/* On a device: groups run one after another, and the last is given as a whole or by its ranges. */
TEST(one_queue_needs_an_array_a_level)
{
    struct tdmi_sums_options options = {.n_values = values, .is_queued = true};
    struct work work = {.batch = 3};
    for (int n = 1; n <= most_groups; n += n < 18 ? 1 : 13) {
        float *arrays[8] = {NULL};
        options.max_groups = n;
        assert_int_equal(tdmi_sums_arrays(&options), n < 2    ? 1
                                                     : n < 4  ? 2
                                                     : n < 8  ? 3
                                                     : n < 16 ? 4
                                                     : n < 32 ? 5
                                                     : n < 64 ? 6
                                                              : 7);
        assert_int_equal(tdmi_sums_open(&tdmi_backend_ref, NULL, &options, &work.sums, NULL),
                         TDM_OK);
        for (int is_whole = 0; is_whole < 2; is_whole++) {
            work.batch++;
            tdmi_sums_begin(work.sums, (struct tdmi_sums_groups){n, 0, n});
            for (int s = 0; s < n; s++) {
                assert_int_equal(tdmi_sums_take(work.sums, s), s);
                float **array = &arrays[bits_of(s)];
                *array = *array ? *array : tdmi_sums_of(work.sums, s);
                assert_ptr_equal(tdmi_sums_of(work.sums, s), *array);
                fill(&work, s);
                if (s < n - 1 || is_whole)
                    tdmi_sums_give(work.sums, s);
            }
            tdmi_sums_settle(work.sums);
            tdmi_sums_add(work.sums, 1000, values - 1000);
            tdmi_sums_add(work.sums, 0, 1000);
            for (int i = 0; i < values; i += i < 1100 ? 11 : 997)
                if (tdmi_sums_of(work.sums, 0)[i] != drawn(work.batch, 0, n, i))
                    fail_msg("%d groups: value %d", n, i);
        }
        tdmi_sums_close(work.sums);
    }
}

TEST(running_out_of_memory_anywhere_is_an_ordinary_error)
{
    tdm_status status = TDM_E_MEMORY;
    int64_t n = 1;
    for (; status != TDM_OK; n++) {
        tdmi_sums *sums = NULL;
        tdm_error err = {0};
        char text[500];
        tdmi_memory_fail_from(n);
        status = tdmi_sums_open(
            &tdmi_backend_ref, NULL,
            &(struct tdmi_sums_options){.n_values = values, .max_groups = 12, .n_threads = 2},
            &sums, &err);
        tdmi_memory_fail_from(0);
        if (status != TDM_OK) {
            tdm_error_format(&err, text, sizeof text);
            assert_int_equal(status, TDM_E_MEMORY);
            assert_true(strstr(text, "out of memory") || strstr(text, "no memory for"));
        }
        tdmi_sums_close(sums);
    }
    assert_true(n > 7);
}

TEST_MAIN(NULL, NULL)

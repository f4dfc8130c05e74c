/* The pool: every task once, the same failure at any thread count, denormals flushed, affinity and
 * signals left as they were. */
#include "base/system/affinity.h"
#include "base/thread.h"

#include <float.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include "base/each_allocation.h"
#include "unit.h"

static tdmi_pool *new_pool(int n_threads, const struct tdmi_placement *placement)
{
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_pool_new(n_threads, placement, &pool, &err), TDM_OK);
    return pool;
}

enum { n_tasks = 1000 };

struct tally {
    atomic_int runs[n_tasks];
    atomic_int n_wrong_worker, n_denormals, n_signals;
    int n_threads;
    int fails_at[4]; /* indices that fail, ended by 0 */
};

static tdm_status count(void *self, int index, int worker, tdm_error *err)
{
    struct tally *tally = self;
    atomic_fetch_add(&tally->runs[index], 1);
    if (worker < 0 || worker >= tally->n_threads)
        atomic_fetch_add(&tally->n_wrong_worker, 1);
    for (int i = 0; tally->fails_at[i]; i++)
        if (index == tally->fails_at[i])
            return TDM_FAIL(err, TDM_E_INPUT, "task %d", index);
    return TDM_OK;
}

TEST(every_task_runs_once)
{
    static const int thread_counts[] = {1, 2, 3, 8};
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        tdmi_pool *pool = new_pool(thread_counts[i], NULL);
        assert_int_equal(tdmi_pool_threads(pool), thread_counts[i]);
        for (int n = 0; n <= n_tasks; n = n * 3 + 1) {
            struct tally tally = {.n_threads = thread_counts[i]};
            tdm_error err = {0};
            assert_int_equal(tdmi_pool_run(pool, n, count, &tally, &err), TDM_OK);
            for (int task = 0; task < n_tasks; task++)
                assert_int_equal(tally.runs[task], task < n);
            assert_int_equal(tally.n_wrong_worker, 0);
        }
        tdmi_pool_free(pool);
    }
    tdmi_pool_free(NULL);
}

static void sleep_us(int64_t us)
{
    const struct timespec time = {.tv_nsec = us * 1000};
    nanosleep(&time, NULL);
}

/* Some tasks are long, so that the others wait for them. */
static tdm_status count_slowly(void *self, int index, int worker, tdm_error *err)
{
    if (index % 3 == 1)
        sleep_us(index % 2 ? 20 : 400);
    return count(self, index, worker, err);
}

/* Waiting begins with looking and ends in sleep; both sides are met in all orders. */
TEST(runs_begin_and_end_however_long_they_are_waited_for)
{
    static const int64_t pauses_us[] = {0, 10, 400, 0, 2000, 50, 400};
    for (int threads = 2; threads <= 3; threads++) {
        tdmi_pool *pool = new_pool(threads, NULL);
        for (int round = 0; round < 140; round++) {
            struct tally tally = {.n_threads = threads};
            tdm_error err = {0};
            const int n = 1 + round % 5;
            sleep_us(pauses_us[round % 7]);
            assert_int_equal(tdmi_pool_run(pool, n, count_slowly, &tally, &err), TDM_OK);
            for (int task = 0; task < n; task++)
                assert_int_equal(tally.runs[task], 1);
            assert_int_equal(tally.n_wrong_worker, 0);
        }
        tdmi_pool_free(pool);
    }
}

TEST(the_failure_with_the_lowest_index_is_returned)
{
    static const int thread_counts[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        tdmi_pool *pool = new_pool(thread_counts[i], NULL);
        for (int round = 0; round < 200; round++) {
            struct tally tally = {.n_threads = thread_counts[i], .fails_at = {40, 37, 38}};
            tdm_error err = {0};
            assert_int_equal(tdmi_pool_run(pool, n_tasks, count, &tally, &err), TDM_E_INPUT);
            assert_string_equal(tdm_error_sentence(&err, 0), "task 37");
            assert_int_equal(err.n_frames, 1);
            int n_runs = 0;
            for (int task = 0; task < n_tasks; task++) {
                assert_true(tally.runs[task] <= 1);
                n_runs += tally.runs[task];
            }
            for (int task = 0; task <= 37; task++)
                assert_int_equal(tally.runs[task], 1);
            if (thread_counts[i] == 1)
                assert_int_equal(n_runs, 38);
            /* A failure is over with its run. */
            struct tally next = {.n_threads = thread_counts[i]};
            assert_int_equal(tdmi_pool_run(pool, 10, count, &next, NULL), TDM_OK);
            assert_int_equal(tdmi_pool_run(pool, n_tasks, count, &tally, NULL), TDM_E_INPUT);
        }
        tdmi_pool_free(pool);
    }
}

static tdm_status look_around(void *self, int index, int worker, tdm_error *err)
{
    struct tally *tally = self;
    volatile float tiny = FLT_MIN;
    volatile float half = tiny * 0.5f;
    sigset_t blocked;
    (void)index;
    (void)err;
    if (half != 0.0f)
        atomic_fetch_add(&tally->n_denormals, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (worker > 0 && !sigismember(&blocked, SIGINT))
        atomic_fetch_add(&tally->n_signals, 1);
    return TDM_OK;
}

TEST(tasks_see_no_denormals_and_no_signals)
{
    tdmi_pool *pool = new_pool(3, NULL);
    struct tally tally = {.n_threads = 3};
    sigset_t blocked;
    assert_int_equal(tdmi_pool_run(pool, 500, look_around, &tally, NULL), TDM_OK);
    tdmi_pool_free(pool);
#if defined(__SSE2__) || defined(__aarch64__)
    assert_int_equal(tally.n_denormals, 0);
#endif
    assert_int_equal(tally.n_signals, 0);
    /* The caller is as before: denormals live, signals arrive. */
    volatile float tiny = FLT_MIN;
    volatile float half = tiny * 0.5f;
    assert_true(half != 0.0f);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGINT));
}

struct places {
    atomic_int n_wide; /* tasks that ran on a thread free to move */
};

static tdm_status note_place(void *self, int index, int worker, tdm_error *err)
{
    struct places *places = self;
    int cpus[8];
    (void)index;
    (void)worker;
    (void)err;
    if (tdmi_affinity_mask(cpus, 8) != 1)
        atomic_fetch_add(&places->n_wide, 1);
    return TDM_OK;
}

TEST(bound_workers_have_one_cpu_and_the_caller_gets_its_own_back)
{
    static int before[TDMI_CPUS_MAX], after[TDMI_CPUS_MAX];
    int n_before = tdmi_affinity_mask(before, TDMI_CPUS_MAX);
    struct places places = {0};
    const struct tdmi_placement placement = {
        .threads = n_before, .cpus = before, .n_cpus = n_before, .is_bound = true};
    tdmi_pool *pool = new_pool(n_before, &placement);
    assert_int_equal(tdmi_pool_run(pool, 500, note_place, &places, NULL), TDM_OK);
    assert_int_equal(places.n_wide, 0);
    tdmi_pool_free(pool);
    assert_int_equal(tdmi_affinity_mask(after, TDMI_CPUS_MAX), n_before);
    assert_memory_equal(before, after, (size_t)n_before * sizeof before[0]);
    /* More workers than CPUs may run on each of them. */
    if (n_before > 1) {
        pool = new_pool(n_before + 1, &placement);
        assert_int_equal(tdmi_pool_run(pool, 500, note_place, &places, NULL), TDM_OK);
        assert_int_equal(places.n_wide, 500);
        tdmi_pool_free(pool);
    }
}

TEST(workers_without_a_number_are_as_many_as_the_usable_cpus)
{
    static int mask[TDMI_CPUS_MAX];
    int n_mask = tdmi_affinity_mask(mask, TDMI_CPUS_MAX);
    assert_true(n_mask >= 1);
    int n_usable = tdmi_cpus_usable();
    assert_true(n_usable >= 1 && n_usable <= n_mask);
    tdmi_pool *pool = new_pool(0, NULL);
    assert_int_equal(tdmi_pool_threads(pool), n_usable);
    tdmi_pool_free(pool);
}

TEST(impossible_thread_counts_are_refused)
{
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_pool_new(-1, NULL, &pool, &err), TDM_E_USAGE);
    assert_int_equal(tdmi_pool_new(1000000, NULL, &pool, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "0 (all usable CPUs) to 8192"));
    assert_null(pool);
}

static tdm_status pool_scene(tdm_error *err)
{
    tdmi_pool *pool = NULL;
    int cpu = 0;
    const struct tdmi_placement placement = {.threads = 3, .cpus = &cpu, .n_cpus = 1};
    tdm_status status = tdmi_pool_new(3, &placement, &pool, err);
    tdmi_pool_free(pool);
    return status;
}

TEST(every_failed_allocation_is_reported)
{
    assert_int_equal(fail_each_allocation(pool_scene), 3);
}

TEST_MAIN(NULL, NULL)

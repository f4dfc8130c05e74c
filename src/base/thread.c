/*
 * The pool: fork and join. A run is announced by its number. Between runs the workers look for the
 * next number, for a while, and sleep on a condition after it; so does the caller when it has
 * nothing left to do but others have. To wake up takes longer than a step of a small network may.
 *
 * Tasks are claimed in ascending order from an atomic counter, and a
 * worker looks for failures only before it claims. So when task i fails, every task below i was
 * claimed and runs to its end: the failure with the lowest index is the same whatever the threads
 * do.
 */
#include "base/thread.h"
#include "base/system/affinity.h"
#include "base/system/cgroup.h"
#include "base/system/signals.h"
#include "base/clock.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* ---- denormals ---------------------------------------------------------------------------- */

/* The floating-point control word of this thread: MXCSR on x86, FPCR on arm64; none elsewhere. */
#if defined(__SSE2__)

enum { flush_bits = 0x8040 }; /* FTZ, bit 15: results; DAZ, bit 6: operands */
#define READ_CONTROL(word) ((word) = _mm_getcsr())
#define WRITE_CONTROL(word) _mm_setcsr((unsigned)(word))

#elif defined(__aarch64__)

enum { flush_bits = 1 << 24 }; /* FZ */
#define READ_CONTROL(word) __asm__ volatile("mrs %0, fpcr" : "=r"(word))
#define WRITE_CONTROL(word) __asm__ volatile("msr fpcr, %0" : : "r"(word))

#else

enum { flush_bits = 0 };
#define READ_CONTROL(word) ((word) = 0)
#define WRITE_CONTROL(word) ((void)(word))

#endif

void tdmi_thread_flush_denormals(void)
{
    uint64_t word;
    READ_CONTROL(word);
    WRITE_CONTROL(word | flush_bits);
}

/* ---- looking before sleeping -------------------------------------------------------------- */

/* look_ns: about the time of a wake-up, so that spinning in vain at most doubles the delay. */
enum { look_ns = 100000, pauses_a_look = 16 };

/* A worker that would have spun in vain sleeps at once next time: a step that waits for images
 * leaves its CPUs to the threads that decode them. The time of the wake-up itself is not counted,
 * or a worker that slept once would never spin again. */
struct waiter {
    bool may_look; /* every worker has a CPU of its own */
    bool was_long; /* until the condition held */
    int64_t since_ns;
};

void tdmi_thread_pause(void)
{
#if defined(__SSE2__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void begin_waiting(struct waiter *waiter)
{
    waiter->since_ns = waiter->may_look ? tdmi_clock_ns() : 0;
}

/* May the waiter spin once more? Call until the condition holds or this returns false. */
static bool may_look_on(const struct waiter *waiter)
{
    if (!waiter->may_look || waiter->was_long)
        return false;
    for (int i = 0; i < pauses_a_look; i++)
        tdmi_thread_pause();
    return tdmi_clock_ns() - waiter->since_ns < look_ns;
}

static void end_waiting(struct waiter *waiter, int64_t came_ns)
{
    waiter->was_long = came_ns - waiter->since_ns >= look_ns;
}

/* ---- the pool ----------------------------------------------------------------------------- */

struct worker {
    tdmi_pool *pool;
    pthread_t thread;
    int number;
    int *cpus;  /* of the pool, that it runs on */
    int n_cpus; /* 0: all */
    struct waiter waiter;
    int64_t ended_ns; /* its share of this run */
    /* The worker's first failure of this run. */
    tdm_status status;
    int failed_index;
    tdm_error error;
};

struct tdmi_pool {
    pthread_mutex_t lock;
    pthread_cond_t has_work, is_done;
    struct worker *workers; /* [0] is the caller and has no thread of its own */
    int *cpus;              /* of the placement */
    int n_workers, n_started;
    bool is_ending; /* under the lock */
    /* Read without the lock by spinning workers. A sleeping worker has checked them under the lock
     * and is woken under it after they change. */
    _Atomic uint64_t run_number; /* changed under it */
    atomic_int n_busy;
    /* The current run: written before it is announced. */
    tdmi_task task;
    void *self;
    int n_tasks;
    bool is_by_worker; /* task i is worker i's */
    int64_t announced_ns;
    _Atomic int64_t next; /* 64 bits: every worker claims one past the end */
    atomic_bool has_failed;
};

static void run_task(struct worker *worker, int index)
{
    tdmi_pool *pool = worker->pool;
    tdm_error_clear(&worker->error);
    worker->status = pool->task(pool->self, index, worker->number, &worker->error);
    if (worker->status == TDM_OK)
        return;
    worker->failed_index = index;
    atomic_store_explicit(&pool->has_failed, true, memory_order_relaxed);
}

static void work(struct worker *worker)
{
    tdmi_pool *pool = worker->pool;
    worker->status = TDM_OK;
    if (pool->is_by_worker) {
        if (worker->number < pool->n_tasks)
            run_task(worker, worker->number);
        return;
    }
    while (!atomic_load_explicit(&pool->has_failed, memory_order_relaxed)) {
        int64_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (index >= pool->n_tasks)
            return;
        run_task(worker, (int)index);
    }
}

/* The number of the next run; the last one's again when there is none. */
static uint64_t wait_for_run(struct worker *worker, uint64_t seen)
{
    tdmi_pool *pool = worker->pool;
    uint64_t number;
    begin_waiting(&worker->waiter);
    do
        number = atomic_load_explicit(&pool->run_number, memory_order_acquire);
    while (number == seen && may_look_on(&worker->waiter));
    if (number == seen) {
        pthread_mutex_lock(&pool->lock);
        while (pool->run_number == seen && !pool->is_ending)
            pthread_cond_wait(&pool->has_work, &pool->lock);
        number = pool->run_number;
        pthread_mutex_unlock(&pool->lock);
    }
    end_waiting(&worker->waiter, pool->announced_ns);
    return number;
}

/* The last one wakes the caller, which may already run: it waits for every thread before it
 * frees the lock. */
static void end_work(struct worker *worker)
{
    tdmi_pool *pool = worker->pool;
    worker->ended_ns = tdmi_clock_ns();
    if (atomic_fetch_sub_explicit(&pool->n_busy, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->is_done);
    pthread_mutex_unlock(&pool->lock);
}

static void *live(void *argument)
{
    struct worker *worker = argument;
    uint64_t seen = 0, next;
    tdmi_thread_flush_denormals();
    if (worker->n_cpus > 0) /* when refused the worker is merely free to move */
        tdmi_affinity_bind(worker->cpus, worker->n_cpus);
    while ((next = wait_for_run(worker, seen)) != seen) {
        seen = next;
        work(worker);
        end_work(worker);
    }
    return NULL;
}

/* A CPU of its own for each worker, or the same ones for all. */
static tdm_status choose_cpus(tdmi_pool *pool, const struct tdmi_placement *placement,
                              tdm_error *err)
{
    if (!placement || placement->n_cpus == 0)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(pool->cpus, placement->n_cpus, err));
    memcpy(pool->cpus, placement->cpus, (size_t)placement->n_cpus * sizeof *pool->cpus);
    const bool is_bound = placement->is_bound && pool->n_workers <= placement->n_cpus;
    for (int i = 0; i < pool->n_workers; i++) {
        pool->workers[i].cpus = is_bound ? pool->cpus + i : pool->cpus;
        pool->workers[i].n_cpus = is_bound ? 1 : placement->n_cpus;
    }
    return TDM_OK;
}

static tdm_status start_workers(tdmi_pool *pool, tdm_error *err)
{
    sigset_t before;
    int reason = 0;
    tdmi_signals_block(&before);
    for (pool->n_started = 1; pool->n_started < pool->n_workers; pool->n_started++) {
        struct worker *worker = &pool->workers[pool->n_started];
        reason = pthread_create(&worker->thread, NULL, live, worker);
        if (reason != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot start thread %d of %d: %s; use fewer threads",
                        pool->n_started + 1, pool->n_workers, strerror(reason));
    return TDM_OK;
}

tdm_status tdmi_pool_new(int n_threads, const struct tdmi_placement *placement, tdmi_pool **pool,
                         tdm_error *err)
{
    *pool = NULL;
    if (n_threads < 0 || n_threads > TDMI_CPUS_MAX)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot use %d threads: 0 (all usable CPUs) to %d are accepted", n_threads,
                        (int)TDMI_CPUS_MAX);
    if (n_threads == 0)
        n_threads = tdmi_cpus_usable();
    TDMI_AT_END(tdmi_free_at) struct worker *workers = NULL;
    tdmi_pool *room = NULL;
    TDMI_TRY(TDMI_NEW(workers, n_threads, err));
    TDMI_TRY(TDMI_NEW(room, 1, err));
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *made = room;
    /* With default attributes these cannot fail on the systems we build for. */
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->has_work, NULL);
    pthread_cond_init(&made->is_done, NULL);
    made->workers = tdmi_take(&workers);
    made->n_workers = n_threads;
    const bool has_part = placement && placement->n_cpus > 0;
    const bool may_look = n_threads > 1 && n_threads <= tdmi_cpus_usable() &&
                          (!has_part || n_threads <= placement->n_cpus);
    for (int i = 0; i < n_threads; i++) {
        made->workers[i].pool = made;
        made->workers[i].number = i;
        made->workers[i].waiter.may_look = may_look;
    }
    TDMI_TRY(choose_cpus(made, placement, err));
    TDMI_TRY(start_workers(made, err));
    *pool = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_pool_free(tdmi_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->is_done);
    pthread_cond_destroy(&pool->has_work);
    pthread_mutex_destroy(&pool->lock);
    tdmi_free(pool->cpus);
    tdmi_free(pool->workers);
    tdmi_free(pool);
}

int tdmi_pool_threads(const tdmi_pool *pool)
{
    return pool->n_workers;
}

/* The caller's share of a run: it computes as a worker does, and is itself again afterwards. */
static void work_as_caller(tdmi_pool *pool)
{
    struct worker *caller = &pool->workers[0];
    uint64_t before;
    int cpus[TDMI_CPUS_MAX], n_cpus = 0;
    READ_CONTROL(before);
    WRITE_CONTROL(before | flush_bits);
    if (caller->n_cpus > 0)
        n_cpus = tdmi_affinity_mask(cpus, TDMI_CPUS_MAX);
    if (n_cpus > 0)
        tdmi_affinity_bind(caller->cpus, caller->n_cpus);
    work(caller);
    if (n_cpus > 0)
        tdmi_affinity_bind(cpus, n_cpus);
    WRITE_CONTROL(before);
}

static void announce(tdmi_pool *pool)
{
    pool->announced_ns = tdmi_clock_ns();
    atomic_store_explicit(&pool->n_busy, pool->n_workers - 1, memory_order_relaxed);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add_explicit(&pool->run_number, 1, memory_order_release);
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
}

static void wait_for_others(tdmi_pool *pool)
{
    struct waiter *waiter = &pool->workers[0].waiter;
    bool is_done;
    begin_waiting(waiter);
    do
        is_done = atomic_load_explicit(&pool->n_busy, memory_order_acquire) == 0;
    while (!is_done && may_look_on(waiter));
    if (!is_done) {
        pthread_mutex_lock(&pool->lock);
        while (pool->n_busy > 0)
            pthread_cond_wait(&pool->is_done, &pool->lock);
        pthread_mutex_unlock(&pool->lock);
    }
    int64_t last_ns = 0;
    for (int i = 1; i < pool->n_workers; i++)
        if (pool->workers[i].ended_ns > last_ns)
            last_ns = pool->workers[i].ended_ns;
    end_waiting(waiter, last_ns);
}

static tdm_status run(tdmi_pool *pool, int n_tasks, bool is_by_worker, tdmi_task task, void *self,
                      tdm_error *err)
{
    if (n_tasks <= 0)
        return TDM_OK;
    pool->is_by_worker = is_by_worker;
    pool->task = task;
    pool->self = self;
    pool->n_tasks = n_tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->has_failed, false, memory_order_relaxed);
    bool is_shared = n_tasks > 1 && pool->n_workers > 1;
    if (is_shared)
        announce(pool);
    work_as_caller(pool);
    if (is_shared)
        wait_for_others(pool);

    const struct worker *first = NULL;
    for (int i = 0; i < (is_shared ? pool->n_workers : 1); i++) {
        const struct worker *worker = &pool->workers[i];
        if (worker->status != TDM_OK && (!first || worker->failed_index < first->failed_index))
            first = worker;
    }
    if (!first)
        return TDM_OK;
    if (err) {
        *err = first->error;
        err->code = first->status;
    }
    return first->status;
}

tdm_status tdmi_pool_run(tdmi_pool *pool, int n_tasks, tdmi_task task, void *self, tdm_error *err)
{
    return run(pool, n_tasks, false, task, self, err);
}

tdm_status tdmi_pool_run_all(tdmi_pool *pool, int n, tdmi_task task, void *self, tdm_error *err)
{
    assert(n <= pool->n_workers);
    return run(pool, n, true, task, self, err);
}

bool tdmi_pool_may_spin(const tdmi_pool *pool)
{
    return pool->workers[0].waiter.may_look;
}

/* ---- how many CPUs ------------------------------------------------------------------------ */

int tdmi_cpus_usable(void)
{
    int cpus[TDMI_CPUS_MAX];
    int usable = tdmi_affinity_mask(cpus, TDMI_CPUS_MAX);
    double quota = tdmi_cgroup_limits("").cpus;
    if (quota > 0.0 && quota < usable)
        usable = (int)ceil(quota);
    return usable > 0 ? usable : 1;
}

/*
 * Memory bandwidth and arithmetic rate. Every thread repeats a piece of work of its own: a copy
 * between two buffers of four times its share of the last cache, or a matrix product that fits the
 * caches, so that one number is about memory and the other about arithmetic.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tune/probe.h"

#include <stdio.h>
#include <string.h>

/* Three matrices of 512 x 512 f32 are 3 MiB: second-level and last-level caches. oneDNN is within a
 * few percent of its best there, and the plain loop needs well under 0.1 s for one product. */
enum { side = 512, page_bytes = 4096 };

struct probe {
    const struct tdmi_matmul_method *method;
    int size;
    bool is_bf16;
    double work;    /* of one run: bytes or operations */
    double seconds; /* for each pass */
    int n_threads;
    void **objects; /* one a thread */
    double *rates;  /* of each thread */
};

static tdm_status make_task(void *self, int index, int worker, tdm_error *err)
{
    struct probe *probe = self;
    (void)worker;
    TDM_TRY(probe->method->make(probe->size, probe->is_bf16, &probe->objects[index], err), err,
            "thread %d has nothing to measure", index);
    /* The first run is slow: code is generated, pages are touched. */
    return probe->method->run(probe->objects[index], err);
}

static tdm_status run_task(void *self, int index, int worker, tdm_error *err)
{
    struct probe *probe = self;
    int64_t start = tdmi_clock_ns();
    double passed, runs = 0;
    (void)worker;
    do {
        TDM_TRY(probe->method->run(probe->objects[index], err), err, "thread %d failed", index);
        runs++;
        passed = tdmi_clock_seconds_since(start);
    } while (passed < probe->seconds && !tdm_stop_is_requested());
    probe->rates[index] = runs * probe->work / passed;
    return TDM_OK;
}

/* Set rate to the sum of the rates of n_threads workers, the better of two passes. */
static tdm_status run_threads(struct probe *probe, tdmi_pool *pool, int n_threads, double *rate,
                              tdm_error *err)
{
    *rate = 0;
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        TDM_TRY(tdmi_pool_run_all(pool, n_threads, run_task, probe, err), err,
                "measuring on %d threads", n_threads);
        for (int i = 0; i < n_threads; i++)
            sum += probe->rates[i];
        if (sum > *rate)
            *rate = sum;
    }
    return TDM_OK;
}

static void release(struct probe *probe)
{
    for (int i = 0; probe->objects && i < probe->n_threads; i++)
        probe->method->release(probe->objects[i]);
    tdmi_free(probe->objects);
    tdmi_free(probe->rates);
}

static tdm_status measure(tdmi_pool *pool, struct probe options, struct tdm_machine_rate *rate,
                          tdm_error *err)
{
    TDMI_AT_END(release) struct probe probe = options;
    probe.n_threads = tdmi_pool_threads(pool);
    TDMI_TRY(TDMI_NEW(probe.objects, probe.n_threads, err));
    TDMI_TRY(TDMI_NEW(probe.rates, probe.n_threads, err));
    TDMI_TRY(tdmi_pool_run_all(pool, probe.n_threads, make_task, &probe, err));
    TDMI_TRY(run_threads(&probe, pool, 1, &rate->one_thread, err));
    return run_threads(&probe, pool, probe.n_threads, &rate->all_threads, err);
}

/* ---- memory: memcpy is what the rest of the program uses ------------------------------------ */

struct copy {
    size_t bytes;
    char *buffers; /* to copy from, then to */
};

static void copy_release(void *self)
{
    struct copy *copy = self;
    if (copy)
        tdmi_free(copy->buffers);
    tdmi_free(copy);
}

/* Each thread touches its own buffers, so that their pages come from its own part of memory. */
static tdm_status copy_make(int pages, bool is_bf16, void **object, tdm_error *err)
{
    struct copy *copy;
    (void)is_bf16;
    TDMI_TRY(TDMI_NEW(copy, 1, err));
    *object = copy;
    copy->bytes = (size_t)pages * page_bytes;
    copy->buffers = tdmi_alloc_aligned(2 * copy->bytes);
    if (!copy->buffers)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for two buffers of %zu bytes", copy->bytes);
    memset(copy->buffers, 1, 2 * copy->bytes);
    return TDM_OK;
}

static tdm_status copy_run(void *self, tdm_error *err)
{
    const struct copy *copy = self;
    (void)err;
    memcpy(copy->buffers + copy->bytes, copy->buffers, copy->bytes);
    return TDM_OK;
}

static int choose_buffer_pages(int n_threads, int64_t l3_bytes, int64_t memory_bytes)
{
    int64_t least = (int64_t)16 << 20;
    int64_t most = memory_bytes / 8 / (2 * n_threads);
    int64_t bytes = l3_bytes > 0 ? 4 * l3_bytes / n_threads : 4 * least;
    if (bytes < least)
        bytes = least;
    if (memory_bytes > 0 && bytes > most)
        bytes = most;
    return (int)(bytes / page_bytes) + 1;
}

tdm_status tdmi_probe_copy(tdmi_pool *pool, double seconds, int64_t l3_bytes, int64_t memory_bytes,
                           struct tdm_machine_rates *rates, tdm_error *err)
{
    static const struct tdmi_matmul_method method = {
        .make = copy_make, .run = copy_run, .release = copy_release};
    const int pages = choose_buffer_pages(tdmi_pool_threads(pool), l3_bytes, memory_bytes);
    const struct probe probe = {
        .method = &method, .size = pages, .work = 2.0 * page_bytes * pages, .seconds = seconds / 4};
    rates->copy_buffer_bytes = (int64_t)pages * page_bytes;
    return measure(pool, probe, &rates->copy_bytes_per_s, err);
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* A difference below a tenth changes sign from day to day. */
static const char *faster(const struct tdm_machine_rates *rates)
{
    double f32 = rates->f32_flop_per_s.all_threads, bf16 = rates->bf16_flop_per_s.all_threads;
    if (f32 <= 0 || bf16 <= 0)
        return NULL;
    return bf16 >= 1.1 * f32 ? "bf16" : f32 >= 1.1 * bf16 ? "f32" : NULL;
}

tdm_status tdmi_probe_matmul(tdmi_pool *pool, const struct tdmi_matmul_method *method,
                             double seconds, struct tdm_machine_rates *rates, tdm_error *err)
{
    struct probe probe = {
        .method = method, .size = side, .work = 2.0 * side * side * side, .seconds = seconds / 8};
    rates->matmul_method = method->name;
    TDM_TRY(measure(pool, probe, &rates->f32_flop_per_s, err), err,
            "the f32 rate could not be measured");
    if (!method->can_bf16) {
        snprintf(rates->bf16_problem, sizeof rates->bf16_problem,
                 "the %s knows no bf16, oneDNN does", method->name);
        return TDM_OK;
    }
    /* A CPU without bf16 is an answer, not a failure. */
    tdm_error why = {0};
    probe.is_bf16 = true;
    if (measure(pool, probe, &rates->bf16_flop_per_s, &why) != TDM_OK)
        snprintf(rates->bf16_problem, sizeof rates->bf16_problem, "%.239s",
                 tdm_error_sentence(&why, 0));
    rates->faster_precision = faster(rates);
    return TDM_OK;
}

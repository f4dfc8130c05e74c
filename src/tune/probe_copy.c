/*
 * Memory bandwidth. Buffers are four times a thread's last cache and touched before the clock
 * starts; memcpy is what the rest of the program uses, so memcpy is what is timed.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "tandem/event.h"
#include "tune/probe.h"

#include <string.h>

struct lane { /* of one thread */
    char *from, *to;
    double bytes_per_s;
};

struct copy {
    size_t buffer_bytes;
    double seconds; /* for each pass */
    struct lane *lanes;
};

/* Each thread takes its own buffers, so that their pages come from its own part of memory. */
static tdm_status take_task(void *self, int index, int worker, tdm_error *err)
{
    struct copy *copy = self;
    struct lane *lane = &copy->lanes[index];
    (void)worker;
    lane->from = tdmi_alloc_aligned(copy->buffer_bytes);
    lane->to = tdmi_alloc_aligned(copy->buffer_bytes);
    if (!lane->from || !lane->to)
        return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory for two buffers of %zu bytes",
                        copy->buffer_bytes);
    memset(lane->from, 1, copy->buffer_bytes);
    memset(lane->to, 2, copy->buffer_bytes);
    return TDM_OK;
}

static tdm_status copy_task(void *self, int index, int worker, tdm_error *err)
{
    struct copy *copy = self;
    struct lane *lane = &copy->lanes[index];
    int64_t start = tdmi_clock_ns();
    double passed, bytes = 0;
    (void)worker;
    (void)err;
    do {
        memcpy(lane->to, lane->from, copy->buffer_bytes);
        bytes += 2.0 * (double)copy->buffer_bytes;
        passed = tdmi_clock_seconds_since(start);
    } while (passed < copy->seconds && !tdm_stop_is_requested());
    lane->bytes_per_s = bytes / passed;
    return TDM_OK;
}

/* The sum over threads that copy at the same time. A worker that starts late only makes the sum
 * less true, so the better of two passes counts. */
static tdm_status time_threads(struct copy *copy, tdmi_pool *pool, int n_threads, double *rate,
                               tdm_error *err)
{
    *rate = 0;
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        TDM_TRY(tdmi_pool_run(pool, n_threads, copy_task, copy, err), err,
                "copies on %d threads could not be timed", n_threads);
        for (int i = 0; i < n_threads; i++)
            sum += copy->lanes[i].bytes_per_s;
        if (sum > *rate)
            *rate = sum;
    }
    return TDM_OK;
}

static size_t choose_buffer_bytes(int n_threads, int64_t l3_bytes, int64_t memory_bytes)
{
    int64_t least = (int64_t)16 << 20;
    int64_t most = memory_bytes / 8 / (2 * n_threads);
    int64_t bytes = l3_bytes > 0 ? 4 * l3_bytes / n_threads : 4 * least;
    if (bytes < least)
        bytes = least;
    if (memory_bytes > 0 && bytes > most)
        bytes = most;
    return (size_t)bytes / 4096 * 4096 + 4096;
}

tdm_status tdmi_probe_copy(tdmi_pool *pool, double seconds, int64_t l3_bytes, int64_t memory_bytes,
                           struct tdm_machine_rates *rates, tdm_error *err)
{
    int n_threads = tdmi_pool_threads(pool);
    struct copy copy = {.seconds = seconds / 4,
                        .buffer_bytes = choose_buffer_bytes(n_threads, l3_bytes, memory_bytes)};
    tdm_status status;
    copy.lanes = tdmi_alloc((size_t)n_threads, sizeof *copy.lanes);
    if (!copy.lanes)
        return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory for a list of %d threads",
                        n_threads);
    rates->copy_buffer_bytes = (int64_t)copy.buffer_bytes;
    status = tdmi_pool_run(pool, n_threads, take_task, &copy, err);
    if (status == TDM_OK)
        status = time_threads(&copy, pool, 1, &rates->copy_bytes_per_s.one_thread, err);
    if (status == TDM_OK)
        status = time_threads(&copy, pool, n_threads, &rates->copy_bytes_per_s.all_threads, err);
    for (int i = 0; i < n_threads; i++) {
        tdmi_free(copy.lanes[i].from);
        tdmi_free(copy.lanes[i].to);
    }
    tdmi_free(copy.lanes);
    return status;
}

/*
 * Memory bandwidth. Buffers are four times a thread's last cache and touched before the clock
 * starts; memcpy is what the rest of the program uses, so memcpy is timed.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tune/probe.h"

#include <string.h>

struct copy {
    size_t buffer_bytes;
    double seconds; /* for each pass */
    int n_threads;
    char **buffers; /* one a thread: to copy from, then to */
    double *rates;
};

/* Each thread touches its own buffers, so that their pages come from its own part of memory. */
static tdm_status take_task(void *self, int index, int worker, tdm_error *err)
{
    struct copy *copy = self;
    (void)worker;
    copy->buffers[index] = tdmi_alloc_aligned(2 * copy->buffer_bytes);
    if (!copy->buffers[index])
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for two buffers of %zu bytes",
                        copy->buffer_bytes);
    memset(copy->buffers[index], 1, 2 * copy->buffer_bytes);
    return TDM_OK;
}

static tdm_status copy_task(void *self, int index, int worker, tdm_error *err)
{
    const struct copy *copy = self;
    char *from = copy->buffers[index], *to = from + copy->buffer_bytes;
    const int64_t start = tdmi_clock_ns();
    double passed, bytes = 0;
    (void)worker;
    (void)err;
    do {
        memcpy(to, from, copy->buffer_bytes);
        bytes += 2.0 * (double)copy->buffer_bytes;
        passed = tdmi_clock_seconds_since(start);
    } while (passed < copy->seconds && !tdm_stop_is_requested());
    copy->rates[index] = bytes / passed;
    return TDM_OK;
}

tdm_status tdmi_probe_threads(tdmi_pool *pool, int n_threads, tdmi_task task, void *self,
                              const double *rates, double *rate, tdm_error *err)
{
    *rate = 0;
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        TDM_TRY(tdmi_pool_run(pool, n_threads, task, self, err), err, "measuring on %d threads",
                n_threads);
        for (int i = 0; i < n_threads; i++)
            sum += rates[i];
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

static void release(struct copy *copy)
{
    for (int i = 0; copy->buffers && i < copy->n_threads; i++)
        tdmi_free(copy->buffers[i]);
    tdmi_free(copy->buffers);
    tdmi_free(copy->rates);
}

tdm_status tdmi_probe_copy(tdmi_pool *pool, double seconds, int64_t l3_bytes, int64_t memory_bytes,
                           struct tdm_machine_rates *rates, tdm_error *err)
{
    const int n = tdmi_pool_threads(pool);
    struct tdm_machine_rate *rate = &rates->copy_bytes_per_s;
    TDMI_AT_END(release)
    struct copy copy = {.seconds = seconds / 4,
                        .n_threads = n,
                        .buffer_bytes = choose_buffer_bytes(n, l3_bytes, memory_bytes)};
    TDMI_TRY(TDMI_NEW(copy.buffers, n, err));
    TDMI_TRY(TDMI_NEW(copy.rates, n, err));
    rates->copy_buffer_bytes = (int64_t)copy.buffer_bytes;
    TDMI_TRY(tdmi_pool_run(pool, n, take_task, &copy, err));
    TDMI_TRY(tdmi_probe_threads(pool, 1, copy_task, &copy, copy.rates, &rate->one_thread, err));
    return tdmi_probe_threads(pool, n, copy_task, &copy, copy.rates, &rate->all_threads, err);
}

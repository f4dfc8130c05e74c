/*
 * The exact sum over all ranks, alone: nothing is computed beside it. Every rank has one array, as
 * in a step in which each computes one subtree of groups. Rank 0 decides how often; a sum counts
 * with the time of the slowest rank.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/sized.h"
#include "base/system/env.h"
#include "base/thread.h"
#include "dist/comm.h"
#include "tandem/bench.h"
#include "tandem/event.h"

#include <stdlib.h>

enum { most_rounds = 2000, warm_ups = 3 };

static const int64_t usual_bytes[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};

struct bench {
    tdmi_comm *comm;
    float *values;
    double seconds[most_rounds]; /* of each sum, of the slowest rank */
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All begin together, and the slowest one's time counts. */
static tdm_status time_sum(struct bench *it, int64_t n, double *seconds, tdm_error *err)
{
    const int world = tdmi_comm_world(it->comm);
    TDMI_AT_END(tdmi_free_at) double *times = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *firsts = NULL;
    TDMI_TRY(TDMI_NEW(times, world, err));
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    for (int r = 0; r <= world; r++)
        firsts[r] = sizeof *times * (size_t)r;
    TDMI_TRY(tdmi_comm_complete(it->comm, times, firsts, err));
    const int64_t began = tdmi_clock_ns();
    TDMI_TRY(tdmi_comm_sum(it->comm, &it->values, it->values, 0, n, err));
    TDMI_TRY(tdmi_comm_finish(it->comm, err));
    times[tdmi_comm_rank(it->comm)] = tdmi_clock_seconds_since(began);
    TDMI_TRY(tdmi_comm_complete(it->comm, times, firsts, err));
    *seconds = 0.0;
    for (int r = 0; r < world; r++)
        *seconds = times[r] > *seconds ? times[r] : *seconds;
    return TDM_OK;
}

static tdm_status time_size(struct bench *it, double seconds, struct tdm_bench_allreduce_row *row,
                            tdm_error *err)
{
    const int64_t n = row->bytes / (int64_t)sizeof *it->values, began = tdmi_clock_ns();
    double ignored;
    bool goes_on = true, is_stopped = false;
    int rounds = 0;
    for (int i = 0; i < warm_ups; i++)
        TDMI_TRY(time_sum(it, n, &ignored, err));
    while (goes_on) {
        TDMI_TRY(time_sum(it, n, &it->seconds[rounds++], err));
        is_stopped = tdm_stop_is_requested();
        goes_on = rounds < most_rounds && tdmi_clock_seconds_since(began) < seconds;
        TDMI_TRY(tdmi_comm_broadcast(it->comm, &goes_on, sizeof goes_on, err));
        TDMI_TRY(tdmi_comm_broadcast(it->comm, &is_stopped, sizeof is_stopped, err));
        if (is_stopped) /* rank 0 is */
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
    }
    qsort(it->seconds, (size_t)rounds, sizeof *it->seconds, ascending);
    row->rounds = rounds;
    row->low = it->seconds[0];
    row->median = it->seconds[rounds / 2];
    row->high = it->seconds[rounds - 1];
    return TDM_OK;
}

static tdm_status measure(struct bench *it, int64_t bytes, double seconds,
                          struct tdm_bench_allreduce *result, tdm_error *err)
{
    const int n_usual = sizeof usual_bytes / sizeof usual_bytes[0];
    const int64_t most = bytes > 0 ? bytes : usual_bytes[n_usual - 1];
    it->values = tdmi_alloc_aligned((size_t)most + sizeof *it->values);
    TDMI_CHECK_MEMORY(it->values, err);
    for (int64_t i = 0; i < most / (int64_t)sizeof *it->values; i++)
        it->values[i] = 0.0f; /* sums of zeros stay zeros, however often they are added */
    result->n_rows = bytes > 0 ? 1 : n_usual;
    for (int i = 0; i < result->n_rows; i++) {
        result->rows[i].bytes = bytes > 0 ? bytes : usual_bytes[i];
        TDM_TRY(time_size(it, seconds / result->n_rows, &result->rows[i], err), err,
                "adding %lld bytes", (long long)result->rows[i].bytes);
    }
    return TDM_OK;
}

static tdm_status open_ranks(struct bench *it, struct tdm_bench_allreduce *result, tdm_error *err)
{
    struct tdmi_launch launch;
    struct tdmi_local local;
    TDMI_TRY(tdmi_launch_here(&launch, err));
    TDMI_TRY(tdmi_env_local(&local, err));
    if (launch.world == 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "this process is alone: tandem run -n 2 -- bench allreduce starts two, and "
                        "launchers of several machines start more");
    TDMI_TRY(tdmi_comm_open(&launch, &it->comm, err));
    tdmi_comm_may_spin(it->comm, local.size > 0 && local.size <= tdmi_cpus_usable());
    result->world = launch.world;
    result->rank = launch.rank;
    result->transport = launch.transport;
    return tdmi_comm_divide(it->comm, launch.world, err); /* a subtree each */
}

static void release(struct bench *it)
{
    tdmi_comm_close(it->comm);
    tdmi_free(it->values);
}

tdm_status tdm_bench_allreduce(int64_t bytes, double seconds, struct tdm_bench_allreduce *result,
                               tdm_error *err)
{
    TDMI_RESULT(tdm_bench_allreduce, result, err);
    TDMI_AT_END(release) struct bench it = {0};
    tdm_status status = open_ranks(&it, result, err);
    if (status == TDM_OK)
        status = measure(&it, bytes, seconds, result, err);
    if (status != TDM_OK && it.comm)
        tdmi_comm_abort(it.comm, status, err);
    return TDM_WRAP(err, status, "measuring sums over ranks");
}

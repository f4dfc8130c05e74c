/*
 * A pool of worker threads for parallel loops. The caller works too (as worker 0), so a pool of one
 * starts no thread. Which worker takes which task is left to chance: tasks must not care.
 */
#pragma once

#include "base/scope.h"
#include "base/system/placement.h"
#include "tandem/error.h"
#include <stdbool.h>

typedef struct tdmi_pool tdmi_pool;

/* n_threads 0 takes the CPUs this process may use (affinity mask and cgroup quota). Workers run on
 * the CPUs that the placement says, which is copied; NULL: they are free to move. The caller is
 * bound, and flushes denormals to zero, only during a run; the workers always. */
tdm_status tdmi_pool_new(int n_threads, const struct tdmi_placement *placement, tdmi_pool **pool,
                         tdm_error *err) TDM_MUST_USE;
void tdmi_pool_free(tdmi_pool *pool);
TDMI_POINTER_RELEASE(tdmi_pool, tdmi_pool_free)
int tdmi_pool_threads(const tdmi_pool *pool);

/* Run task(self, index, worker, err) for every index in [0, n_tasks), each once; worker is in
 * [0, threads). Returns when all have ended. When tasks fail, no further one starts and the failure
 * with the lowest index is returned. One caller at a time; not from inside a task. */
typedef tdm_status (*tdmi_task)(void *self, int index, int worker, tdm_error *err);
tdm_status tdmi_pool_run(tdmi_pool *pool, int n_tasks, tdmi_task task, void *self,
                         tdm_error *err) TDM_MUST_USE;

/* Run task(self, i, i, err) on worker i for every i in [0, n), at the same time, so that they may
 * wait for each other (base/team.h); n is at most the number of threads. A task that fails must not
 * keep others waiting. */
tdm_status tdmi_pool_run_all(tdmi_pool *pool, int n, tdmi_task task, void *self,
                             tdm_error *err) TDM_MUST_USE;
/* Has every worker a CPU of its own, so that those that wait may spin? */
bool tdmi_pool_may_spin(const tdmi_pool *pool);

/* CPUs this process may use: the affinity mask, cut by the cgroup quota (rounded up); at least 1.
 */
int tdmi_cpus_usable(void);

/* One turn of a loop that waits for a value to change. */
void tdmi_thread_pause(void);

/* Denormals to zero for the calling thread (x86 and arm64; nothing elsewhere). */
void tdmi_thread_flush_denormals(void);

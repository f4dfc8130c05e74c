/* Tasks of a few neighbours each: neighbours lie together on disk, and a task is soon over. */
#include "data/audit/sweep.h"

#include "base/clock.h"
#include "tandem/event.h"
#include <limits.h>
#include <stdatomic.h>

enum { MOST_A_TASK = 16 };
static const int64_t report_every_ns = 50000000;

struct run {
    const struct tdmi_sweep *sweep;
    int64_t items_a_task, reported_ns;
    _Atomic int64_t done;
};

static void report(const struct run *run, enum tdm_event_kind kind)
{
    const struct tdmi_sweep *sweep = run->sweep;
    if (!sweep->sink.event)
        return;
    sweep->sink.event(sweep->sink.self, &(tdm_event){.kind = kind,
                                                     .done = atomic_load(&run->done),
                                                     .total = sweep->n_items,
                                                     .text = sweep->what});
}

static tdm_status sweep_some(void *self, int index, int worker, tdm_error *err)
{
    struct run *run = self;
    const struct tdmi_sweep *sweep = run->sweep;
    int64_t first = index * run->items_a_task, end = first + run->items_a_task;
    if (end > sweep->n_items)
        end = sweep->n_items;
    for (int64_t i = first; i < end; i++) {
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %lld of %lld pictures",
                            (long long)atomic_load(&run->done), (long long)sweep->n_items);
        tdm_status status = sweep->item(sweep->self, i, worker, err);
        if (status != TDM_OK)
            return status;
        atomic_fetch_add(&run->done, 1);
        /* Worker 0 is the caller's thread. */
        if (worker == 0 && tdmi_clock_ns() - run->reported_ns >= report_every_ns) {
            run->reported_ns = tdmi_clock_ns();
            report(run, TDM_EVENT_PROGRESS);
        }
    }
    return TDM_OK;
}

tdm_status tdmi_sweep_run(const struct tdmi_sweep *sweep, tdmi_pool *pool, tdm_error *err)
{
    struct run run = {.sweep = sweep};
    const int threads = tdmi_pool_threads(pool);
    run.items_a_task = sweep->n_items / (4 * (int64_t)threads);
    if (run.items_a_task > MOST_A_TASK)
        run.items_a_task = MOST_A_TASK;
    if (run.items_a_task < 1)
        run.items_a_task = 1;
    int64_t n_tasks = (sweep->n_items + run.items_a_task - 1) / run.items_a_task;
    if (n_tasks > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "%s: %lld of them are more than can be taken at once",
                        sweep->what, (long long)sweep->n_items);
    report(&run, TDM_EVENT_PHASE_BEGIN);
    tdm_status status = tdmi_pool_run(pool, (int)n_tasks, sweep_some, &run, err);
    report(&run, TDM_EVENT_PROGRESS); /* how far it came */
    report(&run, TDM_EVENT_PHASE_END);
    return status;
}

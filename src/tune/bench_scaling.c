/*
 * Time that a training step would take with more threads than this machine has CPUs, from the CPU
 * time of its parts on one thread. A group on a team is measured with its members one after the
 * other (base/team.h), so two CPUs are enough to measure a team of sixteen. How groups are divided
 * among threads is the step's own (train/step/division.h).
 *
 *     step(T) = waves of groups alone + rounds of teams + the rest
 *     team(k) = Σ over regions: time · largest share, + regions · a wait
 *     rest    = packing weights, adding gradients, update: tasks of the pool
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/sized.h"
#include "tandem/event.h"
#include "train/step/division.h"
#include "tune/bench_network.h"
#include "tune/bench_profile.h"
#include "tune/bench_rate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { least_rounds = 3, most_rounds = 64 };

static const int thread_counts[TDM_BENCH_SCALING_ROWS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

/* Medians of one team's size. */
struct of_team {
    /* Part of the time of one thread that the team takes, without waits: by the largest shares, and
     * with the time that its members take together. */
    double part, members_part;
    int64_t regions;
};

struct scaling {
    struct tdm_bench_compute_options options;
    double seconds; /* for each measurement */
    double bandwidth;
    int groups;
    double packed_share;                      /* of all packed weights that the largest node has */
    struct of_team teams[TDMI_TEAM_MOST + 1]; /* by size; regions 0: not measured yet */
    struct tdm_bench_scaling *result;
};

/* ---- measuring ----------------------------------------------------------------------------- */

static tdm_status open_network(const struct scaling *it, int threads, int batch,
                               struct tdm_bench_compute_options *options,
                               struct tdmi_bench_network *network, tdm_error *err)
{
    *options = it->options;
    options->threads = threads;
    options->batch = batch;
    TDMI_TRY(tdmi_bench_network_open(options, network, err));
    return tdmi_bench_network_step(network, err); /* touches fresh memory */
}

static tdm_status time_step(struct tdmi_bench_network *network, double *seconds, tdm_error *err)
{
    const int64_t begin = tdmi_clock_ns();
    TDMI_TRY(tdmi_bench_network_step(network, err));
    *seconds = tdmi_clock_seconds_since(begin);
    if (tdm_stop_is_requested())
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
    return TDM_OK;
}

static bool is_over(const struct scaling *it, int round, int64_t begin)
{
    return round >= most_rounds ||
           (round >= least_rounds && tdmi_clock_seconds_since(begin) > it->seconds);
}

/* Bytes that a step moves, and how much of all packing is the largest node's. */
static void count_plan(struct scaling *it, const struct tdmi_bench_network *network)
{
    const tdmi_plan *plan = network->plan;
    const double params = (double)sizeof(float) * (double)network->graph->param_values;
    /* Packing reads and writes weights once a direction; each group writes gradients, which are
     * added in pairs; the update moves weights, gradients and slots. */
    const double passes =
        3.0 + it->groups + 3.0 * (it->groups - 1) + 3.0 + 2.0 * network->optimizer->n_slots;
    size_t largest = 0;
    it->result->step_bytes = passes * params;
    for (int i = 0; i < network->graph->n_nodes; i++) {
        const struct tdmi_node_plan *node = &plan->nodes[i];
        largest = node->packed_bytes > largest ? node->packed_bytes : largest;
        if (!tdmi_plan_is_silent(plan, i) && node->chained_by < 0)
            it->result->step_bytes += network->batch.n * tdmi_profile_node_bytes(plan, i);
    }
    it->packed_share = plan->packed_bytes > 0 ? (double)largest / (double)plan->packed_bytes : 0.0;
}

/* A group by one thread and by the team, interleaved. */
static tdm_status measure_team(struct scaling *it, int size, tdm_error *err)
{
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network alone = {0};
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network team = {0};
    struct tdm_bench_compute_options of_alone, of_team;
    double parts[most_rounds], members[most_rounds], unused;
    struct tdmi_team_log one, log;
    int n = 0;
    TDMI_TRY(open_network(it, 1, it->result->shard, &of_alone, &alone, err));
    TDMI_TRY(open_network(it, size, it->result->shard, &of_team, &team, err));
    tdmi_step_measure(alone.step, &one);
    tdmi_step_measure(team.step, &log);
    for (const int64_t begin = tdmi_clock_ns(); !is_over(it, n, begin); n++) {
        one = log = (struct tdmi_team_log){0};
        TDMI_TRY(time_step(&alone, &unused, err));
        TDMI_TRY(time_step(&team, &unused, err));
        parts[n] = log.predicted / log.seconds;
        members[n] = log.predicted / one.seconds;
    }
    it->teams[size] = (struct of_team){tdmi_bench_spread(parts, n).median,
                                       tdmi_bench_spread(members, n).median, log.n_regions};
    return TDM_OK;
}

/* Whole steps by one thread and by two, interleaved; and the parts of a step of one thread. */
static tdm_status measure_steps(struct scaling *it, double measured[2], tdm_error *err)
{
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network one = {0};
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network two = {0};
    struct tdm_bench_compute_options of_one, of_two;
    double steps[most_rounds], shares[most_rounds], updates[most_rounds], both[most_rounds],
        clock[most_rounds];
    const bool has_two = tdmi_cpus_usable() >= 2;
    struct tdmi_team_log log;
    int n = 0;
    TDMI_TRY(open_network(it, 1, it->options.batch, &of_one, &one, err));
    TDMI_TRY(open_network(it, has_two ? 2 : 1, it->options.batch, &of_two, &two, err));
    it->groups = (one.batch.n + one.shard - 1) / one.shard;
    it->result->shard = one.shard;
    it->result->image = one.graph->nodes[0].out.w;
    snprintf(it->result->model, sizeof it->result->model, "%s", one.network.name);
    tdmi_step_measure(one.step, &log);
    for (const int64_t begin = tdmi_clock_ns(); !is_over(it, n, begin); n++) {
        log = (struct tdmi_team_log){0};
        const double cpu = tdmi_cpu_seconds();
        TDMI_TRY(time_step(&one, &clock[n], err));
        steps[n] = tdmi_cpu_seconds() - cpu;
        shares[n] = log.seconds / steps[n];
        TDMI_TRY(time_step(&two, &both[n], err));
        const double update = tdmi_cpu_seconds();
        TDMI_TRY(tdmi_bench_network_update(&one, 1, err));
        updates[n] = tdmi_cpu_seconds() - update;
    }
    it->result->step_seconds = tdmi_bench_spread(steps, n).median;
    it->result->group_seconds =
        it->result->step_seconds * tdmi_bench_spread(shares, n).median / it->groups;
    it->result->update_seconds = tdmi_bench_spread(updates, n).median;
    measured[0] = tdmi_bench_spread(clock, n).median;
    measured[1] = has_two ? tdmi_bench_spread(both, n).median : 0.0;
    count_plan(it, &one);
    return TDM_OK;
}

/* ---- a wait of two threads ------------------------------------------------------------------ */

enum { n_waits = 20000 };

static tdm_status wait_often(void *self, int index, int worker TDMI_UNUSED,
                             tdm_error *err TDMI_UNUSED)
{
    const struct tdmi_member member = tdmi_team_join(self, index);
    for (int i = 0; i < n_waits; i++)
        tdmi_member_wait(&member);
    tdmi_team_leave(&member);
    return TDM_OK;
}

static tdm_status measure_barrier(struct scaling *it, tdm_error *err)
{
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    TDMI_AT_END(tdmi_team_free_at) tdmi_team *team = NULL;
    TDMI_TRY(tdmi_pool_new(2, NULL, &pool, err));
    TDMI_TRY(tdmi_team_new(&team, err));
    enum { rounds = 5 };
    for (int i = 0; i < rounds; i++) {
        tdmi_team_form(team, 2, tdmi_pool_may_spin(pool), NULL);
        const int64_t begin = tdmi_clock_ns();
        TDMI_TRY(tdmi_pool_run_all(pool, 2, wait_often, team, err));
        const double seconds = tdmi_clock_seconds_since(begin) / n_waits;
        if (i == 0 || seconds < it->result->barrier_seconds)
            it->result->barrier_seconds = seconds;
    }
    return TDM_OK;
}

/* Members write to one place one after the other. */
static double wait_of(const struct scaling *it, int members)
{
    return members > 1 ? it->result->barrier_seconds * members / 2.0 : 0.0;
}

/* ---- predicting ---------------------------------------------------------------------------- */

static struct tdmi_division division_of(const struct scaling *it, int threads)
{
    return tdmi_division_of(it->groups, threads, tdmi_team_largest(threads), false);
}

static int smallest_team(const struct tdmi_division *division)
{
    return division->n_teams > 0 ? division->n_threads / division->n_teams : 1;
}

/* Time of a step; part: of one thread's time that a team takes for a group. */
static double seconds_of(const struct scaling *it, const struct tdmi_division *division,
                         double part, int64_t regions)
{
    const struct tdm_bench_scaling *of = it->result;
    const int threads = division->n_threads;
    const double rest = of->step_seconds - it->groups * of->group_seconds;
    const double packing = rest > of->update_seconds ? rest - of->update_seconds : 0.0;
    double seconds = (double)division->n_alone / threads * of->group_seconds;
    if (division->n_teams > 0) {
        const int rounds = (division->n_together + division->n_teams - 1) / division->n_teams;
        seconds += rounds * (part * of->group_seconds +
                             (double)regions * wait_of(it, smallest_team(division)));
    }
    return seconds + packing * fmax(it->packed_share, 1.0 / threads) + of->update_seconds / threads;
}

static void predict(const struct scaling *it, int threads, struct tdm_bench_scaling_row *row)
{
    const struct tdm_bench_scaling *of = it->result;
    const struct tdmi_division division = division_of(it, threads);
    const int members = smallest_team(&division);
    const struct of_team *team = &it->teams[members];
    *row = (struct tdm_bench_scaling_row){.threads = threads,
                                          .teams = division.n_teams,
                                          .members = members,
                                          .regions = team->regions};
    row->seconds = seconds_of(it, &division, team->part, team->regions);
    row->speedup = of->step_seconds / row->seconds;
    row->members_speedup =
        of->step_seconds / seconds_of(it, &division, team->members_part, team->regions);
    if (it->bandwidth > 0.0) {
        const double least = of->step_bytes / it->bandwidth;
        row->bandwidth_speedup = of->step_seconds / fmax(row->seconds, least);
    }
}

static tdm_status measure_teams(struct scaling *it, tdm_error *err)
{
    for (int i = 0; i < TDM_BENCH_SCALING_ROWS; i++) {
        const struct tdmi_division division = division_of(it, thread_counts[i]);
        const int size = smallest_team(&division);
        if (size > 1 && it->teams[size].regions == 0)
            TDM_TRY(measure_team(it, size, err), err, "measuring teams of %d threads", size);
    }
    return TDM_OK;
}

tdm_status tdm_bench_scaling(const struct tdm_bench_compute_options *options, double bandwidth,
                             struct tdm_bench_scaling *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_bench_compute_options, options, tdm_bench_compute_options_default(), err);
    TDMI_RESULT(tdm_bench_scaling, result, err);
    struct scaling it = {.options = *options, .bandwidth = bandwidth, .result = result};
    double measured[2];
    if (options->mode != TDM_BENCH_TRAIN || options->has_frozen_base || options->has_profile ||
        strcmp(options->device, "cpu") != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "predicting a step on more CPUs: --device cpu and --mode train, without "
                        "--freeze and --profile, are accepted");
    it.teams[1] = (struct of_team){1.0, 1.0, 0};
    it.seconds = options->seconds / 6; /* steps, and about five sizes of teams */
    result->batch = options->batch;
    TDM_TRY(measure_steps(&it, measured, err), err, "measuring steps");
    TDM_TRY(measure_barrier(&it, err), err, "measuring a wait");
    TDMI_TRY(measure_teams(&it, err));
    for (int i = 0; i < TDM_BENCH_SCALING_ROWS; i++)
        predict(&it, thread_counts[i], &result->rows[result->n_rows++]);
    for (int i = 0; i < 2; i++)
        result->rows[i].measured_seconds = measured[i];
    return TDM_OK;
}

/*
 * Time that a training step or a batch of features would take with more threads than this machine
 * has CPUs, from the CPU time of its parts on one thread. A group on a team is measured with its
 * members one after the other (base/team.h), so two CPUs are enough to measure a team of sixteen.
 * How groups are divided among threads is the step's own (train/step/division.h); for features
 * every image is a group (train/evaluate/cut.h).
 *
 *     step(T) = (waves of groups alone + rounds of teams + the rest) · slowdown
 *     team(k) = Σ over regions: time · largest share, + regions · a wait
 *     rest    = packing weights, adding gradients, update: tasks of the pool
 *
 * slowdown: CPUs that work at once slow each other down. It is measured with two copies of the step
 * that share nothing, one thread each; more CPUs may lose more than two do.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/sized.h"
#include "tandem/event.h"
#include "train/evaluate/cut.h"
#include "tune/bench_network.h"
#include "tune/bench_profile.h"
#include "tune/bench_rate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { least_rounds = 3, most_rounds = 64 };

static const int thread_counts[TDM_BENCH_SCALING_ROWS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

/* Medians of one team's size. */
struct team_times {
    /* Part of the time of one thread that the team takes, without waits: by the largest shares, and
     * with the time that its members take together. */
    double part, members_part;
    int64_t regions;
};

struct scaling {
    struct tdm_bench_compute_options options;
    double seconds; /* for each measurement */
    double bandwidth;
    bool is_training;
    int groups, group_images;
    int largest_team;
    double packed_share; /* bytes of the largest node's packed weights ÷ those of all nodes */
    struct team_times teams[TDMI_TEAM_MOST + 1]; /* by size; regions 0: not measured yet */
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

static void set_log(struct tdmi_bench_network *network, struct tdmi_team_log *log)
{
    *log = (struct tdmi_team_log){0};
    if (network->is_training)
        tdmi_step_measure(network->step, log);
    else
        tdmi_evaluator_measure(network->evaluator, log);
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
    it->result->step_bytes = it->is_training ? passes * params : params;
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
    TDMI_TRY(open_network(it, 1, it->group_images, &of_alone, &alone, err));
    TDMI_TRY(open_network(it, size, it->group_images, &of_team, &team, err));
    set_log(&alone, &one);
    set_log(&team, &log);
    for (const int64_t begin = tdmi_clock_ns(); !is_over(it, n, begin); n++) {
        one = log = (struct tdmi_team_log){0};
        TDMI_TRY(time_step(&alone, &unused, err));
        TDMI_TRY(time_step(&team, &unused, err));
        parts[n] = log.predicted / log.seconds;
        members[n] = log.predicted / one.seconds;
    }
    it->teams[size] = (struct team_times){tdmi_bench_spread(parts, n).median,
                                          tdmi_bench_spread(members, n).median, log.n_regions};
    return TDM_OK;
}

/* Two networks of one thread each, which share nothing but the machine. */
struct copies {
    struct tdmi_bench_network *of[2];
    double seconds[2]; /* wall clock */
};

static tdm_status step_of_copy(void *self, int index, int worker TDMI_UNUSED, tdm_error *err)
{
    struct copies *copies = self;
    return time_step(copies->of[index], &copies->seconds[index], err);
}

/* Figures of each round; wall-clock seconds unless marked. */
struct rounds {
    double cpu[most_rounds];         /* a step of one thread: CPU time */
    double group_parts[most_rounds]; /* the part of it that groups take */
    double updates[most_rounds];     /* the optimizer's step alone: CPU time */
    double clock[most_rounds];       /* a step of one thread */
    double two[most_rounds];         /* a step of two threads */
    double slowdowns[most_rounds];   /* ratio: two copies at once ÷ one thread */
    double speedups[most_rounds];    /* ratio: two copies at once ÷ two threads */
};

static tdm_status time_one(struct tdmi_bench_network *one, struct tdmi_team_log *log,
                           struct rounds *rounds, int n, tdm_error *err)
{
    *log = (struct tdmi_team_log){0};
    const int64_t begin = tdmi_clock_thread_ns(); /* one thread is the caller */
    TDMI_TRY(time_step(one, &rounds->clock[n], err));
    const int64_t step_end = tdmi_clock_thread_ns();
    if (one->is_training)
        TDMI_TRY(tdmi_bench_network_update(one, 1, err));
    rounds->cpu[n] = 1e-9 * (double)(step_end - begin);
    rounds->group_parts[n] = log->seconds / rounds->cpu[n];
    rounds->updates[n] = 1e-9 * (double)(tdmi_clock_thread_ns() - step_end);
    return TDM_OK;
}

static tdm_status time_two(tdmi_pool *pool, struct copies *copies, struct tdmi_bench_network *two,
                           struct rounds *rounds, int n, tdm_error *err)
{
    TDMI_TRY(tdmi_pool_run_all(pool, 2, step_of_copy, copies, err));
    TDMI_TRY(time_step(two, &rounds->two[n], err));
    const double longer = fmax(copies->seconds[0], copies->seconds[1]);
    rounds->slowdowns[n] = longer / rounds->clock[n];
    rounds->speedups[n] = longer / rounds->two[n];
    return TDM_OK;
}

/* Steps of one thread, of two copies at once and of two threads, interleaved. */
static tdm_status measure_rounds(struct scaling *it, struct tdmi_bench_network *one, bool has_two,
                                 struct tdmi_team_log *log, struct rounds *rounds, int *n,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network copy = {0};
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network two = {0};
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    struct tdm_bench_compute_options of_copy, of_two;
    struct copies copies = {.of = {one, &copy}};
    if (has_two) {
        TDMI_TRY(open_network(it, 1, it->options.batch, &of_copy, &copy, err));
        TDMI_TRY(open_network(it, 2, it->options.batch, &of_two, &two, err));
        TDMI_TRY(tdmi_pool_new(2, NULL, &pool, err));
    }
    set_log(one, log);
    for (const int64_t begin = tdmi_clock_ns(); !is_over(it, *n, begin); ++*n) {
        TDMI_TRY(time_one(one, log, rounds, *n, err));
        if (has_two)
            TDMI_TRY(time_two(pool, &copies, &two, rounds, *n, err));
    }
    return TDM_OK;
}

static tdm_status measure_steps(struct scaling *it, double measured[2], tdm_error *err)
{
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network one = {0};
    struct tdm_bench_compute_options of_one;
    struct tdm_bench_scaling *result = it->result;
    struct tdmi_team_log log;
    struct rounds rounds;
    int n = 0;
    TDMI_TRY(open_network(it, 1, it->options.batch, &of_one, &one, err));
    /* Threads of a process with CPUs of its own are bound: both copies would have the same one. */
    const bool has_two = tdmi_cpus_usable() >= 2 && !one.placement.is_bound;
    it->group_images = it->is_training ? one.shard : 1;
    it->groups = (one.batch.n + it->group_images - 1) / it->group_images;
    result->shard = it->group_images;
    result->image = one.graph->nodes[0].out.w;
    it->largest_team = it->is_training
                           ? TDMI_TEAM_MOST
                           : tdmi_evaluator_team(one.graph, one.backend, TDMI_TEAM_MOST);
    snprintf(result->model, sizeof result->model, "%s", one.network.name);
    TDMI_TRY(measure_rounds(it, &one, has_two, &log, &rounds, &n, err));
    result->step_seconds = tdmi_bench_spread(rounds.cpu, n).median;
    result->group_seconds =
        result->step_seconds * tdmi_bench_spread(rounds.group_parts, n).median / it->groups;
    result->update_seconds = it->is_training ? tdmi_bench_spread(rounds.updates, n).median : 0.0;
    measured[0] = tdmi_bench_spread(rounds.clock, n).median;
    if (has_two) {
        measured[1] = tdmi_bench_spread(rounds.two, n).median;
        result->busy_slowdown = tdmi_bench_spread(rounds.slowdowns, n).median;
        result->busy_speedup = tdmi_bench_spread(rounds.speedups, n).median;
    }
    count_plan(it, &one);
    return TDM_OK;
}

/* An image alone by one thread. */
static tdm_status measure_image(struct scaling *it, tdm_error *err)
{
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network one = {0};
    struct tdm_bench_compute_options of_one;
    double images[most_rounds];
    struct tdmi_team_log log;
    int n = 0;
    TDMI_TRY(open_network(it, 1, 1, &of_one, &one, err));
    set_log(&one, &log);
    for (const int64_t begin = tdmi_clock_ns(); !is_over(it, n, begin); n++) {
        double unused;
        log = (struct tdmi_team_log){0};
        TDMI_TRY(time_step(&one, &unused, err));
        images[n] = log.seconds;
    }
    it->result->group_seconds = tdmi_bench_spread(images, n).median;
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
    const int any = tdmi_team_largest(threads);
    const int largest = any < it->largest_team ? any : it->largest_team;
    return it->is_training
               ? tdmi_division_of(it->groups, threads, largest, TDMI_DIVISION_LOSS, false)
               : tdmi_cut_of(it->groups, threads, 1, largest).division;
}

static int smallest_team(const struct tdmi_division *division)
{
    return division->n_teams > 0 ? division->n_threads / division->n_teams : 1;
}

/* Packing weights and adding gradients: features have neither. */
static double packing_seconds(const struct scaling *it)
{
    const struct tdm_bench_scaling *of = it->result;
    const double rest = of->step_seconds - it->groups * of->group_seconds - of->update_seconds;
    return it->is_training && rest > 0.0 ? rest : 0.0;
}

/* Time of a step; part: of one thread's time that a team takes for a group. */
static double seconds_of(const struct scaling *it, int threads,
                         const struct tdmi_division *division, double part, int64_t regions)
{
    const struct tdm_bench_scaling *of = it->result;
    const int each = division->n_alone / threads;
    /* One thread computes several images of a batch at once. */
    const bool is_piece = !it->is_training && each > 1;
    double seconds = each * (is_piece ? of->step_seconds / it->groups : of->group_seconds);
    if (division->n_teams > 0) {
        const int rounds = (division->n_by_teams + division->n_teams - 1) / division->n_teams;
        seconds += rounds * (part * of->group_seconds +
                             (double)regions * wait_of(it, smallest_team(division)));
    }
    return seconds + packing_seconds(it) * fmax(it->packed_share, 1.0 / threads) +
           of->update_seconds / threads;
}

/* Ratio of the times beside a busy CPU and alone; 1: not measured. */
static double slowdown_of(const struct scaling *it, int threads)
{
    return threads > 1 && it->result->busy_slowdown > 0.0 ? it->result->busy_slowdown : 1.0;
}

static void predict(const struct scaling *it, int threads, struct tdm_bench_scaling_row *row)
{
    const struct tdm_bench_scaling *of = it->result;
    const struct tdmi_division division = division_of(it, threads);
    const int members = smallest_team(&division);
    const struct team_times *team = &it->teams[members];
    *row = (struct tdm_bench_scaling_row){.threads = threads,
                                          .teams = division.n_teams,
                                          .members = members,
                                          .regions = team->regions};
    const double slowdown = slowdown_of(it, threads);
    const double by_members =
        slowdown * seconds_of(it, threads, &division, team->members_part, team->regions);
    row->seconds = slowdown * seconds_of(it, threads, &division, team->part, team->regions);
    row->speedup = of->step_seconds / row->seconds;
    row->members_speedup = of->step_seconds / by_members;
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
    double measured[2] = {0};
    if (options->has_frozen_base || options->has_profile || strcmp(options->device, "cpu") != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "predicting a step on more CPUs: --device cpu, without --freeze and "
                        "--profile, is accepted");
    it.is_training = options->mode == TDM_BENCH_TRAIN;
    it.teams[1] = (struct team_times){1.0, 1.0, 0};
    it.seconds = options->seconds / 8; /* steps, and about seven sizes of teams */
    result->batch = options->batch;
    TDM_TRY(measure_steps(&it, measured, err), err, "measuring steps");
    if (!it.is_training)
        TDM_TRY(measure_image(&it, err), err, "measuring an image");
    TDM_TRY(measure_barrier(&it, err), err, "measuring a wait");
    TDMI_TRY(measure_teams(&it, err));
    for (int i = 0; i < TDM_BENCH_SCALING_ROWS; i++)
        predict(&it, thread_counts[i], &result->rows[result->n_rows++]);
    for (int i = 0; i < 2; i++)
        result->rows[i].measured_seconds = measured[i];
    return TDM_OK;
}

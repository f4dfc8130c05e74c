/*
 * The batch size: --batch N, or auto, chosen once, before the first step, and recorded. The cost of
 * a larger batch is known beforehand: fewer steps an epoch (batch_rules.h) and memory (memory.c).
 * Its gain is timed on zeros, doubling the batch until doubling gains little. The learning rate
 * follows the usual rule.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "train/batch_rules.h"
#include "train/session/memory.h"

#include <stdio.h>
#include <string.h>

static const double part_of_memory = 0.9;
static const double most_seconds = 2.0; /* of steps that are timed */
/* Timed steps are of whole batches; the ragged last batch of an epoch is recorded as well. */
static const int64_t times_recorded = 2;

/* ---- the batch size -------------------------------------------------------------------------- */

/* By default one group a GPU, which is fastest. */
int tdmi_batch_shard(const struct tdmi_session *session, int batch)
{
    const int asked = session->config.options.shard, world = tdmi_ranks_world(session);
    const int shard = asked                                      ? asked
                      : session->compute.backend->device.is_host ? session->network.definition.shard
                                                                 : (batch + world - 1) / world;
    return shard < batch ? shard : batch;
}

static void set_batch(struct tdmi_session *session, int batch)
{
    const tdmi_split *split = &session->data.split;
    int64_t most = split->n_train > split->n_val ? split->n_train : split->n_val;
    if (session->data.has_test && split->n_test > most)
        most = split->n_test;
    session->config.batch = batch;
    session->data.steps_per_epoch = (split->n_train + batch - 1) / batch;
    session->data.max_batch = batch < most ? batch : (int)most;
}

/* By --batch or the record; 0: not known yet. */
static int known_batch(const struct tdmi_session *session)
{
    const int64_t recorded = tdmi_record_integer(&session->record, "batch", 0);
    if (session->config.options.batch > 0)
        return session->config.options.batch;
    return recorded > 0 && recorded <= TDMI_BATCH_MOST ? (int)recorded : 0;
}

void tdmi_batch_begin(struct tdmi_session *session)
{
    const int known = known_batch(session);
    set_batch(session, known > 0 ? known : tdmi_batch_most(session->data.split.n_train));
    snprintf(session->config.batch_reason, sizeof session->config.batch_reason, "%s",
             tdmi_record_string(&session->record, "batch_reason"));
}

/* ---- memory ------------------------------------------------------------------------------- */

/* A batch that does not fit, and its memory; zeroed: none. */
struct refused {
    int batch;
    int64_t bytes;
};

static tdm_status measure(const struct tdmi_session *session, int batch, int64_t limit_bytes,
                          int64_t *bytes, size_t *most_workspace, tdm_error *err)
{
    const struct tdmi_needs_choice choice = {
        .batch = batch < session->data.max_batch ? batch : session->data.max_batch,
        .shard = tdmi_batch_shard(session, batch),
        .threads =
            session->compute.backend->device.is_host ? tdmi_pool_threads(session->compute.pool) : 1,
    };
    struct tdmi_needs needs = {0};
    TDM_TRY(tdmi_session_measure(session, choice, limit_bytes, &needs, most_workspace, err), err,
            "planning batches of %d", batch);
    *bytes = tdmi_needs_total(&needs);
    return TDM_OK;
}

/* The largest batch that fits as one group, even below the usual size: several groups would each
 * have their own batch-norm statistics. Workspace of GPU libraries is reduced before the batch is.
 * If nothing fits, tdmi_session_plan_memory reports what would. */
static tdm_status find_largest(struct tdmi_session *session, int *batch, struct refused *refused,
                               tdm_error *err)
{
    const struct tdmi_memory_limit limit = tdmi_memory_limit_of(session);
    const int64_t beside = times_recorded * session->compute.recorded_bytes;
    const int64_t most = (int64_t)(part_of_memory * (double)limit.bytes) - beside;
    size_t most_workspace = 0;
    int64_t bytes = 0;
    session->compute.most_workspace = 0;
    if (limit.bytes == 0)
        return TDM_OK;
    for (; *batch > 0; *batch /= 2) {
        TDMI_TRY(measure(session, *batch, most, &bytes, &most_workspace, err));
        if (bytes <= most) {
            session->compute.most_workspace = most_workspace;
            return TDM_OK;
        }
        *refused = (struct refused){*batch, bytes + beside};
    }
    *batch = TDMI_BATCH_LEAST;
    return TDM_OK;
}

/* ---- speed -------------------------------------------------------------------------------- */

/* Training steps on one batch, which are timed. */
struct trial {
    struct tdmi_session *session;
    tdmi_plan *plan;
    tdmi_step *step;
    tdmi_update *update;
    struct tdmi_batch batch;
    uint8_t *pixels; /* zeros, as labels and items are */
    int32_t *labels;
    int64_t *items;
};

static void close_trial(struct trial *it)
{
    tdmi_update_close(it->update);
    tdmi_step_close(it->step);
    tdmi_plan_free(it->plan);
    tdmi_free(it->pixels);
    tdmi_free(it->labels);
    tdmi_free(it->items);
}

/* Times the steps of the last freeze point, which take longest. */
static tdm_status open_trial(struct trial *it, int whole_batch, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const int shard = tdmi_batch_shard(session, whole_batch);
    const int batch = tdmi_ranks_most_images(session, whole_batch, shard);
    const struct tdmi_plan_options request = tdmi_plans_options(
        session, &(struct tdmi_plans_request){session->compute.device,
                                              tdmi_network_final_freeze_point(session), shard,
                                              session->compute.most_workspace});
    struct tdmi_step_options step = tdmi_trainer_step_options(session);
    step.max_batch = batch;
    step.comm = NULL; /* the other ranks wait for the answer */
    TDMI_TRY(
        tdmi_plan_make(session->network.graph, session->compute.backend, &request, &it->plan, err));
    TDMI_TRY(tdmi_step_open(it->plan, session->compute.device, session->compute.pool, &step,
                            &it->step, err));
    TDMI_TRY(
        tdmi_trainer_open_update(session, it->plan->first_trained, it->step, &it->update, err));
    TDMI_TRY(TDMI_NEW(it->pixels, (size_t)batch * tdmi_plan_sample_bytes(it->plan), err));
    TDMI_TRY(TDMI_NEW(it->labels, batch, err));
    TDMI_TRY(TDMI_NEW(it->items, batch, err));
    it->batch = (struct tdmi_batch){.n = batch,
                                    .values = it->pixels,
                                    .pixels = it->pixels,
                                    .labels = it->labels,
                                    .items = it->items};
    return TDM_OK;
}

/* Changes the values; time_up_to restores them. */
static tdm_status take_step(struct trial *it, tdm_error *err)
{
    const struct tdmi_session *session = it->session;
    const struct tdmi_update_rates rates = {.momentum = (float)session->config.rates.momentum,
                                            .values = session->config.rates.optimizer.values,
                                            .clip_norm = session->config.options.clip_norm};
    const float n = (float)it->batch.n;
    float tail[TDMI_TAIL_VALUES];
    tdmi_step_begin(it->step, tdmi_values_trained(&session->network), &it->batch, NULL);
    if (tdmi_compute_queues(&session->compute)) {
        TDM_TRY(tdmi_update_begin(it->update, n, rates, err), err, "a step");
        const struct tdmi_step_next next = tdmi_update_next(it->update);
        return tdmi_step_run_queued(it->step, &next, tail, err);
    }
    TDM_TRY(tdmi_step_run(it->step, 0, it->plan->n_segments - 1, err), err, "a step");
    TDM_TRY(tdmi_update_run(it->update, tdmi_step_sums(it->step), n, rates, err), err, "a step");
    return session->compute.backend->stream.wait(session->compute.stream, err);
}

/* The shortest of a few, since disturbances only add time. The first steps touch fresh memory and
 * are recorded on a GPU, so they do not count; on the CPU one long step is enough. */
static tdm_status time_steps(struct trial *it, double *seconds, tdm_error *err)
{
    enum { n_timed = 5 };
    static const double is_long = 0.25, is_very_long = 1.0;
    const bool is_host = it->session->compute.backend->device.is_host;
    const int n_first = tdmi_compute_queues(&it->session->compute) ? 3 : 1;
    *seconds = 0.0;
    for (int i = 0; i < n_first + n_timed; i++) {
        const int64_t began = tdmi_clock_ns();
        TDM_TRY(take_step(it, err), err, "timing steps of %d images", it->batch.n);
        const double taken = tdmi_clock_seconds_since(began);
        if (i < n_first && (!is_host || taken < is_very_long))
            continue;
        if (!(*seconds > 0.0) || taken < *seconds)
            *seconds = taken;
        if (is_host && taken > is_long)
            break;
    }
    return TDM_OK;
}

static tdm_status time_batch(struct tdmi_session *session, int batch, double *seconds,
                             tdm_error *err)
{
    TDMI_AT_END(close_trial) struct trial it = {.session = session};
    tdm_status status = open_trial(&it, batch, err);
    if (status == TDM_OK)
        status = time_steps(&it, seconds, err);
    if (it.step && tdmi_step_recorded_bytes(it.step) > session->compute.recorded_bytes)
        session->compute.recorded_bytes = tdmi_step_recorded_bytes(it.step);
    return TDM_WRAP(err, status, "trying batches of %d", batch);
}

struct rates {
    double of[TDMI_BATCH_CANDIDATES]; /* images per second; batch TDMI_BATCH_LEAST << i */
    int n;
    int refused; /* the batch that ran out of memory; 0: none */
};

/* Running out of memory only ends the search: the batch was planned with less workspace. */
static tdm_status time_up_to(struct tdmi_session *session, int most, struct rates *rates,
                             tdm_error *err)
{
    double spent = 0.0, seconds = 0.0;
    tdm_status status = TDM_OK;
    for (int batch = TDMI_BATCH_LEAST; batch <= most; batch *= 2) {
        const int64_t began = tdmi_clock_ns();
        if (tdmi_batch_is_flat(rates->of, rates->n) || spent + 2.0 * seconds > most_seconds)
            break;
        tdm_error why = {0};
        status = time_batch(session, batch, &seconds, &why);
        if (status == TDM_E_MEMORY) {
            rates->refused = batch;
            status = TDM_OK;
            break;
        }
        if (status != TDM_OK && err)
            *err = why;
        if (status != TDM_OK || !(seconds > 0.0))
            break;
        rates->of[rates->n++] = batch / seconds;
        /* on a GPU, libraries choose kernels once for all runs: that time does not count */
        spent += session->compute.backend->device.is_host ? tdmi_clock_seconds_since(began)
                                                          : 8.0 * seconds;
    }
    TDMI_TRY(status);
    TDMI_TRY(tdmi_trainer_upload(session, err));
    return tdmi_trainer_open_scale(session, err);
}

/* ---- choosing ------------------------------------------------------------------------------- */

static void add_words(struct tdmi_train_config *config, const char *words)
{
    const size_t used = strlen(config->batch_reason);
    snprintf(config->batch_reason + used, sizeof config->batch_reason - used, "%s", words);
}

/* refused: the batch that planning refused; then, of those timed, because of recording. */
static void explain(struct tdmi_session *session, const struct rates *rates, int fitting,
                    const struct refused refused[2])
{
    const struct tdmi_memory_limit limit = tdmi_memory_limit_of(session);
    const int chosen = session->config.batch;
    char text[160];
    session->config.batch_reason[0] = '\0';
    for (int i = 0; i < rates->n; i++) {
        snprintf(text, sizeof text, "%s%d: %.4g", i == 0 ? "timed " : ", ", TDMI_BATCH_LEAST << i,
                 rates->of[i]);
        add_words(&session->config, text);
    }
    if (rates->n > 0)
        add_words(&session->config, " images/s; ");
    if (refused[1].batch > 0)
        snprintf(text, sizeof text,
                 "with what recording steps takes %d take %lld MiB, %s %lld, and a tenth is left "
                 "alone",
                 refused[1].batch, (long long)(refused[1].bytes >> 20) + 1, limit.what,
                 (long long)(limit.bytes >> 20));
    else if (chosen < fitting && tdmi_batch_is_flat(rates->of, rates->n))
        snprintf(text, sizeof text, "twice the batch is less than a tenth faster");
    else if (chosen < fitting && rates->refused > 0)
        snprintf(text, sizeof text, "steps of %d found no room in memory", rates->refused);
    else if (chosen < fitting)
        snprintf(text, sizeof text, "steps take so long that more were not timed");
    else if (refused[0].batch > 0)
        snprintf(text, sizeof text, "%d take %lld MiB, %s %lld, and a tenth is left alone",
                 refused[0].batch, (long long)(refused[0].bytes >> 20) + 1, limit.what,
                 (long long)(limit.bytes >> 20));
    else if (chosen == TDMI_BATCH_MOST)
        snprintf(text, sizeof text, "more is known to cost accuracy");
    else
        snprintf(text, sizeof text,
                 "a larger batch leaves fewer than 100 steps an epoch of %lld images",
                 (long long)session->data.split.n_train);
    add_words(&session->config, text);
}

/* Steps are timed with the workspace that fits beside the largest batch; a smaller batch that is
 * chosen for its speed may allow more. */
static tdm_status choose(struct tdmi_session *session, tdm_error *err)
{
    int fitting = session->config.batch;
    struct refused refused[2] = {{0}};
    struct rates rates = {.n = 0};
    TDM_TRY(find_largest(session, &fitting, &refused[0], err), err, "choosing a batch");
    int chosen = fitting;
    if (fitting > TDMI_BATCH_LEAST) {
        TDM_TRY(time_up_to(session, fitting, &rates, err), err, "choosing a batch");
        chosen = TDMI_BATCH_LEAST << (rates.n > 0 ? tdmi_batch_best(rates.of, rates.n) : 0);
        TDM_TRY(find_largest(session, &chosen, &refused[1], err), err, "choosing a batch");
    }
    set_batch(session, chosen);
    explain(session, &rates, fitting, refused);
    return TDM_OK;
}

tdm_status tdmi_session_choose_batch(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_config *config = &session->config;
    if (known_batch(session) > 0)
        return TDM_OK;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(choose(session, err));
    int chosen = config->batch;
    TDMI_TRY(tdmi_ranks_share(session, &chosen, sizeof chosen, err));
    TDMI_TRY(tdmi_ranks_share(session, config->batch_reason, sizeof config->batch_reason, err));
    set_batch(session, chosen);
    tdmi_record_note(&session->record, "--batch auto: %d images a step (%s)", session->config.batch,
                     session->config.batch_reason);
    tdmi_memory_report_workspace(&session->record, session->compute.most_workspace,
                                 tdmi_memory_limit_of(session));
    return tdmi_unfreeze_check_steps(&session->config.options, session->data.steps_per_epoch, err);
}

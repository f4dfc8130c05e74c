/*
 * What the training at hand will hold, before it is reserved: told when training begins, refused
 * with what would do where there is not so much.
 */
#include "train/session_features.h"

#include <stdio.h>
#include <string.h>

struct tdmi_step_options tdmi_session_step_options(const struct tdmi_session *session)
{
    return (struct tdmi_step_options){
        .max_batch = session->batch,
        .class_weights = session->class_weights,
        .can_mix = tdmi_augment_has_mix(&session->augment),
        .shares_statistics = session->shares_statistics,
        .loss_scale = session->loss_scale,
    };
}

/* Parameters and states on the device and on the host; what a file gave; averages, twice too. */
static int64_t weights_bytes(const struct tdmi_session *session)
{
    const tdmi_graph *graph = session->graph;
    const int copies = 2 + (session->base.params != NULL) + 2 * (session->options.ema > 0.0);
    return (int64_t)sizeof(float) * (copies * (graph->param_values + graph->state_values) +
                                     2 * session->optimizer->n_slots * graph->param_values);
}

/* Of one shard size and border. base is NULL where no rows of a frozen part are made. */
struct phase {
    tdmi_plan *train, *judge, *base;
};
/* Now, and from the last move of the border on; last.train is NULL where none is to come. */
struct plans {
    int shard;
    struct phase now, last;
};

/* As many batches as a loader has slots, of those that train and those that judge; and of those
 * that rows are made of. What their threads decode in, both loaders': each may come to use all. */
static int64_t pictures_bytes(const struct tdmi_session *session, const struct phase *plans,
                              int batch, int threads)
{
    enum { slots = 3 };
    const struct tdmi_preprocess *target = tdmi_graph_preprocess(session->graph);
    int64_t bytes = 2 * slots * batch * (int64_t)tdmi_plan_sample_bytes(plans->train);
    if (plans->base)
        bytes += slots * TDMI_FEATURES_BATCH * (int64_t)tdmi_plan_sample_bytes(plans->base);
    bytes += 2 * threads * tdmi_loader_scratch_bytes(target->width, target->height);
    return session->options.memory > 0 && session->options.memory < bytes ? session->options.memory
                                                                          : bytes;
}

static struct tdmi_needs phase_needs(const struct tdmi_session *session, const struct phase *plans,
                                     int batch, int threads)
{
    struct tdmi_step_options options = tdmi_session_step_options(session);
    options.max_batch = batch;
    const struct tdmi_step_needs step = tdmi_step_needs(plans->train, &options, threads);
    int64_t judging = tdmi_judge_needs(plans->judge, batch, threads);
    if (plans->base)
        judging += tdmi_judge_needs(plans->base, TDMI_FEATURES_BATCH, threads);
    return (struct tdmi_needs){
        .weights = weights_bytes(session),
        .activations = step.activations,
        .gradients = step.gradients,
        .judging = judging,
        .pictures = pictures_bytes(session, plans, batch, threads),
        .others = session->resident_before,
    };
}

/* Of the phase that holds more: who thaws layers is told before the head is trained. */
static struct tdmi_needs needs_of(const struct tdmi_session *session, const struct plans *plans,
                                  int batch, int threads)
{
    const struct tdmi_needs now = phase_needs(session, &plans->now, batch, threads);
    if (!plans->last.train)
        return now;
    const struct tdmi_needs last = phase_needs(session, &plans->last, batch, threads);
    return tdmi_needs_total(&last) > tdmi_needs_total(&now) ? last : now;
}

/* Of plans whose now.train and now.judge are there. */
static tdm_status plan_others(const struct tdmi_session *session, struct plans *plans,
                              tdm_error *err)
{
    const int border = tdmi_session_border_at_end(session);
    if (session->features.is_used)
        TDM_TRY(tdmi_plan_new(session->features.base, session->backend, plans->shard, false,
                              &plans->now.base, err),
                err, "planning the frozen part");
    if (border >= session->first_trained)
        return TDM_OK;
    return TDM_WRAP(err,
                    tdmi_session_make_plans(session, border, plans->shard, &plans->last.train,
                                            &plans->last.judge, err),
                    "planning what thaws");
}

static void forget_others(struct plans *plans)
{
    tdmi_plan_free(plans->last.judge);
    tdmi_plan_free(plans->last.train);
    tdmi_plan_free(plans->now.base);
}

/* The plans of the shard that was asked about last. */
struct planner {
    const struct tdmi_session *session;
    struct plans plans;
};

static void forget_plans(struct planner *it)
{
    forget_others(&it->plans);
    tdmi_plan_free(it->plans.now.judge);
    tdmi_plan_free(it->plans.now.train);
    it->plans = (struct plans){0};
}

static tdm_status measure(void *self, struct tdmi_needs_choice choice, struct tdmi_needs *needs,
                          tdm_error *err)
{
    struct planner *it = self;
    if (choice.shard != it->plans.shard) {
        forget_plans(it);
        TDM_TRY(tdmi_session_make_plans(it->session, it->session->first_trained, choice.shard,
                                        &it->plans.now.train, &it->plans.now.judge, err),
                err, "planning anew");
        it->plans.shard = choice.shard;
        TDM_TRY(plan_others(it->session, &it->plans, err), err, "planning anew");
    }
    *needs = needs_of(it->session, &it->plans, choice.batch, choice.threads);
    return TDM_OK;
}

static void add_option(char *text, size_t text_bytes, const char *name, int asked, int found)
{
    const size_t length = strlen(text);
    if (found != asked)
        snprintf(text + length, text_bytes - length, "--%s %d ", name, found);
}

/* "--threads 1 takes 300 MiB": what differs from what was asked for. */
static void advise(struct tdmi_needs_choice asked, struct tdmi_needs_choice found,
                   const struct tdmi_needs *needs, bool keeps_bits, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (found.threads == 0) {
        snprintf(text, text_bytes,
                 keeps_bits ? "even one thread takes more; more memory is wanted"
                            : "even one picture at a time takes more; a smaller --size or --model "
                              "is wanted");
        return;
    }
    add_option(text, text_bytes, "batch", asked.batch, found.batch);
    add_option(text, text_bytes, "shard", asked.shard, found.shard);
    add_option(text, text_bytes, "threads", asked.threads, found.threads);
    const size_t length = strlen(text);
    const bool is_same = found.batch == asked.batch && found.shard == asked.shard;
    snprintf(text + length, text_bytes - length, "takes %lld MiB%s",
             (long long)(tdmi_needs_total(needs) >> 20) + 1,
             is_same ? " and gives the same bits" : "");
}

static tdm_status refuse(struct tdmi_session *session, struct tdmi_memory_limit limit,
                         tdm_error *err)
{
    const struct tdmi_needs_choice asked = {session->batch, session->shard,
                                            tdmi_pool_threads(session->pool)};
    struct tdmi_needs_choice found;
    struct tdmi_needs other = {0};
    struct planner planner = {.session = session};
    const struct tdmi_needs_measure how = {
        .run = measure,
        .self = &planner,
        .keeps_bits = tdmi_run_found(session->run) != TDMI_RUN_NONE || session->progress.step > 0,
    };
    char text[300], advice[200];
    const tdm_status status = tdmi_needs_find(&how, asked, limit.bytes, &found, &other, err);
    forget_plans(&planner);
    TDM_TRY(status, err, "looking for what would do");
    tdmi_needs_describe(&session->needs, text, sizeof text);
    advise(asked, found, &other, how.keeps_bits, advice, sizeof advice);
    return TDM_FAIL(err, TDM_E_MEMORY, "training takes %s, and %s %lld MiB; %s", text, limit.what,
                    (long long)(limit.bytes >> 20), advice);
}

tdm_status tdmi_session_check_memory(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_memory_limit limit = tdmi_memory_limit("");
    struct plans plans = {
        .shard = session->shard,
        .now = {.train = session->train_plan, .judge = session->judge_plan},
    };
    const tdm_status status = plan_others(session, &plans, err);
    if (status == TDM_OK)
        session->needs =
            needs_of(session, &plans, session->batch, tdmi_pool_threads(session->pool));
    forget_others(&plans);
    TDM_TRY(status, err, "counting memory");
    if (!session->backend->device.is_host || limit.bytes == 0 ||
        tdmi_needs_total(&session->needs) <= limit.bytes)
        return TDM_OK;
    return refuse(session, limit, err);
}

void tdmi_session_tell_memory(struct tdmi_session *session)
{
    char text[300];
    tdmi_needs_describe(&session->needs, text, sizeof text);
    tdmi_session_note(session, "it takes %s; caches of pictures take what is left", text);
}

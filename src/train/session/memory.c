/*
 * Memory of the training, before it is reserved: reported when training begins; where there is not
 * enough, refused with the options that would fit.
 *
 * GPU libraries need workspace, and how much depends on the algorithms that are fastest. A plan for
 * a device asks them (graph/plan.h), so what is counted here is what will be held, including the
 * frozen layers that compute features and layers that are unfrozen later. If that is too much, they
 * are asked again with smaller limits, down to none, before the batch is reduced. A plan without a
 * device asks no library and takes least: what is too large even so is refused without asking,
 * which takes seconds.
 */
#include "train/session/memory.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

/* ---- plans -------------------------------------------------------------------------------- */

struct tdmi_plan_options tdmi_plans_options(const struct tdmi_session *session,
                                            const struct tdmi_plans_request *plans)
{
    const bool reads_rows =
        session->cache.is_used && plans->freeze_point == session->network.first_trained;
    return (struct tdmi_plan_options){
        .max_images = plans->shard,
        .is_training = true,
        .device = plans->device,
        .team = session->compute.backend->device.is_host
                    ? tdmi_team_largest(tdmi_pool_threads(session->compute.pool))
                    : 1,
        .first_trained = plans->freeze_point,
        .storage = session->config.storage,
        .allows_tf32 = session->config.allows_tf32,
        .splits_products = session->config.splits_products,
        .may_vary = session->config.options.fast,
        .most_workspace = plans->most_workspace,
        .keeps_statistics = session->config.keeps_statistics,
        .first_node = reads_rows ? plans->freeze_point : 0,
    };
}

tdm_status tdmi_plans_make(const struct tdmi_session *session,
                           const struct tdmi_plans_request *plans, tdmi_plan **train_plan,
                           tdmi_plan **evaluation_plan, tdm_error *err)
{
    struct tdmi_plan_options request = tdmi_plans_options(session, plans);
    TDM_TRY(
        tdmi_plan_make(session->network.graph, session->compute.backend, &request, train_plan, err),
        err, "planning training");
    request.is_training = false; /* in f32 evaluation computes what predict and evaluate compute */
    request.allows_tf32 = request.may_vary = false;
    request.team = tdmi_evaluator_team(session->network.graph, session->compute.backend,
                                       tdmi_pool_threads(session->compute.pool));
    return TDM_WRAP(err,
                    tdmi_plan_make(session->network.graph, session->compute.backend, &request,
                                   evaluation_plan, err),
                    "planning validation");
}

tdm_status tdmi_plans_make_test(const struct tdmi_session *session, tdmi_device *device,
                                size_t most_workspace, tdmi_plan **plan, tdm_error *err)
{
    const struct tdmi_plan_options request = {
        .max_images = 1, .device = device, .most_workspace = most_workspace};
    *plan = NULL;
    if (session->config.storage == TDMI_DTYPE_F32)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_plan_make(session->network.graph, session->compute.backend, &request, plan, err),
        "planning the model's self-test");
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Parameters, states and optimizer state. On the CPU they count twice, for the host's copy, and the
 * weights file counts too; on a GPU only its memory counts. */
static int64_t weights_bytes(const struct tdmi_session *session)
{
    const tdmi_graph *graph = session->network.graph;
    const bool is_host = session->compute.backend->device.is_host,
               has_averages = session->config.options.ema > 0.0;
    const int times = is_host ? 2 : 1;
    const int copies =
        times * (1 + has_averages) + (is_host && session->pretrained.import.params != NULL);
    return (int64_t)sizeof(float) *
           (copies * (graph->param_values + graph->state_values) +
            times * session->trainer.optimizer->n_slots * graph->param_values);
}

/* The part of it that is reserved already. */
static int64_t reserved_bytes(const struct tdmi_session *session)
{
    const tdmi_graph *graph = session->network.graph;
    const int averages = session->network.mean_params != NULL;
    return (int64_t)sizeof(float) * ((1 + averages) * (graph->param_values + graph->state_values) +
                                     session->trainer.optimizer->n_slots * graph->param_values);
}

/* Plans of one group size and freeze point. base is NULL where no features are computed. */
struct phase {
    tdmi_plan *train, *evaluator, *base;
};
/* Plans now, and after the last move of the freeze point; last.train is NULL: it does not move. */
struct plans {
    struct tdmi_plans_request request; /* of now */
    tdmi_plan *test;                   /* of the model's self-test, or NULL */
    struct phase now, last;
};

/* Slots of the training and validation loaders, and of the one that reads images for features; and
 * the decoding buffers of both loaders, each of which may use all its threads. */
static int64_t pictures_bytes(const struct tdmi_session *session, const struct phase *plans,
                              int batch, int threads)
{
    enum { slots = 3 };
    const struct tdmi_preprocess *target = tdmi_graph_preprocess(session->network.graph);
    int64_t bytes = 2 * slots * batch * (int64_t)tdmi_plan_sample_bytes(plans->train);
    if (plans->base)
        bytes += slots * TDMI_FEATURES_BATCH * (int64_t)tdmi_plan_sample_bytes(plans->base);
    const struct tdmi_placement *placement = &session->compute.placement;
    const int loading = threads < placement->threads ? threads : placement->loader_threads;
    bytes += 2 * loading * tdmi_loader_scratch_bytes(target->width, target->height);
    return session->config.options.memory > 0 && session->config.options.memory < bytes
               ? session->config.options.memory
               : bytes;
}

static struct tdmi_needs phase_needs(const struct tdmi_session *session, const struct phase *plans,
                                     int batch, int threads)
{
    const bool is_host = session->compute.backend->device.is_host;
    struct tdmi_step_options options = tdmi_trainer_step_options(session);
    options.max_batch = tdmi_ranks_most_images(session, batch, plans->train->max_images);
    const struct tdmi_step_needs step = tdmi_step_needs(plans->train, &options, threads);
    int64_t evaluating = tdmi_evaluator_needs(plans->evaluator, batch, threads);
    if (plans->base)
        evaluating += tdmi_evaluator_needs(plans->base, TDMI_FEATURES_BATCH, threads);
    return (struct tdmi_needs){
        .weights = weights_bytes(session),
        .activations = step.activations,
        .gradients = step.gradients,
        .evaluating = evaluating,
        .pictures = is_host ? pictures_bytes(session, plans, batch, threads) : 0,
        .others = is_host ? session->compute.resident_before : 0,
    };
}

/* Needs of the phase that takes more memory: unfreezing that will not fit is refused before the
 * head trains. */
static struct tdmi_needs needs_of(const struct tdmi_session *session, const struct plans *plans,
                                  int batch, int threads)
{
    const int64_t test = plans->test ? tdmi_evaluator_needs(plans->test, 1, 1) : 0;
    struct tdmi_needs now = phase_needs(session, &plans->now, batch, threads);
    now.evaluating += test;
    if (!plans->last.train)
        return now;
    struct tdmi_needs last = phase_needs(session, &plans->last, batch, threads);
    last.evaluating += test;
    return tdmi_needs_total(&last) > tdmi_needs_total(&now) ? last : now;
}

/* Adds the others to now.train and now.evaluator. */
static tdm_status plan_others(const struct tdmi_session *session, struct plans *plans,
                              tdm_error *err)
{
    struct tdmi_plans_request last = plans->request;
    last.freeze_point = tdmi_network_final_freeze_point(session);
    TDMI_TRY(tdmi_plans_make_test(session, plans->request.device, plans->request.most_workspace,
                                  &plans->test, err));
    if (session->cache.is_used) {
        const struct tdmi_plan_options base = tdmi_features_plan(
            session, plans->request.shard, plans->request.device, plans->request.most_workspace);
        TDM_TRY(tdmi_plan_make(session->cache.base, session->compute.backend, &base,
                               &plans->now.base, err),
                err, "planning the frozen part");
    }
    if (last.freeze_point >= session->network.first_trained)
        return TDM_OK;
    return TDM_WRAP(
        err, tdmi_plans_make(session, &last, &plans->last.train, &plans->last.evaluator, err),
        "planning the layers to unfreeze");
}

static void forget_others(struct plans *plans)
{
    tdmi_plan_free(plans->last.evaluator);
    tdmi_plan_free(plans->last.train);
    tdmi_plan_free(plans->now.base);
    tdmi_plan_free(plans->test);
}

/* Limits of workspace in bytes (0: none), tried in this order. */
static const size_t workspaces[] = {0, (size_t)64 << 20, (size_t)8 << 20, 1};
enum { n_workspaces = sizeof workspaces / sizeof workspaces[0] };

/* Keeps the plans of the last question. */
struct planner {
    const struct tdmi_session *session;
    int64_t limit_bytes;
    bool keeps_bits;
    struct plans plans;
    size_t most_workspace; /* of the last answer */
};

static void forget_plans(struct planner *it)
{
    forget_others(&it->plans);
    tdmi_plan_free(it->plans.now.evaluator);
    tdmi_plan_free(it->plans.now.train);
    it->plans = (struct plans){0};
}

static tdm_status plan_anew(struct planner *it, struct tdmi_plans_request request, tdm_error *err)
{
    const struct tdmi_plans_request before = it->plans.request;
    if (before.shard == request.shard && before.device == request.device &&
        before.most_workspace == request.most_workspace)
        return TDM_OK;
    forget_plans(it);
    const struct tdmi_session *session = it->session;
    TDMI_TRY(
        tdmi_plans_make(session, &request, &it->plans.now.train, &it->plans.now.evaluator, err));
    it->plans.request = request;
    return plan_others(session, &it->plans, err);
}

static tdm_status measure(void *self, struct tdmi_needs_choice choice, struct tdmi_needs *needs,
                          tdm_error *err)
{
    struct planner *it = self;
    const struct tdmi_session *session = it->session;
    const size_t *most = it->keeps_bits ? &session->compute.most_workspace : workspaces;
    const int n = it->keeps_bits ? 1 : n_workspaces;
    struct tdmi_plans_request request = {.freeze_point = session->network.first_trained,
                                         .shard = choice.shard};
    TDM_TRY(plan_anew(it, request, err), err, "planning without what libraries want");
    *needs = needs_of(session, &it->plans, choice.batch, choice.threads);
    if (session->compute.backend->device.is_host || tdmi_needs_total(needs) > it->limit_bytes)
        return TDM_OK;
    request.device = session->compute.device;
    for (int i = 0; i < n && (i == 0 || tdmi_needs_total(needs) > it->limit_bytes); i++) {
        it->most_workspace = request.most_workspace = most[i];
        TDM_TRY(plan_anew(it, request, err), err, "planning with what libraries want");
        *needs = needs_of(session, &it->plans, choice.batch, choice.threads);
    }
    return TDM_OK;
}

tdm_status tdmi_session_measure(const struct tdmi_session *session, struct tdmi_needs_choice choice,
                                int64_t limit_bytes, struct tdmi_needs *needs,
                                size_t *most_workspace, tdm_error *err)
{
    TDMI_AT_END(forget_plans)
    struct planner planner = {.session = session, .limit_bytes = limit_bytes};
    const tdm_status status = measure(&planner, choice, needs, err);
    *most_workspace = planner.most_workspace;
    return status;
}

static void add_option(char *text, size_t text_bytes, const char *name, int asked, int found)
{
    const size_t length = strlen(text);
    if (found != asked)
        snprintf(text + length, text_bytes - length, "--%s %d ", name, found);
}

/* "--threads 1 takes 300 MiB": the options that differ from those given. */
static void advise(struct tdmi_needs_choice asked, struct tdmi_needs_choice found,
                   const struct tdmi_needs *needs, bool keeps_bits, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (found.threads == 0) {
        snprintf(
            text, text_bytes,
            keeps_bits
                ? "even one thread takes more; more memory is required"
                : "even one image at a time takes more; a smaller --size or --model is required");
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

/* A GPU has one executor, whatever the number of threads. */
static struct tdmi_needs_choice asked_of(const struct tdmi_session *session)
{
    const bool is_host = session->compute.backend->device.is_host;
    return (struct tdmi_needs_choice){session->data.max_batch, session->config.shard,
                                      is_host ? tdmi_pool_threads(session->compute.pool) : 1};
}

static bool has_begun(const struct tdmi_session *session)
{
    return !tdmi_record_is_new(&session->record) || session->progress.step > 0;
}

struct found {
    struct tdmi_needs_choice choice;
    size_t most_workspace;
    struct tdmi_needs needs; /* all that it takes */
};

static tdm_status find(const struct tdmi_session *session, struct tdmi_memory_limit limit,
                       struct found *found, tdm_error *err)
{
    TDMI_AT_END(forget_plans)
    struct planner planner = {
        .session = session, .limit_bytes = limit.bytes, .keeps_bits = has_begun(session)};
    const struct tdmi_needs_measure how = {
        .run = measure, .self = &planner, .keeps_bits = planner.keeps_bits};
    const tdm_status status =
        tdmi_needs_find(&how, asked_of(session), limit.bytes, &found->choice, &found->needs, err);
    found->most_workspace = planner.most_workspace;
    return TDM_WRAP(err, status, "looking for what would do");
}

void tdmi_memory_report_workspace(const struct tdmi_run_record *record, size_t most_workspace,
                                  struct tdmi_memory_limit limit)
{
    if (most_workspace > 0)
        tdmi_record_note(record,
                         "libraries get %lld MiB of workspace at most, with which they may be "
                         "slower: there is no room for all that they want, %s %lld MiB",
                         (long long)(most_workspace >> 20), limit.what,
                         (long long)(limit.bytes >> 20));
}

static void report_found(struct tdmi_session *session, struct tdmi_memory_limit limit,
                         const struct found *found)
{
    const long long wanted = (long long)(tdmi_needs_total(&session->compute.needs) >> 20) + 1;
    if (found->choice.shard != session->config.shard)
        tdmi_record_note(&session->record,
                         "batch %d is computed in groups of %d images, each with batch norm "
                         "statistics of its own: in one it takes %lld MiB, and %s %lld MiB",
                         session->data.max_batch, found->choice.shard, wanted, limit.what,
                         (long long)(limit.bytes >> 20));
    tdmi_memory_report_workspace(&session->record, found->most_workspace, limit);
}

static void forget_session_plans(struct tdmi_train_network *network)
{
    tdmi_plan_free(network->evaluation_plan);
    tdmi_plan_free(network->train_plan);
    network->evaluation_plan = network->train_plan = NULL;
}

/* On a GPU that is short of memory: less workspace, and a batch in several groups whose gradients
 * are added. */
static tdm_status take_found(struct tdmi_session *session, const struct found *found,
                             tdm_error *err)
{
    const struct tdmi_plans_request request = {session->compute.device,
                                               session->network.first_trained, found->choice.shard,
                                               found->most_workspace};
    forget_session_plans(&session->network);
    session->config.shard = session->network.host.shard = found->choice.shard;
    session->compute.most_workspace = found->most_workspace;
    session->compute.needs = found->needs;
    return tdmi_plans_make(session, &request, &session->network.train_plan,
                           &session->network.evaluation_plan, err);
}

static tdm_status refuse(struct tdmi_session *session, struct tdmi_memory_limit limit,
                         tdm_error *err)
{
    const struct tdmi_needs_choice asked = asked_of(session);
    struct found found = {.most_workspace = 0};
    char text[300], advice[200];
    TDM_TRY(find(session, limit, &found, err), err, "comparing with what there is");
    if (!session->compute.backend->device.is_host && !has_begun(session) &&
        found.choice.threads > 0 && found.choice.batch == session->data.max_batch &&
        (session->config.options.shard == 0 || found.choice.shard == session->config.shard)) {
        report_found(session, limit, &found);
        return take_found(session, &found, err);
    }
    tdmi_needs_describe(&session->compute.needs, text, sizeof text);
    advise(asked, found.choice, &found.needs, has_begun(session), advice, sizeof advice);
    return TDM_FAIL(err, TDM_E_MEMORY, "training takes %s, and %s %lld MiB; %s", text, limit.what,
                    (long long)(limit.bytes >> 20), advice);
}

struct tdmi_memory_limit tdmi_memory_limit_of(const struct tdmi_session *session)
{
    const struct tdmi_device_table *device = &session->compute.backend->device;
    int64_t free_bytes = 0, total_bytes = 0;
    if (device->is_host)
        return tdmi_memory_limit("", session->compute.placement.local.size);
    if (!device->memory || !device->memory(session->compute.device, &free_bytes, &total_bytes))
        return (struct tdmi_memory_limit){0, NULL};
    return (struct tdmi_memory_limit){free_bytes + reserved_bytes(session), "free on the GPU are"};
}

/* Makes the plans and counts their memory. device NULL: without the libraries' workspace. */
static tdm_status plan_all(struct tdmi_session *session, tdmi_device *device, tdm_error *err)
{
    TDMI_AT_END(forget_others)
    struct plans plans = {.request = {device, session->network.first_trained, session->config.shard,
                                      session->compute.most_workspace}};
    forget_session_plans(&session->network);
    TDMI_TRY(tdmi_plans_make(session, &plans.request, &session->network.train_plan,
                             &session->network.evaluation_plan, err));
    plans.now.train = session->network.train_plan;
    plans.now.evaluator = session->network.evaluation_plan;
    TDM_TRY(plan_others(session, &plans, err), err, "counting memory");
    session->compute.needs = needs_of(session, &plans, session->data.max_batch,
                                      tdmi_pool_threads(session->compute.pool));
    return TDM_OK;
}

static bool is_inside(const struct tdmi_compute *compute, struct tdmi_memory_limit limit)
{
    return limit.bytes == 0 || tdmi_needs_total(&compute->needs) <= limit.bytes;
}

tdm_status tdmi_session_plan_memory(struct tdmi_session *session, tdm_error *err)
{
    const bool is_host = session->compute.backend->device.is_host;
    TDM_TRY(plan_all(session, is_host ? session->compute.device : NULL, err), err, "planning");
    struct tdmi_memory_limit limit = tdmi_memory_limit_of(session);
    if (!is_host && is_inside(&session->compute, limit)) {
        TDM_TRY(plan_all(session, session->compute.device, err), err, "planning on the GPU");
        limit = tdmi_memory_limit_of(session); /* libraries have loaded by now */
    }
    return is_inside(&session->compute, limit) ? TDM_OK : refuse(session, limit, err);
}

void tdmi_memory_report(const struct tdmi_session *session)
{
    char text[300];
    const bool is_host = session->compute.backend->device.is_host;
    tdmi_needs_describe(&session->compute.needs, text, sizeof text);
    tdmi_record_note(&session->record, "memory: %lld MiB%s",
                     (long long)(tdmi_needs_total(&session->compute.needs) >> 20) + 1,
                     is_host ? "" : " on the GPU");
    tdmi_record_detail(&session->record,
                       is_host ? "it takes %s; caches of images take what is left"
                               : "on the GPU it takes %s",
                       text);
}

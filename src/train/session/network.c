/*
 * The network of a training: its graph, plans and memory, and what its values begin with.
 */
#include "train/session/session.h"
#include "graph/norms.h"
#include "train/freeze.h"

#include <string.h>

/* ---- network ---------------------------------------------------------------------------- */

static void *device_alloc(struct tdmi_session *session, int64_t values)
{
    return session->backend->memory.alloc(session->device, sizeof(float) * (size_t)(values + 1));
}

static tdm_status open_values(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_graph *graph = session->graph;
    struct tdmi_model_file *host = &session->snapshot;
    struct tdmi_shape input = graph->nodes[0].out;
    size_t param_values = (size_t)graph->param_values, classes = (size_t)host->n_classes;
    host->params = tdmi_arena_alloc(&session->arena, param_values, sizeof(float));
    host->states =
        tdmi_arena_alloc(&session->arena, (size_t)graph->state_values + 1, sizeof(float));
    host->test_pixels = tdmi_arena_alloc(&session->arena, (size_t)tdmi_shape_values(input), 1);
    host->test_logits = tdmi_arena_alloc(&session->arena, classes, sizeof(float));
    session->params = device_alloc(session, graph->param_values);
    session->states = device_alloc(session, graph->state_values);
    session->judgements =
        tdmi_arena_alloc(&session->arena, (size_t)session->batch, sizeof *session->judgements);
    bool is_complete = host->params && host->states && host->test_pixels && host->test_logits &&
                       session->params && session->states && session->judgements;
    for (int i = 0; i < session->optimizer->n_slots && is_complete; i++) {
        host->slots[i] = tdmi_arena_alloc(&session->arena, param_values, sizeof(float));
        host->slot_names[i] = session->optimizer->slot_names[i];
        session->slots[i] = device_alloc(session, graph->param_values);
        is_complete = host->slots[i] && session->slots[i];
    }
    if (!is_complete)
        return TDM_FAIL(err, TDM_E_MEMORY, "reserving %lld parameters: out of memory",
                        (long long)graph->parameters);
    return TDM_OK;
}

tdm_status tdmi_session_place_values(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_graph *graph = session->graph;
    const struct tdmi_model_file *host = &session->snapshot;
    const struct tdmi_memory_table *memory = &session->backend->memory;
    size_t params = sizeof(float) * (size_t)graph->param_values;
    TDM_TRY(memory->upload(session->stream, session->params, host->params, params, err), err,
            "placing weights");
    TDM_TRY(memory->upload(session->stream, session->states, host->states,
                           sizeof(float) * (size_t)graph->state_values, err),
            err, "placing running statistics");
    for (int i = 0; i < session->optimizer->n_slots; i++)
        TDM_TRY(memory->upload(session->stream, session->slots[i], host->slots[i], params, err),
                err, "placing the optimizer's state");
    return session->backend->stream.wait(session->stream, err);
}

struct tdmi_import_input tdmi_session_input(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    return (struct tdmi_import_input){.fit = options->fit,
                                      .filter = options->resample,
                                      .scale = options->scale,
                                      .padding = options->padding,
                                      .crop_fraction = options->crop_fraction,
                                      .size = options->size};
}

struct tdmi_head tdmi_session_head(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    return (struct tdmi_head){.classes = tdmi_source_classes(session->source),
                              .hidden = options->hidden,
                              .dropout = options->dropout,
                              .label_smoothing = options->label_smoothing,
                              .is_logistic = strcmp(options->loss, "binary") == 0};
}

static tdm_status build(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_import_input input = tdmi_session_input(session);
    struct tdmi_build what =
        tdmi_network_defaults(&session->network, tdmi_source_classes(session->source));
    if (session->graph)
        return TDM_OK;
    what.head = tdmi_session_head(session);
    TDM_TRY(tdmi_import_input_apply(&input, &what.preprocess, err), err, "its input");
    TDM_TRY(tdmi_import_take_padding(input.padding, &what.padding, err), err, "its input");
    return tdmi_network_make(&session->network, &what, &session->graph, err);
}

/* What nothing was learnt in, and is frozen all the same: a choice that is told. */
static void report_random_base(struct tdmi_session *session)
{
    const tdmi_graph *graph = session->graph;
    if (session->first_trained == 0 || session->weights ||
        tdmi_run_found(session->run) != TDMI_RUN_NONE)
        return;
    if (session->options.unfreeze > 0)
        tdmi_session_note(session,
                          "--unfreeze without weights: the head is trained alone first on what the "
                          "seed drew; --weights brings a base that is worth it");
    else
        tdmi_session_note(
            session,
            "--freeze %s without weights: %d of %d nodes stay as the seed drew them and "
            "learn nothing; --weights brings a base that is worth freezing",
            session->options.freeze, session->first_trained, graph->n_nodes);
}

/* As it was begun, however the graph has come here: a checkpoint's does not say where the head is.
 */
static void take_recorded_freeze_point(struct tdmi_session *session)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const int n = session->graph->n_nodes;
    const int64_t first = tdm_json_as_integer(tdm_json_member(data, "first_trained"), 0);
    const int64_t last = tdm_json_as_integer(tdm_json_member(data, "thaws_to"), first);
    const int64_t head = tdm_json_as_integer(tdm_json_member(data, "head"), 0);
    session->first_freeze_point = first > 0 && first < n ? (int)first : 0;
    session->last_freeze_point = last > 0 && last < session->first_freeze_point ? (int)last : 0;
    if (session->options.unfreeze == 0)
        session->last_freeze_point = session->first_freeze_point;
    session->head = head > 0 && head < n ? (int)head : tdmi_freeze_head(session->graph);
}

/* Options about layers that are trained before the head, where there is none. */
static tdm_status check_idle(const struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    const int n_norms = tdmi_norms_count(session->graph, 0);
    if (strcmp(options->bn, "frozen") == 0 &&
        tdmi_norms_count(session->graph, session->last_freeze_point) == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn frozen is about batch norms that are trained, and of the %d "
                        "of %s none is (--freeze %s); leave it out, or freeze less",
                        n_norms, session->network.name, options->freeze);
    if (strcmp(options->bn, "batch") == 0 && n_norms == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn batch is about batch norms, and %s has none; leave it out",
                        session->network.name);
    if (strcmp(options->bn, "batch") == 0 &&
        tdmi_norms_count(session->graph, session->last_freeze_point) == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn batch is about batch norms that are trained, and of the %d of "
                        "%s none is (--freeze %s); leave it out, or freeze less",
                        n_norms, session->network.name, options->freeze);
    if (options->layer_decay < 1.0 && session->last_freeze_point >= session->head)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --layer-decay is %g, but no layer before the head is trained "
                        "(--freeze %s); leave it out, or freeze less",
                        options->layer_decay, options->freeze);
    return TDM_OK;
}

/* As the options and the graph say it. */
static tdm_status choose_freeze_point(struct tdmi_session *session, tdm_error *err)
{
    const char *word = session->options.freeze;
    const bool unfreezes = session->options.unfreeze > 0;
    if (strcmp(word, "auto") == 0)
        word = session->weights && session->base.has_new_head && !unfreezes ? "base" : "none";
    TDM_TRY(tdmi_freeze_point(session->graph, word, &session->last_freeze_point, err), err,
            "option --freeze");
    session->head = tdmi_freeze_head(session->graph);
    session->first_freeze_point = unfreezes ? session->head : session->last_freeze_point;
    if (unfreezes && session->last_freeze_point >= session->first_freeze_point)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --unfreeze: --freeze %s leaves nothing before the head to thaw",
                        session->options.freeze);
    return TDM_OK;
}

/* Without a checkpoint the graph is made anew, in which another program may have drawn the border
 * elsewhere: that it trained would be told in numbers of nodes that mean others here. */
static tdm_status check_recorded_freeze_point(const struct tdmi_session *session, tdm_error *err)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const int64_t first = tdm_json_as_integer(tdm_json_member(data, "first_trained"), 0);
    const int64_t last = tdm_json_as_integer(tdm_json_member(data, "thaws_to"), first);
    const int64_t head = tdm_json_as_integer(tdm_json_member(data, "head"), session->head);
    if (first == session->first_freeze_point && head == session->head &&
        (session->options.unfreeze == 0 || last == session->last_freeze_point))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "resuming the run %s: tandem %s began it with node %lld as the first that is "
                    "trained (in the end %lld, head %lld), and this tandem %s would with %d (%d, "
                    "%d); there is no checkpoint in it yet, so nothing is lost: another -o begins "
                    "anew",
                    tdmi_run_path(session->run),
                    tdm_json_as_string(tdmi_run_recorded(session->run, "tandem"), "?"),
                    (long long)first, (long long)last, (long long)head, tdm_version(),
                    session->first_freeze_point, session->last_freeze_point, session->head);
}

tdm_status tdmi_session_find_freeze_point(struct tdmi_session *session, tdm_error *err)
{
    /* Who was stopped early recorded no more than its options: they say it again. */
    const bool is_recorded = session->run && tdmi_run_recorded(session->run, "data");
    const bool is_kept =
        is_recorded && tdmi_session_has_checkpoint(&session->arena, tdmi_run_path(session->run));
    tdm_status status = TDM_OK;
    if (is_kept)
        take_recorded_freeze_point(session);
    else
        status = choose_freeze_point(session, err);
    if (status == TDM_OK && is_recorded && !is_kept)
        status = check_recorded_freeze_point(session, err);
    else if (status == TDM_OK && !is_recorded)
        status = check_idle(session, err);
    session->first_trained = session->first_freeze_point;
    return status;
}

static tdm_status name_classes(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_model_file *host = &session->snapshot;
    const int classes = tdmi_source_classes(session->source);
    host->n_classes = classes;
    host->classes = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *host->classes);
    if (!host->classes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %d classes: out of memory", classes);
    for (int i = 0; i < classes; i++)
        host->classes[i] = tdmi_source_class(session->source, i);
    return TDM_OK;
}

static void describe(struct tdmi_session *session)
{
    struct tdmi_model_file *host = &session->snapshot;
    host->network = session->network.name;
    host->graph = session->graph;
    host->shard = session->shard;
    host->shares_statistics = session->shares_statistics;
    host->keeps_statistics = session->keeps_statistics;
    host->optimizer = session->optimizer->name;
    host->train_hashes = session->train_hashes;
    host->n_train_hashes = session->split.n_train;
    host->val_hashes = session->val_hashes;
    host->n_val_hashes = session->split.n_val;
    host->test_hashes = session->test_hashes;
    host->n_test_hashes = session->has_test ? session->split.n_test : 0;
}

/* As many pictures of every class would have them count: n / (classes · n of the class). */
static tdm_status weigh_classes(struct tdmi_session *session, tdm_error *err)
{
    const int classes = session->snapshot.n_classes;
    const tdmi_split *split = &session->split;
    if (strcmp(session->options.class_weights, "balanced") != 0)
        return TDM_OK;
    int64_t *counts = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *counts);
    session->class_weights = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof(float));
    if (!counts || !session->class_weights)
        return TDM_FAIL(err, TDM_E_MEMORY, "weighing %d classes: out of memory", classes);
    for (int64_t i = 0; i < split->n_train; i++)
        counts[tdmi_source_item(session->source, split->train[i]).label]++;
    for (int c = 0; c < classes; c++)
        session->class_weights[c] =
            counts[c] > 0 ? (float)((double)split->n_train / ((double)classes * (double)counts[c]))
                          : 1.0F;
    return TDM_OK;
}

struct tdmi_plan_options tdmi_session_request(const struct tdmi_session *session,
                                              tdmi_device *device, int freeze_point, int shard)
{
    const bool reads_rows = session->features.is_used && freeze_point == session->first_trained;
    return (struct tdmi_plan_options){
        .max_images = shard,
        .is_training = true,
        .device = device,
        .first_trained = freeze_point,
        .storage = session->storage,
        .allows_tf32 = session->allows_tf32,
        .may_vary = session->options.fast,
        .most_workspace = session->most_workspace,
        .keeps_statistics = session->keeps_statistics,
        .first_node = reads_rows ? freeze_point : 0,
    };
}

tdm_status tdmi_session_make_plans(const struct tdmi_session *session,
                                   const struct tdmi_plans_request *plans, tdmi_plan **train_plan,
                                   tdmi_plan **evaluation_plan, tdm_error *err)
{
    struct tdmi_plan_options request =
        tdmi_session_request(session, plans->device, plans->freeze_point, plans->shard);
    request.most_workspace = plans->most_workspace;
    TDM_TRY(tdmi_plan_make(session->graph, session->backend, &request, train_plan, err), err,
            "planning training");
    request.is_training =
        false; /* stored as f32, what judges is what predict and evaluate compute */
    request.allows_tf32 = request.may_vary = false;
    return TDM_WRAP(
        err, tdmi_plan_make(session->graph, session->backend, &request, evaluation_plan, err),
        "planning validation");
}

tdm_status tdmi_session_plan_test(const struct tdmi_session *session, tdmi_device *device,
                                  size_t most_workspace, tdmi_plan **plan, tdm_error *err)
{
    const struct tdmi_plan_options request = {
        .max_images = 1, .device = device, .most_workspace = most_workspace};
    *plan = NULL;
    if (session->storage == TDMI_DTYPE_F32)
        return TDM_OK;
    return TDM_WRAP(err, tdmi_plan_make(session->graph, session->backend, &request, plan, err),
                    "planning the model's self-test");
}

tdm_status tdmi_session_plan_network(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(weigh_classes(session, err), err, "preparing training");
    return TDM_WRAP(err, tdmi_session_plan_memory(session, err), "preparing the network");
}

tdm_status tdmi_session_open_network(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_step_options step = tdmi_session_step_options(session);
    TDM_TRY(tdmi_step_open(session->train_plan, session->device, session->pool, &step,
                           &session->step, err),
            err, "preparing training");
    TDM_TRY(tdmi_evaluator_open(session->evaluation_plan, session->device, session->pool,
                                session->batch, &session->evaluator, err),
            err, "preparing validation");
    TDM_TRY(tdmi_session_plan_test(session, session->device, session->most_workspace,
                                   &session->test_plan, err),
            err, "preparing the model's self-test");
    if (session->test_plan)
        TDM_TRY(tdmi_evaluator_open(session->test_plan, session->device, session->pool, 1,
                                    &session->test_evaluator, err),
                err, "preparing the model's self-test");
    TDM_TRY(tdmi_update_open(session->graph, session->first_trained, session->backend,
                             session->device, session->optimizer, session->pool, session->params,
                             session->states, session->slots, &session->update, err),
            err, "preparing the optimizer");
    if (session->keeps_statistics)
        tdmi_update_keep_statistics(session->update);
    if (session->loss_scale)
        tdmi_update_loss_scale(session->update, session->loss_scale);
    if (tdmi_session_queues(session))
        tdmi_update_use_stream(session->update, tdmi_step_stream(session->step));
    return tdmi_session_scale_rates(session, err);
}

/* ---- a run that is gone on with --------------------------------------------------------- */

static bool same_hashes(const uint64_t *a, int64_t n_a, const uint64_t *b, int64_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, sizeof *a * (size_t)n_a) == 0);
}

static tdm_status adopt(struct tdmi_session *session, const struct tdmi_model_file *stored,
                        tdm_error *err)
{
    struct tdmi_model_file *host = &session->snapshot;
    const tdmi_graph *graph = session->graph;
    size_t params = sizeof(float) * (size_t)graph->param_values;
    if (!same_hashes(stored->train_hashes, stored->n_train_hashes, host->train_hashes,
                     host->n_train_hashes) ||
        !same_hashes(stored->val_hashes, stored->n_val_hashes, host->val_hashes,
                     host->n_val_hashes) ||
        !same_hashes(stored->test_hashes, stored->n_test_hashes, host->test_hashes,
                     host->n_test_hashes))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the pictures in %s are not those the run was begun with (%lld train and "
                        "%lld judge now, %lld and %lld then); the same pictures, or a new run, are "
                        "wanted",
                        session->options.source, (long long)host->n_train_hashes,
                        (long long)host->n_val_hashes, (long long)stored->n_train_hashes,
                        (long long)stored->n_val_hashes);
    const bool is_another = /* NULL: its graph is the session's now */
        stored->graph && (stored->graph->param_values != graph->param_values ||
                          stored->graph->state_values != graph->state_values);
    if (is_another || stored->n_slots != session->optimizer->n_slots ||
        stored->shard != session->shard ||
        stored->shares_statistics != session->shares_statistics ||
        stored->keeps_statistics != session->keeps_statistics)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint holds another network than these options build");
    memcpy(host->params, stored->params, params);
    memcpy(host->states, stored->states, sizeof(float) * (size_t)graph->state_values);
    for (int i = 0; i < stored->n_slots; i++)
        memcpy(host->slots[i], stored->slots[i], params);
    session->progress = stored->progress;
    if (!session->is_fallen_back) /* a damaged newest one is to be replaced */
        session->saved = stored->progress;
    return TDM_OK;
}

static void take_weights(struct tdmi_session *session)
{
    const tdmi_graph *graph = session->graph;
    memcpy(session->snapshot.params, session->base.params,
           sizeof(float) * (size_t)graph->param_values);
    memcpy(session->snapshot.states, session->base.states,
           sizeof(float) * (size_t)graph->state_values);
}

/* ---- filling ---------------------------------------------------------------------------- */

static tdm_status fill(struct tdmi_session *session, const struct tdmi_model_file *stored,
                       tdm_error *err)
{
    if (stored)
        TDM_TRY(adopt(session, stored, err), err, "resuming the run %s",
                tdmi_run_path(session->run));
    else if (session->weights)
        take_weights(session);
    else
        tdmi_graph_init_values(session->graph, session->options.seed, session->snapshot.params,
                               session->snapshot.states);
    return tdmi_session_place_values(session, err);
}

/* Between two epochs the next one's, which a run that is over does not come to. */
static int freeze_point_now(struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    const int before = progress->epoch > 0 ? progress->epoch - 1 : 0;
    if (progress->position > 0)
        return tdmi_session_freeze_point_at(session, progress->epoch);
    session->first_trained = tdmi_session_freeze_point_at(session, before);
    return tdmi_session_is_over(session) ? session->first_trained
                                         : tdmi_session_freeze_point_at(session, progress->epoch);
}

tdm_status tdmi_session_open_values(struct tdmi_session *session,
                                    const struct tdmi_model_file *stored, tdm_error *err)
{
    TDM_TRY(build(session, err), err, "preparing the model");
    TDM_TRY(tdmi_session_find_freeze_point(session, err), err, "preparing the model");
    report_random_base(session);
    TDM_TRY(name_classes(session, err), err, "preparing the model");
    TDM_TRY(open_values(session, err), err, "preparing the model");
    describe(session);
    const tdm_status status = fill(session, stored, err);
    session->first_trained = freeze_point_now(session);
    if (status != TDM_OK)
        return status;
    return tdmi_session_open_scale(session, err);
}

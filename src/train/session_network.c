/*
 * The network of a training: its graph, plans and memory, and what its values begin with.
 */
#include "train/session.h"

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

/* Host values to the device. */
static tdm_status upload(struct tdmi_session *session, tdm_error *err)
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

tdm_status tdmi_session_open_network(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    struct tdmi_model_file *host = &session->snapshot;
    struct tdmi_preprocess preprocess = session->network.preprocess;
    if (options->size > 0)
        preprocess.width = preprocess.height = options->size;
    int classes = tdmi_source_classes(session->source);
    if (session->graph == NULL)
        TDM_TRY(tdmi_network_build(&session->network, &preprocess, classes, &session->graph, err),
                err, "preparing the model");
    TDM_TRY(tdmi_plan_new(session->graph, session->backend, session->shard, true,
                          &session->train_plan, err),
            err, "planning training");
    TDM_TRY(tdmi_plan_new(session->graph, session->backend, session->shard, false,
                          &session->judge_plan, err),
            err, "planning validation");
    const struct tdmi_step_options step = {
        .max_batch = session->batch,
        .can_mix = tdmi_augment_has_mix(&session->augment),
        .shares_statistics = session->shares_statistics,
    };
    TDM_TRY(tdmi_step_open(session->train_plan, session->device, session->pool, &step,
                           &session->step, err),
            err, "preparing training");
    TDM_TRY(tdmi_judge_open(session->judge_plan, session->device, session->pool, session->batch,
                            &session->judge, err),
            err, "preparing validation");
    host->n_classes = classes;
    host->classes = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *host->classes);
    if (!host->classes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %d classes: out of memory", classes);
    for (int i = 0; i < classes; i++)
        host->classes[i] = tdmi_source_class(session->source, i);
    TDM_TRY(open_values(session, err), err, "preparing the model");
    host->network = session->network.name;
    host->graph = session->graph;
    host->shard = session->shard;
    host->shares_statistics = session->shares_statistics;
    host->optimizer = session->optimizer->name;
    host->train_hashes = session->train_hashes;
    host->n_train_hashes = session->split.n_train;
    host->val_hashes = session->val_hashes;
    host->n_val_hashes = session->split.n_val;
    return TDM_WRAP(err,
                    tdmi_update_open(session->graph, 0, session->backend, session->device,
                                     session->optimizer, session->pool, session->params,
                                     session->states, session->slots, &session->update, err),
                    "preparing the optimizer");
}

/* The first validation picture that can be read is the self-test's. */
static tdm_status take_test_picture(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_batch *batch;
    char first[TDMI_PROBLEM_BYTES] = "";
    size_t bytes = (size_t)tdmi_shape_values(session->graph->nodes[0].out);
    TDM_TRY(tdmi_loader_seek(session->val_loader, 0, 0, err), err, "reading validation pictures");
    for (;;) {
        TDM_TRY(tdmi_loader_next(session->val_loader, &batch, err), err,
                "reading validation pictures");
        if (!batch) {
            (void)tdmi_loader_skip_at(session->val_loader, 0, first, sizeof first);
            return TDM_FAIL(err, TDM_E_INPUT,
                            "none of the %lld validation pictures can be read; the first: %s",
                            (long long)session->split.n_val, first);
        }
        for (int p = 0; p < batch->n; p++)
            if (batch->labels[p] >= 0) {
                memcpy(session->snapshot.test_pixels, batch->pixels + (size_t)p * bytes, bytes);
                return TDM_OK;
            }
    }
}

/* ---- a run that is gone on with --------------------------------------------------------- */

static bool same_hashes(const uint64_t *a, int64_t n_a, const uint64_t *b, int64_t n_b)
{
    return n_a == n_b && memcmp(a, b, sizeof *a * (size_t)n_a) == 0;
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
                     host->n_val_hashes))
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
        stored->shard != session->shard || stored->shares_statistics != session->shares_statistics)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint holds another network than these options build");
    memcpy(host->params, stored->params, params);
    memcpy(host->states, stored->states, sizeof(float) * (size_t)graph->state_values);
    for (int i = 0; i < stored->n_slots; i++)
        memcpy(host->slots[i], stored->slots[i], params);
    session->progress = stored->progress;
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

tdm_status tdmi_session_fill(struct tdmi_session *session, const struct tdmi_model_file *stored,
                             tdm_error *err)
{
    tdm_status status = take_test_picture(session, err);
    if (status == TDM_OK && stored)
        status = TDM_WRAP(err, adopt(session, stored, err), "resuming the run %s",
                          tdmi_run_path(session->run));
    else if (status == TDM_OK && session->weights)
        take_weights(session);
    else if (status == TDM_OK)
        tdmi_graph_init_values(session->graph, session->options.seed, session->snapshot.params,
                               session->snapshot.states);
    return status == TDM_OK ? upload(session, err) : status;
}

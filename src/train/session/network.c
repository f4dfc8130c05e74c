/*
 * The network of a training: its graph, the values that it starts with or that a checkpoint holds,
 * and their copies between host and device.
 */
#include "train/session/session.h"
#include "base/scope.h"
#include "graph/norms.h"

#include <stdio.h>
#include <string.h>

/* ---- the graph ------------------------------------------------------------------------------- */

struct tdmi_import_input tdmi_network_input(const struct tdmi_train_config *config)
{
    const struct tdm_train_options *options = &config->options;
    return (struct tdmi_import_input){.fit = options->fit,
                                      .filter = options->resample,
                                      .scale = options->scale,
                                      .padding = options->padding,
                                      .crop_fraction = options->crop_fraction,
                                      .size = options->size};
}

struct tdmi_head tdmi_network_head(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    return (struct tdmi_head){.classes = tdmi_source_classes(session->data.source),
                              .hidden = options->hidden,
                              .dropout = options->dropout,
                              .label_smoothing = options->label_smoothing,
                              .is_logistic = session->config.is_logistic};
}

static tdm_status build(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_import_input input = tdmi_network_input(&session->config);
    struct tdmi_build what = tdmi_network_defaults(&session->network.definition,
                                                   tdmi_source_classes(session->data.source));
    if (session->network.graph)
        return TDM_OK;
    what.head = tdmi_network_head(session);
    TDM_TRY(tdmi_import_input_apply(&input, &what.preprocess, err), err, "its input");
    TDM_TRY(tdmi_import_take_padding(input.padding, &what.padding, err), err, "its input");
    return tdmi_network_make(&session->network.definition, &what, &session->network.graph, err);
}

static tdm_status name_classes(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_model_file *host = &session->network.host;
    const int classes = tdmi_source_classes(session->data.source);
    host->n_classes = classes;
    host->classes = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *host->classes);
    TDMI_CHECK_MEMORY(host->classes, err);
    for (int i = 0; i < classes; i++)
        host->classes[i] = tdmi_source_class(session->data.source, i);
    return TDM_OK;
}

static void describe(struct tdmi_session *session)
{
    struct tdmi_model_file *host = &session->network.host;
    const struct tdmi_train_data *data = &session->data;
    host->network = session->network.definition.name;
    host->graph = session->network.graph;
    host->shard = session->config.shard;
    host->shares_statistics = session->config.shares_statistics;
    host->keeps_statistics = session->config.keeps_statistics;
    host->optimizer = session->trainer.optimizer->name;
    host->train_hashes = data->train_hashes;
    host->n_train_hashes = data->split.n_train;
    host->val_hashes = data->val_hashes;
    host->n_val_hashes = data->split.n_val;
    host->test_hashes = data->test_hashes;
    host->n_test_hashes = data->has_test ? data->split.n_test : 0;
}

/* ---- a resumed run --------------------------------------------------------------------------- */

static bool same_hashes(const uint64_t *a, int64_t n_a, const uint64_t *b, int64_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, sizeof *a * (size_t)n_a) == 0);
}

/* Images that keep their contents may have got another class, or a class another name and number.
 */
static tdm_status check_classes(const struct tdmi_session *session,
                                const struct tdmi_model_file *stored, tdm_error *err)
{
    const struct tdmi_model_file *host = &session->network.host;
    const char *source = session->config.options.source;
    const char *recorded = tdmi_record_string(&session->record, "labels");
    char labels[17];
    for (int c = 0; c < host->n_classes && c < stored->n_classes; c++)
        if (strcmp(host->classes[c], stored->classes[c]) != 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "class %d of %s is '%s', and of the run '%s'; use the same classes, or "
                            "start a new run",
                            c, source, host->classes[c], stored->classes[c]);
    if (host->n_classes != stored->n_classes)
        return TDM_FAIL(err, TDM_E_INPUT, "%s has %d classes, and the run %d", source,
                        host->n_classes, stored->n_classes);
    if (*recorded && strcmp(recorded, tdmi_data_labels(&session->data, labels)) != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "images in %s have another class than when the run was started; put them "
                        "back, or start a new run",
                        source);
    return TDM_OK;
}

static tdm_status adopt(struct tdmi_session *session, const struct tdmi_model_file *stored,
                        tdm_error *err)
{
    struct tdmi_model_file *host = &session->network.host;
    const tdmi_graph *graph = session->network.graph;
    size_t params = sizeof(float) * (size_t)graph->param_values;
    if (!same_hashes(stored->train_hashes, stored->n_train_hashes, host->train_hashes,
                     host->n_train_hashes) ||
        !same_hashes(stored->val_hashes, stored->n_val_hashes, host->val_hashes,
                     host->n_val_hashes) ||
        !same_hashes(stored->test_hashes, stored->n_test_hashes, host->test_hashes,
                     host->n_test_hashes))
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "the images in %s are not those of the run (now %lld for training and %lld for "
            "validation, then %lld and %lld); use the same images, or start a new run",
            session->config.options.source, (long long)host->n_train_hashes,
            (long long)host->n_val_hashes, (long long)stored->n_train_hashes,
            (long long)stored->n_val_hashes);
    TDMI_TRY(check_classes(session, stored, err));
    const bool is_another = /* NULL: take_network took it over */
        stored->graph && (stored->graph->param_values != graph->param_values ||
                          stored->graph->state_values != graph->state_values);
    if (is_another || stored->n_slots != session->trainer.optimizer->n_slots ||
        stored->shard != session->config.shard ||
        stored->shares_statistics != session->config.shares_statistics ||
        stored->keeps_statistics != session->config.keeps_statistics)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint holds another network than these options build");
    memcpy(host->params, stored->params, params);
    memcpy(host->states, stored->states, sizeof(float) * (size_t)graph->state_values);
    for (int i = 0; i < stored->n_slots; i++)
        memcpy(host->slots[i], stored->slots[i], params);
    session->progress = stored->progress;
    if (!session->record.is_fallen_back) /* a damaged newest checkpoint is to be replaced */
        session->record.saved = stored->progress;
    return TDM_OK;
}

static void take_weights(const struct tdmi_session *session)
{
    const struct tdmi_train_network *network = &session->network;
    const struct tdmi_import *import = &session->pretrained.import;
    memcpy(network->host.params, import->params,
           sizeof(float) * (size_t)network->graph->param_values);
    memcpy(network->host.states, import->states,
           sizeof(float) * (size_t)network->graph->state_values);
}

/* ---- first values ---------------------------------------------------------------------------- */

static tdm_status fill(struct tdmi_session *session, tdm_error *err)
{
    if (session->resumed)
        TDM_TRY(adopt(session, session->resumed, err), err, "resuming the run %s",
                tdmi_run_path(session->record.run));
    else if (session->pretrained.path)
        take_weights(session);
    else
        tdmi_graph_init_values(session->network.graph, session->config.options.seed,
                               session->network.host.params, session->network.host.states);
    return tdmi_trainer_upload(session, err);
}

/* Frozen layers without weights stay as the seed drew them. */
static void report_random_base(const struct tdmi_session *session)
{
    const tdmi_graph *graph = session->network.graph;
    if (session->network.first_trained == 0 || session->pretrained.path ||
        !tdmi_record_is_new(&session->record))
        return;
    if (session->config.options.unfreeze > 0)
        tdmi_record_note(&session->record,
                         "--unfreeze without weights: the head is first trained alone on random "
                         "layers; --weights gives a pretrained base worth it");
    else
        tdmi_record_note(&session->record,
                         "--freeze %s without weights: %d of %d nodes keep their random values and "
                         "learn nothing; --weights gives a pretrained base worth freezing",
                         session->config.options.freeze, session->network.first_trained,
                         graph->n_nodes);
}

static tdm_status reserve_values(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    struct tdmi_train_network *network = &session->network;
    struct tdmi_trainer *trainer = &session->trainer;
    struct tdmi_model_file *host = &network->host;
    tdmi_arena *arena = &session->arena;
    const tdmi_graph *graph = network->graph;
    const size_t n_params = (size_t)graph->param_values;
    host->params = tdmi_arena_alloc(arena, n_params, sizeof(float));
    host->states = tdmi_arena_alloc(arena, (size_t)graph->state_values + 1, sizeof(float));
    host->test_pixels = tdmi_arena_alloc(arena, (size_t)tdmi_shape_values(graph->nodes[0].out), 1);
    host->test_logits = tdmi_arena_alloc(arena, (size_t)host->n_classes, sizeof(float));
    network->params = tdmi_compute_alloc_values(compute, graph->param_values);
    network->states = tdmi_compute_alloc_values(compute, graph->state_values);
    bool is_complete = host->params && host->states && host->test_pixels && host->test_logits &&
                       network->params && network->states;
    for (int i = 0; i < trainer->optimizer->n_slots && is_complete; i++) {
        host->slots[i] = tdmi_arena_alloc(arena, n_params, sizeof(float));
        host->slot_names[i] = trainer->optimizer->slot_names[i];
        trainer->slots[i] = tdmi_compute_alloc_values(compute, graph->param_values);
        is_complete = host->slots[i] && trainer->slots[i];
    }
    TDMI_CHECK_MEMORY(is_complete, err);
    return TDM_OK;
}

/* Between two epochs the freeze point of the next one, unless the run is over. */
static int freeze_point_now(struct tdmi_session *session)
{
    const struct tdmi_progress *progress = session->record.progress;
    struct tdmi_train_network *network = &session->network;
    const int before = progress->epoch > 0 ? progress->epoch - 1 : 0;
    const int now = tdmi_unfreeze_point(&network->unfreeze, network->graph, progress->epoch);
    if (progress->position > 0)
        return now;
    network->first_trained = tdmi_unfreeze_point(&network->unfreeze, network->graph, before);
    return tdmi_limits_is_over(session) ? network->first_trained : now;
}

tdm_status tdmi_session_open_values(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(build(session, err), err, "preparing the model");
    TDM_TRY(tdmi_session_find_freeze_point(session, err), err, "preparing the model");
    report_random_base(session);
    TDM_TRY(name_classes(session, err), err, "preparing the model");
    TDM_TRY(reserve_values(session, err), err, "preparing the model");
    describe(session);
    TDMI_TRY(fill(session, err));
    session->network.first_trained = freeze_point_now(session);
    return tdmi_trainer_open_scale(session, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

struct tdmi_values tdmi_values_evaluated(const struct tdmi_train_network *network)
{
    if (network->mean_params)
        return (struct tdmi_values){network->mean_params, network->mean_states};
    return tdmi_values_trained(network);
}

struct tdmi_values tdmi_values_trained(const struct tdmi_train_network *network)
{
    return (struct tdmi_values){network->params, network->states};
}

tdm_status tdmi_values_upload(const struct tdmi_session *session, bool to_averages,
                              const float *params, const float *states, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->compute.backend->memory;
    const tdmi_graph *graph = session->network.graph;
    float *to_params = to_averages ? session->network.mean_params : session->network.params;
    float *to_states = to_averages ? session->network.mean_states : session->network.states;
    TDM_TRY(memory->upload(session->compute.stream, to_params, params,
                           sizeof(float) * (size_t)graph->param_values, err),
            err, "placing weights");
    TDM_TRY(memory->upload(session->compute.stream, to_states, states,
                           sizeof(float) * (size_t)graph->state_values, err),
            err, "placing running statistics");
    return session->compute.backend->stream.wait(session->compute.stream, err);
}

tdm_status tdmi_values_download(const struct tdmi_session *session, struct tdmi_values from,
                                float *params, float *states, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->compute.backend->memory;
    const tdmi_graph *graph = session->network.graph;
    TDM_TRY(memory->download(session->compute.stream, params, from.params,
                             sizeof(float) * (size_t)graph->param_values, err),
            err, "fetching weights");
    return TDM_WRAP(err,
                    memory->download(session->compute.stream, states, from.states,
                                     sizeof(float) * (size_t)graph->state_values, err),
                    "fetching running statistics");
}

void tdmi_network_release(struct tdmi_session *session)
{
    const struct tdmi_train_network *network = &session->network;
    tdmi_compute_free(&session->compute, network->mean_states);
    tdmi_compute_free(&session->compute, network->mean_params);
    tdmi_compute_free(&session->compute, network->states);
    tdmi_compute_free(&session->compute, network->params);
    tdmi_graph_free(network->graph);
}

/* ---- for people ------------------------------------------------------------------------------ */

void tdmi_network_report(const struct tdmi_session *session)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_train_network *network = &session->network;
    const struct tdmi_preprocess *input = tdmi_graph_preprocess(network->graph);
    const int64_t steps = session->data.steps_per_epoch;
    char rates[200], reason[60] = "";
    tdmi_rates_describe(&config->rates, &config->options, rates, sizeof rates);
    if (config->network_rate > 0.0 && config->rates.base_rate > 0.0 &&
        tdmi_rates_are_the_networks(&config->rates, &config->options))
        snprintf(reason, sizeof reason, ", for a head on %lld images",
                 (long long)session->data.split.n_train);
    tdmi_record_note(&session->record,
                     "%s: images of %d x %d pixels, %lld parameters, batch %d in groups of %d, "
                     "%lld step%s an epoch; %s%s",
                     network->definition.name, input->width, input->height,
                     (long long)network->graph->parameters, config->batch, config->shard,
                     (long long)steps, steps == 1 ? "" : "s", rates, reason);
}

void tdmi_network_report_norms(const struct tdmi_session *session)
{
    const struct tdmi_train_config *config = &session->config;
    const int all = tdmi_norms_count(session->network.graph, 0);
    const int trained = tdmi_norms_count(session->network.graph, session->network.first_trained);
    char frozen[100] = "", how[200] = "";
    if (all == 0)
        return;
    if (trained < all)
        snprintf(frozen, sizeof frozen, "%d frozen, which keep statistics, scale and shift%s",
                 all - trained, trained > 0 ? "; " : "");
    if (trained > 0 && config->keeps_statistics)
        snprintf(how, sizeof how, "%d keep their statistics, scale and shift are trained", trained);
    else if (trained > 0)
        snprintf(
            how, sizeof how,
            "%d trained with the statistics of each %s (%d images), which the running ones follow",
            trained, config->shares_statistics ? "batch" : "group",
            config->shares_statistics ? config->batch : config->shard);
    if (trained > 0)
        tdmi_record_note(&session->record, "batch norms: %s%s", frozen, how);
    else
        tdmi_record_detail(&session->record, "batch norms: %s", frozen);
}

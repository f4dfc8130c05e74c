/*
 * Weights that a training starts with: which file is meant, of which network, and the network
 * filled from it.
 */
#include "train/session/session.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/text/json.h"
#include "weights/fetch/catalogue.h"
#include "weights/weights.h"
#include "graph/norms.h"

#include <stdio.h>
#include <string.h>

/* ---- which file ------------------------------------------------------------------------- */

/* A run folder stands for its best model. */
static const char *file_of(tdmi_arena *arena, const char *path)
{
    const char *best = tdmi_path_join(arena, path, "best.safetensors");
    return best && tdmi_file_kind_of(best) == TDMI_FILE_REGULAR ? best : path;
}

/* A name of the catalogue whose file is on this machine. */
static tdm_status find_published(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_pretrained *pretrained = &session->pretrained;
    const char *name = session->config.options.weights;
    const struct tdm_weights_known *known = NULL;
    char path[1024];
    bool is_here = false;
    if (tdmi_catalogue_find(name, &known, NULL) != TDM_OK)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is neither a file %s nor are published weights called so (tandem "
                        "weights list shows them)",
                        name);
    TDM_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err), err, "finding %s", name);
    if (!is_here)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the weights %s are not at hand: tandem weights fetch %s brings them "
                        "(%.0f MB, %s/%s), or put that file at %s",
                        name, name, known->megabytes, known->folder, known->file, path);
    pretrained->published = known;
    pretrained->path = tdmi_arena_copy(&session->arena, path);
    if (!pretrained->network)
        pretrained->network = known->network;
    return pretrained->path ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "finding %s: no memory", name);
}

/* Names a network that only the file knows by the file, without its extension. */
static void name_by_file(struct tdmi_network *network, const char *path)
{
    const char *name = tdmi_path_name(path), *dot = strrchr(name, '.');
    int n = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    snprintf(network->name, sizeof network->name, "%.*s", n, name);
}

static bool seems_begun(const struct tdmi_train_config *config, tdmi_arena *arena)
{
    const struct tdm_train_options *options = &config->options;
    return options->run && options->resume && tdmi_checkpoint_exists(arena, options->run);
}

tdm_status tdmi_pretrained_name_at_hand(const char **name, tdm_error *err)
{
    const struct tdm_weights_known *known;
    char path[1024];
    bool is_here = false;
    *name = NULL;
    for (int i = 0; !*name && (known = tdm_weights_known_at(i)) != NULL; i++) {
        TDM_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err), err, "finding %s",
                known->name);
        *name = is_here ? known->name : NULL;
    }
    return TDM_OK;
}

/* Without --model and --weights: those of the resumed run, else the first published weights, by
 * preference, whose file is on this machine. */
static tdm_status choose_by_default(struct tdmi_train_config *config, tdmi_arena *arena,
                                    tdm_error *err)
{
    struct tdm_train_options *options = &config->options;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *words = NULL;
    if (options->resume && options->run) {
        struct tdm_train_options recorded = *options;
        TDM_TRY(tdm_train_options_recorded(options->run, &recorded, &words, err), err,
                "reading the options of the run");
        if (words && recorded.model)
            options->model = tdmi_arena_copy(arena, recorded.model);
        if (words && recorded.weights)
            options->weights = tdmi_arena_copy(arena, recorded.weights);
        if (options->model || options->weights)
            return TDM_OK;
    }
    return tdmi_pretrained_name_at_hand(&options->weights, err);
}

static tdm_status find(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->config.options;
    struct tdmi_pretrained *pretrained = &session->pretrained;
    options->weights = options->weights && *options->weights ? options->weights : NULL;
    pretrained->is_by_default = !options->model && !options->weights;
    if (pretrained->is_by_default)
        TDMI_TRY(choose_by_default(&session->config, &session->arena, err));
    pretrained->network = options->model;
    pretrained->is_resuming =
        seems_begun(&session->config, &session->arena); /* the file is then not needed */
    if (options->weights &&
        (pretrained->is_resuming || tdmi_file_kind_of(options->weights) != TDMI_FILE_MISSING))
        pretrained->path = file_of(&session->arena, options->weights);
    else if (options->weights)
        TDM_TRY(find_published(session, err), err, "beginning with --weights");
    if (pretrained->is_by_default && !options->weights)
        options->model = "convnet7";
    return TDM_OK;
}

tdm_status tdmi_pretrained_find(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_pretrained *pretrained = &session->pretrained;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(find(session, err));
    TDMI_TRY(tdmi_ranks_take_choice(session, err));
    if (options->model || pretrained->network)
        return tdmi_network_find(options->model ? options->model : pretrained->network,
                                 &session->network.definition, err);
    name_by_file(&session->network.definition, options->weights);
    return TDM_OK;
}

/* ---- the network ------------------------------------------------------------------------ */

/* The network of the weights replaces the one known by name. */
static void take_network(struct tdmi_train_network *network, const char *name, int shard,
                         double rate)
{
    snprintf(network->definition.name, sizeof network->definition.name, "%s", name);
    network->definition.shard = shard;
    network->definition.learning_rate = rate;
}

/* A model of tandem lists the images that it was trained on. */
static tdm_status look_for_ours(struct tdmi_pretrained *pretrained, tdmi_arena *arena,
                                const tdmi_weights *weights, tdm_error *err)
{
    const struct tdmi_weights_tensor *trained = tdmi_weights_find(weights, "split.train");
    if (!tdmi_weights_fact(weights, "tandem"))
        return TDM_OK;
    if (!trained || trained->dtype != TDMI_DTYPE_U64)
        return TDM_OK;
    pretrained->hashes =
        tdmi_arena_alloc(arena, (size_t)trained->n_values + 1, sizeof *pretrained->hashes);
    TDMI_CHECK_MEMORY(pretrained->hashes, err);
    memcpy(pretrained->hashes, trained->data, trained->bytes);
    pretrained->n_hashes = trained->n_values;
    tdmi_hashes_sort(pretrained->hashes, pretrained->n_hashes);
    return TDM_OK;
}

static tdm_status import(struct tdmi_session *session, const tdmi_weights *weights, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const int n = tdmi_source_classes(session->data.source);
    const char **classes = tdmi_arena_alloc(&session->arena, (size_t)n, sizeof *classes);
    TDMI_CHECK_MEMORY(classes, err);
    for (int i = 0; i < n; i++)
        classes[i] = tdmi_source_class(session->data.source, i);
    const struct tdmi_import_request request = {.network = session->pretrained.network,
                                                .head = tdmi_network_head(session),
                                                .seed = options->seed,
                                                .classes = classes,
                                                .n_classes = n,
                                                .input = tdmi_network_input(&session->config),
                                                .wants_hash = true};
    return tdmi_import(weights, &request, &session->pretrained.import, err);
}

tdm_status tdmi_session_read_weights(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_import *base = &session->pretrained.import;
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    if (session->network.graph)
        return TDM_OK;
    TDM_TRY(tdmi_ranks_open_weights(session, &weights, &bytes, err), err,
            "beginning with --weights");
    const char *path = session->pretrained.path;
    struct tdmi_train_network *network = &session->network;
    TDM_TRY(look_for_ours(&session->pretrained, &session->arena, weights, err), err,
            "beginning with the weights of %s", path);
    TDM_TRY(import(session, weights, err), err, "beginning with the weights of %s", path);
    network->graph = tdmi_take(&base->graph);
    network->host.lineage = base->lineage;
    if (session->pretrained.published && !network->host.lineage.licence)
        network->host.lineage.licence = session->pretrained.published->licence;
    take_network(network, base->network, base->shard, base->learning_rate);
    TDM_TRY(tdmi_session_find_freeze_point(session, err), err, "beginning with the weights of %s",
            path);
    if (tdmi_freeze_has_base(network->graph, network->first_trained)) /* its rate: open.c */
        session->config.network_rate = network->definition.learning_rate;
    else
        session->config.rate_fraction = tdmi_rates_part(&session->config.options);
    return TDM_OK;
}

/* ---- for people ------------------------------------------------------------------------- */

static void report_what_is_missed(const struct tdmi_session *session)
{
    tdmi_record_note(&session->record,
                     "no pretrained weights are at hand, so %s is trained from scratch, without "
                     "transfer learning; after tandem weights fetch mobilenetv2-notop (9 MB) the "
                     "same command starts with them",
                     session->network.definition.name);
}

/* Validation images that trained the weights make the accuracy optimistic. */
static void report_known_pictures(const struct tdmi_session *session)
{
    int64_t n_known = 0;
    for (int64_t i = 0; i < session->data.split.n_val; i++)
        n_known += tdmi_hashes_have(session->pretrained.hashes, session->pretrained.n_hashes,
                                    session->data.val_hashes[i]);
    if (n_known > 0)
        tdmi_record_note(&session->record,
                         "%lld of the %lld validation images trained the weights that this run "
                         "starts with: the accuracy on them is no measure for new images (the same "
                         "--split and --seed as then keep them apart)",
                         (long long)n_known, (long long)session->data.split.n_val);
}

void tdmi_pretrained_report(const struct tdmi_session *session)
{
    const struct tdmi_import *base = &session->pretrained.import;
    if (session->pretrained.is_by_default && !session->pretrained.path)
        report_what_is_missed(session);
    for (int i = 0; i < base->n_notes; i++)
        tdmi_record_note(&session->record, "%s", base->notes[i]);
    if (session->pretrained.path)
        tdmi_record_note(&session->record, "%s starts with %s of %s%s",
                         session->network.definition.name,
                         base->has_new_head ? "all but the head" : "the weights",
                         base->lineage.file, base->has_new_head ? "" : ", the last layer included");
    report_known_pictures(session);
}

void tdmi_pretrained_raise_momentum(const struct tdmi_session *session)
{
    if (!session->pretrained.path || session->config.keeps_statistics)
        return;
    const int n = tdmi_norms_quicken(session->network.graph, session->network.unfreeze.last,
                                     TDMI_LEAST_MOMENTUM);
    if (n > 0 && tdmi_record_is_new(&session->record))
        tdmi_record_note(&session->record,
                         "the momentum of %d batch norms is raised to %g (PyTorch's sense): with "
                         "that of the file, running statistics would not follow the training",
                         n, TDMI_LEAST_MOMENTUM);
}

tdm_status tdmi_network_take_stored(struct tdmi_session *session, struct tdmi_model_file *stored,
                                    tdm_error *err)
{
    if (!(tdmi_record_number(&session->record, "learning_rate") > 0.0))
        return TDM_FAIL(err, TDM_E_INPUT, "resuming the run %s: its record has no learning rate",
                        tdmi_run_path(session->record.run));
    TDM_TRY(
        tdmi_lineage_copy(&stored->lineage, &session->arena, &session->network.host.lineage, err),
        err, "resuming the run %s", tdmi_run_path(session->record.run));
    tdmi_graph_free(session->network.graph);
    session->network.graph = stored->graph;
    stored->graph = NULL;
    take_network(&session->network, stored->network, stored->shard, 0.0);
    return TDM_OK;
}

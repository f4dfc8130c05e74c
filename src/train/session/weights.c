/*
 * Weights that a training begins with: which file is meant, which network they are of, and the
 * network filled from it. A run that is gone on with has all that in its checkpoint.
 */
#include "train/session/session.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "weights/fetch/catalogue.h"
#include "weights/weights.h"
#include "train/freeze.h"

#include <stdio.h>
#include <string.h>

/* ---- which file ------------------------------------------------------------------------- */

/* A run folder is begun with as it is asked: with its best model. */
static const char *file_of(struct tdmi_session *session, const char *path)
{
    const char *best = tdmi_path_join(&session->arena, path, "best.safetensors");
    return best && tdmi_file_kind_of(best) == TDMI_FILE_REGULAR ? best : path;
}

/* A published name whose file is at hand. */
static tdm_status find_published(struct tdmi_session *session, tdm_error *err)
{
    const char *name = session->options.weights;
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
    session->published = known;
    session->weights = tdmi_arena_copy(&session->arena, path);
    if (!session->base_network)
        session->base_network = known->network;
    return session->weights ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "finding %s: no memory", name);
}

/* The name of the file without its ending, for a run of a network that only the file knows. */
static void name_by_file(struct tdmi_network *network, const char *path)
{
    const char *name = tdmi_path_name(path), *dot = strrchr(name, '.');
    int n = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    snprintf(network->name, sizeof network->name, "%.*s", n, name);
}

static bool seems_begun(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    return options->run && options->resume &&
           tdmi_session_has_checkpoint(&session->arena, options->run);
}

/* Nobody said: published weights that are at hand, the most wanted first; or what the run that is
 * gone on with was begun with. */
static tdm_status choose_by_default(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->options;
    const struct tdm_weights_known *known;
    tdm_json_document *words = NULL;
    char path[1024];
    if (options->resume && options->run) {
        struct tdm_train_options recorded = *options;
        TDM_TRY(tdm_train_options_recorded(options->run, &recorded, &words, err), err,
                "looking what the run was begun with");
        if (words && recorded.model)
            options->model = tdmi_arena_copy(&session->arena, recorded.model);
        if (words && recorded.weights)
            options->weights = tdmi_arena_copy(&session->arena, recorded.weights);
        tdm_json_document_free(words);
        if (options->model || options->weights)
            return TDM_OK;
    }
    for (int i = 0; (known = tdm_weights_known_at(i)) != NULL; i++) {
        bool is_here = false;
        TDM_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err), err, "finding %s",
                known->name);
        if (is_here) {
            options->weights = known->name;
            return TDM_OK;
        }
    }
    return TDM_OK;
}

tdm_status tdmi_session_find_weights(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->options;
    options->weights = options->weights && *options->weights ? options->weights : NULL;
    session->is_by_default = !options->model && !options->weights;
    if (session->is_by_default)
        TDM_TRY(choose_by_default(session, err), err, "choosing what to begin with");
    session->base_network = options->model;
    session->seems_begun = seems_begun(session); /* then the file is not needed */
    if (options->weights &&
        (session->seems_begun || tdmi_file_kind_of(options->weights) != TDMI_FILE_MISSING))
        session->weights = file_of(session, options->weights);
    else if (options->weights)
        TDM_TRY(find_published(session, err), err, "beginning with --weights");
    if (session->is_by_default && !options->weights)
        options->model = "convnet7";
    if (options->model || session->base_network)
        return tdmi_network_find(options->model ? options->model : session->base_network,
                                 &session->network, err);
    name_by_file(&session->network, options->weights);
    return TDM_OK;
}

/* ---- the network ------------------------------------------------------------------------ */

/* What the weights are of stands in for a network known by name. */
static void take_network(struct tdmi_session *session, const char *name, int shard, double rate)
{
    snprintf(session->network.name, sizeof session->network.name, "%s", name);
    session->network.shard = shard;
    session->network.learning_rate = rate;
}

/* A model of ours says which pictures it knows. */
static tdm_status look_for_ours(struct tdmi_session *session, const tdmi_weights *weights,
                                tdm_error *err)
{
    const struct tdmi_weights_tensor *trained = tdmi_weights_find(weights, "split.train");
    if (!tdmi_weights_fact(weights, "tandem"))
        return TDM_OK;
    if (!trained || trained->dtype != TDMI_DTYPE_U64)
        return TDM_OK;
    session->base_hashes = tdmi_arena_alloc(&session->arena, (size_t)trained->n_values + 1,
                                            sizeof *session->base_hashes);
    if (!session->base_hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering the model's pictures: out of memory");
    memcpy(session->base_hashes, trained->data, trained->bytes);
    session->n_base_hashes = trained->n_values;
    tdmi_hashes_sort(session->base_hashes, session->n_base_hashes);
    return TDM_OK;
}

static tdm_status import(struct tdmi_session *session, const tdmi_weights *weights, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    const int n = tdmi_source_classes(session->source);
    const char **classes = tdmi_arena_alloc(&session->arena, (size_t)n, sizeof *classes);
    if (!classes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %d classes: out of memory", n);
    for (int i = 0; i < n; i++)
        classes[i] = tdmi_source_class(session->source, i);
    const struct tdmi_import_request request = {.network = session->base_network,
                                                .head = tdmi_session_head(session),
                                                .seed = options->seed,
                                                .classes = classes,
                                                .n_classes = n,
                                                .input = tdmi_session_input(session),
                                                .wants_hash = true};
    return tdmi_import(weights, &request, &session->base, err);
}

tdm_status tdmi_session_read_weights(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_import *base = &session->base;
    tdmi_weights *weights = NULL;
    if (session->graph)
        return TDM_OK;
    TDM_TRY(tdmi_weights_open(session->weights, &weights, err), err, "beginning with --weights");
    tdm_status status = look_for_ours(session, weights, err);
    if (status == TDM_OK)
        status = import(session, weights, err);
    tdmi_weights_close(weights);
    if (status != TDM_OK)
        return TDM_WRAP(err, status, "beginning with the weights of %s", session->weights);
    session->graph = base->graph;
    base->graph = NULL;
    session->snapshot.lineage = base->lineage;
    if (session->published && !session->snapshot.lineage.licence)
        session->snapshot.lineage.licence = session->published->licence;
    take_network(session, base->network, base->shard, base->learning_rate);
    TDM_TRY(tdmi_session_find_freeze_point(session, err), err, "beginning with the weights of %s",
            session->weights);
    if (tdmi_freeze_has_base(session->graph, session->first_trained))
        session->own_rate = session->network.learning_rate; /* the head's wants the split */
    else
        session->part_of_rate = tdmi_rates_part(&session->options);
    return TDM_OK;
}

tdm_status tdmi_session_keep_network(struct tdmi_session *session, struct tdmi_model_file *stored,
                                     tdm_error *err)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const double rate = tdm_json_as_number(tdm_json_member(data, "learning_rate"), 0.0);
    if (!(rate > 0.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "resuming the run %s: its record does not say the learning rate",
                        tdmi_run_path(session->run));
    TDM_TRY(tdmi_lineage_copy(&stored->lineage, &session->arena, &session->snapshot.lineage, err),
            err, "resuming the run %s", tdmi_run_path(session->run));
    tdmi_graph_free(session->graph);
    session->graph = stored->graph;
    stored->graph = NULL;
    take_network(session, stored->network, stored->shard, 0.0);
    return TDM_OK;
}

/* ---- for people ------------------------------------------------------------------------- */

static void report_what_is_missed(struct tdmi_session *session)
{
    tdmi_session_note(session,
                      "no pretrained weights are at hand, so %s is trained from scratch; what is "
                      "missed is transfer learning: tandem weights fetch mobilenetv2-notop (9 MB) "
                      "brings some, and the same command then begins with them",
                      session->network.name);
}

/* A model that was trained on pictures which judge it now is told to be better than it is. */
static void report_known_pictures(struct tdmi_session *session)
{
    int64_t n_known = 0;
    for (int64_t i = 0; i < session->split.n_val; i++)
        n_known +=
            tdmi_hashes_have(session->base_hashes, session->n_base_hashes, session->val_hashes[i]);
    if (n_known > 0)
        tdmi_session_note(session,
                          "%lld of the %lld pictures that judge trained the weights that are begun "
                          "with: the accuracy on them is no measure for new pictures (the same "
                          "--split and --seed as then keep them apart)",
                          (long long)n_known, (long long)session->split.n_val);
}

void tdmi_session_report_weights(struct tdmi_session *session)
{
    const struct tdmi_import *base = &session->base;
    if (session->is_by_default && !session->weights)
        report_what_is_missed(session);
    for (int i = 0; i < base->n_notes; i++)
        tdmi_session_note(session, "%s", base->notes[i]);
    if (session->weights)
        tdmi_session_note(session, "%s begins with %s of %s%s", session->network.name,
                          base->has_new_head ? "all but the head" : "the weights",
                          base->lineage.file,
                          base->has_new_head ? "" : ", the last layer included");
    report_known_pictures(session);
}

/*
 * Weights that a training starts with: which file is meant, of which network, and the network
 * filled from it.
 */
#include "train/session/session.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "weights/fetch/catalogue.h"
#include "train/choice/choice.h"
#include "train/choice/speed.h"
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
    tdm_error why = {0};
    char path[1024];
    bool is_here = false;
    if (tdmi_catalogue_find(name, &known, &why) != TDM_OK)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is no file, and %s; auto takes those of the network, and without "
                        "--weights a --model begins with random ones",
                        name, tdm_error_sentence(&why, 0));
    TDM_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err), err, "finding %s", name);
    if (!is_here)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "the weights %s are not on this machine: --fetch or tandem weights fetch %s "
            "brings them (%.0f MB, %s/%s), or put that file at %s",
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
    for (int i = 0; (known = tdm_weights_known_at(i)) != NULL; i++) {
        const bool is_usual = strcmp(known->name, TDMI_PRETRAINED_TO_FETCH) == 0;
        TDM_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err), err, "finding %s",
                known->name);
        if (is_here && (is_usual || !*name))
            *name = known->name;
    }
    return TDM_OK;
}

/* Without --model and --weights: those of the resumed run, if there is one. */
static tdm_status recall(struct tdmi_train_config *config, tdmi_arena *arena, tdm_error *err)
{
    struct tdm_train_options *options = &config->options;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *words = NULL;
    struct tdm_train_options recorded = *options;
    if (!options->resume || !options->run)
        return TDM_OK;
    TDM_TRY(tdm_train_options_recorded(options->run, &recorded, &words, err), err,
            "reading the options of the run");
    if (words && recorded.model)
        options->model = tdmi_arena_copy(arena, recorded.model);
    if (words && recorded.weights)
        options->weights = tdmi_arena_copy(arena, recorded.weights);
    if (words && options->size == 0)
        options->size = recorded.size;
    return TDM_OK;
}

/* --weights without "auto" and empty texts, which leave the choice open. */
static const char *named_weights(const struct tdm_train_options *options)
{
    const char *weights = options->weights;
    return weights && *weights && strcmp(weights, "auto") != 0 ? weights : NULL;
}

/* Weights of the catalogue that are asked for by name; a file of that name goes first. */
static tdm_status want_named(const struct tdm_train_options *options,
                             const struct tdm_weights_known **wanted, tdm_error *err)
{
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
    const struct tdm_weights_known *known = NULL;
    const char *name = named_weights(options);
    char path[1024];
    bool is_here = false;
    if (tdmi_file_kind_of(name) != TDMI_FILE_MISSING ||
        tdmi_catalogue_find(name, &known, NULL) != TDM_OK)
        return TDM_OK;
    TDMI_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err));
    if (!is_here && tdmi_data_open_source(options, &source, NULL) == TDM_OK)
        *wanted = known;
    return TDM_OK;
}

/* The usual weights, where photos would be trained and none are here. */
static tdm_status want_usual(const struct tdm_train_options *options,
                             const struct tdm_weights_known **wanted, tdm_error *err)
{
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
    struct tdmi_look look;
    const char *name = NULL;
    TDMI_TRY(tdmi_pretrained_name_at_hand(&name, err));
    if (name || tdmi_data_open_source(options, &source, NULL) != TDM_OK)
        return TDM_OK;
    TDMI_TRY(tdmi_look_at(source, &look, err));
    return look.n_seen == 0 || tdmi_look_suits(&look) == TDMI_SUITS_SMALL
               ? TDM_OK
               : tdmi_catalogue_find(TDMI_PRETRAINED_TO_FETCH, wanted, err);
}

tdm_status tdm_train_weights_wanted(const struct tdm_train_options *options,
                                    const struct tdm_weights_known **wanted, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_OPTIONS(tdm_train_options, options, tdm_train_options_default(), err);
    *wanted = NULL;
    if (options->resume && options->run) {
        const char *record = tdmi_path_join(&arena, options->run, "run.json");
        TDMI_CHECK_MEMORY(record, err);
        if (tdmi_file_kind_of(record) != TDMI_FILE_MISSING)
            return TDM_OK; /* its checkpoint has all weights */
    }
    if (!options->source) /* as one that cannot be used: the training refuses it */
        return TDM_OK;
    if (named_weights(options))
        return want_named(options, wanted, err);
    return options->model ? TDM_OK : want_usual(options, wanted, err);
}

static tdm_status find(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->config.options;
    struct tdmi_pretrained *pretrained = &session->pretrained;
    options->weights = named_weights(options);
    pretrained->is_by_default = !options->model && !options->weights;
    if (pretrained->is_by_default)
        TDMI_TRY(recall(&session->config, &session->arena, err));
    pretrained->is_open = !options->model && !options->weights;
    pretrained->network = options->model;
    pretrained->is_resuming =
        seems_begun(&session->config, &session->arena); /* the file is then not needed */
    if (options->weights &&
        (pretrained->is_resuming || tdmi_file_kind_of(options->weights) != TDMI_FILE_MISSING))
        pretrained->path = file_of(&session->arena, options->weights);
    else if (options->weights)
        TDM_TRY(find_published(session, err), err, "beginning with --weights");
    return TDM_OK;
}

/* The network by its name; of a file that alone knows it, a name for messages. */
static tdm_status define(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_pretrained *pretrained = &session->pretrained;
    if (options->model || pretrained->network)
        return tdmi_network_find(options->model ? options->model : pretrained->network,
                                 &session->network.definition, err);
    name_by_file(&session->network.definition, options->weights);
    return TDM_OK;
}

tdm_status tdmi_pretrained_find(struct tdmi_session *session, tdm_error *err)
{
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(find(session, err));
    TDMI_TRY(tdmi_ranks_take_choice(session, err));
    return session->pretrained.is_open ? TDM_OK : define(session, err);
}

/* Ranks compute features together. */
static int64_t images_of_a_rank(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const int64_t n = tdmi_source_items(session->data.source);
    const int64_t most = (int64_t)options->per_class * tdmi_source_classes(session->data.source);
    const double used = options->fraction * (double)(most > 0 && most < n ? most : n);
    return (int64_t)used / tdmi_ranks_world(session);
}

/* On a machine that would take long for all images, a smaller size of them, and why; 0: none. It is
 * only advice, so a failure to measure changes nothing. */
static tdm_status suit_machine(const struct tdmi_session *session, int *size, char *why,
                               size_t why_bytes, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    const int64_t n = images_of_a_rank(session);
    tdm_error problem = {0};
    struct tdmi_speed speed = {.decode_second = session->data.look.decode_second /
                                                tdmi_pool_threads(compute->pool)};
    const struct tdmi_import_request request = {.network = session->pretrained.network,
                                                .head = tdmi_network_head(session),
                                                .ignores_head = true};
    *size = 0;
    if (n < TDMI_SLOW_IMAGES)
        return TDM_OK;
    const tdm_status status =
        tdmi_speed_measure(compute, session->pretrained.path, &request, &speed, &problem);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, status, "timing the network: out of memory");
    if (status != TDM_OK)
        return TDM_OK; /* reading the weights for the training will say why */
    *size = tdmi_speed_side(&speed, n);
    snprintf(why, why_bytes, ", because at %d one pass over them takes about %.0f min here",
             speed.side, tdmi_speed_seconds(&speed, n, 0) / 60.0);
    return TDM_OK;
}

/* The size that suits the images, unless the user chose one or the machine is slow. */
static tdm_status suit_size(struct tdmi_session *session, struct tdmi_choice *choice,
                            tdm_error *err)
{
    const size_t used = strlen(choice->reason);
    int *size = &session->config.options.size, slow = 0;
    char why[100] = "";
    if (*size > 0)
        return TDM_OK;
    if (choice->weights)
        TDMI_TRY(suit_machine(session, &slow, why, sizeof why, err));
    const bool is_slow = slow > 0 && (choice->size == 0 || slow < choice->size);
    *size = is_slow ? slow : choice->size;
    if (*size > 0 && choice->reason[0])
        snprintf(choice->reason + used, sizeof choice->reason - used,
                 "; the images %sget %d pixels%s", is_slow ? "" : "are small and ", *size,
                 is_slow ? why : "");
    return TDM_OK;
}

static tdm_status choose(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->config.options;
    struct tdmi_pretrained *pretrained = &session->pretrained;
    struct tdmi_choice choice;
    const char *at_hand = NULL;
    TDMI_TRY(tdmi_pretrained_name_at_hand(&at_hand, err));
    struct tdmi_look *look = &session->data.look;
    TDM_TRY(tdmi_look_at(session->data.source, look, err), err, "choosing a network");
    TDMI_TRY(tdmi_choice_make(session, at_hand, &choice, err));
    options->model = choice.model;
    options->weights = choice.weights;
    pretrained->misses_weights = choice.misses_weights;
    if (options->weights)
        TDMI_TRY(find_published(session, err));
    TDMI_TRY(suit_size(session, &choice, err));
    TDMI_ARENA_COPY(&session->arena, pretrained->reason, choice.reason, err);
    return TDM_OK;
}

tdm_status tdmi_pretrained_choose(struct tdmi_session *session, tdm_error *err)
{
    if (!session->pretrained.is_open)
        return TDM_OK;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(choose(session, err));
    TDMI_TRY(tdmi_ranks_take_choice(session, err));
    return define(session, err);
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
    TDMI_AT_END(tdmi_free_at) char *beside = NULL;
    TDMI_TRY(tdmi_ranks_share_beside(session, weights, &beside, err));
    const struct tdmi_import_request request = {.network = session->pretrained.network,
                                                .head = tdmi_network_head(session),
                                                .seed = options->seed,
                                                .classes = classes,
                                                .n_classes = n,
                                                .input = tdmi_network_input(&session->config),
                                                .wants_hash = true,
                                                .beside = beside ? beside : ""};
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

/* Published weights of a network: the first whose file is on this machine, else the first of all;
 * NULL: there are none. */
static const struct tdm_weights_known *published_of(const char *network, bool *is_here)
{
    const struct tdm_weights_known *known, *first = NULL;
    char path[1024];
    *is_here = false;
    for (int i = 0; (known = tdm_weights_known_at(i)) != NULL; i++) {
        if (strcmp(known->network, network) != 0)
            continue;
        first = first ? first : known;
        if (tdm_weights_place(known, path, sizeof path, is_here, NULL) == TDM_OK && *is_here)
            return known;
    }
    return first;
}

/* Where weights would suit the images, or there are some of the network that --model names. */
static void report_from_scratch(const struct tdmi_session *session)
{
    const char *name = session->network.definition.name;
    const bool misses_weights = session->pretrained.misses_weights;
    bool is_here = false;
    const struct tdm_weights_known *known =
        session->pretrained.path ? NULL : published_of(name, &is_here);
    char how[200];
    if (misses_weights)
        snprintf(how, sizeof how,
                 "after tandem weights fetch " TDMI_PRETRAINED_TO_FETCH
                 " (9 MB), or with --fetch, a new run starts with them");
    else if (!known)
        return;
    else if (is_here)
        snprintf(how, sizeof how, "a new run with --weights %s starts with pretrained weights",
                 known->name);
    else
        snprintf(how, sizeof how,
                 "a new run with --weights %s --fetch (%.0f MB) starts with pretrained weights",
                 known->name, known->megabytes);
    tdmi_record_note(&session->record,
                     "%s%s is trained from scratch, without transfer learning; %s",
                     misses_weights ? "no pretrained weights are at hand, so " : "", name, how);
}

/* Images that trained the weights make the accuracy of the part that they are in optimistic. */
static void report_known_pictures(const struct tdmi_session *session, const char *part,
                                  const uint64_t *hashes, int64_t n)
{
    int64_t n_known = 0;
    for (int64_t i = 0; i < n; i++)
        n_known +=
            tdmi_hashes_have(session->pretrained.hashes, session->pretrained.n_hashes, hashes[i]);
    if (n_known > 0)
        tdmi_record_note(&session->record,
                         "%lld of the %lld %s images trained the weights that this run "
                         "starts with: the accuracy on them is no measure for new images (the same "
                         "--split and --seed as then keep them apart)",
                         (long long)n_known, (long long)n, part);
}

void tdmi_pretrained_report(struct tdmi_session *session)
{
    const struct tdmi_import *base = &session->pretrained.import;
    report_from_scratch(session);
    tdmi_estimate_begin(session, session->pretrained.reason ? session->pretrained.reason : "");
    for (int i = 0; i < base->n_notes; i++)
        tdmi_record_note(&session->record, "%s", base->notes[i]);
    if (session->pretrained.path)
        tdmi_record_note(&session->record, "%s starts with %s of %s%s",
                         session->network.definition.name,
                         base->has_new_head ? "all but the head" : "the weights",
                         base->lineage.file, base->has_new_head ? "" : ", the last layer included");
    report_known_pictures(session, "validation", session->data.val_hashes,
                          session->data.split.n_val);
    if (session->data.has_test)
        report_known_pictures(session, "test", session->data.test_hashes,
                              session->data.split.n_test);
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

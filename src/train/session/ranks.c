/* Messages of the ranks of a run to each other. Every function here is called by all ranks alike.
 */
#include "train/session/ranks.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/system/cpu.h"
#include "base/scope.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "data/audit/contents.h"
#include "dist/cut.h"
#include "tandem/event.h"
#include "train/config/options.h"
#include "train/session/session.h"

#include <stdio.h>
#include <string.h>

int tdm_train_rank(void)
{
    struct tdmi_launch launch;
    const tdm_status ignored = tdmi_launch_here(&launch, NULL);
    (void)ignored;
    return launch.rank;
}

int tdmi_ranks_world(const struct tdmi_session *session)
{
    return tdmi_comm_world(session->compute.comm);
}

bool tdmi_ranks_is_follower(const struct tdmi_session *session)
{
    return tdmi_comm_rank(session->compute.comm) > 0;
}

bool tdmi_ranks_share_steps(const struct tdmi_session *session)
{
    return tdmi_ranks_world(session) > 1 && !session->cache.is_used;
}

tdm_status tdmi_ranks_share(struct tdmi_session *session, void *bytes, size_t n, tdm_error *err)
{
    return tdmi_comm_broadcast(session->compute.comm, bytes, n, err);
}

void tdmi_ranks_abort(struct tdmi_session *session, tdm_status status, tdm_error *err)
{
    /* All stop after the same step, and rank 0 saves it. */
    const bool is_agreed = status == TDM_E_STOPPED && session->agreed.is_stopping;
    if (!session->compute.comm || is_agreed)
        return;
    tdmi_comm_abort(session->compute.comm, status, err);
    tdmi_compute_disconnect(&session->compute); /* after the others know why */
    if (err)
        err->rank = tdmi_comm_failed_rank(session->compute.comm);
}

tdm_status tdmi_ranks_end_stopped(struct tdmi_session *session, tdm_error *err)
{
    bool is_saved = true;
    tdm_error why = {0};
    tdm_status status = TDM_OK;
    if (session->agreed.is_stopping)
        status = tdmi_ranks_share(session, &is_saved, sizeof is_saved, &why);
    if (status == TDM_OK || !tdmi_ranks_is_follower(session))
        status = TDM_E_STOPPED;
    else if (err)
        *err = why;
    tdmi_ranks_abort(session, status, err);
    return status;
}

/* ---- joining --------------------------------------------------------------------------------- */

tdm_status tdmi_ranks_share_text(struct tdmi_session *session, const char **text, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *received = NULL;
    const bool is_follower = tdmi_ranks_is_follower(session);
    size_t n = *text && !is_follower ? strlen(*text) + 1 : 0;
    void *bytes = NULL;
    memcpy(&bytes, text, sizeof bytes); /* without its const */
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, is_follower ? &received : &bytes, &n, err));
    if (!is_follower)
        return TDM_OK;
    *text = n > 0 ? tdmi_arena_copy(&session->arena, received) : NULL;
    return n > 0 && !*text ? TDM_FAIL(err, TDM_E_MEMORY, "no memory") : TDM_OK;
}

/* A text of rank 0 and the own one are the same. */
static tdm_status compare_text(struct tdmi_session *session, const char *mine, const char *what,
                               tdm_error *err)
{
    const uint64_t hash = tdmi_xxh64_of(mine, strlen(mine), 0);
    uint64_t theirs = hash;
    TDMI_TRY(tdmi_ranks_share(session, &theirs, sizeof theirs, err));
    if (theirs == hash)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE, "rank %d has other %s than rank 0; all ranks need the same",
                    tdmi_comm_rank(session->compute.comm), what);
}

/* Ranks that resume and others would send each other different messages from here on. */
static tdm_status compare_resuming(struct tdmi_session *session,
                                   const struct tdm_train_options *options, tdm_error *err)
{
    bool resumes = options->resume;
    TDMI_TRY(tdmi_ranks_share(session, &resumes, sizeof resumes, err));
    if (resumes == options->resume)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "rank %d was started with%s --resume, and rank 0 with%s; all "
                    "ranks need the same options",
                    tdmi_comm_rank(session->compute.comm), resumes ? "out" : "",
                    resumes ? "" : "out");
}

/* The number of threads may differ. A resumed run has the options of rank 0. */
static tdm_status compare_options(struct tdmi_session *session, struct tdm_train_options *options,
                                  tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    const int threads = options->threads, rank = tdmi_comm_rank(session->compute.comm);
    const char *text;
    TDMI_TRY(compare_resuming(session, options, err));
    struct tdm_train_options mine = *options;
    mine.threads = 0;
    tdmi_options_to_json(&mine, writer, NULL);
    TDMI_TRY(tdm_json_finish(writer, &text, NULL, err));
    TDMI_TRY(tdmi_ranks_share_text(session, &text, err));
    if (rank == 0)
        return TDM_OK;
    TDMI_TRY(tdm_json_read(text, strlen(text), "rank 0's options", &session->told, err));
    const tdm_json_value *theirs = tdm_json_root(session->told);
    if (!options->resume)
        return TDM_WRAP(err, tdmi_options_same(&mine, theirs, err),
                        "rank %d has other options than rank 0; all ranks need the same", rank);
    TDMI_TRY(tdmi_options_from_json(theirs, options, err));
    options->threads = threads;
    return TDM_OK;
}

/* The others learn from events what this rank is at. */
static void note_event(void *self, const tdm_event *event)
{
    struct tdmi_session *session = self;
    const tdm_sink *listener = &session->listener;
    tdmi_comm_note(session->compute.comm, event->kind == TDM_EVENT_PHASE_BEGIN ? event->text : NULL,
                   event->step);
    tdmi_ranks_keep_heartbeats(session);
    if (listener->event)
        listener->event(listener->self, event);
}

tdm_status tdmi_ranks_open(struct tdmi_session *session, struct tdm_train_options *options,
                           tdm_error *err)
{
    struct tdmi_launch launch = {.world = 1};
    if (!options->is_alone)
        TDMI_TRY(tdmi_launch_here(&launch, err));
    TDMI_TRY(tdmi_comm_open(&launch, &session->compute.comm, err));
    if (launch.world > 1) {
        session->listener = launch.rank > 0 ? (tdm_sink){0} : session->record.sink;
        session->record.sink = (tdm_sink){.self = session, .event = note_event};
        TDMI_TRY(tdmi_ranks_share_text(session, &options->trace, err));
        TDMI_TRY(compare_options(session, options, err));
    }
    return TDM_OK;
}

/* ---- the same bits on all machines -------------------------------------------------------------
 */

bool tdmi_ranks_is_exact(const struct tdmi_session *session)
{
    const bool is_alone =
        tdmi_ranks_world(session) == 1 && session->compute.backend->device.is_host;
    return !session->config.options.fast || is_alone;
}

/* On rank 0, once, and once there is a run to record it. */
static void report_differences(struct tdmi_session *session)
{
    if (session->differences)
        tdmi_record_note(&session->record,
                         "--fast: ranks compute other bits than rank 0 (%s); all get its weights "
                         "before each validation",
                         session->differences);
    session->differences = NULL;
}

/* With --fast rank 0 gathers how ranks differ, and all learn whether any does. mine: on this rank;
 * NULL: it does not differ. */
static tdm_status gather_differences(struct tdmi_session *session, const char *mine, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    bool differs = false;
    if (mine)
        tdmi_text_printf(&text, ", rank %d has %s", tdmi_comm_rank(session->compute.comm), mine);
    TDMI_TRY(tdmi_text_status(&text, err));
    TDMI_TRY(tdmi_ranks_gather_text(session, &text, err));
    if (!tdmi_ranks_is_follower(session) && text.length_bytes > 0) {
        session->differences =
            tdmi_arena_copy(&session->arena, tdmi_text_string(&text) + strlen(", "));
        TDMI_CHECK_MEMORY(session->differences, err);
        differs = true;
    }
    TDMI_TRY(tdmi_ranks_share(session, &differs, sizeof differs, err));
    session->agreed.differs = differs;
    return TDM_OK;
}

tdm_status tdmi_ranks_compare_machines(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text decoders = {0};
    struct tdmi_cpu cpu;
    if (tdmi_ranks_world(session) == 1)
        return TDM_OK;
    char device[1000] = "";
    if (!session->compute.backend->device.is_host)
        session->compute.backend->device.describe(session->compute.device, device, sizeof device);
    tdmi_cpu_describe(&cpu);
    bool formats[TDMI_IMAGE_FORMATS];
    tdmi_source_formats(session->data.source, formats);
    tdmi_image_write_decoders(formats, &decoders);
    const char *mine =
        tdmi_arena_printf(&session->arena, "tandem %s, %s, %s%s%s", tdm_version(), cpu.isa,
                          tdmi_text_string(&decoders), *device ? ", " : "", device);
    const char *first = mine;
    TDMI_CHECK_MEMORY(mine, err);
    TDMI_TRY(tdmi_ranks_share_text(session, &first, err));
    const bool is_same = strcmp(first, mine) == 0;
    if (session->config.options.fast)
        return gather_differences(session, is_same ? NULL : mine, err);
    if (is_same)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "rank %d would compute other bits than rank 0: it has %s, and rank 0 has %s; "
                    "machines of one kind with the same packages are accepted",
                    tdmi_comm_rank(session->compute.comm), mine, first);
}

/* Versions do not tell all: libraries choose by CPU model, and one may be broken. */
tdm_status tdmi_ranks_compare_networks(struct tdmi_session *session, tdm_error *err)
{
    const size_t n_bytes = (size_t)tdmi_shape_values(session->network.graph->nodes[0].out);
    const int n_classes = session->network.host.n_classes;
    TDMI_AT_END(tdmi_free_at) uint8_t *pixels = NULL;
    TDMI_AT_END(tdmi_free_at) float *logits = NULL;
    report_differences(session); /* of machines */
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(pixels, n_bytes, err));
    TDMI_TRY(TDMI_NEW(logits, n_classes, err));
    for (size_t i = 0; i < n_bytes; i++)
        pixels[i] = (uint8_t)(tdmi_xxh64_of(&i, sizeof i, 0) >> 56);
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch image = {.n = 1, .pixels = pixels, .labels = &label, .items = &item};
    tdmi_evaluator *evaluator = session->evaluation.evaluator;
    TDMI_TRY(tdmi_evaluator_take(evaluator, tdmi_values_evaluated(&session->network), err));
    TDMI_TRY(tdmi_evaluator_batch(evaluator, &image, NULL, NULL, logits, err));
    const uint64_t mine = tdmi_xxh64_of(logits, sizeof *logits * (size_t)n_classes, 0);
    uint64_t first = mine;
    TDMI_TRY(tdmi_ranks_share(session, &first, sizeof first, err));
    if (session->config.options.fast && !session->agreed.differs) {
        TDMI_TRY(gather_differences(session, first == mine ? NULL : "other logits", err));
        report_differences(session);
    }
    if (first == mine || session->config.options.fast)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "rank %d computes other bits than rank 0: the network gives other values for "
                    "the same image and weights; machines of one kind with the same libraries are "
                    "accepted",
                    tdmi_comm_rank(session->compute.comm));
}

/* ---- opening --------------------------------------------------------------------------------- */

tdm_status tdmi_ranks_take_choice(struct tdmi_session *session, tdm_error *err)
{
    struct tdm_train_options *options = &session->config.options;
    struct tdmi_pretrained *pretrained = &session->pretrained;
    bool flags[] = {pretrained->is_by_default, pretrained->is_resuming, pretrained->is_open};
    TDMI_TRY(tdmi_ranks_share(session, flags, sizeof flags, err));
    pretrained->is_by_default = flags[0];
    pretrained->is_resuming = flags[1];
    pretrained->is_open = flags[2];
    TDMI_TRY(tdmi_ranks_share(session, &options->size, sizeof options->size, err));
    TDMI_TRY(tdmi_ranks_share_text(session, &options->model, err));
    TDMI_TRY(tdmi_ranks_share_text(session, &options->weights, err));
    TDMI_TRY(tdmi_ranks_share_text(session, &pretrained->network, err));
    return tdmi_ranks_share_text(session, &pretrained->path, err);
}

tdm_status tdmi_ranks_open_weights(struct tdmi_session *session, tdmi_weights **weights,
                                   void **bytes, tdm_error *err)
{
    static const size_t limit_bytes = (size_t)16 << 30;
    const char *path = session->pretrained.path;
    TDMI_AT_END(tdmi_free_at) void *own = NULL;
    size_t n = 0;
    *bytes = NULL;
    if (tdmi_ranks_world(session) == 1)
        return tdmi_weights_open(path, weights, err);
    if (!tdmi_ranks_is_follower(session)) {
        if (tdmi_file_kind_of(path) == TDMI_FILE_REGULAR)
            TDMI_TRY(tdmi_file_read(path, limit_bytes, &own, &n, err));
        TDMI_TRY(
            tdmi_weights_open(path, weights, err)); /* the others are not told of a wrong one */
        return tdmi_comm_spread(session->compute.comm, &own, &n, err);
    }
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, bytes, &n, err));
    /* A model in a folder of several files must be at this path here too. */
    return n > 0 ? tdmi_weights_open_bytes(*bytes, n, path, weights, err)
                 : tdmi_weights_open(path, weights, err);
}

tdm_status tdmi_ranks_share_beside(struct tdmi_session *session, const tdmi_weights *weights,
                                   char **text, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *own = NULL;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(tdmi_import_find_beside(weights, &own, err));
    size_t n = own ? strlen(own) + 1 : 0;
    void *bytes = own;
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, &bytes, &n, err));
    if (bytes == own)
        own = NULL;
    *text = bytes;
    return TDM_OK;
}

tdm_status tdmi_ranks_follow_run(struct tdmi_session *session, tdm_error *err)
{
    static const size_t limit_bytes = (size_t)256 << 20;
    struct tdmi_run_record *record = &session->record;
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    const char *path = NULL;
    size_t n = 0;
    if (tdmi_ranks_world(session) == 1)
        return TDM_OK;
    if (!tdmi_ranks_is_follower(session)) {
        path = tdmi_run_path(record->run);
        const char *name = tdmi_path_join(&session->arena, path, "run.json");
        TDMI_CHECK_MEMORY(name, err);
        if (!tdmi_record_is_new(record))
            TDMI_TRY(tdmi_file_read(name, limit_bytes, &bytes, &n, err));
    }
    TDMI_TRY(tdmi_ranks_share_text(session, &path, err));
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, &bytes, &n, err));
    if (!tdmi_ranks_is_follower(session))
        return TDM_OK;
    return tdmi_run_follow(path, n > 0 ? bytes : NULL, n, &record->run, err);
}

/* Rank 0 has loaded it from either name, and so do the others. */
tdm_status tdmi_ranks_share_checkpoint(struct tdmi_session *session, bool *is_there, tdm_error *err)
{
    static const size_t limit_bytes = (size_t)64 << 30;
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n = 0;
    if (tdmi_ranks_world(session) == 1)
        return TDM_OK;
    TDMI_TRY(tdmi_ranks_share(session, is_there, sizeof *is_there, err));
    if (!*is_there)
        return TDM_OK;
    const char *path = tdmi_path_join(&session->arena, tdmi_run_path(session->record.run),
                                      session->record.is_fallen_back ? "previous.safetensors"
                                                                     : "last.safetensors");
    TDMI_CHECK_MEMORY(path, err);
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(tdmi_file_read(path, limit_bytes, &bytes, &n, err));
    TDMI_TRY(tdmi_comm_spread(session->compute.comm, &bytes, &n, err));
    if (!tdmi_ranks_is_follower(session))
        return TDM_OK;
    return tdmi_model_file_load_bytes(path, bytes, n, &session->stored, err);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Where the part of a rank begins; that of rank 0 is never empty. */
static int64_t bound_of(int64_t n, int64_t rank, int64_t world)
{
    return (n * rank + world - 1) / world;
}

void tdmi_ranks_part_of(const struct tdmi_session *session, int64_t n, int64_t *first, int64_t *end)
{
    const int64_t rank = tdmi_comm_rank(session->compute.comm), world = tdmi_ranks_world(session);
    *first = bound_of(n, rank, world);
    *end = bound_of(n, rank + 1, world);
}

void tdmi_ranks_part_of_batch(int n, int rank, int world, int *first, int *end)
{
    *first = (int)bound_of(n, rank, world);
    *end = (int)bound_of(n, rank + 1, world);
}

/* Places, classes and numbers of images are the same everywhere, whatever the path. */
static tdm_status compare_source(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_source *source = session->data.source;
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdmi_text_printf(&text, "%lld", (long long)tdmi_source_items(source));
    for (int c = 0; c < tdmi_source_classes(source); c++)
        tdmi_text_printf(&text, "\n%s", tdmi_source_class(source, c));
    TDMI_TRY(tdmi_text_status(&text, err));
    return compare_text(session, tdmi_text_string(&text), "images or classes", err);
}

/* Blocks of `width` bytes an item, each rank's own part of n items, become complete on all ranks.
 */
static tdm_status complete(struct tdmi_session *session, void *values, size_t width, int64_t n,
                           tdm_error *err)
{
    const int world = tdmi_ranks_world(session);
    TDMI_AT_END(tdmi_free_at) size_t *firsts = NULL;
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    for (int r = 0; r <= world; r++)
        firsts[r] = width * (size_t)bound_of(n, r, world);
    return tdmi_comm_complete(session->compute.comm, values, firsts, err);
}

tdm_status tdmi_ranks_read_contents(struct tdmi_session *session, tdmi_text *unreadable,
                                    tdm_error *err)
{
    struct tdmi_train_data *data = &session->data;
    const int64_t n = tdmi_source_items(data->source);
    struct tdmi_contents_part part = {0, n, session->config.options.strict};
    tdmi_ranks_part_of(session, n, &part.first, &part.end);
    if (tdmi_ranks_world(session) > 1)
        TDMI_TRY(compare_source(session, err));
    TDMI_TRY(tdmi_contents_read_part(
        data->source, part, session->compute.pool, "reading every image once to split by content",
        tdmi_track_as_sink(session->record.track), &data->contents, unreadable, err));
    if (tdmi_ranks_world(session) > 1) {
        TDMI_TRY(complete(session, data->contents.hashes, sizeof *data->contents.hashes, n, err));
        TDMI_TRY(tdmi_ranks_gather_text(session, unreadable, err));
        data->contents.n_unreadable = 0;
        for (int64_t i = 0; i < n; i++)
            data->contents.n_unreadable += data->contents.hashes[i] == 0;
    }
    if (!tdmi_ranks_is_follower(session))
        tdmi_contents_log(unreadable, data->contents.n_unreadable, part.is_strict);
    return tdmi_contents_check(&data->contents, data->source, err);
}

/* ---- batches --------------------------------------------------------------------------------- */

tdm_status tdmi_ranks_divide(const struct tdmi_session *session, int n, int *first, int *end,
                             tdm_error *err)
{
    const int size = session->config.shard, rank = tdmi_comm_rank(session->compute.comm);
    const int world = tdmi_ranks_world(session);
    TDMI_AT_END(tdmi_free_at) int *firsts = NULL;
    *first = 0;
    *end = n;
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    TDMI_TRY(tdmi_cut_make((n + size - 1) / size, world, firsts, err));
    *first = firsts[rank] * size < n ? firsts[rank] * size : n;
    *end = firsts[rank + 1] * size < n ? firsts[rank + 1] * size : n;
    return TDM_OK;
}

int tdmi_ranks_most_images(const struct tdmi_session *session, int batch, int shard)
{
    const int world = tdmi_ranks_share_steps(session) ? tdmi_ranks_world(session) : 1;
    const int n_groups = (batch + shard - 1) / shard;
    const int most = (n_groups + world - 1) / world * shard;
    return most < batch ? most : batch;
}

/* ---- while training -------------------------------------------------------------------------- */

bool tdmi_ranks_is_stopping(const struct tdmi_session *session)
{
    if (tdmi_ranks_share_steps(session))
        return session->agreed.is_stopping;
    return tdm_stop_is_requested() || tdmi_comm_is_asked_to_stop(session->compute.comm);
}

static bool is_late(const struct tdmi_session *session)
{
    const double minutes = session->config.options.minutes;
    return minutes > 0.0 && tdmi_record_seconds(&session->record) >= 60.0 * minutes;
}

bool tdmi_ranks_is_out_of_time(const struct tdmi_session *session)
{
    return tdmi_ranks_is_follower(session) || tdmi_ranks_share_steps(session)
               ? session->agreed.is_out_of_time
               : is_late(session);
}

void tdmi_ranks_decide(const struct tdmi_session *session, const bool *stops,
                       struct tdmi_agreed *agreed)
{
    for (int r = 0; r < tdmi_ranks_world(session); r++)
        agreed->is_stopping = agreed->is_stopping || stops[r];
    agreed->is_out_of_time = is_late(session);
}

tdm_status tdmi_ranks_agree(struct tdmi_session *session, tdm_error *err)
{
    const int world = tdmi_ranks_world(session);
    const bool mine = tdm_stop_is_requested();
    TDMI_AT_END(tdmi_free_at) bool *stops = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *sizes = NULL;
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(stops, world, err));
    TDMI_TRY(TDMI_NEW(sizes, world, err));
    for (int r = 0; r < world; r++)
        sizes[r] = sizeof mine;
    TDMI_TRY(tdmi_comm_gather(session->compute.comm, &mine, sizes, stops, err));
    tdmi_ranks_decide(session, stops, &session->agreed);
    return tdmi_ranks_share(session, &session->agreed, sizeof session->agreed, err);
}

static tdm_status share_values(struct tdmi_session *session, bool is_averaged, tdm_error *err)
{
    struct tdmi_model_file *host = &session->network.host;
    const tdmi_graph *graph = session->network.graph;
    const struct tdmi_values from = is_averaged ? tdmi_values_evaluated(&session->network)
                                                : tdmi_values_trained(&session->network);
    TDMI_TRY(tdmi_values_download(session, from, host->params, host->states, err));
    TDMI_TRY(session->compute.backend->stream.wait(session->compute.stream, err));
    TDMI_TRY(
        tdmi_ranks_share(session, host->params, sizeof(float) * (size_t)graph->param_values, err));
    TDMI_TRY(
        tdmi_ranks_share(session, host->states, sizeof(float) * (size_t)graph->state_values, err));
    return tdmi_values_upload(session, is_averaged, host->params, host->states, err);
}

tdm_status tdmi_ranks_share_evaluated(struct tdmi_session *session, tdm_error *err)
{
    if (!tdmi_ranks_share_steps(session))
        return TDM_OK;
    return share_values(session, session->network.mean_params != NULL, err);
}

tdm_status tdmi_ranks_level(struct tdmi_session *session, tdm_error *err)
{
    if (!session->agreed.differs || !tdmi_ranks_share_steps(session))
        return TDM_OK;
    TDMI_TRY(tdmi_checkpoint_write_best(session, err)); /* it is in the host's copy */
    return tdmi_ranks_share_values(session, err);
}

tdm_status tdmi_ranks_share_values(struct tdmi_session *session, tdm_error *err)
{
    TDMI_TRY(share_values(session, false, err));
    return session->network.mean_params ? share_values(session, true, err) : TDM_OK;
}

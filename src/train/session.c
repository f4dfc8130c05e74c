/*
 * Opening and releasing a training.
 */
#include "train/session.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { reference_batch = 32 };

double tdmi_session_seconds(const struct tdmi_session *session)
{
    return session->seconds_before + tdmi_clock_seconds_since(session->started_ns);
}

struct tdmi_values tdmi_session_values(const struct tdmi_session *session)
{
    return (struct tdmi_values){session->params, session->states};
}

void tdmi_session_note(struct tdmi_session *session, const char *format, ...)
{
    char text[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_NOTE,
                                                  .step = session->progress.step,
                                                  .seconds = tdmi_session_seconds(session),
                                                  .text = text});
}

/* ---- choices ---------------------------------------------------------------------------- */

static tdm_status choose(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    int card;
    tdm_status status = tdmi_network_find(options->model, &session->network, err);
    if (status == TDM_OK)
        status = tdmi_optimizer_find(options->optimizer, &session->optimizer, err);
    if (status == TDM_OK)
        status = tdmi_schedule_find(options->schedule, &session->schedule, err);
    if (status == TDM_OK)
        status = tdmi_backend_find(options->device, &session->backend, &card, err);
    if (status != TDM_OK)
        return status;
    TDM_TRY(tdmi_comm_find("self", &session->transport, err), err, "one process");
    TDM_TRY(session->transport->open(&session->comm, err), err, "one process");
    TDM_TRY(session->backend->device.open(card, &session->device, err), err,
            "opening the device %s", options->device);
    TDM_TRY(session->backend->stream.open(session->device, &session->stream, err), err,
            "opening the device %s", options->device);
    TDM_TRY(tdmi_pool_new(options->threads, options->threads == 0, &session->pool, err), err,
            "starting threads");
    if (session->schedule->needs_total && options->epochs == 0 && options->steps == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --schedule %s must know where training ends; --epochs or --steps, "
                        "or --schedule constant, is wanted",
                        session->schedule->name);
    session->shares_statistics = strcmp(options->bn, "batch") == 0;
    session->shard = options->shard ? options->shard : session->network.shard;
    if (session->shard > options->batch)
        session->shard = options->batch;
    session->learning_rate = options->learning_rate > 0.0 ? options->learning_rate
                                                          : session->network.learning_rate *
                                                                options->batch / reference_batch;
    return TDM_OK;
}

/* Of runs begun in the same second every one but the first gets a number. */
static const char *free_name(tdmi_arena *arena, const char *path)
{
    const char *name = path;
    for (int i = 2; name && i < 1000 && tdmi_file_kind_of(name) != TDMI_FILE_MISSING; i++)
        name = tdmi_arena_printf(arena, "%s-%d", path, i);
    return name;
}

static tdm_status open_run(struct tdmi_session *session, tdm_sink sink, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    const char *path = options->run;
    if (!path || !*path) {
        char now[21];
        tdmi_clock_utc(now);
        path = tdmi_arena_printf(&session->arena, "runs/%s-%.4s%.2s%.2s-%.2s%.2s%.2s",
                                 session->network.name, now, now + 5, now + 8, now + 11, now + 14,
                                 now + 17);
        path = free_name(&session->arena, path);
        if (!path)
            return TDM_FAIL(err, TDM_E_MEMORY, "naming the run: out of memory");
    }
    TDM_TRY(
        tdmi_run_open(path, options->resume ? TDMI_RUN_RESUME : TDMI_RUN_NEW, &session->run, err),
        err, "opening the run %s", path);
    if (tdmi_run_found(session->run) != TDMI_RUN_NONE) {
        TDM_TRY(tdmi_options_match(options, tdmi_run_recorded(session->run, "options"), err), err,
                "resuming the run %s", path);
        const tdm_json_value *clock = tdmi_run_recorded(session->run, "clock");
        session->seconds_before = tdm_json_as_number(tdm_json_member(clock, "seconds"), 0.0);
        session->training_seconds =
            tdm_json_as_number(tdm_json_member(clock, "training_seconds"), 0.0);
    }
    return tdmi_track_new(session->run, sink, &session->track, err);
}

/* ---- data ------------------------------------------------------------------------------- */

static uint64_t *sorted_hashes(tdmi_arena *arena, const uint64_t *hashes, const int64_t *items,
                               int64_t n)
{
    uint64_t *sorted = tdmi_arena_alloc(arena, (size_t)n + 1, sizeof *sorted);
    if (sorted) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = hashes[items[i]];
        tdmi_hashes_sort(sorted, n);
    }
    return sorted;
}

/* A model file is JSON, so it can name only what is UTF-8; another spelling would not be found
 * again. */
static bool is_utf8(const char *text)
{
    size_t rest = strlen(text);
    while (rest > 0) {
        size_t n = tdmi_utf8_length(text, rest);
        if (n == 0)
            return false;
        text += n;
        rest -= n;
    }
    return true;
}

static tdm_status open_source(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    TDM_TRY(tdmi_augment_read(options->augment ? options->augment : "", &session->augment, err),
            err, "preparing to change pictures");
    struct tdm_source_options how = options->how;
    if (how.cache_bytes == 0)
        how.cache_bytes = options->memory / 4;
    TDM_TRY(tdmi_source_open(options->source, &how, &session->source, err), err,
            "opening the pictures to train on");
    if (tdmi_source_classes(session->source) < 2)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has %s class of pictures; a folder with at least two class folders is "
                        "wanted",
                        options->source, tdmi_source_classes(session->source) ? "one" : "no");
    for (int c = 0; c < tdmi_source_classes(session->source); c++)
        if (!is_utf8(tdmi_source_class(session->source, c)))
            return TDM_FAIL(
                err, TDM_E_INPUT,
                "the name of class %d, '%s', is not UTF-8; a folder renamed in UTF-8 is "
                "wanted",
                c, tdmi_source_class(session->source, c));
    return TDM_OK;
}

static tdm_status split_data(struct tdmi_session *session, struct tdmi_split_stored stored,
                             tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    TDM_TRY(tdmi_contents_read(session->source, session->pool,
                               "reading every picture once to split by content",
                               tdmi_track_as_sink(session->track), &session->contents, err),
            err, "splitting %s", options->source);
    TDM_TRY(tdmi_split_make(session->source, &session->contents,
                            (struct tdmi_split_options){
                                .train_fraction = options->train_fraction,
                                .val_fraction = options->val_fraction,
                                .fraction = options->fraction,
                                .per_class = options->per_class,
                                .seed = options->seed,
                            },
                            stored, &session->split, err),
            err, "splitting %s", options->source);
    const tdmi_split *split = &session->split;
    const bool is_idle = split->is_given && tdmi_options_ask_for_split(options);
    session->train_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->train, split->n_train);
    session->val_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->val, split->n_val);
    if (!session->train_hashes || !session->val_hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %lld pictures: out of memory",
                        (long long)session->contents.n_items);
    session->steps_per_epoch = (split->n_train + options->batch - 1) / options->batch;
    int64_t most = split->n_train > split->n_val ? split->n_train : split->n_val;
    session->batch = options->batch < most ? options->batch : (int)most;
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(session, "%lld pictures of %d classes train, %lld judge%s%s",
                          (long long)split->n_train, tdmi_source_classes(session->source),
                          (long long)split->n_val, split->is_given ? ", as the source says" : "",
                          is_idle ? ": --split decides nothing" : "");
    if (session->contents.n_unreadable > 0 && options->strict)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "%lld pictures of %s cannot be read, and --strict is on; the warnings above "
            "name them",
            (long long)session->contents.n_unreadable, options->source);
    if (session->contents.n_unreadable > 0)
        tdmi_session_note(session, "%lld %s could not be read and %s left out",
                          (long long)session->contents.n_unreadable,
                          session->contents.n_unreadable == 1 ? "picture" : "pictures",
                          session->contents.n_unreadable == 1 ? "is" : "are");
    return TDM_OK;
}

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

static tdm_status open_network(struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    struct tdmi_model_file *host = &session->snapshot;
    struct tdmi_preprocess preprocess = session->network.preprocess;
    if (options->size > 0)
        preprocess.width = preprocess.height = options->size;
    int classes = tdmi_source_classes(session->source);
    TDM_TRY(tdmi_network_build(&session->network, &preprocess, classes, &session->graph, err), err,
            "preparing the model");
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
    if (stored->graph->param_values != graph->param_values ||
        stored->graph->state_values != graph->state_values ||
        stored->n_slots != session->optimizer->n_slots || stored->shard != session->shard ||
        stored->shares_statistics != session->shares_statistics)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint holds another network than these options build");
    memcpy(host->params, stored->params, params);
    memcpy(host->states, stored->states, sizeof(float) * (size_t)graph->state_values);
    for (int i = 0; i < stored->n_slots; i++)
        memcpy(host->slots[i], stored->slots[i], params);
    session->progress = stored->progress;
    return TDM_OK;
}

/* ---- together --------------------------------------------------------------------------- */

static tdm_status set_section(struct tdmi_session *session, const char *section,
                              tdm_json_writer *writer, tdm_error *err)
{
    const char *text;
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_run_set(session->run, section, text, err);
    tdm_json_writer_free(writer);
    return TDM_WRAP(err, status, "recording the run's %s", section);
}

static tdm_status record(struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_options_to_json(&session->options, writer, NULL);
    TDM_TRY(set_section(session, "options", writer, err), err, "beginning the record");

    struct tdmi_cpu cpu;
    tdmi_cpu_describe(&cpu);
    char device[100];
    session->backend->device.describe(session->device, device, sizeof device);
    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "cpu", cpu.model);
    tdm_json_string(writer, "isa", cpu.isa);
    tdm_json_string(writer, "backend", session->backend->name);
    tdm_json_string(writer, "device", device);
    tdm_json_integer(writer, "threads", tdmi_pool_threads(session->pool));
    tdm_json_integer(writer, "world", session->transport->world(session->comm));
    tdm_json_object_end(writer);
    TDM_TRY(set_section(session, "machine", writer, err), err, "beginning the record");

    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", tdmi_source_path(session->source));
    tdm_json_string(writer, "kind", tdmi_source_kind(session->source));
    tdm_json_integer(writer, "classes", tdmi_source_classes(session->source));
    tdm_json_integer(writer, "train", session->split.n_train);
    tdm_json_integer(writer, "val", session->split.n_val);
    tdm_json_string(writer, "order",
                    session->order.kind == TDMI_ORDER_GROUPED ? "grouped" : "full");
    tdm_json_integer(writer, "unreadable", session->contents.n_unreadable);
    tdm_json_integer(writer, "parameters", session->graph->parameters);
    tdm_json_integer(writer, "shard", session->shard);
    tdm_json_string(writer, "bn", session->shares_statistics ? "batch" : "shard");
    tdm_json_number(writer, "learning_rate", session->learning_rate);
    tdm_json_object_end(writer);
    return set_section(session, "data", writer, err);
}

static tdm_status open_all(struct tdmi_session *session, tdm_sink sink, tdm_error *err)
{
    struct tdmi_model_file stored = {0};
    struct tdmi_split_stored hashes = {0};
    tdm_status status = choose(session, err);
    if (status == TDM_OK)
        status = open_source(session, err);
    if (status == TDM_OK)
        status = open_run(session, sink, err);
    if (status != TDM_OK)
        return status;
    const char *last =
        tdmi_path_join(&session->arena, tdmi_run_path(session->run), "last.safetensors");
    if (!last)
        return TDM_FAIL(err, TDM_E_MEMORY, "naming the checkpoint: out of memory");
    bool is_resumed = tdmi_file_kind_of(last) == TDMI_FILE_REGULAR;
    if (is_resumed) {
        status = TDM_WRAP(err, tdmi_model_file_load(last, &stored, err), "resuming the run %s",
                          tdmi_run_path(session->run));
        hashes = (struct tdmi_split_stored){.train = stored.train_hashes,
                                            .n_train = stored.n_train_hashes,
                                            .val = stored.val_hashes,
                                            .n_val = stored.n_val_hashes};
    }
    if (status == TDM_OK)
        status = split_data(session, hashes, err);
    if (status == TDM_OK)
        status = open_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_input(session, err);
    if (status == TDM_OK)
        status = take_test_picture(session, err);
    if (status == TDM_OK && is_resumed)
        status = TDM_WRAP(err, adopt(session, &stored, err), "resuming the run %s",
                          tdmi_run_path(session->run));
    else if (status == TDM_OK)
        tdmi_graph_init_values(session->graph, session->options.seed, session->snapshot.params,
                               session->snapshot.states);
    if (status == TDM_OK)
        status = upload(session, err);
    if (status == TDM_OK && tdmi_run_found(session->run) != TDMI_RUN_NONE)
        status = tdmi_run_cut(session->run, session->progress.step, err);
    if (status == TDM_OK)
        status = record(session, err);
    if (status == TDM_OK)
        status = tdmi_run_save(session->run, TDMI_RUN_RUNNING, err);
    tdmi_model_file_release(&stored);
    return status;
}

tdm_status tdmi_session_open(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdmi_session *session, tdm_error *err)
{
    *session = (struct tdmi_session){.options = *options, .started_ns = tdmi_clock_ns()};
    tdmi_arena_init(&session->arena, 0);
    if (!session->options.model || !*session->options.model)
        session->options.model = "convnet7";
    tdm_status status = tdmi_options_check(&session->options, err);
    if (status == TDM_OK)
        status = open_all(session, sink, err);
    if (status != TDM_OK)
        tdmi_session_release(session);
    return status;
}

void tdmi_session_release(struct tdmi_session *session)
{
    const struct tdmi_backend *backend = session->backend;
    tdmi_loader_close(session->val_loader);
    tdmi_loader_close(session->train_loader);
    tdmi_order_release(&session->order);
    tdmi_update_close(session->update);
    tdmi_judge_close(session->judge);
    tdmi_step_close(session->step);
    tdmi_plan_free(session->judge_plan);
    tdmi_plan_free(session->train_plan);
    for (int i = 0; i < TDMI_OPTIMIZER_SLOTS; i++)
        if (session->slots[i])
            backend->memory.free(session->device, session->slots[i]);
    if (session->states)
        backend->memory.free(session->device, session->states);
    if (session->params)
        backend->memory.free(session->device, session->params);
    tdmi_graph_free(session->graph);
    tdmi_split_release(&session->split);
    tdmi_contents_release(&session->contents);
    tdmi_source_close(session->source);
    tdmi_track_free(session->track);
    tdmi_run_close(session->run);
    tdmi_pool_free(session->pool);
    if (session->stream)
        backend->stream.close(session->stream);
    if (session->device)
        backend->device.close(session->device);
    if (session->comm)
        session->transport->close(session->comm);
    tdmi_arena_release(&session->arena);
    *session = (struct tdmi_session){0};
}

/* ---- saving ----------------------------------------------------------------------------- */

static tdm_status download(struct tdmi_session *session, bool is_checkpoint, tdm_error *err)
{
    const tdmi_graph *graph = session->graph;
    struct tdmi_model_file *host = &session->snapshot;
    const struct tdmi_memory_table *memory = &session->backend->memory;
    size_t params = sizeof(float) * (size_t)graph->param_values;
    TDM_TRY(memory->download(session->stream, host->params, session->params, params, err), err,
            "fetching weights");
    TDM_TRY(memory->download(session->stream, host->states, session->states,
                             sizeof(float) * (size_t)graph->state_values, err),
            err, "fetching running statistics");
    host->n_slots = is_checkpoint ? session->optimizer->n_slots : 0;
    for (int i = 0; i < host->n_slots; i++)
        TDM_TRY(memory->download(session->stream, host->slots[i], session->slots[i], params, err),
                err, "fetching the optimizer's state");
    return session->backend->stream.wait(session->stream, err);
}

tdm_status tdmi_session_save(struct tdmi_session *session, const char *name, bool is_checkpoint,
                             tdm_error *err)
{
    struct tdmi_model_file *host = &session->snapshot;
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = host->test_pixels, .labels = &label, .items = &item};
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    char *path = tdmi_path_join(&scratch, tdmi_run_path(session->run), name);
    tdm_status status = path ? download(session, is_checkpoint, err)
                             : TDM_FAIL(err, TDM_E_MEMORY, "naming %s: out of memory", name);
    if (status == TDM_OK)
        status = tdmi_judge_take(session->judge, tdmi_session_values(session), err);
    if (status == TDM_OK)
        status = tdmi_judge_batch(session->judge, &picture, NULL, NULL, host->test_logits, err);
    if (status == TDM_OK) {
        host->progress = session->progress;
        status = tdmi_model_file_save(host, path, err);
    }
    tdmi_arena_release(&scratch);
    return status;
}

tdm_status tdmi_session_checkpoint(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(tdmi_session_save(session, "last.safetensors", true, err), err, "writing a checkpoint");
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_number(writer, "seconds", tdmi_session_seconds(session));
    tdm_json_number(writer, "training_seconds", session->training_seconds);
    tdm_json_object_end(writer);
    TDM_TRY(set_section(session, "clock", writer, err), err, "writing a checkpoint");
    TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_RUNNING, err), err, "writing a checkpoint");
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_CHECKPOINT,
                                                  .epoch = session->progress.epoch,
                                                  .step = session->progress.step,
                                                  .seconds = tdmi_session_seconds(session),
                                                  .text = "last.safetensors"});
    return TDM_OK;
}

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
#include "tandem/shell.h"
#include "train/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double tdmi_session_seconds(const struct tdmi_session *session)
{
    return session->seconds_before + tdmi_clock_seconds_since(session->started_ns);
}

struct tdmi_values tdmi_session_values(const struct tdmi_session *session)
{
    if (session->mean_params)
        return (struct tdmi_values){session->mean_params, session->mean_states};
    return tdmi_session_trained(session);
}

struct tdmi_values tdmi_session_trained(const struct tdmi_session *session)
{
    return (struct tdmi_values){session->params, session->states};
}

void tdmi_session_note(struct tdmi_session *session, const char *format, ...)
{
    char text[2 * TDM_ERROR_TEXT_BYTES];
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
    tdm_status status = tdmi_session_find_weights(session, err);
    if (status == TDM_OK)
        status = tdmi_rates_read(options, &session->rates, err);
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
    const struct tdmi_schedule *schedule = session->rates.schedule.schedule;
    if (schedule->needs_total && options->epochs == 0 && options->steps == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --schedule %s must know where training ends; --epochs or --steps, "
                        "or --schedule constant, is wanted",
                        schedule->name);
    session->optimizer = session->rates.optimizer.optimizer;
    if (strcmp(options->bn, "frozen") == 0 && !session->weights)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn frozen keeps the statistics of the weights that are begun "
                        "with, and from scratch there are none; --weights, or --bn shard, is "
                        "wanted");
    return TDM_OK;
}

/* What depends on the network. */
static void settle(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    session->shares_statistics = strcmp(options->bn, "batch") == 0;
    session->keeps_statistics = strcmp(options->bn, "frozen") == 0;
    session->shard = options->shard                     ? options->shard
                     : session->backend->device.is_host ? session->network.shard
                                                        : options->batch; /* a queue's best */
    if (session->shard > options->batch)
        session->shard = options->batch;
    /* A run that is gone on with may know it. */
    if (options->learning_rate > 0.0 || !(session->rates.learning_rate > 0.0)) {
        tdmi_rates_settle(&session->rates, options, session->network.learning_rate,
                          session->part_of_rate > 0.0 ? session->part_of_rate : 1.0);
        struct tdmi_rates thawed = session->rates;
        tdmi_rates_settle(&thawed, options, session->own_rate, tdmi_rates_part(options));
        if (options->unfreeze > 0 && session->own_rate > 0.0)
            session->thawed_rate = thawed.learning_rate;
    }
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
        session->best_seconds = tdm_json_as_number(tdm_json_member(clock, "best_seconds"), 0.0);
    }
    TDM_TRY(tdmi_track_new(session->run, sink, &session->track, err), err, "opening the run %s",
            path);
    if (options->resume && tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(session, "--resume: there is no run in %s yet, and one is begun", path);
    return TDM_OK;
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

/* What judges, in one list; and whether there is a test, whose pictures are the source's own where
 * it has some. */
static tdm_status list_judged(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_split *split = &session->split;
    session->has_test = session->options.test_fraction > 0.0;
    const int64_t n_test = session->has_test ? split->n_test : 0;
    session->judged =
        tdmi_arena_alloc(&session->arena, (size_t)(split->n_val + n_test), sizeof *session->judged);
    if (!session->judged)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing the pictures that judge: out of memory");
    for (int64_t v = 0, t = 0; v < split->n_val || t < n_test;) {
        const bool is_val = t == n_test || (v < split->n_val && split->val[v] < split->test[t]);
        session->judged[session->n_judged++] = is_val ? split->val[v++] : split->test[t++];
    }
    session->test_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->test, n_test);
    return session->test_hashes
               ? TDM_OK
               : TDM_FAIL(err, TDM_E_MEMORY, "remembering %lld pictures: out of memory",
                          (long long)n_test);
}

/* What an audit would say, as far as it is known from splitting. */
static void tell_copies(struct tdmi_session *session)
{
    const tdmi_split *split = &session->split;
    if (split->n_torn > 0)
        tdmi_session_note(session, "%lld %s under more than one class (tandem audit names them)",
                          (long long)split->n_torn,
                          split->n_torn == 1 ? "picture stands" : "pictures stand");
    if (split->n_copies > 0)
        tdmi_session_note(session,
                          "%lld %s of another of the same class; copies stay on one side of the "
                          "split",
                          (long long)split->n_copies,
                          split->n_copies == 1 ? "picture is a copy" : "pictures are copies");
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
                        "%s has %s class of pictures; at least two are wanted: class folders, or a "
                        "list or table with a column of labels",
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
                                .test_fraction = options->test_fraction,
                                .fraction = options->fraction,
                                .per_class = options->per_class,
                                .seed = options->seed,
                            },
                            stored, &session->split, err),
            err, "splitting %s", options->source);
    const tdmi_split *split = &session->split;
    const bool is_idle = split->is_given && tdmi_options_ask_for_split(options);
    TDM_TRY(list_judged(session, err), err, "splitting %s", options->source);
    char test[60] = "";
    if (session->has_test)
        snprintf(test, sizeof test, ", %lld test", (long long)split->n_test);
    session->train_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->train, split->n_train);
    session->val_hashes =
        sorted_hashes(&session->arena, session->contents.hashes, split->val, split->n_val);
    if (!session->train_hashes || !session->val_hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "remembering %lld pictures: out of memory",
                        (long long)session->contents.n_items);
    session->steps_per_epoch = (split->n_train + options->batch - 1) / options->batch;
    int64_t most = split->n_train > split->n_val ? split->n_train : split->n_val;
    if (session->has_test && split->n_test > most)
        most = split->n_test;
    session->batch = options->batch < most ? options->batch : (int)most;
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        TDM_TRY(tdmi_session_check_thawing(session, err), err, "deciding when layers thaw");
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_note(
            session, "%lld pictures of %d classes train, %lld judge%s%s%s",
            (long long)split->n_train, tdmi_source_classes(session->source),
            (long long)split->n_val, test, split->is_given ? ", as the source says" : "",
            !is_idle            ? ""
            : session->has_test ? ": --split decides only that its test is taken at the end"
                                : ": --split decides nothing");
    if (tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tell_copies(session);
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

/* ---- together --------------------------------------------------------------------------- */

tdm_status tdmi_session_set(struct tdmi_session *session, const char *section,
                            tdm_json_writer *writer, tdm_error *err)
{
    const char *text;
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_run_set(session->run, section, text, err);
    tdm_json_writer_free(writer);
    return TDM_WRAP(err, status, "recording the run's %s", section);
}

static tdm_status record_options(struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_options_to_json(&session->options, writer, NULL);
    TDM_TRY(tdmi_session_set(session, "options", writer, err), err, "recording what was asked for");
    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", session->options.source);
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "asked", writer, err);
}

tdm_status tdmi_session_begin_record(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(record_options(session, err), err, "beginning the record");
    return TDM_WRAP(err, tdmi_run_save(session->run, TDMI_RUN_RUNNING, err),
                    "beginning the record");
}

void tdmi_session_end_record(struct tdmi_session *session, tdm_status status)
{
    /* The first failure is the one to report. */
    const tdm_status ignored = tdmi_run_save(
        session->run, status == TDM_E_STOPPED ? TDMI_RUN_STOPPED : TDMI_RUN_FAILED, NULL);
    (void)ignored;
}

tdm_status tdmi_session_record(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(record_options(session, err), err, "beginning the record");

    struct tdmi_cpu cpu;
    tdmi_cpu_describe(&cpu);
    char device[100];
    session->backend->device.describe(session->device, device, sizeof device);
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "cpu", cpu.model);
    tdm_json_string(writer, "isa", cpu.isa);
    tdm_json_string(writer, "backend", session->backend->name);
    tdm_json_string(writer, "device", device);
    tdm_json_integer(writer, "threads", tdmi_pool_threads(session->pool));
    tdm_json_integer(writer, "planned_bytes", tdmi_needs_total(&session->needs));
    tdm_json_integer(writer, "world", session->transport->world(session->comm));
    tdm_json_object_end(writer);
    TDM_TRY(tdmi_session_set(session, "machine", writer, err), err, "beginning the record");

    writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "source", tdmi_source_path(session->source));
    tdm_json_string(writer, "kind", tdmi_source_kind(session->source));
    tdm_json_string(writer, "network", session->network.name);
    tdm_json_integer(writer, "classes", tdmi_source_classes(session->source));
    tdm_json_integer(writer, "train", session->split.n_train);
    tdm_json_integer(writer, "val", session->split.n_val);
    tdm_json_integer(writer, "test", session->has_test ? session->split.n_test : 0);
    tdm_json_integer(writer, "copies", session->split.n_copies);
    tdm_json_integer(writer, "torn", session->split.n_torn);
    tdm_json_string(writer, "order",
                    session->order.kind == TDMI_ORDER_GROUPED ? "grouped" : "full");
    tdm_json_integer(writer, "unreadable", session->contents.n_unreadable);
    tdm_json_integer(writer, "parameters", session->graph->parameters);
    tdm_json_integer(writer, "first_trained", session->first_border);
    tdm_json_integer(writer, "thaws_to", session->last_border);
    tdm_json_integer(writer, "head", session->head);
    tdm_json_integer(writer, "views", session->views);
    tdm_json_integer(writer, "shard", session->shard);
    tdm_json_string(writer, "bn", session->options.bn);
    tdm_json_number(writer, "learning_rate", session->rates.learning_rate);
    if (session->thawed_rate > 0.0)
        tdm_json_number(writer, "thawed_rate", session->thawed_rate);
    tdmi_rates_to_json(&session->rates, writer, "rates");
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "data", writer, err);
}

static tdm_status refuse_without_checkpoint(const struct tdmi_session *session, tdm_error *err)
{
    char word[TDM_SHELL_WORD_BYTES];
    return TDM_FAIL(err, TDM_E_INPUT,
                    "resuming the run %s: no checkpoint is left in it (last.safetensors, "
                    "previous.safetensors); another -o begins anew, and --weights %s with its best "
                    "model",
                    tdmi_run_path(session->run),
                    tdm_shell_word(tdmi_run_path(session->run), word, sizeof word));
}

static tdm_status open_all(struct tdmi_session *session, tdm_sink sink, tdm_error *err)
{
    struct tdmi_model_file stored = {0};
    struct tdmi_split_stored hashes = {0};
    tdm_status status = choose(session, err);
    if (status == TDM_OK)
        status = open_source(session, err);
    /* Before anything is made: a file that does not fit is known in a moment. */
    if (status == TDM_OK && session->weights && !session->seems_begun)
        status = tdmi_session_read_weights(session, err);
    if (status == TDM_OK)
        status = open_run(session, sink, err);
    if (status == TDM_OK)
        status = tdmi_session_name_checkpoint(session, err);
    if (status != TDM_OK)
        return status;
    const bool is_resumed =
        tdmi_session_has_checkpoint(&session->arena, tdmi_run_path(session->run));
    if (!is_resumed && tdmi_run_found(session->run) != TDMI_RUN_NONE &&
        tdmi_run_recorded(session->run, "clock"))
        return refuse_without_checkpoint(session, err);
    if (is_resumed) {
        status = TDM_WRAP(err, tdmi_session_load_checkpoint(session, &stored, err),
                          "resuming the run %s", tdmi_run_path(session->run));
        hashes = (struct tdmi_split_stored){.train = stored.train_hashes,
                                            .n_train = stored.n_train_hashes,
                                            .val = stored.val_hashes,
                                            .n_val = stored.n_val_hashes,
                                            .test = stored.test_hashes,
                                            .n_test = stored.n_test_hashes};
    }
    if (status == TDM_OK && session->weights)
        status = is_resumed ? tdmi_session_keep_network(session, &stored, err)
                            : tdmi_session_read_weights(session, err);
    if (status == TDM_OK) {
        settle(session);
        status = split_data(session, hashes, err);
    }
    if (status == TDM_OK && tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_tell_weights(session);
    if (status == TDM_OK && !is_resumed)
        tdmi_session_quicken_norms(session);
    if (status == TDM_OK)
        status = tdmi_session_open_values(session, is_resumed ? &stored : NULL, err);
    if (status == TDM_OK)
        status = tdmi_session_begin_optimizer(session, err);
    if (status == TDM_OK)
        status = tdmi_session_restore_norms(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_features(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_input(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_average(session, is_resumed ? &stored : NULL, err);
    if (status == TDM_OK)
        status = tdmi_session_open_judging(session, err);
    if (status == TDM_OK && tdmi_run_found(session->run) != TDMI_RUN_NONE)
        status = tdmi_run_cut(session->run, tdmi_session_lines_end(session), err);
    if (status == TDM_OK)
        status = tdmi_session_record(session, err);
    if (status == TDM_OK)
        status = tdmi_run_save(session->run, TDMI_RUN_RUNNING, err);
    if (status == TDM_OK && !session->backend->device.is_host)
        tdmi_track_watch_cards(session->track, NULL);
    tdmi_model_file_release(&stored);
    return status;
}

/* Reading all pictures may take long: who stops it has a run all the same, and one that had ended
 * stays one that has ended. */
static tdm_status record_stop(struct tdmi_session *session, tdm_error *err)
{
    if (tdmi_run_found(session->run) == TDMI_RUN_FINISHED)
        return TDM_E_STOPPED;
    if (record_options(session, NULL) == TDM_OK)
        tdmi_session_end_record(session, TDM_E_STOPPED);
    return TDM_WRAP(err, TDM_E_STOPPED,
                    "before its first step; %s keeps what was asked for, and --resume goes on",
                    tdmi_run_path(session->run));
}

tdm_status tdmi_session_open(const struct tdm_train_options *options, tdm_sink sink,
                             struct tdmi_session *session, tdm_error *err)
{
    *session = (struct tdmi_session){.options = *options, .started_ns = tdmi_clock_ns()};
    session->saved_ns = session->started_ns;
    session->saved.best_epoch = -1;
    session->resident_before = tdmi_memory_resident();
    tdmi_arena_init(&session->arena, 0);
    tdm_status status = tdmi_options_check(&session->options, err);
    if (status == TDM_OK)
        status = open_all(session, sink, err);
    if (status == TDM_E_STOPPED && session->run)
        status = record_stop(session, err);
    if (status != TDM_OK)
        tdmi_session_release(session);
    return status;
}

void tdmi_session_close_border(struct tdmi_session *session)
{
    tdmi_feed_close(session->val_feed);
    tdmi_feed_close(session->train_feed);
    tdmi_session_close_features(session);
    tdmi_order_release(&session->order);
    tdmi_update_close(session->update);
    tdmi_judge_close(session->judge);
    tdmi_step_close(session->step);
    tdmi_plan_free(session->judge_plan);
    tdmi_plan_free(session->train_plan);
    session->val_feed = session->train_feed = NULL;
    session->update = NULL;
    session->judge = NULL;
    session->step = NULL;
    session->judge_plan = session->train_plan = NULL;
}

void tdmi_session_release(struct tdmi_session *session)
{
    const struct tdmi_backend *backend = session->backend;
    tdmi_session_close_judging(session);
    tdmi_session_close_border(session);
    for (int i = 0; i < TDMI_OPTIMIZER_SLOTS; i++)
        if (session->slots[i])
            backend->memory.free(session->device, session->slots[i]);
    float *const values[] = {session->mean_states, session->mean_params, session->states,
                             session->params};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i])
            backend->memory.free(session->device, values[i]);
    tdmi_graph_free(session->graph);
    tdmi_import_release(&session->base);
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

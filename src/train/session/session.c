/*
 * Opening and releasing a training.
 */
#include "train/session/session.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/text/quote.h"
#include "base/text/shell.h"
#include "train/config/options.h"

#include <stdarg.h>
#include <stdio.h>
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
    tdmi_quote(text, sizeof text, format, arguments);
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
    TDM_TRY(tdmi_session_choose_precision(session, err), err, "choosing how to compute");
    TDM_TRY(tdmi_session_open_decoder(session, err), err, "choosing who decodes pictures");
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

/* Of a run that is gone on with, what it was begun with, though a default should have changed
 * since; has it a checkpoint or not. */
static void recall_rates(struct tdmi_session *session)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    session->rates.learning_rate = tdm_json_as_number(tdm_json_member(data, "learning_rate"), 0.0);
    session->unfrozen_rate = tdm_json_as_number(tdm_json_member(data, "thawed_rate"), 0.0);
}

static void settle_rates(struct tdmi_session *session)
{
    struct tdm_train_options options = session->options;
    const int64_t n_train = session->split.n_train;
    options.batch = session->global_batch;
    if (session->own_rate > 0.0)
        session->network.learning_rate = tdmi_rates_of_head(n_train);
    tdmi_rates_settle(&session->rates, &options, n_train, session->network.learning_rate,
                      session->part_of_rate > 0.0 ? session->part_of_rate : 1.0);
    struct tdmi_rates unfrozen = session->rates;
    tdmi_rates_settle(&unfrozen, &options, n_train, session->own_rate, tdmi_rates_part(&options));
    if (options.unfreeze > 0 && session->own_rate > 0.0)
        session->unfrozen_rate = unfrozen.learning_rate;
}

/* What depends on the network and on how many pictures train. */
static void settle(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    session->shares_statistics = strcmp(options->bn, "batch") == 0;
    session->keeps_statistics = strcmp(options->bn, "frozen") == 0;
    session->shard = tdmi_session_shard_of(session, session->global_batch);
    if (tdmi_run_found(session->run) != TDMI_RUN_NONE)
        recall_rates(session);
    if (options->learning_rate > 0.0 || !(session->rates.learning_rate > 0.0))
        settle_rates(session);
}

/* Of a run that is gone on with: on a card memory may have decided it, also of one that was killed
 * before its first checkpoint. stored: the checkpoint's; 0: there is none. */
static void recall_shard(struct tdmi_session *session, int stored)
{
    const tdm_json_value *data = tdmi_run_recorded(session->run, "data");
    const int64_t recorded =
        stored > 0 ? stored : tdm_json_as_integer(tdm_json_member(data, "shard"), 0);
    if (session->options.shard == 0 && !session->backend->device.is_host && recorded > 0 &&
        recorded < session->shard)
        session->shard = (int)recorded;
}

/* --batch auto: shards and rates follow what was chosen. */
static tdm_status choose_batch(struct tdmi_session *session, tdm_error *err)
{
    const int before = session->global_batch;
    tdmi_session_begin_batch(session);
    TDM_TRY(tdmi_session_choose_batch(session, err), err, "--batch auto");
    if (session->global_batch == before)
        return TDM_OK;
    session->rates.learning_rate = 0.0;
    settle(session);
    session->snapshot.shard = session->shard;
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

/* Without memory for the name, the next start may choose otherwise. */
static void keep_choices(struct tdmi_session *session)
{
    const char *folder =
        tdmi_path_join(&session->arena, tdmi_run_path(session->run), TDMI_RUN_KERNELS);
    if (session->backend->device.keep && folder)
        session->backend->device.keep(session->device, folder);
}

/* On a processor auto and f32 are the same bits: a run keeps the word that it was begun with. */
static void keep_precision_word(struct tdmi_session *session)
{
    const tdm_json_value *recorded = tdmi_run_recorded(session->run, "options");
    const char *before = tdm_json_as_string(tdm_json_member(recorded, "precision"), "auto");
    if (session->backend->device.is_host && session->storage == TDMI_DTYPE_F32 &&
        (strcmp(before, "auto") == 0 || strcmp(before, "f32") == 0))
        session->options.precision = strcmp(before, "auto") == 0 ? "auto" : "f32";
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
        keep_precision_word(session);
        TDM_TRY(tdmi_options_match(options, tdmi_run_recorded(session->run, "options"), err), err,
                "resuming the run %s", path);
        TDM_TRY(tdmi_session_match_decoder(session, err), err, "resuming the run %s", path);
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

/* ---- together --------------------------------------------------------------------------- */

static tdm_status refuse_without_checkpoint(const struct tdmi_session *session, tdm_error *err)
{
    char word[TDMI_SHELL_WORD_BYTES];
    return TDM_FAIL(err, TDM_E_INPUT,
                    "resuming the run %s: no checkpoint is left in it (last.safetensors, "
                    "previous.safetensors); another -o begins anew, and --weights %s with its best "
                    "model",
                    tdmi_run_path(session->run),
                    tdmi_shell_word(tdmi_run_path(session->run), word, sizeof word));
}

static tdm_status open_all(struct tdmi_session *session, tdm_sink sink, tdm_error *err)
{
    struct tdmi_model_file stored = {0};
    struct tdmi_split_stored hashes = {0};
    tdm_status status = choose(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_source(session, err);
    /* Before anything is made: a file that does not fit is known in a moment. */
    if (status == TDM_OK && session->weights && !session->seems_begun)
        status = tdmi_session_read_weights(session, err);
    if (status == TDM_OK)
        status = open_run(session, sink, err);
    if (status == TDM_OK)
        status = tdmi_session_name_checkpoint(session, err);
    if (status != TDM_OK)
        return status;
    keep_choices(session);
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
    if (status == TDM_OK)
        status = tdmi_session_split(session, hashes, err);
    if (status == TDM_OK)
        settle(session);
    if (status == TDM_OK)
        recall_shard(session, is_resumed ? stored.shard : 0);
    if (status == TDM_OK && tdmi_run_found(session->run) == TDMI_RUN_NONE)
        tdmi_session_report_weights(session);
    if (status == TDM_OK && !is_resumed)
        tdmi_session_quicken_norms(session);
    if (status == TDM_OK)
        status = tdmi_session_open_values(session, is_resumed ? &stored : NULL, err);
    if (status == TDM_OK)
        status = tdmi_session_begin_optimizer(session, err);
    if (status == TDM_OK) /* what a batch takes depends on whether its pictures are rows … */
        status = tdmi_session_find_features(session, err);
    if (status == TDM_OK)
        status = choose_batch(session, err);
    if (status == TDM_OK) /* … and rows on how many are computed together */
        status = tdmi_session_open_features(session, err);
    if (status == TDM_OK && session->features.has_no_place)
        status = choose_batch(session, err);
    if (status == TDM_OK)
        status = tdmi_session_plan_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_restore_norms(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_input(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_average(session, is_resumed ? &stored : NULL, err);
    if (status == TDM_OK)
        status = tdmi_session_open_evaluator(session, err);
    if (status == TDM_OK)
        status = tdmi_session_keep_rows(session, err);
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
        status = tdmi_session_record_stop(session, err);
    if (status != TDM_OK)
        tdmi_session_release(session);
    return status;
}

void tdmi_session_note_recorded(struct tdmi_session *session)
{
    const int64_t bytes = session->step ? tdmi_step_recorded_bytes(session->step) : 0;
    if (bytes > session->recorded_bytes)
        session->recorded_bytes = bytes;
}

void tdmi_session_close_freeze_point(struct tdmi_session *session)
{
    tdmi_session_note_recorded(session);
    tdmi_feed_close(session->val_feed);
    tdmi_feed_close(session->train_feed);
    tdmi_order_release(&session->order);
    tdmi_update_close(session->update);
    tdmi_evaluator_close(session->test_evaluator);
    tdmi_plan_free(session->test_plan);
    tdmi_evaluator_close(session->evaluator);
    tdmi_step_close(session->step);
    tdmi_session_give_rows_back(session);
    tdmi_session_close_features(session);
    tdmi_plan_free(session->evaluation_plan);
    tdmi_plan_free(session->train_plan);
    session->val_feed = session->train_feed = NULL;
    session->update = NULL;
    session->evaluator = session->test_evaluator = NULL;
    session->test_plan = NULL;
    session->step = NULL;
    session->evaluation_plan = session->train_plan = NULL;
}

void tdmi_session_release(struct tdmi_session *session)
{
    const struct tdmi_backend *backend = session->backend;
    tdmi_session_close_evaluator(session);
    tdmi_session_close_freeze_point(session);
    for (int i = 0; i < TDMI_OPTIMIZER_SLOTS; i++)
        if (session->slots[i])
            backend->memory.free(session->device, session->slots[i]);
    float *const values[] = {session->mean_states, session->mean_params, session->states,
                             session->params};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i])
            backend->memory.free(session->device, values[i]);
    if (session->loss_scale)
        backend->memory.free(session->device, session->loss_scale);
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
    tdmi_session_close_decoder(session);
    if (session->device)
        backend->device.close(session->device);
    if (session->comm)
        session->transport->close(session->comm);
    tdmi_arena_release(&session->arena);
    *session = (struct tdmi_session){0};
}

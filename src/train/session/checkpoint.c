/*
 * Model files and checkpoints of a run: the newest, the one before it, and the best model.
 * Everything that belongs to a checkpoint is on disk before the checkpoint gets its name, so a kill
 * at any moment costs only work that is computed again with the same bits.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "tandem/log.h"
#include "train/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char best_name[] = "best.safetensors";
static const char last_name[] = "last.safetensors";
static const char previous_name[] = "previous.safetensors";
static const char next_name[] = "next.safetensors"; /* while it is written */

/* ---- reading --------------------------------------------------------------------------------- */

static bool has(tdmi_arena *arena, const char *run, const char *name)
{
    const char *path = tdmi_path_join(arena, run, name);
    return path && tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
}

bool tdmi_checkpoint_exists(tdmi_arena *arena, const char *run)
{
    return has(arena, run, last_name) || has(arena, run, previous_name) ||
           has(arena, run, next_name);
}

tdm_status tdmi_checkpoint_finish_rename(const struct tdmi_run_record *record, tdmi_arena *arena,
                                         tdm_error *err)
{
    const char *run = tdmi_run_path(record->run);
    if (!has(arena, run, next_name))
        return TDM_OK;
    const bool is_recorded =
        has(arena, run, previous_name) || tdmi_run_recorded(record->run, "clock") != NULL;
    const char *next = tdmi_path_join(arena, run, next_name);
    const char *last = tdmi_path_join(arena, run, last_name);
    TDMI_CHECK_MEMORY(next && last, err);
    if (is_recorded && !has(arena, run, last_name) ? rename(next, last) : unlink(next))
        return TDM_FAIL(err, TDM_E_SYSTEM, "%s, which was left behind: %s", next, strerror(errno));
    return TDM_OK;
}

struct tdmi_lines_end tdmi_checkpoint_lines_end(const struct tdmi_progress *progress)
{
    return (struct tdmi_lines_end){.step = progress->step,
                                   .is_inside_epoch = progress->position > 0 &&
                                                      progress->evaluated_step != progress->step};
}

static tdm_status load(const struct tdmi_run_record *record, tdmi_arena *arena, const char *name,
                       struct tdmi_model_file *stored, tdm_error *err)
{
    const char *path = tdmi_path_join(arena, tdmi_run_path(record->run), name);
    TDMI_CHECK_MEMORY(path, err);
    return tdmi_model_file_load(path, stored, err);
}

tdm_status tdmi_checkpoint_load(struct tdmi_run_record *record, tdmi_arena *arena,
                                struct tdmi_model_file *stored, tdm_error *err)
{
    const char *run = tdmi_run_path(record->run);
    tdm_error why = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_status status = TDM_E_INPUT;
    if (has(arena, run, last_name))
        status = load(record, arena, last_name, stored, &why);
    else
        status = TDM_FAIL(&why, TDM_E_INPUT, "%s/%s is missing", run, last_name);
    if (status == TDM_E_INPUT && has(arena, run, previous_name) &&
        load(record, arena, previous_name, stored, NULL) == TDM_OK) {
        tdm_error_line(&why, text, sizeof text);
        record->is_fallen_back = true; /* the next checkpoint replaces it */
        tdm_log(TDM_LOG_WARNING,
                "the newest checkpoint cannot be used, so the one before it (%s, "
                "step %lld) is resumed: %s",
                previous_name, (long long)stored->progress.step, text);
        return TDM_OK;
    }
    if (status != TDM_OK && err)
        *err = why;
    return status;
}

/* ---- saving ----------------------------------------------------------------------------- */

static tdm_status download(struct tdmi_session *session, bool is_checkpoint, tdm_error *err)
{
    struct tdmi_model_file *host = &session->network.host;
    const struct tdmi_memory_table *memory = &session->compute.backend->memory;
    const size_t params = sizeof(float) * (size_t)session->network.graph->param_values;
    TDMI_TRY(tdmi_values_download(session, tdmi_values_evaluated(&session->network), host->params,
                                  host->states, err));
    if (is_checkpoint && session->network.mean_params)
        TDMI_TRY(tdmi_values_download(session, tdmi_values_trained(&session->network),
                                      host->raw_params, host->raw_states, err));
    host->n_slots = is_checkpoint ? session->trainer.optimizer->n_slots : 0;
    for (int i = 0; i < host->n_slots; i++)
        TDM_TRY(memory->download(session->compute.stream, host->slots[i], session->trainer.slots[i],
                                 params, err),
                err, "fetching the optimizer's state");
    TDM_TRY(tdmi_trainer_fetch_scale(session, err), err, "fetching where training stands");
    return session->compute.backend->stream.wait(session->compute.stream, err);
}

/* Fills the host's copy: weights, the self-test's logits and the progress; for a checkpoint the
 * optimizer's state as well. */
static tdm_status take(struct tdmi_session *session, bool is_checkpoint, tdm_error *err)
{
    struct tdmi_model_file *host = &session->network.host;
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_feature_cache *features = &session->cache;
    const struct tdmi_batch picture = {.n = 1,
                                       .pixels =
                                           features->is_used && !session->evaluation.test_evaluator
                                               ? (const uint8_t *)features->test_row
                                               : host->test_pixels,
                                       .labels = &label,
                                       .items = &item};
    tdmi_evaluator *evaluator = session->evaluation.test_evaluator
                                    ? session->evaluation.test_evaluator
                                    : session->evaluation.evaluator;
    TDMI_TRY(download(session, is_checkpoint, err));
    TDMI_TRY(tdmi_evaluator_take(evaluator, tdmi_values_evaluated(&session->network), err));
    TDMI_TRY(tdmi_evaluator_batch(evaluator, &picture, NULL, NULL, host->test_logits, err));
    host->progress = session->progress;
    return TDM_OK;
}

tdm_status tdmi_session_keep_best(struct tdmi_session *session, int epoch, tdm_error *err)
{
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    session->record.is_best_unwritten = false; /* the copy of the previous best is overwritten */
    session->evaluation.outcomes.epoch = epoch;
    session->evaluation.outcomes.step = session->progress.step;
    TDM_TRY(
        tdmi_outcomes_copy(&session->evaluation.outcomes, &session->evaluation.best_outcomes, err),
        err, "keeping the outcomes of validation images");
    TDM_TRY(tdmi_evaluation_record(session, err), err, "keeping what was counted");
    TDM_TRY(take(session, false, err), err, "keeping the best weights");
    session->record.is_best_unwritten = true;
    return TDM_OK;
}

tdm_status tdmi_checkpoint_write_best(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *folder = tdmi_run_path(session->record.run);
    if (!session->record.is_best_unwritten)
        return TDM_OK;
    TDM_TRY(tdmi_run_check(session->record.run, err), err, "keeping the best weights");
    const char *outcomes = tdmi_path_join(&scratch, folder, TDMI_OUTCOMES_NAME);
    const char *best = tdmi_path_join(&scratch, folder, best_name);
    TDMI_CHECK_MEMORY(outcomes && best, err);
    TDM_TRY(tdmi_outcomes_save(&session->evaluation.best_outcomes, outcomes, err), err,
            "keeping the best weights");
    TDM_TRY(tdmi_model_file_save(&session->network.host, best, err), err,
            "keeping the best weights");
    session->record.is_best_unwritten = false;
    return TDM_OK;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* The previous checkpoint is kept: a damaged newest file then costs only the work between the two.
 * After a kill between the renames the previous one is resumed. */
static tdm_status rotate(struct tdmi_run_record *record, const char *next, const char *last,
                         const char *previous, tdm_error *err)
{
    if (!record->is_fallen_back && tdmi_file_kind_of(last) == TDMI_FILE_REGULAR &&
        rename(last, previous) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "renaming %s to %s: %s", last, previous_name,
                        strerror(errno));
    if (rename(next, last) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "renaming %s to %s: %s", next, last_name,
                        strerror(errno));
    record->is_fallen_back = false; /* last.safetensors is whole again */
    return tdmi_folder_sync(tdmi_run_path(record->run), err);
}

tdm_status tdmi_checkpoint_record_clock(const struct tdmi_run_record *record,
                                        const struct tdmi_progress *progress, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_number(writer, "seconds", tdmi_record_seconds(record));
    tdm_json_number(writer, "training_seconds", record->training_seconds);
    tdm_json_number(writer, "best_seconds", record->best_seconds);
    tdm_json_integer(writer, "epochs", progress->epoch);
    tdm_json_integer(writer, "steps", progress->step);
    tdm_json_object_end(writer);
    return tdmi_record_set(record, "clock", writer, err);
}

static tdm_status write_checkpoint(struct tdmi_session *session, const char *next, const char *last,
                                   const char *previous, tdm_error *err)
{
    const tdm_event event = {.kind = TDM_EVENT_CHECKPOINT,
                             .epoch = session->progress.epoch,
                             .step = session->progress.step,
                             .seconds = tdmi_record_seconds(&session->record),
                             .text = last_name};
    TDMI_TRY(tdmi_run_check(session->record.run, err));
    TDMI_TRY(take(session, true, err));
    TDMI_TRY(tdmi_model_file_save(&session->network.host, next, err));
    tdmi_track_record(session->record.track, &event);
    TDMI_TRY(tdmi_checkpoint_record_clock(&session->record, &session->progress, err));
    TDMI_TRY(tdmi_record_loader(&session->record, session->data.train_feed, err));
    TDMI_TRY(tdmi_run_save(session->record.run, TDMI_RUN_RUNNING, err));
    TDMI_TRY(rotate(&session->record, next, last, previous, err));
    session->record.saved = session->progress;
    session->record.saved_ns = tdmi_clock_ns();
    if (session->record.copies)
        tdmi_copies_take(session->record.copies, session->progress.step);
    tdmi_track_report(session->record.track, &event);
    return TDM_OK;
}

static bool is_unsaved(const struct tdmi_session *session)
{
    const struct tdmi_progress *now = &session->progress, *saved = &session->record.saved;
    return saved->best_epoch < 0 || now->step != saved->step || now->epoch != saved->epoch ||
           now->position != saved->position || now->evaluated_step != saved->evaluated_step;
}

tdm_status tdmi_session_checkpoint(struct tdmi_session *session, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    TDM_TRY(tdmi_checkpoint_write_best(session, err), err, "writing a checkpoint");
    if (!is_unsaved(session))
        return TDM_OK;
    const char *folder = tdmi_run_path(session->record.run);
    const char *next = tdmi_path_join(&scratch, folder, next_name);
    const char *last = tdmi_path_join(&scratch, folder, last_name);
    const char *previous = tdmi_path_join(&scratch, folder, previous_name);
    TDMI_CHECK_MEMORY(next && last && previous, err);
    tdmi_lane *lane = tdmi_compute_lane(&session->compute);
    const int64_t begin_ns = tdmi_lane_begin(lane);
    const tdm_status status =
        TDM_WRAP(err, write_checkpoint(session, next, last, previous, err), "writing %s", next);
    tdmi_lane_end(lane, TDMI_TRACE_CHECKPOINT, 0, begin_ns);
    if (status != TDM_OK) {
        (void)unlink(next); /* it was renamed, or is incomplete */
        /* A recorded clock promises a checkpoint, without which resuming is refused. */
        if (!tdmi_checkpoint_exists(&scratch, folder))
            tdmi_run_forget(session->record.run, "clock");
        else if (session->record.saved.best_epoch >= 0) /* the clock of that checkpoint */
            (void)(tdmi_checkpoint_record_clock(&session->record, &session->record.saved, NULL) ==
                   TDM_OK);
    }
    return TDM_WRAP(err, status, "writing a checkpoint");
}

tdm_status tdmi_checkpoint_end_copies(const struct tdmi_session *session, tdm_status status,
                                      tdm_error *err)
{
    const struct tdmi_run_record *record = &session->record;
    if (!record->copies)
        return status;
    const tdm_status copied =
        tdmi_copies_finish(record->copies, session->progress.step, status == TDM_OK ? err : NULL);
    if (status != TDM_OK)
        return status;
    return TDM_WRAP(err, copied,
                    "training has ended, and %s is complete, but its last state is not in %s; "
                    "the same command with --resume copies it",
                    tdmi_run_path(record->run), session->config.options.checkpoint_to);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* An epoch of a head takes milliseconds; syncing five files takes many times that. */
static const double apart_seconds = 1.0;

static bool is_asked_for(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    return (options->checkpoint_every > 0 &&
            session->progress.step % options->checkpoint_every == 0) ||
           (options->checkpoint_minutes > 0.0 &&
            tdmi_clock_seconds_since(session->record.saved_ns) >=
                60.0 * options->checkpoint_minutes);
}

bool tdmi_checkpoint_is_due_after_epoch(const struct tdmi_session *session)
{
    return session->record.saved.best_epoch < 0 || is_asked_for(session) ||
           tdmi_clock_seconds_since(session->record.saved_ns) >= apart_seconds;
}

bool tdmi_checkpoint_is_due_inside_epoch(const struct tdmi_session *session)
{
    const bool is_owed = session->record.saved.epoch < session->progress.epoch;
    return is_asked_for(session) ||
           (is_owed && tdmi_clock_seconds_since(session->record.saved_ns) >= 2.0 * apart_seconds);
}

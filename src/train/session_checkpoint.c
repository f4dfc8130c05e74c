/*
 * Files of a training: models and checkpoints, the newest and the one before it, and which of them
 * a run is gone on with.
 */
#include "base/clock.h"
#include "base/file.h"
#include "tandem/log.h"
#include "train/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char last_name[] = "last.safetensors";
static const char previous_name[] = "previous.safetensors";
static const char next_name[] = "next.safetensors"; /* while it is written */

/* ---- reading --------------------------------------------------------------------------------- */

static bool has(tdmi_arena *arena, const char *run, const char *name)
{
    const char *path = tdmi_path_join(arena, run, name);
    return path && tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
}

bool tdmi_session_has_checkpoint(tdmi_arena *arena, const char *run)
{
    return has(arena, run, last_name) || has(arena, run, previous_name);
}

static tdm_status load(struct tdmi_session *session, const char *name,
                       struct tdmi_model_file *stored, tdm_error *err)
{
    const char *path = tdmi_path_join(&session->arena, tdmi_run_path(session->run), name);
    if (!path)
        return TDM_FAIL(err, TDM_E_MEMORY, "naming the checkpoint: out of memory");
    return tdmi_model_file_load(path, stored, err);
}

tdm_status tdmi_session_load_checkpoint(struct tdmi_session *session,
                                        struct tdmi_model_file *stored, tdm_error *err)
{
    const char *run = tdmi_run_path(session->run);
    tdm_error why = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_status status = TDM_E_INPUT;
    if (has(&session->arena, run, last_name))
        status = load(session, last_name, stored, &why);
    else
        status = TDM_FAIL(&why, TDM_E_INPUT, "%s/%s is missing", run, last_name);
    if (status == TDM_E_INPUT && has(&session->arena, run, previous_name) &&
        load(session, previous_name, stored, NULL) == TDM_OK) {
        tdm_error_line(&why, text, sizeof text);
        session->is_fallen_back = true;
        tdm_log(TDM_LOG_WARNING,
                "the newest checkpoint cannot be used, so the one before it (%s, "
                "step %lld) is gone on with: %s",
                previous_name, (long long)stored->progress.step, text);
        return TDM_OK;
    }
    if (status != TDM_OK && err)
        *err = why;
    return status;
}

/* ---- saving ----------------------------------------------------------------------------- */

static tdm_status download_values(struct tdmi_session *session, struct tdmi_values values,
                                  float *params, float *states, tdm_error *err)
{
    const tdmi_graph *graph = session->graph;
    const struct tdmi_memory_table *memory = &session->backend->memory;
    TDM_TRY(memory->download(session->stream, params, values.params,
                             sizeof(float) * (size_t)graph->param_values, err),
            err, "fetching weights");
    return TDM_WRAP(err,
                    memory->download(session->stream, states, values.states,
                                     sizeof(float) * (size_t)graph->state_values, err),
                    "fetching running statistics");
}

static tdm_status download(struct tdmi_session *session, bool is_checkpoint, tdm_error *err)
{
    struct tdmi_model_file *host = &session->snapshot;
    const struct tdmi_memory_table *memory = &session->backend->memory;
    const size_t params = sizeof(float) * (size_t)session->graph->param_values;
    tdm_status status =
        download_values(session, tdmi_session_values(session), host->params, host->states, err);
    if (status == TDM_OK && is_checkpoint && session->mean_params)
        status = download_values(session, tdmi_session_trained(session), host->raw_params,
                                 host->raw_states, err);
    if (status != TDM_OK)
        return status;
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
    const struct tdmi_features *features = &session->features;
    const struct tdmi_batch picture = {
        .n = 1,
        .pixels = features->is_used ? (const uint8_t *)features->test_row : host->test_pixels,
        .labels = &label,
        .items = &item};
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    char *path = tdmi_path_join(&scratch, tdmi_run_path(session->run), name);
    tdm_status status = path ? tdmi_run_check(session->run, err)
                             : TDM_FAIL(err, TDM_E_MEMORY, "naming %s: out of memory", name);
    if (status == TDM_OK)
        status = download(session, is_checkpoint, err);
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

/* The newest takes the place of the one before, which stays beside it: a file that was damaged on
 * the disk costs no more than the work between the two. Killed between the renames, the one before
 * is what there is. */
static tdm_status rotate(struct tdmi_session *session, tdm_error *err)
{
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    const char *folder = tdmi_run_path(session->run);
    const char *next = tdmi_path_join(&scratch, folder, next_name);
    const char *last = tdmi_path_join(&scratch, folder, last_name);
    const char *previous = tdmi_path_join(&scratch, folder, previous_name);
    tdm_status status = TDM_OK;
    if (!next || !last || !previous)
        status = TDM_FAIL(err, TDM_E_MEMORY, "naming checkpoints: out of memory");
    else if (!session->is_fallen_back && tdmi_file_kind_of(last) == TDMI_FILE_REGULAR &&
             rename(last, previous) != 0)
        status = TDM_FAIL(err, TDM_E_SYSTEM, "renaming %s to %s: %s", last, previous_name,
                          strerror(errno));
    else if (rename(next, last) != 0)
        status =
            TDM_FAIL(err, TDM_E_SYSTEM, "renaming %s to %s: %s", next, last_name, strerror(errno));
    session->is_fallen_back = false; /* a damaged one has not taken the place of a whole one */
    if (status == TDM_OK)
        status = tdmi_folder_sync(folder, err);
    tdmi_arena_release(&scratch);
    return status;
}

tdm_status tdmi_session_checkpoint(struct tdmi_session *session, tdm_error *err)
{
    TDM_TRY(tdmi_session_save(session, next_name, true, err), err, "writing a checkpoint");
    TDM_TRY(rotate(session, err), err, "writing a checkpoint");
    session->saved_ns = tdmi_clock_ns();
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_number(writer, "seconds", tdmi_session_seconds(session));
    tdm_json_number(writer, "training_seconds", session->training_seconds);
    tdm_json_number(writer, "best_seconds", session->best_seconds);
    tdm_json_object_end(writer);
    TDM_TRY(tdmi_session_set(session, "clock", writer, err), err, "writing a checkpoint");
    TDM_TRY(tdmi_run_save(session->run, TDMI_RUN_RUNNING, err), err, "writing a checkpoint");
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_CHECKPOINT,
                                                  .epoch = session->progress.epoch,
                                                  .step = session->progress.step,
                                                  .seconds = tdmi_session_seconds(session),
                                                  .text = last_name});
    return TDM_OK;
}

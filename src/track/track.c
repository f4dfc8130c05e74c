/*
 * Events go to the caller's sink and to metrics.jsonl: one line for each epoch, note and finished
 * checkpoint. Progress within an epoch is shown only, not recorded. docs/reference/files.md
 * describes the lines.
 */
#include "track/track.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "tandem/log.h"
#include "tandem/metrics.h"
#include "track/sampler.h"
#include <stdbool.h>
#include <string.h>

struct tdmi_track {
    tdm_sink caller;
    tdmi_run *run;
    bool has_failed;
    tdmi_sampler *sampler; /* NULL: GPUs are not sampled */
};

/* ---- metrics.jsonl ------------------------------------------------------------------------ */

/* A score of no images was not taken in this epoch: it is left out. */
static void put_score(tdm_json_writer *json, const char *key, const tdm_score *score)
{
    if (score->n > 0)
        tdm_score_to_json(score, json, key);
}

/* Relative to the run where it lies inside, so that a folder that is moved stays right. */
static const char *inside(const tdmi_run *run, const char *path)
{
    size_t n = strlen(tdmi_run_path(run));
    if (strncmp(path, tdmi_run_path(run), n) != 0 || path[n] != '/')
        return path;
    return path + n + strspn(path + n, "/");
}

/* NULL: shown only, not recorded. */
static const char *name_of(tdm_event_kind kind)
{
    return kind == TDM_EVENT_NOTE         ? "note"
           : kind == TDM_EVENT_EPOCH      ? "epoch"
           : kind == TDM_EVENT_CHECKPOINT ? "checkpoint"
                                          : NULL;
}

static tdm_status write_line(tdmi_run *run, const tdm_event *event, tdm_error *err)
{
    const char *name = name_of(event->kind), *line = NULL;
    size_t n_bytes = 0;
    if (name == NULL)
        return TDM_OK;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "event", name);
    tdm_json_integer(json, "epoch", event->epoch);
    tdm_json_integer(json, "step", event->step);
    tdm_json_number(json, "seconds", event->seconds);
    if (event->kind == TDM_EVENT_EPOCH) {
        tdm_json_number(json, "learning_rate", event->learning_rate);
        tdm_json_bool(json, "best", event->is_best != 0);
        put_score(json, "train", &event->train);
        if (event->metrics != NULL) {
            tdm_json_object_begin(json, "val");
            tdm_metrics_summary_to_json(event->metrics, json);
            tdm_json_object_end(json);
        } else {
            put_score(json, "val", &event->val);
        }
    } else if (event->text != NULL) {
        const bool is_note = event->kind == TDM_EVENT_NOTE;
        tdm_json_string(json, is_note ? "text" : "path",
                        is_note ? event->text : inside(run, event->text));
    }
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &line, &n_bytes, err));
    TDMI_TRY(tdmi_run_line(run, line, n_bytes, err));
    /* Lines before a checkpoint are made durable with it; a resumed run writes the later ones
     * again. */
    return event->kind == TDM_EVENT_CHECKPOINT ? tdmi_run_sync(run, err) : TDM_OK;
}

/* ---- listeners ---------------------------------------------------------------------------- */

tdm_status tdmi_track_new(tdmi_run *run, tdm_sink sink, tdmi_track **track, tdm_error *err)
{
    TDM_TRY(TDMI_NEW(*track, 1, err), err, "no memory to record the run %s", tdmi_run_path(run));
    **track = (struct tdmi_track){.caller = sink, .run = run};
    return TDM_OK;
}

void tdmi_track_free(tdmi_track *track)
{
    if (track)
        tdmi_sampler_stop(track->sampler);
    tdmi_free(track);
}

void tdmi_track_watch_gpus(tdmi_track *track, const char *library)
{
    tdm_error problem = {0};
    if (tdmi_sampler_start(tdmi_run_path(track->run), library, 0, &track->sampler, &problem) !=
        TDM_OK)
        tdm_log(TDM_LOG_WARNING, "%s: GPUs are not watched: %s", tdmi_run_path(track->run),
                tdm_error_sentence(&problem, 0));
}

void tdmi_track_report(tdmi_track *track, const tdm_event *event)
{
    if (track->sampler && event->step > 0)
        tdmi_sampler_place(track->sampler, event->step);
    if (track->caller.event != NULL)
        track->caller.event(track->caller.self, event);
}

void tdmi_track_record(tdmi_track *track, const tdm_event *event)
{
    tdm_error problem = {0};
    const tdm_status status = write_line(track->run, event, &problem);
    if (status != TDM_OK && !track->has_failed)
        tdm_log(TDM_LOG_WARNING, "%s: not everything is recorded (jsonl): %s",
                tdmi_run_path(track->run), tdm_error_sentence(&problem, problem.n_frames - 1));
    track->has_failed |= status != TDM_OK;
}

void tdmi_track_event(tdmi_track *track, const tdm_event *event)
{
    tdmi_track_report(track, event);
    tdmi_track_record(track, event);
}

static void forward(void *self, const tdm_event *event)
{
    tdmi_track_event(self, event);
}

tdm_sink tdmi_track_as_sink(tdmi_track *track)
{
    return (tdm_sink){.self = track, .event = forward};
}

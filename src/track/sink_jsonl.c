/*
 * metrics.jsonl: one line for each epoch, note and finished checkpoint. Progress within an epoch is
 * shown only, not recorded. docs/reference/files.md describes the lines.
 */
#include "tandem/metrics.h"
#include "track/track.h"
#include <string.h>
#include "base/banned.h"

static tdm_status open_jsonl(tdmi_run *run, void **self, tdm_error *err)
{
    (void)err;
    *self = run;
    return TDM_OK;
}

static void close_jsonl(void *self)
{
    (void)self;
}

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

static const char *name_of(tdm_event_kind kind)
{
    switch (kind) {
    case TDM_EVENT_NOTE:
        return "note";
    case TDM_EVENT_EPOCH:
        return "epoch";
    case TDM_EVENT_CHECKPOINT:
        return "checkpoint";
    case TDM_EVENT_PHASE_BEGIN:
    case TDM_EVENT_PROGRESS:
    case TDM_EVENT_PHASE_END:
        break;
    }
    return NULL;
}

static tdm_status record_event(void *self, const tdm_event *event, tdm_error *err)
{
    tdmi_run *run = self;
    const char *name = name_of(event->kind), *line = NULL;
    size_t n_bytes = 0;
    if (name == NULL)
        return TDM_OK;
    tdm_json_writer *json = tdm_json_writer_new(0);
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
    tdm_status status = tdm_json_finish(json, &line, &n_bytes, err);
    if (status == TDM_OK)
        status = tdmi_run_line(run, line, n_bytes, err);
    /* Lines before a checkpoint are made durable with it; a resumed run writes the later ones
     * again. */
    if (status == TDM_OK && event->kind == TDM_EVENT_CHECKPOINT)
        status = tdmi_run_sync(run, err);
    tdm_json_writer_free(json);
    return status;
}

const struct tdmi_track_sink tdmi_sink_jsonl = {
    .name = "jsonl", .open = open_jsonl, .event = record_event, .close = close_jsonl};

/* The fan-out: the caller's sink and those of sinks.def, each with its own memory of failure. */
#include "track/track.h"
#include "base/memory.h"
#include "base/arena.h"
#include "base/file/file.h"
#include "tandem/log.h"
#include "track/sampler.h"
#include <stdbool.h>
#include "base/banned.h"

static const struct tdmi_track_sink *const tables[] = {
#define X(table) &table,
#include "track/sinks.def"
#undef X
};
enum { SINKS = sizeof tables / sizeof *tables };

struct tdmi_track {
    tdm_sink caller;
    tdmi_run *run;
    struct {
        void *self;
        bool is_open, has_failed;
    } sinks[SINKS];
    tdmi_sampler *sampler; /* NULL: GPUs are not sampled */
};

static void warn_once(tdmi_track *track, int sink, const tdm_error *err)
{
    if (!track->sinks[sink].has_failed)
        tdm_log(TDM_LOG_WARNING, "%s: not everything is recorded (%s): %s",
                tdmi_run_path(track->run), tables[sink]->name,
                err->n_frames > 0 ? tdm_error_sentence(err, err->n_frames - 1)
                                  : tdm_status_text(err->code));
    track->sinks[sink].has_failed = true;
}

tdm_status tdmi_track_new(tdmi_run *run, tdm_sink sink, tdmi_track **track, tdm_error *err)
{
    tdmi_track *made = tdmi_alloc(1, sizeof *made);
    if (made == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to record the run %s", tdmi_run_path(run));
    made->caller = sink;
    made->run = run;
    for (int i = 0; i < SINKS; i++) {
        tdm_error problem = {0};
        made->sinks[i].is_open = tables[i]->open(run, &made->sinks[i].self, &problem) == TDM_OK;
        if (!made->sinks[i].is_open)
            warn_once(made, i, &problem);
    }
    *track = made;
    return TDM_OK;
}

void tdmi_track_free(tdmi_track *track)
{
    if (track == NULL)
        return;
    tdmi_sampler_stop(track->sampler);
    for (int i = SINKS - 1; i >= 0; i--)
        if (track->sinks[i].is_open)
            tables[i]->close(track->sinks[i].self);
    tdmi_free(track);
}

void tdmi_track_watch_gpus(tdmi_track *track, const char *library)
{
    tdmi_arena arena;
    tdm_error problem = {0};
    tdmi_arena_init(&arena, 0);
    const struct tdmi_sampler_options options = {
        .path = tdmi_path_join(&arena, tdmi_run_path(track->run), "system.jsonl"),
        .library = library};
    const tdm_status status =
        options.path ? tdmi_sampler_start(&options, &track->sampler, &problem)
                     : TDM_FAIL(&problem, TDM_E_MEMORY, "watching GPUs: out of memory");
    if (status != TDM_OK)
        tdm_log(TDM_LOG_WARNING, "%s: GPUs are not watched: %s", tdmi_run_path(track->run),
                tdm_error_sentence(&problem, 0));
    tdmi_arena_release(&arena);
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
    for (int i = 0; i < SINKS; i++) {
        tdm_error problem = {0};
        if (track->sinks[i].is_open &&
            tables[i]->event(track->sinks[i].self, event, &problem) != TDM_OK)
            warn_once(track, i, &problem);
    }
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

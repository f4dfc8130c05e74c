/*
 * One stream of events, several listeners: the run's own sinks (sinks.def) and the caller's.
 *
 * A failing sink (a full disk) never ends a training: it is warned about once, and its failures are
 * counted.
 */
#ifndef TANDEM_TRACK_TRACK_H
#define TANDEM_TRACK_TRACK_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "track/run.h"
#include <stdint.h>

/* A sink of a run's events. To add one: src/track/sink_<name>.c with such a table, and a line in
 * sinks.def. */
struct tdmi_track_sink {
    const char *name; /* "jsonl" */
    /* *self may stay NULL. The run outlives the sink. */
    tdm_status (*open)(tdmi_run *run, void **self, tdm_error *err);
    tdm_status (*event)(void *self, const tdm_event *event, tdm_error *err);
    void (*close)(void *self);
};

#define X(table) extern const struct tdmi_track_sink table;
#include "track/sinks.def"
#undef X

typedef struct tdmi_track tdmi_track;

/* Only lack of memory fails. sink is the caller's; it hears every event, before the run's sinks. */
tdm_status tdmi_track_new(tdmi_run *run, tdm_sink sink, tdmi_track **track,
                          tdm_error *err) TDM_MUST_USE;
/* Closes the run's sinks, not the run. Accepts NULL. */
void tdmi_track_free(tdmi_track *track);

/* From here on RUN/system.jsonl gets the state of the machine's NVIDIA GPUs (track/sampler.h); library
 * is NULL for the driver's. What fails is logged. */
void tdmi_track_watch_gpus(tdmi_track *track, const char *library);

/* Hand an event to everyone; one thread at a time. */
void tdmi_track_event(tdmi_track *track, const tdm_event *event);
/* The halves of it, for what is to be recorded before it is done and told afterwards: the run's
 * sinks, and the caller's. */
void tdmi_track_record(tdmi_track *track, const tdm_event *event);
void tdmi_track_report(tdmi_track *track, const tdm_event *event);
/* The same as a sink, to give to whatever feeds one. */
tdm_sink tdmi_track_as_sink(tdmi_track *track);

#endif

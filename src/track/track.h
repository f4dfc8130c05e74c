/*
 * One stream of events with two listeners: the caller's sink and RUN/metrics.jsonl.
 *
 * A line that cannot be written (a full disk) never ends a training: the first is warned about.
 */
#pragma once

#include "tandem/error.h"
#include "tandem/event.h"
#include "track/run.h"

typedef struct tdmi_track tdmi_track;

/* Only lack of memory fails. sink is the caller's; it gets every event, before the file does. */
tdm_status tdmi_track_new(tdmi_run *run, tdm_sink sink, tdmi_track **track,
                          tdm_error *err) TDM_MUST_USE;
/* Does not close the run. Accepts NULL. */
void tdmi_track_free(tdmi_track *track);

/* From here on RUN/system.jsonl gets the state of the machine's NVIDIA GPUs (track/sampler.h);
 * library is NULL for the driver's. Failures are logged. */
void tdmi_track_watch_gpus(tdmi_track *track, const char *library);

/* Hand an event to both; one thread at a time. */
void tdmi_track_event(tdmi_track *track, const tdm_event *event);
/* The halves of it, for events that are recorded before they happen and reported afterwards: the
 * file, and the caller's sink. */
void tdmi_track_record(tdmi_track *track, const tdm_event *event);
void tdmi_track_report(tdmi_track *track, const tdm_event *event);
/* tdmi_track_event as a sink. */
tdm_sink tdmi_track_as_sink(tdmi_track *track);

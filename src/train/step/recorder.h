/*
 * Work that is queued on a device step after step: the first time as it is, the second time it is
 * recorded, from then on the recording is replayed (backend/backend.h, stream). What is queued may
 * only differ by what the key says; whole batches and the ragged last one of an epoch are two. What
 * the device fails to record, or to replay for the first time, is queued as it is from then on,
 * with one warning.
 */
#pragma once

#include "backend/backend.h"

typedef struct tdmi_recorder tdmi_recorder;

/* All that work depends on and that is not in the device's memory. */
struct tdmi_recorder_key {
    int n; /* images */
    bool is_mixed, is_changed, is_kept;
    const void *params; /* that are stepped */
    const void *sums;   /* that it writes to */
    int64_t part;       /* which part of a step it is, by a number of the caller's */
    int64_t next;       /* what follows in the same recording, by a key of its own; 0: nothing */
};

/* Of work of so many keys, the first that are met; other work is queued as it is each time, and so
 * is all of it where the backend records nothing. */
tdm_status tdmi_recorder_open(const struct tdmi_backend *backend, tdmi_device *device,
                              tdmi_stream *stream, int most, tdmi_recorder **recorder,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_recorder_close(tdmi_recorder *recorder);

/* queue(self) queues the work on the stream; it is not called where a recording is replayed, and
 * called again where it failed while it was recorded. A failure of the work itself shows when the
 * stream is waited for. */
tdm_status tdmi_recorder_run(tdmi_recorder *recorder, struct tdmi_recorder_key key,
                             tdm_status (*queue)(void *self, tdm_error *err), void *self,
                             tdm_error *err) TDM_MUST_USE;
/* How often a recording was replayed. */
int64_t tdmi_recorder_replays(const tdmi_recorder *recorder);
/* Of the device's memory, that recordings were seen to take: what was free before each less what
 * was free behind it, whoever took it; 0 where the device does not say. */
int64_t tdmi_recorder_bytes(const tdmi_recorder *recorder);

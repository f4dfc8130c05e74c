/*
 * Work that is queued on a device step after step: the first time it is queued, the second time
 * recorded, and from then on the recording is replayed (backend/backend.h, stream). Work with equal
 * keys must be equal; whole batches and the ragged last one of an epoch have different keys. Work
 * that the device fails to record, or to replay for the first time, is always queued, with one
 * warning.
 */
#pragma once

#include "backend/backend.h"

typedef struct tdmi_recorder tdmi_recorder;

/* Everything that the work depends on and that is not in the device's memory. */
struct tdmi_recorder_key {
    int n; /* images */
    bool is_mixed, is_changed, is_kept;
    const void *params; /* the weights */
    const void *sums;   /* the array that it adds to */
    int64_t part;       /* number of the part of a step */
    int64_t next;       /* key of the work that follows in the same recording; 0: nothing */
};

/* Records the work of the first `most` keys. Other work is queued each time, and so is all work
 * where the backend cannot record. */
tdm_status tdmi_recorder_open(const struct tdmi_backend *backend, tdmi_device *device,
                              tdmi_stream *stream, int most, tdmi_recorder **recorder,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_recorder_close(tdmi_recorder *recorder);

/* queue(self) queues the work on the stream; it is not called where a recording is replayed, and
 * called again where it failed while it was recorded. A failure of the work itself shows when the
 * stream is waited for. */
tdm_status tdmi_recorder_run(tdmi_recorder *recorder, struct tdmi_recorder_key key,
                             void (*queue)(void *self), void *self, tdm_error *err) TDM_MUST_USE;
/* Number of replays so far. */
int64_t tdmi_recorder_replays(const tdmi_recorder *recorder);
/* Device memory that recordings took: the memory that was free before each minus the memory that
 * was free after it, also if another program took it; 0 where it is unknown. */
int64_t tdmi_recorder_bytes(const tdmi_recorder *recorder);

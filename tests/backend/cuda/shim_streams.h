/*
 * Streams, events and pinned memory of the shim's backend. What is queued is done at once; or,
 * where a test asks for it, as late as a card may do it, so that whoever forgets to wait finds what
 * was there before.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_SHIM_STREAMS_H
#define TANDEM_TESTS_BACKEND_CUDA_SHIM_STREAMS_H

#include "backend/cuda/cuda.h"

enum tdmi_shim_pace {
    TDMI_SHIM_AT_ONCE,
    /* Nothing before the host waits for its stream, or a stream that it waits for does. */
    TDMI_SHIM_LATE,
    /* Replays, and what their stream has queued behind them, as late as that; all else at once. */
    TDMI_SHIM_SLOW_STEPS
};

/* Of all streams, from now on; what is queued by then is done. */
void tdmi_shim_pace(enum tdmi_shim_pace pace);

/* Bytes that were copied to the card, from pinned memory and from any other, since it was asked
 * last. */
struct tdmi_shim_copied {
    int64_t pinned_bytes, other_bytes;
};
struct tdmi_shim_copied tdmi_shim_copied(void);

/* ---- for shim_backend.c ------------------------------------------------------------------------
 */

/* from NULL: zeros. */
struct tdmi_shim_copy {
    void *to;
    const void *from;
    size_t bytes;
};
/* Its own: who may touch the card's memory. */
void tdmi_shim_copy_now(const struct tdmi_shim_copy *copy);
/* What is copied from memory that is not pinned is read now. */
void tdmi_shim_queue_copy(tdmi_stream *stream, struct tdmi_shim_copy copy);
void tdmi_shim_queue_replay(tdmi_stream *stream, tdmi_recording *recording,
                            void (*run)(tdmi_stream *stream, tdmi_recording *recording));
/* All that the stream was given is done; NULL: of every stream. */
void tdmi_shim_catch_up(tdmi_stream *stream);
/* From open to close of a stream. */
bool tdmi_shim_stream_begin(tdmi_stream *stream);
void tdmi_shim_stream_end(tdmi_stream *stream);

/* Entries of the backend's tables. */
void *tdmi_shim_alloc_pinned(tdmi_device *device, size_t bytes);
void tdmi_shim_free_pinned(tdmi_device *device, void *memory);
tdm_status tdmi_shim_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err);
void tdmi_shim_event_close(tdmi_event *event);
tdm_status tdmi_shim_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
tdm_status tdmi_shim_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err);

#endif

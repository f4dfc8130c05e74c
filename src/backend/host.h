/*
 * Table entries that the CPU backends share: memory is ordinary memory, and a stream runs at once,
 * on the calling thread. backend/backend.h describes the entries.
 */
#pragma once

#include "backend/backend.h"

int tdmi_host_count(void);
tdm_status tdmi_host_open(int index, tdmi_device **device, tdm_error *err);
void tdmi_host_close(tdmi_device *device);

void *tdmi_host_alloc(tdmi_device *device, size_t bytes);
void tdmi_host_free(tdmi_device *device, void *memory);
tdm_status tdmi_host_copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                          tdm_error *err);
void tdmi_host_clear(tdmi_stream *stream, void *memory, size_t bytes);

void tdmi_host_tail(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                    const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                    float *tail);

/* Record that a kernel failed in a call, whose outputs are then NaN: the stream's next wait fails
 * with code and `what`, which is not copied. The first failure counts. stream NULL: a kernel that
 * is called without one; nothing is recorded. */
void tdmi_host_note(tdmi_stream *stream, tdm_status code, const char *what);
tdm_status tdmi_host_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err);
void tdmi_host_stream_close(tdmi_stream *stream);
tdm_status tdmi_host_stream_wait(tdmi_stream *stream, tdm_error *err);

#define TDMI_HOST_MEMORY                                                            \
    {                                                                               \
        .alloc = tdmi_host_alloc, .free = tdmi_host_free, .upload = tdmi_host_copy, \
        .download = tdmi_host_copy, .clear = tdmi_host_clear                        \
    }
#define TDMI_HOST_STREAM                                                \
    {                                                                   \
        .open = tdmi_host_stream_open, .close = tdmi_host_stream_close, \
        .wait = tdmi_host_stream_wait                                   \
    }

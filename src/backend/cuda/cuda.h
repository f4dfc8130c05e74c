/*
 * Internals of backend cuda: a GPU, a queue of work on it, and the kernels by op. All files but
 * those of runtime/ include no header of CUDA.
 */
#pragma once

#include "backend/backend.h"

struct CUstream_st;

struct tdmi_device {
    int index; /* among the GPUs that CUDA sees, from 0 */
    int compute_major, compute_minor;
    int runtime_version, driver_version; /* 13000 for 13.0 */
    char name[256];
    char uuid[40];
    struct tdmi_cuda_libraries *libraries; /* libraries.h */
};

/* Calls return no status: the first failure is kept, and reported by the next wait. */
struct tdmi_stream {
    tdmi_device *device;
    struct CUstream_st *queue;
    int failure; /* the runtime's code; 0: none */
    const char *failed;
};

/* Make this the GPU of the calling thread. */
void tdmi_cuda_make_current(const tdmi_device *device);
/* The queue to launch kernels on; its GPU becomes that of the calling thread. */
struct CUstream_st *tdmi_cuda_queue(const tdmi_stream *stream);
/* Keep the code of a launch that failed. what: "softmax, forward". */
void tdmi_cuda_note(tdmi_stream *stream, int code, const char *what);

/* Queue a kernel by its launcher, which returns 0 or the runtime's code; a failure is kept. */
#define TDMI_CUDA_LAUNCH(stream, what, launcher, ...) \
    tdmi_cuda_note(stream, launcher(tdmi_cuda_queue(stream), __VA_ARGS__), what)

/* NONE, RELU or RELU6: the activations that a kernel can apply to what it writes. */
static inline bool tdmi_cuda_is_clamp(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

/* Is nothing requested that no kernel of this backend fuses, and no other activation behind it? */
static inline bool tdmi_cuda_fuses_clamp(const struct tdmi_op_fusion *fusion)
{
    return !fusion->gives_sums && !fusion->reads_gradient_form && !fusion->pool &&
           !fusion->in[0].has_norm && tdmi_cuda_is_clamp(fusion->act);
}

/* Kernels of the ops, and the other parts of the backend's table. */
extern const struct tdmi_kernel tdmi_cuda_activation, tdmi_cuda_add, tdmi_cuda_dropout;
extern const struct tdmi_kernel tdmi_cuda_lrn, tdmi_cuda_concat, tdmi_cuda_pad, tdmi_cuda_input;
extern const struct tdmi_kernel tdmi_cuda_batch_norm, tdmi_cuda_loss, tdmi_cuda_dense;
extern const struct tdmi_kernel tdmi_cuda_conv, tdmi_cuda_depthwise; /* conv calls depthwise */
extern const struct tdmi_kernel tdmi_cuda_max_pool, tdmi_cuda_avg_pool, tdmi_cuda_global_pool;
extern const struct tdmi_update_table tdmi_cuda_update_table; /* ops/update.c */
extern const struct tdmi_change_table tdmi_cuda_changes;      /* ops/input.c */
extern const struct tdmi_picture_table tdmi_cuda_pictures;    /* runtime/pictures.c */
extern const struct tdmi_peer_table tdmi_cuda_peers;          /* vendor/nccl.c */

/* runtime/backend.c and stream.c: entries of the backend's tables (backend/backend.h) */
void *tdmi_cuda_alloc(tdmi_device *device, size_t bytes);
void tdmi_cuda_free(tdmi_device *device, void *memory);
tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err);
void tdmi_cuda_clear(tdmi_stream *stream, void *memory, size_t bytes);

tdm_status tdmi_cuda_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err);
void tdmi_cuda_stream_close(tdmi_stream *stream);
tdm_status tdmi_cuda_stream_wait(tdmi_stream *stream, tdm_error *err);
/* Is queued work not done? A failure is done, and kept for the next wait. */
bool tdmi_cuda_stream_is_busy(tdmi_stream *stream);
tdm_status tdmi_cuda_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err);
void tdmi_cuda_event_close(tdmi_event *event);
tdm_status tdmi_cuda_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
tdm_status tdmi_cuda_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
tdm_status tdmi_cuda_capture_begin(tdmi_stream *stream, tdm_error *err);
tdm_status tdmi_cuda_capture_end(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err);
tdm_status tdmi_cuda_replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err);
void tdmi_cuda_recording_close(tdmi_recording *recording);

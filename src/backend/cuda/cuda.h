/*
 * Internals of backend cuda: a GPU, a queue of work on it, and the kernels by op. All files but
 * those of runtime/ include no header of CUDA.
 */
#ifndef TANDEM_BACKEND_CUDA_CUDA_H
#define TANDEM_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"

struct CUstream_st;

struct tdmi_device {
    int index; /* among the GPUs that CUDA sees, from 0 */
    int multiprocessors;
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

/* Make it the GPU of the calling thread. */
void tdmi_cuda_make_current(const tdmi_device *device);
/* The queue to launch kernels on; its GPU becomes that of the calling thread. */
struct CUstream_st *tdmi_cuda_queue(const tdmi_stream *stream);
/* Keep the code of a launch that failed. what: "softmax, forward". */
void tdmi_cuda_note(tdmi_stream *stream, int code, const char *what);

/* The kernel of each op. */
extern const struct tdmi_kernel *const tdmi_cuda_kernels[TDMI_OP_KINDS];
extern const struct tdmi_kernel tdmi_cuda_relu, tdmi_cuda_relu6, tdmi_cuda_add;
extern const struct tdmi_kernel tdmi_cuda_batch_norm, tdmi_cuda_softmax;
extern const struct tdmi_update_table tdmi_cuda_update_table; /* ops/update.c */
extern const struct tdmi_kernel tdmi_cuda_conv, tdmi_cuda_dense, tdmi_cuda_input;
extern const struct tdmi_kernel tdmi_cuda_depthwise; /* called by tdmi_cuda_conv */
extern const struct tdmi_kernel tdmi_cuda_hswish, tdmi_cuda_sigmoid, tdmi_cuda_concat;
extern const struct tdmi_kernel tdmi_cuda_pad, tdmi_cuda_lrn, tdmi_cuda_dropout, tdmi_cuda_logistic;
extern const struct tdmi_kernel tdmi_cuda_max_pool, tdmi_cuda_avg_pool, tdmi_cuda_global_pool;

extern const struct tdmi_change_table tdmi_cuda_changes;   /* changes.c */
extern const struct tdmi_picture_table tdmi_cuda_pictures; /* images.c */

/* Clear the images n … max_images of an activation or gradient of this shape: a plan of a library
 * reads all that the array holds (ops/ragged.c). */
void tdmi_cuda_clear_tail(tdmi_stream *stream, const struct tdmi_op_desc *desc, int n,
                          struct tdmi_shape shape, const void *array);

/* update->tail, ops/tail.c */
void tdmi_cuda_tail_of(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                       const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                       float *tail);

/* memory.gather, ops/gather.c */
void tdmi_cuda_gather_rows(tdmi_stream *stream, const void *table, size_t row_bytes,
                           const int64_t *numbers, int n, void *to);

/* device.c, memory.c, stream.c: entries of the backend's tables */
int tdmi_cuda_count(void);
tdm_status tdmi_cuda_device_open(int index, tdmi_device **device, tdm_error *err);
void tdmi_cuda_device_close(tdmi_device *device);
bool tdmi_cuda_device_memory(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes);
void tdmi_cuda_device_describe(const tdmi_device *device, char *text, size_t text_bytes);
void tdmi_cuda_device_keep(tdmi_device *device, const char *folder);
bool tdmi_cuda_device_library(int index, struct tdmi_backend_library *library);

void *tdmi_cuda_alloc(tdmi_device *device, size_t bytes);
void tdmi_cuda_free(tdmi_device *device, void *memory);
tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err);
tdm_status tdmi_cuda_download(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                              tdm_error *err);
void tdmi_cuda_clear(tdmi_stream *stream, void *memory, size_t bytes);
void *tdmi_cuda_alloc_pinned(tdmi_device *device, size_t bytes);
void tdmi_cuda_free_pinned(tdmi_device *device, void *memory);

tdm_status tdmi_cuda_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err);
void tdmi_cuda_stream_close(tdmi_stream *stream);
tdm_status tdmi_cuda_stream_wait(tdmi_stream *stream, tdm_error *err);
tdm_status tdmi_cuda_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err);
void tdmi_cuda_event_close(tdmi_event *event);
tdm_status tdmi_cuda_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
tdm_status tdmi_cuda_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err);

/* capture.c: likewise */
tdm_status tdmi_cuda_capture_begin(tdmi_stream *stream, tdm_error *err);
tdm_status tdmi_cuda_capture_end(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err);
tdm_status tdmi_cuda_replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err);
void tdmi_cuda_recording_close(tdmi_recording *recording);

#endif

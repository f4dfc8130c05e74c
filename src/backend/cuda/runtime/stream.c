/*
 * Streams, events and recordings (CUDA graphs) of a GPU. Each thread that uses one makes its GPU
 * the thread's own first; nothing else of CUDA's state is relied on.
 */
#include "backend/cuda/cuda.h"
#include "base/scope.h"

#include <cuda_runtime_api.h>

struct tdmi_event {
    tdmi_device *device;
    cudaEvent_t event;
};

struct tdmi_recording {
    tdmi_device *device;
    cudaGraphExec_t graph;
    struct CUstream_st *queue; /* recorded it, or replayed it last */
};

/* CUDA's code as a status. */
static tdm_status check(const tdmi_device *device, cudaError_t code, const char *what,
                        tdm_error *err)
{
    if (code == cudaSuccess)
        return TDM_OK;
    (void)cudaGetLastError();
    return TDM_FAIL(err, code == cudaErrorMemoryAllocation ? TDM_E_MEMORY : TDM_E_SYSTEM,
                    "%s on GPU %d (%s): CUDA says %d, %s", what, device->index, device->name,
                    (int)code, cudaGetErrorString(code));
}

void tdmi_cuda_make_current(const tdmi_device *device)
{
    (void)cudaSetDevice(device->index); /* failing, it fails again in what follows */
}

struct CUstream_st *tdmi_cuda_queue(const tdmi_stream *stream)
{
    tdmi_cuda_make_current(stream->device);
    return stream->queue;
}

void tdmi_cuda_note(tdmi_stream *stream, int code, const char *what)
{
    if (code == 0 || stream->failure != 0)
        return;
    stream->failure = code;
    stream->failed = what;
}

/* ---- streams --------------------------------------------------------------------------------- */

tdm_status tdmi_cuda_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) tdmi_stream *made = NULL;
    *stream = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->device = device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&made->queue, cudaStreamNonBlocking);
    TDMI_TRY(check(device, code, "opening a stream", err));
    *stream = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_cuda_stream_close(tdmi_stream *stream)
{
    if (!stream)
        return;
    (void)cudaStreamSynchronize(tdmi_cuda_queue(stream));
    (void)cudaStreamDestroy(stream->queue);
    tdmi_free(stream);
}

/* The failure of earlier launches, which is reported once; else code. */
static tdm_status settle(tdmi_stream *stream, cudaError_t code, const char *what, tdm_error *err)
{
    const int before = stream->failure;
    stream->failure = 0;
    return before ? check(stream->device, (cudaError_t)before, stream->failed, err)
                  : check(stream->device, code, what, err);
}

tdm_status tdmi_cuda_stream_wait(tdmi_stream *stream, tdm_error *err)
{
    return settle(stream, cudaStreamSynchronize(tdmi_cuda_queue(stream)), "running kernels", err);
}

bool tdmi_cuda_stream_is_busy(tdmi_stream *stream)
{
    const cudaError_t code = cudaStreamQuery(tdmi_cuda_queue(stream));
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    if (code != cudaErrorNotReady)
        tdmi_cuda_note(stream, (int)code, "running kernels");
    return code == cudaErrorNotReady;
}

/* ---- events ---------------------------------------------------------------------------------- */

tdm_status tdmi_cuda_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) tdmi_event *made = NULL;
    *event = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->device = device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming);
    TDMI_TRY(check(device, code, "opening an event", err));
    *event = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_cuda_event_close(tdmi_event *event)
{
    if (!event)
        return;
    (void)cudaEventDestroy(event->event);
    tdmi_free(event);
}

/* Also kept for the next wait, since a caller may ignore the status. */
static tdm_status note_and_check(tdmi_stream *stream, cudaError_t code, const char *what,
                                 tdm_error *err)
{
    tdmi_cuda_note(stream, (int)code, what);
    return check(stream->device, code, what, err);
}

tdm_status tdmi_cuda_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    const cudaError_t code = cudaEventRecord(event->event, tdmi_cuda_queue(stream));
    return note_and_check(stream, code, "recording an event", err);
}

tdm_status tdmi_cuda_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    const cudaError_t code = cudaStreamWaitEvent(tdmi_cuda_queue(stream), event->event, 0);
    return note_and_check(stream, code, "waiting for an event", err);
}

/* ---- recordings ------------------------------------------------------------------------------ */

tdm_status tdmi_cuda_capture_begin(tdmi_stream *stream, tdm_error *err)
{
    /* An earlier failure does not belong to the recording: the next wait reports it. */
    TDMI_TRY(check(stream->device, (cudaError_t)stream->failure, stream->failed, err));
    /* Other threads of the process may reserve memory meanwhile. */
    const cudaError_t code =
        cudaStreamBeginCapture(tdmi_cuda_queue(stream), cudaStreamCaptureModeThreadLocal);
    return check(stream->device, code, "beginning to record a step", err);
}

/* Make an executable graph and upload it, so that a lack of memory fails the recording and not a
 * later step. */
static cudaError_t make_ready(cudaGraph_t graph, struct CUstream_st *queue, cudaGraphExec_t *ready)
{
    cudaGraphExec_t made = NULL;
    cudaError_t code = cudaGraphInstantiate(&made, graph, 0);
    if (code == cudaSuccess)
        code = cudaGraphUpload(made, queue);
    if (code == cudaSuccess)
        *ready = made;
    else if (made)
        (void)cudaGraphExecDestroy(made);
    return code;
}

tdm_status tdmi_cuda_capture_end(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) tdmi_recording *made = tdmi_alloc(1, sizeof *made);
    cudaGraph_t graph = NULL;
    cudaError_t code = cudaStreamEndCapture(tdmi_cuda_queue(stream), &graph);
    if (code == cudaSuccess && !made)
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess && stream->failure == 0)
        code = make_ready(graph, stream->queue, &made->graph);
    if (graph)
        (void)cudaGraphDestroy(graph);
    TDMI_TRY(settle(stream, code, "recording a step", err));
    made->device = stream->device;
    made->queue = stream->queue; /* uploads it */
    *recording = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_cuda_replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    TDMI_TRY(check(stream->device, cudaGraphLaunch(recording->graph, queue),
                   "replaying a recorded step", err));
    recording->queue = queue;
    return TDM_OK;
}

void tdmi_cuda_recording_close(tdmi_recording *recording)
{
    if (!recording)
        return;
    tdmi_cuda_make_current(recording->device);
    /* CUDA does not document what happens to a graph that runs or is uploaded. */
    (void)cudaStreamSynchronize(recording->queue);
    (void)cudaGraphExecDestroy(recording->graph);
    tdmi_free(recording);
}

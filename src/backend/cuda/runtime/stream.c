/*
 * Queues of work and events on a GPU. Each thread that uses one makes its GPU the thread's own
 * first; nothing else of CUDA's state is relied on.
 */
#include "backend/cuda/cuda.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>

struct tdmi_event {
    tdmi_device *device;
    cudaEvent_t event;
};

static tdm_status failure(tdm_error *err, const tdmi_device *device, cudaError_t code,
                          const char *what)
{
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

tdm_status tdmi_cuda_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err)
{
    *stream = NULL;
    tdmi_stream *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening a stream: out of memory");
    made->device = device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&made->queue, cudaStreamNonBlocking);
    if (code != cudaSuccess) {
        tdmi_free(made);
        return failure(err, device, code, "opening a stream");
    }
    *stream = made;
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

tdm_status tdmi_cuda_stream_wait(tdmi_stream *stream, tdm_error *err)
{
    const cudaError_t code = cudaStreamSynchronize(tdmi_cuda_queue(stream));
    const int before = stream->failure;
    stream->failure = 0;
    if (before != 0)
        return failure(err, stream->device, (cudaError_t)before, stream->failed);
    if (code != cudaSuccess)
        return failure(err, stream->device, code, "running kernels");
    return TDM_OK;
}

tdm_status tdmi_cuda_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err)
{
    *event = NULL;
    tdmi_event *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening an event: out of memory");
    made->device = device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming);
    if (code != cudaSuccess) {
        tdmi_free(made);
        return failure(err, device, code, "opening an event");
    }
    *event = made;
    return TDM_OK;
}

void tdmi_cuda_event_close(tdmi_event *event)
{
    if (!event)
        return;
    (void)cudaEventDestroy(event->event);
    tdmi_free(event);
}

tdm_status tdmi_cuda_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    const cudaError_t code = cudaEventRecord(event->event, tdmi_cuda_queue(stream));
    tdmi_cuda_note(stream, (int)code, "recording an event"); /* a caller may leave it to the wait */
    return code == cudaSuccess ? TDM_OK : failure(err, stream->device, code, "recording an event");
}

tdm_status tdmi_cuda_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    const cudaError_t code = cudaStreamWaitEvent(tdmi_cuda_queue(stream), event->event, 0);
    tdmi_cuda_note(stream, (int)code, "waiting for an event"); /* likewise */
    return code == cudaSuccess ? TDM_OK
                               : failure(err, stream->device, code, "waiting for an event");
}

/* Recording the work of a stream as a CUDA graph, and replaying it with one launch. */
#include "backend/cuda/cuda.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>

struct tdmi_recording {
    tdmi_device *device;
    cudaGraphExec_t graph;
    struct CUstream_st *queue; /* recorded it, or replayed it last */
};

static tdm_status failure(tdm_error *err, const tdmi_device *device, cudaError_t code,
                          const char *what)
{
    (void)cudaGetLastError();
    return TDM_FAIL(err, code == cudaErrorMemoryAllocation ? TDM_E_MEMORY : TDM_E_SYSTEM,
                    "%s on GPU %d (%s): CUDA says %d, %s", what, device->index, device->name,
                    (int)code, cudaGetErrorString(code));
}

tdm_status tdmi_cuda_capture_begin(tdmi_stream *stream, tdm_error *err)
{
    /* An earlier failure is none of the recording: the next wait reports it. */
    if (stream->failure != 0)
        return failure(err, stream->device, (cudaError_t)stream->failure, stream->failed);
    /* Other threads of the process may reserve memory meanwhile. */
    const cudaError_t code =
        cudaStreamBeginCapture(tdmi_cuda_queue(stream), cudaStreamCaptureModeThreadLocal);
    return code == cudaSuccess ? TDM_OK
                               : failure(err, stream->device, code, "beginning to record a step");
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
    cudaGraph_t graph = NULL;
    tdmi_recording *made = tdmi_alloc(1, sizeof *made);
    cudaError_t code = cudaStreamEndCapture(tdmi_cuda_queue(stream), &graph);
    const int before = stream->failure; /* of what was to be recorded */
    stream->failure = 0;
    if (before == 0 && code == cudaSuccess && made)
        code = make_ready(graph, stream->queue, &made->graph);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (before == 0 && code == cudaSuccess && made) {
        made->device = stream->device;
        made->queue = stream->queue; /* uploads it */
        *recording = made;
        return TDM_OK;
    }
    tdmi_free(made);
    if (before != 0)
        return failure(err, stream->device, (cudaError_t)before, stream->failed);
    if (code != cudaSuccess)
        return failure(err, stream->device, code, "recording a step");
    return TDM_FAIL(err, TDM_E_MEMORY, "recording a step: out of memory");
}

tdm_status tdmi_cuda_replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    const cudaError_t code = cudaGraphLaunch(recording->graph, queue);
    if (code == cudaSuccess)
        recording->queue = queue;
    return code == cudaSuccess ? TDM_OK
                               : failure(err, stream->device, code, "replaying a recorded step");
}

void tdmi_cuda_recording_close(tdmi_recording *recording)
{
    if (!recording)
        return;
    (void)cudaSetDevice(recording->device->index);
    /* CUDA does not document what happens to a graph that runs or is uploaded. */
    (void)cudaStreamSynchronize(recording->queue);
    (void)cudaGraphExecDestroy(recording->graph);
    tdmi_free(recording);
}

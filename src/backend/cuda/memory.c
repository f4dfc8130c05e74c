/* Memory of a card, and copies between it and ordinary memory. */
#include "backend/cuda/cuda.h"

#include <cuda_runtime_api.h>

void *tdmi_cuda_alloc(tdmi_device *device, size_t bytes)
{
    void *memory = NULL;
    if (cudaSetDevice(device->index) == cudaSuccess &&
        cudaMalloc(&memory, bytes ? bytes : 1) == cudaSuccess &&
        cudaMemset(memory, 0, bytes ? bytes : 1) == cudaSuccess &&
        cudaStreamSynchronize(NULL) == cudaSuccess)
        return memory;
    (void)cudaGetLastError(); /* the caller says what it was for */
    if (memory)
        (void)cudaFree(memory);
    return NULL;
}

void tdmi_cuda_free(tdmi_device *device, void *memory)
{
    (void)cudaSetDevice(device->index);
    (void)cudaFree(memory); /* after all work that was queued */
}

static tdm_status copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind, const char *direction, tdm_error *err)
{
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    const cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, queue);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return TDM_FAIL(err, TDM_E_SYSTEM, "copying %zu bytes %s card %d: %s", bytes, direction,
                        stream->device->index, cudaGetErrorString(code));
    }
    return TDM_OK;
}

tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyHostToDevice, "to", err);
}

tdm_status tdmi_cuda_download(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                              tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyDeviceToHost, "from", err);
}

/* Memory of a GPU, and copies between it and ordinary memory. */
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
        tdmi_cuda_note(stream, (int)code, direction); /* a caller may leave it to the next wait */
        return TDM_FAIL(err, TDM_E_SYSTEM, "%s GPU %d, %zu bytes: %s", direction,
                        stream->device->index, bytes, cudaGetErrorString(code));
    }
    return TDM_OK;
}

tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyHostToDevice, "copying to", err);
}

tdm_status tdmi_cuda_download(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                              tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyDeviceToHost, "copying from", err);
}

void tdmi_cuda_clear(tdmi_stream *stream, void *memory, size_t bytes)
{
    tdmi_cuda_note(stream, (int)cudaMemsetAsync(memory, 0, bytes, tdmi_cuda_queue(stream)),
                   "clearing memory");
}

void *tdmi_cuda_alloc_pinned(tdmi_device *device, size_t bytes)
{
    void *memory = NULL;
    if (cudaSetDevice(device->index) == cudaSuccess &&
        cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    return NULL;
}

void tdmi_cuda_free_pinned(tdmi_device *device, void *memory)
{
    (void)cudaSetDevice(device->index);
    (void)cudaFreeHost(memory);
}

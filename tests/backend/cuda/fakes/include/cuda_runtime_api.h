/*
 * Our own declarations of the part of CUDA's runtime that backend cuda uses. For tests the files of
 * runtime/ are compiled with this header and linked with fake_runtime*.c, so that they run without
 * a toolkit and without a GPU.
 */
#pragma once

#include "backend/cuda/fakes/include/numbers.h"
#include <stddef.h>

#define X(name, number, words) name = number,
enum cudaError { FAKE_CUDA_ERRORS(X) };
#undef X
#define X(name, number) name = number,
enum cudaMemcpyKind { FAKE_CUDA_MEMCPY_KINDS(X) };
enum cudaStreamCaptureMode { FAKE_CUDA_CAPTURE_MODES(X) };
enum { FAKE_CUDA_FLAGS(X) };
#undef X

typedef enum cudaError cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

struct cudaDeviceProp {
    char name[256];
    struct {
        char bytes[16];
    } uuid;
    int multiProcessorCount, major, minor;
};

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t code);

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *facts, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

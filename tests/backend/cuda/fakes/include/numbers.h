/* Numbers of CUDA's runtime that backend cuda meets. test_library_numbers compares them with
 * NVIDIA's own header, if that is installed. */
#pragma once

/* X(name, number, in words) */
#define FAKE_CUDA_ERRORS(X)                                                               \
    X(cudaSuccess, 0, "no error")                                                         \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                       \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                      \
    X(cudaErrorInitializationError, 3, "initialization error")                            \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                 \
    X(cudaErrorInsufficientDriver, 35, "the driver is older than the runtime")            \
    X(cudaErrorDevicesUnavailable, 46, "the GPU is busy or unavailable")                  \
    X(cudaErrorNoDevice, 100, "no GPU is detected")                                       \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                              \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                     \
    X(cudaErrorIllegalState, 401, "not permitted in the state of the object")             \
    X(cudaErrorNotReady, 600, "work is not done")                                         \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                          \
    X(cudaErrorStreamCaptureUnsupported, 900, "not permitted while a stream is captured") \
    X(cudaErrorStreamCaptureInvalidated, 901, "an earlier failure ended the capture")     \
    X(cudaErrorStreamCaptureWrongThread, 908, "the capture was begun by another thread")

/* X(name, number) */
#define FAKE_CUDA_MEMCPY_KINDS(X) \
    X(cudaMemcpyHostToDevice, 1)  \
    X(cudaMemcpyDeviceToHost, 2)
#define FAKE_CUDA_CAPTURE_MODES(X) X(cudaStreamCaptureModeThreadLocal, 1)
#define FAKE_CUDA_FLAGS(X)      \
    X(cudaHostAllocDefault, 0)  \
    X(cudaStreamNonBlocking, 1) \
    X(cudaEventDefault, 0)      \
    X(cudaEventDisableTiming, 2)

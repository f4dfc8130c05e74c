/* The functions of nvJPEG that are used, and numbers from NVIDIA's reference. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

enum { TDMI_NVJPEG_PLANES = 4 };

/* Destination of an image's planes. */
struct tdmi_nvjpeg_image {
    uint8_t *samples[TDMI_NVJPEG_PLANES];
    size_t stride_bytes[TDMI_NVJPEG_PLANES];
};

/* X(field, symbol, result, parameters); handles, states and streams are void pointers here */
#define TDMI_NVJPEG_CALLS(X)                                                                     \
    X(property, nvjpegGetProperty, int, (int, int *))                                            \
    X(create, nvjpegCreateEx, int, (int, void *, void *, unsigned, void **))                     \
    X(destroy, nvjpegDestroy, int, (void *))                                                     \
    X(create_state, nvjpegJpegStateCreate, int, (void *, void **))                               \
    X(destroy_state, nvjpegJpegStateDestroy, int, (void *))                                      \
    X(image_info, nvjpegGetImageInfo, int,                                                       \
      (void *, const uint8_t *, size_t, int *, int *, int *, int *))                             \
    X(create_stream, nvjpegJpegStreamCreate, int, (void *, void **))                             \
    X(destroy_stream, nvjpegJpegStreamDestroy, int, (void *))                                    \
    X(parse_header, nvjpegJpegStreamParseHeader, int, (void *, const uint8_t *, size_t, void *)) \
    X(is_supported, nvjpegDecodeBatchedSupported, int, (void *, void *, int *))                  \
    X(begin_batch, nvjpegDecodeBatchedInitialize, int, (void *, void *, int, int, int))          \
    X(decode_batch, nvjpegDecodeBatched, int,                                                    \
      (void *, void *, const uint8_t *const *, const size_t *, struct tdmi_nvjpeg_image *,       \
       struct CUstream_st *))

struct tdmi_nvjpeg_calls {
#define X(field, symbol, result, parameters) result(*field) parameters;
    TDMI_NVJPEG_CALLS(X)
#undef X
};

/* X(ours, theirs, number) */
#define TDMI_NVJPEG_NUMBERS(X)                            \
    X(MAJOR, MAJOR_VERSION, 0)                            \
    X(MINOR, MINOR_VERSION, 1)                            \
    X(PATCH, PATCH_LEVEL, 2)                              \
    X(BY_DEFAULT, NVJPEG_BACKEND_DEFAULT, 0)              \
    X(BY_HARDWARE, NVJPEG_BACKEND_HARDWARE, 3)            \
    X(BAD, NVJPEG_STATUS_BAD_JPEG, 3)                     \
    X(NOT_SUPPORTED, NVJPEG_STATUS_JPEG_NOT_SUPPORTED, 4) \
    X(NO_MEMORY, NVJPEG_STATUS_ALLOCATOR_FAILURE, 5)      \
    X(OTHER_GPU, NVJPEG_STATUS_ARCH_MISMATCH, 7)          \
    X(CSS_444, NVJPEG_CSS_444, 0)                         \
    X(CSS_422, NVJPEG_CSS_422, 1)                         \
    X(CSS_420, NVJPEG_CSS_420, 2)                         \
    X(CSS_GREY, NVJPEG_CSS_GRAY, 6)                       \
    X(AS_PLANES, NVJPEG_OUTPUT_YUV, 1)

enum {
#define X(ours, theirs, number) TDMI_NVJPEG_##ours = number,
    TDMI_NVJPEG_NUMBERS(X)
#undef X
};

/*
 * Our copies of NVIDIA's constants equal those of its headers, where these are
 * installed: cuDNN's, cuBLASLt's, nvJPEG's, NCCL's, and those of the runtime that tests stand in
 * for.
 */
#include "backend/cuda/fakes/include/numbers.h"
#include "backend/cuda/vendor/cublaslt_api.h"
#include "backend/cuda/vendor/cudnn_api.h"
#include "backend/cuda/vendor/nccl_api.h"
#include "backend/cuda/vendor/nvjpeg_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#define HAS_RUNTIME 1
#else
#define HAS_RUNTIME 0
#endif

#if __has_include(<cudnn.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cudnn.h>
#define HAS_HEADERS 1
#else
#define HAS_HEADERS 0
#endif

#if __has_include(<nvjpeg.h>)
#include <nvjpeg.h>
#define HAS_NVJPEG 1
#else
#define HAS_NVJPEG 0
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
#define HAS_NCCL 1
#else
#define HAS_NCCL 0
#endif

/* The sizes of parameters: handles are pointers, enums are ints. */
static void numbers_of_nccl_match_its_header(void **state)
{
    (void)state;
#if HAS_NCCL
#define X(ours, theirs, number) assert_int_equal(theirs, number);
    TDMI_NCCL_NUMBERS(X)
#undef X
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    assert_true(config.magic == TDMI_NCCL_CONFIG_MAGIC);
    assert_int_equal(offsetof(ncclConfig_t, version), offsetof(struct tdmi_nccl_config, version));
    assert_int_equal(offsetof(ncclConfig_t, blocking), offsetof(struct tdmi_nccl_config, blocking));
    assert_true(sizeof(struct tdmi_nccl_config) <= sizeof config);
    assert_int_equal(NCCL_VERSION(2, 14, 0), TDMI_NCCL_CONFIG_VERSION);
    assert_int_equal(sizeof(ncclUniqueId), sizeof(struct tdmi_peers_id));
    assert_int_equal(sizeof(ncclResult_t), sizeof(int));
    assert_int_equal(sizeof(ncclDataType_t), sizeof(int));
    assert_int_equal(sizeof(ncclRedOp_t), sizeof(int));
    assert_int_equal(sizeof(ncclComm_t), sizeof(void *));
#else
    print_message("the header of NCCL, no part of every toolkit, is not installed: not compared\n");
#endif
}

static void numbers_of_nvjpeg_match_its_header(void **state)
{
    (void)state;
#if HAS_NVJPEG
#define X(ours, theirs, number) assert_int_equal(theirs, number);
    TDMI_NVJPEG_NUMBERS(X)
#undef X
    assert_int_equal(sizeof(nvjpegImage_t), sizeof(struct tdmi_nvjpeg_image));
    assert_int_equal(offsetof(nvjpegImage_t, pitch),
                     offsetof(struct tdmi_nvjpeg_image, stride_bytes));
    assert_int_equal(NVJPEG_MAX_COMPONENT, TDMI_NVJPEG_PLANES);
    assert_int_equal(sizeof(nvjpegOutputFormat_t), sizeof(int));
#else
    print_message(
        "the header of nvJPEG, no part of every toolkit, is not installed: not compared\n");
#endif
}

static void numbers_of_libraries_match_their_headers(void **state)
{
    (void)state;
#if HAS_HEADERS
#define X(ours, theirs, number) assert_int_equal(theirs, number);
    TDMI_CUDNN_KINDS(X)
    TDMI_CUDNN_ATTRIBUTES(X)
    TDMI_CUDNN_TYPES(X)
    TDMI_CUDNN_VALUES(X)
    TDMI_CUBLASLT_NUMBERS(X)
#undef X
    assert_int_equal(sizeof(cudnnBackendDescriptor_t), sizeof(tdmi_cudnn_descriptor));
    assert_int_equal(sizeof(cudnnBackendAttributeName_t), sizeof(int));
    assert_int_equal(sizeof(cublasLtMatmulHeuristicResult_t), sizeof(struct tdmi_cublaslt_guess));
    assert_int_equal(offsetof(cublasLtMatmulHeuristicResult_t, state),
                     offsetof(struct tdmi_cublaslt_guess, state));
    assert_int_equal(sizeof(cublasLtMatmulAlgo_t), sizeof(struct tdmi_cublaslt_algorithm));
#else
    print_message("headers of cuDNN and cuBLASLt are not installed: nothing to compare with\n");
    skip();
#endif
}

static void numbers_of_the_runtime_match_its_header(void **state)
{
    (void)state;
#if HAS_RUNTIME
#define X(name, number, words) assert_int_equal(name, number);
    FAKE_CUDA_ERRORS(X)
#undef X
#define X(name, number) assert_int_equal(name, number);
    FAKE_CUDA_MEMCPY_KINDS(X)
    FAKE_CUDA_CAPTURE_MODES(X)
    FAKE_CUDA_FLAGS(X)
#undef X
    assert_int_equal(sizeof((struct cudaDeviceProp *)NULL)->name, 256);
    assert_int_equal(sizeof((struct cudaDeviceProp *)NULL)->uuid.bytes, 16);
#else
    print_message("the header of CUDA's runtime is not installed: nothing to compare with\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_libraries_match_their_headers),
        cmocka_unit_test(numbers_of_the_runtime_match_its_header),
        cmocka_unit_test(numbers_of_nvjpeg_match_its_header),
        cmocka_unit_test(numbers_of_nccl_match_its_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What cudnn_api.h, cublaslt_api.h and nvjpeg_api.h say of NVIDIA's numbers is what its own headers
 * say, where they are installed.
 */
#include "backend/cuda/cublaslt_api.h"
#include "backend/cuda/cudnn_api.h"
#include "backend/cuda/nvjpeg_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

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

#if HAS_NVJPEG
static void nvjpegs_are_those_of_its_header(void **state)
{
    (void)state;
#define X(ours, theirs, number) assert_int_equal(theirs, number);
    TDMI_NVJPEG_NUMBERS(X)
#undef X
    assert_int_equal(sizeof(nvjpegImage_t), sizeof(struct tdmi_nvjpeg_image));
    assert_int_equal(offsetof(nvjpegImage_t, pitch),
                     offsetof(struct tdmi_nvjpeg_image, stride_bytes));
    assert_int_equal(NVJPEG_MAX_COMPONENT, TDMI_NVJPEG_PLANES);
    assert_int_equal(sizeof(nvjpegOutputFormat_t), sizeof(int));
}
#endif

static void numbers_are_those_of_the_headers(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_headers),
#if HAS_NVJPEG /* no part of every toolkit */
        cmocka_unit_test(nvjpegs_are_those_of_its_header),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The functions of cuBLASLt that are used, and numbers from NVIDIA's reference. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

struct tdmi_cublaslt_algorithm {
    uint64_t words[8];
};

/* Result of the heuristics. */
struct tdmi_cublaslt_guess {
    struct tdmi_cublaslt_algorithm algorithm;
    size_t workspace_bytes;
    int state; /* 0: it can be run */
    float waves;
    int reserved[4];
};

/* X(field, symbol, result, parameters); handles and descriptors are void pointers here */
#define TDMI_CUBLASLT_CALLS(X)                                                                     \
    X(version, cublasLtGetVersion, size_t, (void))                                                 \
    X(create_handle, cublasLtCreate, int, (void **))                                               \
    X(destroy_handle, cublasLtDestroy, int, (void *))                                              \
    X(create_operation, cublasLtMatmulDescCreate, int, (void **, int, int))                        \
    X(set_operation, cublasLtMatmulDescSetAttribute, int, (void *, int, const void *, size_t))     \
    X(destroy_operation, cublasLtMatmulDescDestroy, int, (void *))                                 \
    X(create_layout, cublasLtMatrixLayoutCreate, int, (void **, int, uint64_t, uint64_t, int64_t)) \
    X(destroy_layout, cublasLtMatrixLayoutDestroy, int, (void *))                                  \
    X(create_preference, cublasLtMatmulPreferenceCreate, int, (void **))                           \
    X(set_preference, cublasLtMatmulPreferenceSetAttribute, int,                                   \
      (void *, int, const void *, size_t))                                                         \
    X(destroy_preference, cublasLtMatmulPreferenceDestroy, int, (void *))                          \
    X(guess, cublasLtMatmulAlgoGetHeuristic, int,                                                  \
      (void *, void *, void *, void *, void *, void *, void *, int, struct tdmi_cublaslt_guess *,  \
       int *))                                                                                     \
    X(check, cublasLtMatmulAlgoCheck, int,                                                         \
      (void *, void *, void *, void *, void *, void *, const struct tdmi_cublaslt_algorithm *,     \
       struct tdmi_cublaslt_guess *))                                                              \
    X(get_config, cublasLtMatmulAlgoConfigGetAttribute, int,                                       \
      (const struct tdmi_cublaslt_algorithm *, int, void *, size_t, size_t *))                     \
    X(multiply, cublasLtMatmul, int,                                                               \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *,     \
       const void *, void *, void *, void *, const struct tdmi_cublaslt_algorithm *, void *,       \
       size_t, struct CUstream_st *))

struct tdmi_cublaslt_calls {
#define X(field, symbol, result, parameters) result(*field) parameters;
    TDMI_CUBLASLT_CALLS(X)
#undef X
};

/* X(ours, theirs, number) */
#define TDMI_CUBLASLT_NUMBERS(X)                                       \
    X(F32, CUDA_R_32F, 0)                                              \
    X(F16, CUDA_R_16F, 2)                                              \
    X(BF16, CUDA_R_16BF, 14)                                           \
    X(IN_F32, CUBLAS_COMPUTE_32F, 68)                                  \
    X(IN_TF32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                       \
    X(TRANSPOSED, CUBLAS_OP_T, 1)                                      \
    X(TRANSPOSE_FIRST, CUBLASLT_MATMUL_DESC_TRANSA, 3)                 \
    X(TRANSPOSE_SECOND, CUBLASLT_MATMUL_DESC_TRANSB, 4)                \
    X(EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                      \
    X(BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)              \
    X(ADDS_BIAS, CUBLASLT_EPILOGUE_BIAS, 4)                            \
    X(IS_RELU, CUBLASLT_EPILOGUE_RELU, 2)                              \
    X(ADDS_BIAS_IS_RELU, CUBLASLT_EPILOGUE_RELU_BIAS, 6)               \
    X(WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)          \
    X(REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)       \
    X(ALIGNMENT_FIRST, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)  \
    X(ALIGNMENT_SECOND, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) \
    X(ALIGNMENT_ADDED, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)  \
    X(ALIGNMENT_RESULT, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) \
    X(IN_A_STEP_OF_ITS_OWN, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
    X(IN_PLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)                  \
    X(CONFIG_NUMBER, CUBLASLT_ALGO_CONFIG_ID, 0)                       \
    X(CONFIG_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                    \
    X(CONFIG_PARTS, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)

#define X(ours, theirs, number) TDMI_CUBLASLT_N_##ours = (number),
enum tdmi_cublaslt_number { TDMI_CUBLASLT_NUMBERS(X) };
#undef X

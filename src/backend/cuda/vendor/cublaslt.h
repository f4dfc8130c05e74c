/*
 * Products of matrices by cuBLASLt. Its heuristics name algorithms, and those that give the same
 * bits on every run (unless they may vary) are timed. As with cuDNN (cudnn_api.h) its headers are
 * not needed; a test compares the numbers.
 */
#pragma once

#include "backend/cuda/vendor/library.h"
#include "base/scope.h"

struct CUstream_st;
typedef struct tdmi_cublaslt tdmi_cublaslt;

/* For the calling thread's GPU. file NULL: search for it (library.h). TDM_E_ABSENT: there is none.
 */
tdm_status tdmi_cublaslt_open(const char *file, tdmi_cublaslt **cublaslt,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_cublaslt_close(tdmi_cublaslt *cublaslt);
TDMI_POINTER_RELEASE(tdmi_cublaslt, tdmi_cublaslt_close)
extern const struct tdmi_cuda_library tdmi_cublaslt_library;
int tdmi_cublaslt_version(const tdmi_cublaslt *cublaslt); /* 130200 for 13.2.0 */

/* d (rows, columns) = act(a (rows, depth) · b (depth, columns) + bias), all by rows, one after
 * another. */
struct tdmi_cublaslt_product {
    enum tdmi_dtype type;   /* of a and b: F32, BF16, F16 */
    enum tdmi_dtype result; /* of d and the bias */
    int64_t rows, columns, depth;
    bool is_a_transposed;  /* a lies as (depth, rows) */
    bool is_b_transposed;  /* b lies as (columns, depth) */
    bool has_bias;         /* one a column */
    enum tdmi_act act;     /* NONE or RELU: cuBLASLt has no other */
    bool allows_tf32;      /* of f32: what is multiplied may be rounded */
    bool may_vary;         /* sums may be added in another order on every run */
    int alignment;         /* bytes that d begins on; a, b and the bias: 16 */
    size_t most_workspace; /* 0: the usual limit */
};

enum { TDMI_CUBLASLT_ALGORITHM_WORDS = 8, TDMI_CUBLASLT_MOST_WORKSPACE = 32 << 20 };

/* Everything about one product but its pointers. */
struct tdmi_cublaslt_plan {
    struct tdmi_cublaslt_product product;
    void *operation, *first, *second, *result; /* of cuBLASLt */
    uint64_t algorithm[TDMI_CUBLASLT_ALGORITHM_WORDS];
    size_t workspace_bytes;
};

/* Seconds of one run; below 0: it cannot be run. */
typedef double tdmi_cublaslt_timer(void *self, const struct tdmi_cublaslt_plan *plan);

/* timer NULL: the first is taken. TDM_E_ABSENT: there is none. */
tdm_status tdmi_cublaslt_plan_find(tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_product *it,
                                   tdmi_cublaslt_timer *timer, void *self,
                                   struct tdmi_cublaslt_plan *plan, tdm_error *err) TDM_MUST_USE;
/* Use an algorithm that was chosen before. TDM_E_INPUT: cuBLASLt refuses it. */
tdm_status tdmi_cublaslt_plan_take(tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_product *it,
                                   const uint64_t algorithm[TDMI_CUBLASLT_ALGORITHM_WORDS],
                                   struct tdmi_cublaslt_plan *plan, tdm_error *err) TDM_MUST_USE;
/* "cuBLASLt algorithm 66, tile 20, 4 parts" */
void tdmi_cublaslt_plan_name(const tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_plan *plan,
                             char *text, size_t text_bytes);
void tdmi_cublaslt_plan_release(tdmi_cublaslt *cublaslt, struct tdmi_cublaslt_plan *plan);

struct tdmi_cublaslt_call {
    const void *a, *b, *bias;
    const void *added; /* like d, and may be d: added to it; NULL: nothing */
    void *d, *workspace;
};
/* cuBLASLt's code. Any thread: a plan is only read. */
int tdmi_cublaslt_plan_run(const tdmi_cublaslt *cublaslt, const struct tdmi_cublaslt_plan *plan,
                           struct CUstream_st *queue, const struct tdmi_cublaslt_call *call);

/*
 * Internals of backend cpu: its kernels by name, among them several for convolutions.
 */
#pragma once

#include "backend/backend.h"

/* Bytes rounded up to whole lines of the cache. */
static inline size_t tdmi_cpu_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Offset of `bytes` behind *total, which grows by whole lines. */
static inline size_t tdmi_cpu_reserve(size_t *total, size_t bytes)
{
    const size_t at = *total;
    *total += tdmi_cpu_lines(bytes);
    return at;
}

/* The next `values` floats of an array that is cut into whole lines of the cache, of which *total
 * floats are taken; base NULL: only count. */
static inline float *tdmi_cpu_take(float *base, int64_t *total, int64_t values)
{
    float *at = base ? base + *total : NULL;
    *total += (values + 15) / 16 * 16;
    return at;
}

/* to += from */
static inline void tdmi_cpu_accumulate(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

extern const struct tdmi_kernel tdmi_cpu_conv, tdmi_cpu_dense, tdmi_cpu_batch_norm;
/* activation: relu and relu6 */
extern const struct tdmi_kernel tdmi_cpu_add, tdmi_cpu_activation, tdmi_cpu_global_pool,
    tdmi_cpu_pool;
/* Vectorised; bit-identical to ref. */
extern const struct tdmi_kernel tdmi_cpu_softmax, tdmi_cpu_hswish, tdmi_cpu_sigmoid;

/* Vectorised; bit-identical to ref. */
extern const struct tdmi_update_table tdmi_cpu_update;

/* Kernels of convolutions, and of dense layers. */
extern const struct tdmi_kernel tdmi_conv_by_depthwise, tdmi_conv_by_onednn;
extern const struct tdmi_kernel tdmi_conv_by_thin;
extern const struct tdmi_kernel tdmi_conv_by_gemm, tdmi_conv_by_gemm_if_best;
extern const struct tdmi_kernel tdmi_dense_by_lanes, tdmi_dense_by_onednn;

/* The kernels of convolutions or of dense layers that this build has, best first, NULL at the end
 * (registry.c): the first that can do all of a desc runs it (choice.c). An op without a kernel here
 * has that of ref: memory is the same. */
const struct tdmi_kernel *const *tdmi_cpu_kernels_of(enum tdmi_op_kind kind);
/* Prepare desc for the first kernel of the list that can do all of it. When preparing fails with
 * TDM_E_ABSENT the next one is tried; the error of the last one is returned. */
tdm_status tdmi_cpu_prepare_first(const struct tdmi_kernel *const *kernels,
                                  struct tdmi_op_desc *desc, const struct tdmi_kernel **kernel,
                                  tdm_error *err) TDM_MUST_USE;
extern const struct tdmi_kernel *const tdmi_cpu_kernels[TDMI_OP_KINDS];
/* ", oneDNN 3.2.0 (…)" as loaded; "": it cannot be opened. onednn/load.c */
void tdmi_onednn_write_version(char *text, size_t text_bytes);
/* Write ", " and the libraries that kernels call with the versions
 * that are loaded; "": none. */
void tdmi_cpu_write_libraries(char *text, size_t text_bytes);

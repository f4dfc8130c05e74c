/*
 * Inside backend cpu: its kernels by name, and the ways it has to run a convolution.
 */
#ifndef TANDEM_BACKEND_CPU_CPU_H
#define TANDEM_BACKEND_CPU_CPU_H

#include "backend/backend.h"

extern const struct tdmi_kernel tdmi_cpu_conv, tdmi_cpu_dense, tdmi_cpu_batch_norm;
/* activation: relu and relu6 */
extern const struct tdmi_kernel tdmi_cpu_add, tdmi_cpu_activation, tdmi_cpu_global_pool;
extern const struct tdmi_kernel tdmi_cpu_max_pool, tdmi_cpu_avg_pool;

/* The same bits as ref's, in vectors. */
extern const struct tdmi_update_table tdmi_cpu_update;

/* A way to run a convolution is a kernel of its own. */
extern const struct tdmi_kernel tdmi_conv_by_depthwise, tdmi_conv_by_onednn;
extern const struct tdmi_kernel tdmi_conv_by_thin;
extern const struct tdmi_kernel tdmi_conv_by_gemm, tdmi_conv_by_gemm_if_best;
extern const struct tdmi_kernel tdmi_dense_by_onednn;

/* registry.c: what this build has. Of the convolutions the first that can do what a desc says runs
 * it; NULL ends the list. An op without a kernel of ours has ref's: memory is the same. */
const struct tdmi_kernel *const *tdmi_cpu_convs(void);
/* Prepares desc for the first of ways that can do what it says. A way that is then found to be
 * absent (TDM_E_ABSENT) makes room for the next one; the last one's error is the caller's. */
tdm_status tdmi_cpu_prepare_first(const struct tdmi_kernel *const *ways, struct tdmi_op_desc *desc,
                                  const struct tdmi_kernel **way, tdm_error *err) TDM_MUST_USE;
/* What the build has for dense layers that no kernel of ours is for. */
const struct tdmi_kernel *tdmi_cpu_dense_of_any_shape(void);
extern const struct tdmi_kernel *const tdmi_cpu_kernels[TDMI_OP_KINDS];
/* onednn/primitive.c */
void tdmi_onednn_write_version(char *text, size_t text_bytes);
/* ", " and the libraries that kernels call, with the versions that are linked now; "": none. */
void tdmi_cpu_write_libraries(char *text, size_t text_bytes);

#endif

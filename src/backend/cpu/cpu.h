/*
 * Inside backend cpu: its kernels by name, and the ways it has to run a convolution.
 */
#ifndef TANDEM_BACKEND_CPU_CPU_H
#define TANDEM_BACKEND_CPU_CPU_H

#include "backend/backend.h"

extern const struct tdmi_kernel tdmi_cpu_conv, tdmi_cpu_batch_norm;

/* A way to run a convolution is a kernel of its own. */
extern const struct tdmi_kernel tdmi_conv_by_depthwise, tdmi_conv_by_onednn;
extern const struct tdmi_kernel tdmi_dense_by_onednn;

/* registry.c: what this build has. Of the convolutions the first that can do what a desc says runs
 * it; NULL ends the list. An op without a kernel of ours has ref's: memory is the same. */
const struct tdmi_kernel *const *tdmi_cpu_convs(void);
extern const struct tdmi_kernel *const tdmi_cpu_kernels[TDMI_OP_KINDS];

#endif

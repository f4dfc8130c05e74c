/*
 * The kernels of backend cpu in this build: the only file with conditions on its libraries.
 */
#include "backend/cpu/cpu.h"
#include "backend/ref_kernels.h"
#include "tandem_features.h"

static const struct tdmi_kernel *const convs[] = {
    &tdmi_conv_by_depthwise, &tdmi_conv_by_thin, &tdmi_conv_by_gemm_if_best,
#if TDM_HAVE_ONEDNN
    &tdmi_conv_by_onednn,
#endif
    &tdmi_conv_by_gemm,      &tdmi_ref_conv,     NULL,
};

static const struct tdmi_kernel *const denses[] = {
    &tdmi_dense_by_lanes,
#if TDM_HAVE_ONEDNN
    &tdmi_dense_by_onednn,
#endif
    &tdmi_ref_dense,
    NULL,
};

const struct tdmi_kernel *const *tdmi_cpu_kernels_of(enum tdmi_op_kind kind)
{
    return kind == TDMI_OP_CONV ? convs : denses;
}

void tdmi_cpu_write_libraries(char *text, size_t text_bytes)
{
    *text = '\0';
#if TDM_HAVE_ONEDNN
    tdmi_onednn_write_version(text, text_bytes);
#else
    (void)text_bytes;
#endif
}

/* Lines below the list replace lines of it, which is what the warning is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct tdmi_kernel *const tdmi_cpu_kernels[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) [TDMI_OP_##NAME] = &tdmi_ref_##name,
#include "backend/ops.def"
#undef X
    [TDMI_OP_CONV] = &tdmi_cpu_conv,        [TDMI_OP_BATCH_NORM] = &tdmi_cpu_batch_norm,
    [TDMI_OP_ADD] = &tdmi_cpu_add,          [TDMI_OP_RELU] = &tdmi_cpu_activation,
    [TDMI_OP_RELU6] = &tdmi_cpu_activation, [TDMI_OP_GLOBAL_POOL] = &tdmi_cpu_global_pool,
    [TDMI_OP_MAX_POOL] = &tdmi_cpu_pool,    [TDMI_OP_AVG_POOL] = &tdmi_cpu_pool,
    [TDMI_OP_DENSE] = &tdmi_cpu_dense,      [TDMI_OP_SOFTMAX] = &tdmi_cpu_softmax,
    [TDMI_OP_HSWISH] = &tdmi_cpu_hswish,    [TDMI_OP_SIGMOID] = &tdmi_cpu_sigmoid,
};

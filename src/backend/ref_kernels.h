/*
 * The kernels of the reference backend by name: another backend on ordinary memory may put them in
 * its table where it has none of its own.
 */
#pragma once

#include "backend/backend.h"

#define X(name, NAME, inputs) extern const struct tdmi_kernel tdmi_ref_##name;
#include "backend/ops.def"
#undef X

/* Batch norm in training on ordinary memory: the read form from the sums and the target of the
 * running statistics; or the read form from the running statistics, which then stay. */
void tdmi_ref_norm_finish(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call);
void tdmi_ref_norm_keep(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call);
/* The read form from the running statistics, without training. */
void tdmi_ref_norm_form(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                        float *scale, float *shift);

/* Updates in plain C: the table of backend ref. */
extern const struct tdmi_update_table tdmi_ref_update;

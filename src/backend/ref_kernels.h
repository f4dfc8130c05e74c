/*
 * The kernels of the reference backend by name: another backend on ordinary memory may put them in
 * its table where it has none of its own.
 */
#ifndef TANDEM_BACKEND_REF_KERNELS_H
#define TANDEM_BACKEND_REF_KERNELS_H

#include "backend/backend.h"

#define X(name, NAME, inputs) extern const struct tdmi_kernel tdmi_ref_##name;
#include "backend/ops.def"
#undef X

void tdmi_ref_sgd(tdmi_stream *stream, const struct tdmi_update_call *call);
void tdmi_ref_blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                    float momentum);
void tdmi_ref_accumulate(tdmi_stream *stream, float *to, const float *from, int64_t n);

#endif

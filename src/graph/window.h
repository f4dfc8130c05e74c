/* The shape rule of windows, and the functions that max_pool and avg_pool share. */
#pragma once

#include "graph/op.h"

/* out gets height and width of the windows' grid and the input's channels. */
tdm_status tdmi_window_shape(const struct tdmi_op_attrs *attrs, int dilation, struct tdmi_shape in,
                             struct tdmi_shape *out, tdm_error *err) TDM_MUST_USE;

tdm_status tdmi_pool_shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                           struct tdmi_shape *out, tdm_error *err) TDM_MUST_USE;
double tdmi_pool_flops(const struct tdmi_op_attrs *attrs, struct tdmi_shape in,
                       struct tdmi_shape out);

/*
 * The passes of a resize by the host's weights and its rounding (image/resize/kernels.h), on rows
 * of RGB: the host's bytes.
 */
#pragma once

#include "image/resize/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* One dimension; arrays lie on the GPU. */
struct tdmi_cuda_resize {
    int n_outputs, n_taps, n_inputs;
    const struct tdmi_span *spans; /* (n_outputs): where an output's inputs begin */
    const int32_t *taps;           /* (n_outputs, n_taps) */
};

/* Rows that are given begin with column `first` of the inputs, n_rows of (n_columns, 3); to
 * (n_rows, n_outputs, 3). */
int tdmi_cuda_resize_across(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                            const uint8_t *rows, int first, int n_columns, int n_rows, uint8_t *to);
/* … begin with row `first`, stride_bytes apart; row_bytes of each, to (n_outputs, row_bytes). */
int tdmi_cuda_resize_down(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                          const uint8_t *rows, int first, int64_t stride_bytes, int row_bytes,
                          uint8_t *to);
/* n_rows rows, stride_bytes apart; row_bytes of each, to (n_rows, row_bytes). */
int tdmi_cuda_resize_part(struct CUstream_st *queue, const uint8_t *rows, int64_t stride_bytes,
                          int row_bytes, int n_rows, uint8_t *to);

#ifdef __cplusplus
}
#endif

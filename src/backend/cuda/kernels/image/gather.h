/* Rows of a table by their numbers, side by side. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Row i of `to` becomes row numbers[i] of the table, for i from 0 to n - 1; nothing for n of 0. All
 * three lie on the GPU. */
int tdmi_cuda_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                     const int64_t *numbers, int n, void *to);

#ifdef __cplusplus
}
#endif

/*
 * How a grid of threads walks over (pixels, channels): a thread keeps its channels, a vector of
 * them, and goes down a chunk of pixels. What belongs to a channel then stays in registers, and
 * threads next to each other read what lies next to each other:
 *
 *                channels: width vectors of `lanes`, then the next part
 *     pixels     t0 t1 t2 … │ t0 t1 t2 …     rows threads below each other, `chunk` pixels a block
 *                t8 t9 …    │
 *
 * Everything follows from pixels, channels and lanes, never from the GPU, so that sums over chunks
 * have the same bits on each.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tdmi_cuda_columns {
    int64_t pixels;
    int channels;
    int lanes;       /* values of a vector; divides channels */
    int width, rows; /* threads of a block: vectors of a pixel, pixels */
    int parts;       /* blocks beside each other: width · parts vectors cover the channels */
    int64_t chunk;   /* pixels of a block, a multiple of rows */
    int64_t chunks;  /* blocks below each other */
};

enum { TDMI_CUDA_SUM_CHUNKS = 1024 }; /* at most, where a second pass adds chunks up */

/* lanes is taken where it divides channels and is_aligned says that vectors begin on 16 bytes; else
 * it is 1. At most most_chunks chunks; 0: as many as there are. */
struct tdmi_cuda_columns tdmi_cuda_columns_of(int64_t pixels, int channels, int lanes,
                                              int is_aligned, int64_t most_chunks);
/* Bytes of partial sums that a second pass reads: two doubles a channel and chunk, for any
 * alignment. */
size_t tdmi_cuda_columns_sum_bytes(int64_t pixels, int channels);

#ifdef __cplusplus
}
#endif

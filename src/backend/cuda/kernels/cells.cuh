/* The part of an image that a thread computes (conv/geometry.h). */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/conv/geometry.h"

/* The cell of a thread, or none. */
struct cell {
    int64_t picture;
    int channel, column, first, last; /* first <= row < last */
};

/* N: values of a vector. h: rows of what the tiles cover. */
template <int N>
static __device__ __forceinline__ bool find_cell(const struct tdmi_cuda_tiles &it, int h,
                                                 struct cell &cell)
{
    const unsigned blocks = (unsigned)it.blocks, of = blockIdx.x / blocks;
    unsigned at = (blockIdx.x - of * blocks) * TDMI_CUDA_TILE_THREADS + threadIdx.x;
    if (at >= (unsigned)it.threads)
        return false;
    const unsigned vectors = (unsigned)it.vectors, strips = (unsigned)it.strips;
    cell.picture = of;
    cell.channel = (int)(at % vectors) * N;
    at /= vectors;
    cell.column = (int)(at % strips) * it.columns;
    cell.first = (int)(at / strips) * it.rows;
    cell.last = cell.first + it.rows < h ? cell.first + it.rows : h;
    return true;
}

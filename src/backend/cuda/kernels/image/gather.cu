/*
 * A row is one block's or several blocks' whole, so its number is read once a block; a thread moves
 * as much as both ends of every row allow, 16 bytes where rows are whole vectors. What the bytes
 * mean is nobody's concern here.
 */
#include "backend/cuda/kernels/image/gather.h"
#include "backend/cuda/kernels/kernel.cuh"

enum { gather_threads = 256 };

/* row_parts: of a row, in blocks; row_units: in units of what is moved as one. */
template <class Unit>
__global__ void __launch_bounds__(gather_threads)
    gather(const Unit *table, int64_t row_units, unsigned row_parts, const int64_t *numbers,
           Unit *to)
{
    const int64_t row = blockIdx.x / row_parts;
    const int64_t at = (int64_t)(blockIdx.x % row_parts) * gather_threads + threadIdx.x;
    if (at < row_units)
        to[row * row_units + at] = table[numbers[row] * row_units + at];
}

template <class Unit>
static int launch_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                         const int64_t *numbers, int n, void *to)
{
    const int64_t units = (int64_t)(row_bytes / sizeof(Unit));
    const unsigned parts = (unsigned)((units + gather_threads - 1) / gather_threads);
    return launch(gather<Unit>, dim3((unsigned)n * parts), dim3(gather_threads), queue,
                  static_cast<const Unit *>(table), units, parts, numbers, static_cast<Unit *>(to));
}

extern "C" int tdmi_cuda_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                                const int64_t *numbers, int n, void *to)
{
    /* Every row begins at a multiple of the greatest power of two that divides all of these. */
    const uintptr_t all =
        reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(to) | row_bytes;
    if (n == 0 || row_bytes == 0)
        return 0;
    if (all % 16 == 0)
        return launch_gather<vector<uint32_t, 4>>(queue, table, row_bytes, numbers, n, to);
    if (all % 4 == 0)
        return launch_gather<uint32_t>(queue, table, row_bytes, numbers, n, to);
    if (all % 2 == 0)
        return launch_gather<uint16_t>(queue, table, row_bytes, numbers, n, to);
    return launch_gather<uint8_t>(queue, table, row_bytes, numbers, n, to);
}

/* A value a thread. Divisions, as on the host: the same numbers come out. */
#include "backend/cuda/input.h"
#include "backend/cuda/kernel.cuh"

enum { input_threads = 256 };

template <class T>
__global__ void __launch_bounds__(input_threads)
    number_bytes(struct tdmi_cuda_input it, const uint8_t *const *pixels, T *y)
{
    const int64_t at = (int64_t)blockIdx.x * input_threads + threadIdx.x;
    if (at >= it.n * it.values)
        return;
    const int64_t in_picture = at % it.values;
    const struct tdmi_normal normal = it.normal[in_picture % it.channels % 3];
    const float byte = (float)pixels[at / it.values][in_picture];
    y[at] = of_float<T>((byte / normal.divisor - normal.mean) / normal.deviation);
}

extern "C" int tdmi_cuda_input_forward(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                                       const uint8_t *const *pixels, void *y)
{
    const int64_t blocks = (it->n * it->values + input_threads - 1) / input_threads;
    if (blocks > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch(number_bytes<T>, dim3((unsigned)blocks), dim3(input_threads), queue, *it,
                      pixels, static_cast<T *>(y));
    });
}

/*
 * Launching over a whole tensor, a vector of 16 bytes a thread; what is left, and tensors that do
 * not begin on 16 bytes, value by value.
 */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"

enum { block_threads = 256 };

/* body(lanes, first value, values): the whole vectors, then the rest. */
template <class T, class Body>
static int in_vectors(bool is_aligned, int64_t n, Body body)
{
    const int64_t whole = is_aligned ? n / full<T>::lanes * full<T>::lanes : 0;
    int code = 0;
    if (whole > 0)
        code = body(number<full<T>::lanes>(), (int64_t)0, whole);
    if (code == 0 && whole < n)
        code = body(number<1>(), whole, n - whole);
    return code;
}

/* More than 2^31 - 1 blocks are more than 2^39 values: no GPU has memory for them. */
static dim3 blocks_of(int64_t threads)
{
    return dim3((unsigned)((threads + block_threads - 1) / block_threads));
}

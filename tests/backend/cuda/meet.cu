/* Kernels that meet in every way the shim has, rightly and wrongly. */
#include "backend/cuda/meet.h"
#include "backend/cuda/kernels/reduce.cuh"

__global__ void add(int64_t *sums)
{
    TDM_SHARED(int64_t, room, 33);
    int64_t value = (int64_t)blockIdx.x * 1000 + threadIdx.x;
    value = over_block<128>(value, room, plus());
    value += over_block<128>((int64_t)1, room, plus());
    if (threadIdx.x == 0)
        sums[blockIdx.x] = value;
}

__global__ void turn(const int *from, int *to)
{
    TDM_SHARED(int, room, 1024);
    const int own = (int)threadIdx.x, n = (int)blockDim.x;
    const int64_t at = (int64_t)blockIdx.x * n + own;
    room[own] = from[at];
    __syncthreads();
    if (own == n - 1) {
        to[at] = room[own];
        return; /* those that are left still meet */
    }
    const int next = room[own + 1];
    __syncthreads();
    to[at] = next;
}

__global__ void apart(void)
{
    if (threadIdx.x < blockDim.x / 2)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void alone(void)
{
    if (threadIdx.x == 0)
        __shfl_xor_sync(0xffffffffu, 1, 1);
}

__global__ void unwritten(float *value)
{
    TDM_SHARED(float, room, 4);
    if (threadIdx.x == 0)
        *value = room[3];
}

__global__ void too_much(void)
{
    TDM_SHARED(double, room, 6145);
    room[0] = 0.0;
}

__global__ void nothing(void)
{
}

__global__ void ballot(uint32_t *bits)
{
    const unsigned odd = __ballot_sync(0xffffffffu, (int)(threadIdx.x % 2));
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        bits[threadIdx.x / 32] = odd;
}

int meet_add(int blocks, int threads, int64_t *sums)
{
    return launch(add, dim3((unsigned)blocks), dim3((unsigned)threads), nullptr, sums);
}

int meet_turn(int blocks, int threads, const int *from, int *to)
{
    return launch(turn, dim3((unsigned)blocks), dim3((unsigned)threads), nullptr, from, to);
}

int meet_apart(int threads)
{
    return launch(apart, dim3(1), dim3((unsigned)threads), nullptr);
}

int meet_alone(int threads)
{
    return launch(alone, dim3(1), dim3((unsigned)threads), nullptr);
}

int meet_unwritten(float *value)
{
    return launch(unwritten, dim3(1), dim3(32), nullptr, value);
}

int meet_too_much(void)
{
    return launch(too_much, dim3(1), dim3(32), nullptr);
}

int meet_grid(unsigned x, unsigned y, unsigned threads)
{
    return launch(nothing, dim3(x, y), dim3(threads), nullptr);
}

int meet_ballot(int threads, uint32_t *bits)
{
    return launch(ballot, dim3(1), dim3((unsigned)threads), nullptr, bits);
}

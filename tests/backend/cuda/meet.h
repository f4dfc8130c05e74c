/* Kernels for the test of the shim itself. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* sums[block] = Σ of its threads' numbers, by shuffles, barriers and shared memory. */
int meet_add(int blocks, int threads, int64_t *sums);
/* to[i] = from[i + 1] of the same block, through shared memory; the last one's is its own. */
int meet_turn(int blocks, int threads, const int *from, int *to);
/* Threads below the middle wait at one barrier, the others at another. */
int meet_apart(int threads);
/* Lane 0 meets a warp whose other lanes have left. */
int meet_alone(int threads);
/* Shared memory of a block before it was written. */
int meet_unwritten(float *value);
int meet_too_much(void);
int meet_grid(unsigned x, unsigned y, unsigned threads);
/* bits[warp] = the lanes whose number is odd. */
int meet_ballot(int threads, uint32_t *bits);

#ifdef __cplusplus
}
#endif

/*
 * Under the shim: a grid of threads that take turns (shim.c). shim.cuh gives it the names that CUDA
 * has; tests choose the order, and ask what was launched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- for tests ----------------------------------------------------------------------------- */

struct tdmi_shim_order {
    bool is_reversed;    /* blocks, and threads of a block, from the last to the first */
    int64_t edge_blocks; /* only as many blocks from either end; 0: all */
};

struct tdmi_shim_facts {
    int64_t launches, largest_grid, largest_grid_y;
    int64_t largest_block; /* threads */
    char problem[200];     /* of the last launch that failed */
};

/* For launches of the calling thread from now on; what was known of earlier ones is forgotten. */
void tdmi_shim_use(struct tdmi_shim_order way);
struct tdmi_shim_facts tdmi_shim_facts(void);

/* ---- for shim.cuh ---------------------------------------------------------------------------- */

struct tdmi_shim_place {
    unsigned x, y, z;
};

/* The thread whose turn it is. */
extern __thread struct tdmi_shim_place threadIdx, blockIdx, blockDim, gridDim;

struct CUstream_st;

struct tdmi_shim_launch {
    struct CUstream_st *queue; /* NULL: it runs at once */
    struct tdmi_shim_place grid, block;
    void (*run)(void *self); /* the kernel, for the thread whose turn it is */
    void *self;
    size_t self_bytes;
    long ns; /* that it takes longer by the clock of a fake GPU */
};
/* Both give 0, or the code that CUDA's runtime would give. */
int tdmi_shim_launch(const struct tdmi_shim_launch *launch);
/* Run all of its blocks now. */
int tdmi_shim_run(const struct tdmi_shim_launch *launch);
/* Queue a launch that a GPU would accept. The owner of the queues defines this function and calls
 * tdmi_shim_run when the launch is due; `self` points to borrowed memory. */
int tdmi_shim_queue(const struct tdmi_shim_launch *launch);

/* The one piece of memory that a block's threads know by this mark; full of NaN at first. */
void *tdmi_shim_shared(const void *mark, size_t bytes);
/* Until all threads of the block that have not ended are here: all on the same line. */
void tdmi_shim_sync(int line);
/* All lanes of mask give a value each; each gets that of lane `from`, or, without one (-1), the set
 * of lanes whose value is not 0. */
uint64_t tdmi_shim_meet(uint32_t mask, uint64_t value, int from);

#ifdef __cplusplus
}
#endif

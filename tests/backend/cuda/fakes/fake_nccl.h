/*
 * Control of the stand-in for NCCL: ranks are threads of one process, values go through memory of
 * the host, and nothing blocks.
 */
#pragma once

#include "backend/cuda/fakes/fake_launch.h"

enum { fake_most_ranks = 4 };

struct fake_nccl {
    fake_launch *launch;
    int (*synchronize)(struct CUstream_st *queue);
    int is_deaf[fake_most_ranks]; /* it joins, and nothing that it sends arrives */
    int refuses[fake_most_ranks]; /* its GPU cannot be connected */
    int alive;                    /* communicators that were not aborted */
    int groups, sums;             /* calls of all ranks */
};

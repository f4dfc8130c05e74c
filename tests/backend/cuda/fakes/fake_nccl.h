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
    int breaks[fake_most_ranks];  /* it joins; then its groups fail, and nothing arrives of them */
    int refuses[fake_most_ranks]; /* its GPU cannot be connected */
    int alive;                    /* communicators that were not aborted */
    int groups, sums;             /* calls of all ranks */
};

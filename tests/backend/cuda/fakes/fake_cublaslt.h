/* Control of the stand-in for cuBLASLt: what it answers, and what was called. */
#pragma once

#include "backend/cuda/fakes/fake_launch.h"

/* In the order in which its heuristics name them. */
enum fake_algorithm {
    FAKE_CANNOT,  /* it says so */
    FAKE_WIDE,    /* wants a gigabyte of workspace */
    FAKE_BREAKS,  /* fails when run */
    FAKE_SLOWLY,  /* right */
    FAKE_QUICKLY, /* right */
    FAKE_ALGORITHMS
};

struct fake_cublaslt {
    unsigned long version;
    fake_launch *launch;
    long every_ns; /* that every run takes longer */
    int handle_code;
    int guesses_nothing;
    int takes_no_relu; /* behind a product */
    int alive;         /* handles, operations, layouts and wishes that were not given back */
    int runs[FAKE_ALGORITHMS];
    const void *last[3]; /* of the last run: a, b and d, by rows */
    int guesses;
    unsigned reductions; /* that the last question allowed, as cuBLASLt numbers them */
};

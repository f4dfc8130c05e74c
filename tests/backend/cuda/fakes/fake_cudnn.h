/*
 * Control of the stand-in for cuDNN: what it answers, and what was called. A test finds the object
 * by its name. The engines, in the order of its heuristics:
 */
#pragma once

#include "backend/cuda/fakes/fake_launch.h"

enum fake_engine {
    FAKE_UNORDERED,  /* other bits on every run, it says */
    FAKE_HUNGRY,     /* wants a gigabyte of workspace */
    FAKE_REFUSES,    /* does not take the graph when planned */
    FAKE_FAILS,      /* … when run */
    FAKE_SLOW,       /* right */
    FAKE_RIGHT,      /* right and fast */
    FAKE_CORE,       /* right, and the fastest, on what is no f32 */
    FAKE_FALLS_BACK, /* right; named only where the best guess names none */
    FAKE_ENGINES
};

struct fake_cudnn {
    unsigned long version;
    fake_launch *launch;
    long right_bytes;       /* of workspace, that FAKE_RIGHT and FAKE_CORE want */
    long every_ns;          /* that every run takes longer */
    int handle_code;        /* the answer to opening a GPU */
    int takes_no_pointwise; /* graphs of more than one operation are refused */
    int guesses_nothing;
    int alive, handles; /* descriptors and handles that were not given back */
    int runs[FAKE_ENGINES];
    const void *last[4]; /* tensors of the last run, by enum tdmi_cudnn_tensor: x, w, y */
    int guesses;         /* questions to the heuristics */
    char complaint[200]; /* what a careful cuDNN would not have taken; "": nothing */
};

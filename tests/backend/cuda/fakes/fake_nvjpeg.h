/* Control of the stand-in for nvJPEG: what it answers, and what was called. */
#pragma once

#include "backend/cuda/fakes/fake_launch.h"

struct fake_nvjpeg {
    int version[3];
    fake_launch *launch;
    int has_engines;            /* the GPU decodes JPEG in hardware: grey and 4:2:0, here */
    int create_code;            /* of a handle; 0: it can be had */
    int refuses_one_of;         /* of so many files one, by the sum of its bytes; 0: none */
    int has_no_memory;          /* the GPU has none for what is decoded */
    int off;                    /* added to each sample: another transform */
    int sees_other;             /* says another size of images than they have */
    const char *told;           /* gets a byte an image; NULL: nobody is reported */
    int alive;                  /* handles, states and streams that were not given back */
    int by_engines, by_kernels; /* images that were decoded */
    int batches, largest_batch, failed_batches;
    int failed_alone; /* of these, of one file */
};

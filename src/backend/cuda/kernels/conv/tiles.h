/*
 * How threads share images where each value needs its neighbours: a thread keeps a vector of
 * channels and a strip of columns and goes down some rows of it, so that a row is read once for all
 * windows that see it:
 *
 *              strip 0      strip 1        each cell has as many threads as there are vectors of
 *     part 0   t0 t1 …      t8 t9 …        channels, beside each other: they read what lies beside
 *     part 1   …            …              each other
 *
 * Everything follows from the shape, never from the GPU.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TDMI_CUDA_TILE_THREADS = 128 }; /* of a block of tdmi_cuda_tiles_of */

struct tdmi_cuda_tiles {
    int columns, rows;     /* of a thread */
    int strips, parts;     /* beside and below each other, they cover an image */
    int vectors;           /* that cover the channels */
    int64_t threads;       /* strips · parts · vectors: of an image */
    int64_t blocks;        /* of an image */
    int64_t all_blocks;    /* of n images */
    int is_for_one_launch; /* no: more blocks, or threads an image, than one can have */
};

/* Tiles for n images of h × w pixels that are written. Parts have at most most_rows rows, and
 * fewer where there would be few threads. */
struct tdmi_cuda_tiles tdmi_cuda_tiles_of(int64_t n, int h, int w, int vectors, int columns,
                                          int most_rows);

/* The same cells shared out for sums a channel: a block has `width` vectors of channels and `lines`
 * of threads below each other, each of which takes `depth` cells one after another. */
struct tdmi_cuda_sum_tiles {
    struct tdmi_cuda_tiles cells;
    int64_t n_cells;  /* of all images */
    int width, lines; /* threads of a block */
    int beside;       /* blocks that cover the channels */
    int depth;
    int64_t chunks; /* blocks below each other, each with sums of its own */
};
/* A thread adds up at most most_pixels pixels, whole rows of cells apart. */
struct tdmi_cuda_sum_tiles tdmi_cuda_sum_tiles_of(int64_t n, int h, int w, int vectors, int columns,
                                                  int most_rows, int most_pixels);

#ifdef __cplusplus
}
#endif

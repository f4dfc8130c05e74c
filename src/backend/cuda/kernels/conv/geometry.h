/*
 * How grids of threads share work: columns (one pass over pixels and channels), tiles (images whose
 * values need their neighbours) and products of matrices. Everything follows from the shape, never
 * from the GPU, so that sums over chunks have the same bits on each.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include <stddef.h>
#include <stdint.h>

TDMI_C_BEGIN

/* ---- columns --------------------------------------------------------------------------------- */

/*
 * How a grid of threads walks over (pixels, channels): a thread keeps its channels, a vector of
 * them, and goes down a chunk of pixels. What belongs to a channel then stays in registers, and
 * threads next to each other read what lies next to each other:
 *
 *                channels: width vectors of `lanes`, then the next part
 *     pixels     t0 t1 t2 … │ t0 t1 t2 …     rows threads below each other, `chunk` pixels a block
 *                t8 t9 …    │
 */
struct tdmi_cuda_columns {
    int64_t pixels;
    int channels;
    int lanes;       /* values of a vector; divides channels */
    int width, rows; /* threads of a block: vectors of a pixel, pixels */
    int parts;       /* blocks beside each other: width · parts vectors cover the channels */
    int64_t chunk;   /* pixels of a block, a multiple of rows */
    int64_t chunks;  /* blocks below each other */
};

enum { TDMI_CUDA_SUM_CHUNKS = 2048 }; /* at most, where a second pass adds chunks up */

/* lanes is taken where it divides channels and is_aligned says that vectors begin on 16 bytes; else
 * it is 1. At most most_chunks chunks; 0: as many as there are. */
struct tdmi_cuda_columns tdmi_cuda_columns_of(int64_t pixels, int channels, int lanes,
                                              int is_aligned, int64_t most_chunks);
/* Bytes of partial sums that a second pass reads: two doubles a channel and chunk, for any
 * alignment. */
size_t tdmi_cuda_columns_sum_bytes(int64_t pixels, int channels);

/* ---- tiles ----------------------------------------------------------------------------------- */

/*
 * How threads share images where each value needs its neighbours: a thread keeps a vector of
 * channels and a strip of columns and goes down some rows of it, so that a row is read once for all
 * windows that see it:
 *
 *              strip 0      strip 1        each cell has as many threads as there are vectors of
 *     part 0   t0 t1 …      t8 t9 …        channels, beside each other: they read what lies beside
 *     part 1   …            …              each other
 */
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

/* ---- products -------------------------------------------------------------------------------- */

/* For product.cuh: tiles of sums, and chunks of what is summed. */
struct tdmi_cuda_product {
    int64_t rows, columns, depth; /* of one group */
    int64_t row_tiles, column_tiles;
    int groups;
    int64_t chunk, chunks; /* of depth; more than one where sums go through a second pass */
};

/* One chunk; or, with has_chunks, as many as give a GPU enough to do, from the shape alone. */
struct tdmi_cuda_product tdmi_cuda_product_of(int64_t rows, int64_t columns, int64_t depth,
                                              int groups, int has_chunks);
/* No less deep product of that shape has more. */
int64_t tdmi_cuda_product_most_chunks(const struct tdmi_cuda_product *product);

TDMI_C_END

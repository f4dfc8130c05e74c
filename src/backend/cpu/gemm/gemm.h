/*
 * Matrix products of the convolutions, on one thread: small blocks of the result are kept in
 * registers while the depth runs by.
 *
 *     rows:   C = A · B     A: pixels, anywhere in memory at a fixed distance from each other
 *                           B: weights, packed once a step into panels of a few vectors
 *     outer:  C = Aᵀ · B    A, B: pixels; the gradient of the weights
 *
 * A convolution reads its window as one segment of A for each row (or place) of the window, all of
 * them added up in the same registers, so that the window is never copied out. What else there is
 * to do with C, statistics, bias, activation, mask, is done while its block is still in registers.
 *
 * Every value of C is one chain of additions, in the order of the segments and inside a segment of
 * the depth, whatever block it falls into. The sums of the columns are f32 in a block and double
 * across blocks, in the order of the blocks, so one call must cut its rows at the same places
 * always. Where several threads compute the blocks of a job, each keeps the sums of its blocks as
 * pieces, and these are added up in the same order when all are there.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "backend/cpu/isa.h"

enum {
    TDMI_GEMM_ROUND = 16 /* floats: no vector is wider, and a line of the cache holds as many */
};

/* A piece of the depth. */
struct tdmi_gemm_segment {
    const float *a; /* of the first row of C */
    int first;      /* row of B that its first value meets */
    int depth;
};

/* The last operation on C before it is stored. */
enum tdmi_gemm_end {
    TDMI_GEMM_RAW,       /* c = C + bias;                  sums of c - centre and of its square */
    TDMI_GEMM_ACTIVATED, /* c = act(C + bias + residual);  no sums */
    TDMI_GEMM_GRADIENT   /* c = act'(scale · x + shift) · C + add;
                          * sums of c and of c · (x - centre) */
};

/* Memory that the next job will read. While a product computes, memory is idle: each block asks for
 * its part of the ranges to be brought into the second cache. */
struct tdmi_gemm_ahead {
    const float *at; /* NULL: none */
    int64_t floats;
};

enum { TDMI_GEMM_AHEAD = 2 };

/* Rows of C are n_images times n_lines times n_rows pixels. add, x and residual are laid out like
 * c. */
struct tdmi_gemm_rows {
    const struct tdmi_gemm_segment *segments;
    int n_segments; /* may be 0: C is 0 */
    int n_images, n_lines, n_rows;
    int64_t a_image, a_line, a_row; /* floats from one to the next */
    const float *packed;            /* tdmi_gemm_pack */
    int depth, columns;             /* of all of B */
    int wide;                       /* as packed */
    float *c;
    int64_t c_image, c_line, c_row;
    bool is_streamed; /* past the caches; columns, c and its distances are multiples of a line */
    enum tdmi_gemm_end end;
    const float *centre;  /* (columns), or NULL: 0 */
    double *sum, *square; /* (columns rounded up), added to; never NULL with RAW */
    /* Only blocks that begin in [from, to), rows counted over lines and images; to 0: all. */
    int64_t from, to;
    int from_column, to_column; /* only panels that begin in [from_column, to_column); to 0: all */
    /* Not NULL: the sums of block i are stored in row i of (blocks, 2, columns rounded up) and
     * added to sum and square later (tdmi_gemm_add_pieces). */
    float *pieces;
    const float *bias, *residual; /* NULL: 0 */
    const float *add, *x;         /* NULL: 0; no mask and no sums */
    struct tdmi_read_form read;   /* of x; act alone for ACTIVATED */
    struct tdmi_gemm_ahead ahead[TDMI_GEMM_AHEAD];
};

enum { TDMI_GEMM_SPLIT = 7, TDMI_GEMM_SPLIT_TALL = 14 }; /* products; pairs of a block */

/* The operand that one of seven products reads of each pair of pixels; whole blocks are readable.
 */
struct tdmi_gemm_split_pixels {
    const float *at;
    int64_t row; /* floats from a pair to the next */
};

/* C = A · B in seven products of pairs of pixels and half the depth (strassen.h); AVX-512. */
struct tdmi_gemm_split {
    struct tdmi_gemm_split_pixels a[TDMI_GEMM_SPLIT];
    const float *packed;      /* seven matrices of a half's columns, wide 2 */
    int64_t packed_product;   /* floats from one to the next */
    int depth, left;          /* of a product; columns of one, whole vectors, never one vector */
    int from_panel, to_panel; /* panels to compute, each two vectors wide (the last: 2 or 3) */
    int n_upper, n_lower;     /* pairs, and those that have a lower pixel */
    int first_pair;           /* its number in the chunk, by which pieces are counted */
    int64_t lower;            /* floats of C from an upper pixel to its partner */
    struct tdmi_gemm_rows to; /* columns, c, c_row, end with what it reads, sums, pieces, ahead */
};

/* The five sums of quarters of A that it reads: A11 + A22, A21 + A22, A11 + A12, A21 - A11,
 * A12 - A22, and A11 and A22 where they are to be copied. */
struct tdmi_gemm_split_sums {
    const float *from;
    int64_t from_row, lower; /* floats from a pixel to the next; to its partner */
    int half, n_upper, n_lower;
    bool copies;
    float *to;
    int64_t to_row, to_product;
};

/* C (rows, columns) = or += the sum of a[row] · b[column] over n_images times n_lines times
 * n_pixels. B may be read up to the next multiple of TDMI_GEMM_ROUND columns, and must hold numbers
 * there. */
struct tdmi_gemm_outer {
    const float *a, *b;
    int64_t a_image, a_line, a_pixel; /* floats from one to the next */
    int64_t b_image, b_line, b_pixel;
    int n_images, n_lines, n_pixels;
    int rows, columns;
    float *c; /* (rows, columns), c_row apart */
    int64_t c_row;
    bool adds;
    struct tdmi_gemm_ahead ahead[TDMI_GEMM_AHEAD];
};

/* n pixels of channels values each. Where to_row has room for channels rounded up, what is behind
 * the channels becomes 0. */
struct tdmi_gemm_copy {
    const float *from, *y; /* y: gradient form only */
    int64_t n, from_row;
    int channels;
    float *to;
    int64_t to_row;
};

struct tdmi_gemm_kernels {
    int lanes;    /* floats of a vector */
    int talls[5]; /* rows of a block, by its vectors */
    void (*rows)(const struct tdmi_gemm_rows *job);
    void (*outer)(const struct tdmi_gemm_outer *job);
    /* to = act(scale · from + shift); NONE, RELU, RELU6 */
    void (*read)(const struct tdmi_gemm_copy *job, const struct tdmi_read_form *form);
    /* to = of_g · from + of_y · y + one */
    void (*gradient)(const struct tdmi_gemm_copy *job, const struct tdmi_gradient_form *form);
    /* NULL: this set has none */
    void (*split)(const struct tdmi_gemm_split *job);
    void (*split_sums)(const struct tdmi_gemm_split_sums *job);
};

extern const struct tdmi_gemm_kernels tdmi_gemm_scalar, tdmi_gemm_avx2, tdmi_gemm_avx512;

const struct tdmi_gemm_kernels *tdmi_gemm_kernels_of(enum tdmi_isa isa);

struct tdmi_member;

/* Add the pieces of all blocks of the job, in their order, to its sums of columns first to end - 1,
 * multiples of TDMI_GEMM_ROUND. */
void tdmi_gemm_add_pieces(const struct tdmi_gemm_kernels *kernels, const struct tdmi_gemm_rows *job,
                          int64_t first, int64_t end);
/* The member's part of an outer product: blocks of C, each of which one thread computes whole. */
void tdmi_gemm_outer_shared(const struct tdmi_gemm_kernels *kernels,
                            const struct tdmi_gemm_outer *job, const struct tdmi_member *member);

/* ---- panels ---------------------------------------------------------------------------------- */

/* B as its owner has it: value (row, column) at from[row · row_step + column · column_step], times
 * scale[column]. */
struct tdmi_gemm_matrix {
    const float *from;
    int64_t row_step, column_step;
    int rows, columns;
    const float *scale; /* NULL: 1 */
};

/* Vectors of the next panel when left are left: wide is 2 (many rows) or 4 (seven or fewer). */
static inline int tdmi_gemm_panel(int left, int wide)
{
    if (left <= 3)
        return left;
    return wide == 2 ? 2 : left == 5 ? 3 : 4;
}

static inline int64_t tdmi_gemm_round(int64_t floats)
{
    return (floats + TDMI_GEMM_ROUND - 1) / TDMI_GEMM_ROUND * TDMI_GEMM_ROUND;
}

/* Blocks of n_rows rows in the panel that has most of them. */
static inline int64_t tdmi_gemm_blocks(const struct tdmi_gemm_kernels *kernels, int wide,
                                       int64_t n_rows)
{
    int tall = kernels->talls[1];
    for (int i = 2; i <= (wide == 2 ? 3 : 4); i++)
        tall = kernels->talls[i] < tall ? kernels->talls[i] : tall;
    return (n_rows + tall - 1) / tall;
}

/* Distance of rows in scratch memory: a whole number of lines, and none that makes the rows of a
 * block fall into the same place of the caches. */
static inline int64_t tdmi_gemm_scratch_row(int64_t channels)
{
    int64_t row = tdmi_gemm_round(channels);
    return row % 256 == 0 ? row + TDMI_GEMM_ROUND : row;
}

/* May a product read pixels of so many channels where they are? */
static inline bool tdmi_gemm_is_handy(int64_t channels)
{
    return channels % 512 != 0;
}

/* Floats of a packed matrix. */
static inline int64_t tdmi_gemm_packed_floats(int64_t rows, int64_t columns)
{
    return rows * tdmi_gemm_round(columns);
}

/* Rows first … first + matrix->rows of a packed matrix that has depth rows. */
void tdmi_gemm_pack(const struct tdmi_gemm_matrix *matrix, int lanes, int wide, int depth,
                    int first, float *packed);

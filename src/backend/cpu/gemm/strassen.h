/*
 * Large products of pixels and weights in seven products of half the size instead of eight
 * (Strassen, 1969): quarters of A and B are added up before and quarters of C after them, which
 * costs a few steps for each value of A and C and saves an eighth of all multiplications. Errors
 * are about 1.5 times those of single chains of additions.
 *
 *     1: (A11 + A22) (B11 + B22)      C11 = 1 + 4 - 5 + 7
 *     2: (A21 + A22)  B11             C12 = 3 + 5
 *     3:  A11        (B12 - B22)      C21 = 2 + 4
 *     4:  A22        (B21 - B11)      C22 = 1 - 2 + 3 + 6
 *     5: (A11 + A12)  B22
 *     6: (A21 - A11) (B11 + B12)
 *     7: (A12 - A22) (B21 + B22)
 */
#pragma once

#include "backend/cpu/gemm/gemm.h"

/* Are sums small beside products, and are weights read for enough pixels of a picture? */
bool tdmi_strassen_is_for(enum tdmi_isa isa, int64_t pixels, int in, int out);
/* The same for a forward product of training and that of its input's gradient. */
bool tdmi_strassen_trains(enum tdmi_isa isa, int64_t pixels, int in, int out);

int64_t tdmi_strassen_packed_floats(int in, int out);
void tdmi_strassen_pack(const struct tdmi_gemm_kernels *kernels,
                        const struct tdmi_gemm_matrix *weights, float *packed);

int64_t tdmi_strassen_scratch_floats(int in);

/* A picture is blocks of pairs of pixels, and each block's outputs are panels: none of these parts
 * depends on another one. */
int tdmi_strassen_blocks(int64_t pixels);
int tdmi_strassen_panels(int out);

/* Largest number of pixels of a half that one request covers. */
int tdmi_strassen_most_pixels(void);

/* Makes the pixels of an image on request, those of each half in order. Half 0 is the upper one;
 * pixels from n on are those of the next image. */
struct tdmi_strassen_feed {
    void *self;
    /* The array of pixels first to end, valid until the next call for that half. */
    const float *(*pixels)(void *self, int half, int first, int end);
    /* The memory that these pixels will be computed from. */
    struct tdmi_gemm_ahead (*ahead)(const void *self, int half, int first, int end);
};

struct tdmi_strassen {
    int in, out, n;                        /* n pixels: a picture */
    const float *a;                        /* (n, in) */
    const struct tdmi_strassen_feed *feed; /* instead of a and next, unless NULL */
    const float *packed;
    const float *bias, *residual; /* NULL: 0; residual (n, out) may be c */
    enum tdmi_act act;            /* NONE, RELU, RELU6 */
    float *c;                     /* (n, out) */
    float *scratch;
    const float *next; /* the next picture, or NULL */
    int from, to;      /* parts to compute: panels of the first block, of the next one, … */
};
void tdmi_strassen(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job);

/* ---- training ----
 * A chunk of pixels, of one image or several, is in pairs of a pixel of its upper half and one of
 * its lower half, which may lack some. Sums of columns are pieces by half and by block of pairs. */

/* Pixels of the upper half of a chunk of n. */
int64_t tdmi_strassen_half(int64_t n);
/* The blocks of pairs that a member with these pixels of a chunk computes. */
struct tdmi_share tdmi_strassen_share(struct tdmi_share pixels);
/* Rows of pieces of a chunk of n pixels. */
int64_t tdmi_strassen_pieces(int64_t n);

/* Some blocks of a chunk whose first pixel is at a and, in job, at c, x and add. */
void tdmi_strassen_rows(const struct tdmi_gemm_kernels *kernels, const struct tdmi_gemm_rows *job,
                        const float *a, int64_t a_row, int64_t n, struct tdmi_share blocks,
                        float *scratch);
/* tdmi_gemm_add_pieces of a chunk. */
void tdmi_strassen_add_pieces(const struct tdmi_gemm_kernels *kernels,
                              const struct tdmi_gemm_rows *job, int64_t n, int64_t first,
                              int64_t end);

/*
 * Quarters: the upper and lower half of a picture's pixels (of a chunk's in training), the left and
 * right half of the channels. The upper half is whole blocks; a pixel that the lower one lacks is
 * zeros. A job is a few blocks of pairs, so that their sums and the weights of a panel fit the
 * second cache.
 */
#include "backend/cpu/gemm/strassen.h"
#include "backend/cpu/pieces.h"

#include <string.h>

enum { LEAST = 256, LEAST_PIXELS = 96, WIDE = 2, PRODUCTS = TDMI_GEMM_SPLIT };
enum { BLOCK = TDMI_GEMM_SPLIT_TALL, MOST_BLOCKS = 3 }; /* pairs of a block; blocks of a job */

/* Blocks of pairs. */
static int64_t blocks_of(int64_t pixels)
{
    return (pixels + 2 * BLOCK - 1) / (2 * BLOCK);
}

/* Both halves of the outputs are equally many vectors, so that their panels can be added up. */
static bool is_for_matrix(int in, int out)
{
    return in >= LEAST && out >= LEAST && in % 2 == 0 &&
           tdmi_gemm_round(out) % (2 * TDMI_GEMM_ROUND) == 0;
}

/* At most a twentieth of the pairs is empty. */
bool tdmi_strassen_is_for(enum tdmi_isa isa, int64_t pixels, int in, int out)
{
    return isa == TDMI_ISA_AVX512 && pixels >= LEAST_PIXELS && is_for_matrix(in, out) &&
           blocks_of(pixels) * 2 * BLOCK * 19 <= pixels * 20;
}

bool tdmi_strassen_trains(enum tdmi_isa isa, int64_t pixels, int in, int out)
{
    return isa == TDMI_ISA_AVX512 && pixels >= LEAST_PIXELS && is_for_matrix(in, out) &&
           is_for_matrix(out, in);
}

/* Columns of the left half; the right half has as many vectors. */
static int left_columns(int out)
{
    return (int)tdmi_gemm_round((out + 1) / 2);
}

static int64_t quarter_floats(int in, int out)
{
    return tdmi_gemm_packed_floats(in / 2, left_columns(out));
}

int64_t tdmi_strassen_packed_floats(int in, int out)
{
    return PRODUCTS * quarter_floats(in, out);
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static void pack_quarter(const struct tdmi_gemm_kernels *kernels,
                         const struct tdmi_gemm_matrix *weights, int row, int column, float *packed)
{
    const int left = left_columns(weights->columns);
    struct tdmi_gemm_matrix matrix = *weights;
    matrix.from += row * weights->row_step + column * weights->column_step;
    matrix.rows = weights->rows / 2;
    matrix.columns = column ? weights->columns - left : left;
    matrix.scale = weights->scale ? weights->scale + column : NULL;
    tdmi_gemm_pack(&matrix, kernels->lanes, WIDE, matrix.rows, 0, packed);
}

/* to = a + sign · b */
static void add_all(float *to, const float *a, const float *b, float sign, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] + sign * b[i];
}

void tdmi_strassen_pack(const struct tdmi_gemm_kernels *kernels,
                        const struct tdmi_gemm_matrix *weights, float *packed)
{
    const int half = weights->rows / 2, left = left_columns(weights->columns);
    const int64_t n = quarter_floats(weights->rows, weights->columns);
    float *of[PRODUCTS + 1] = {NULL};
    for (int i = 1; i <= PRODUCTS; i++)
        of[i] = packed + (i - 1) * n;
    memset(packed, 0, sizeof(float) * (size_t)(PRODUCTS * n));
    pack_quarter(kernels, weights, 0, 0, of[2]);
    pack_quarter(kernels, weights, 0, left, of[3]);
    pack_quarter(kernels, weights, half, 0, of[4]);
    pack_quarter(kernels, weights, half, left, of[5]);
    add_all(of[1], of[2], of[5], 1.0f, n);
    add_all(of[6], of[2], of[3], 1.0f, n);
    add_all(of[7], of[4], of[5], 1.0f, n);
    add_all(of[3], of[3], of[5], -1.0f, n);
    add_all(of[4], of[4], of[2], -1.0f, n);
}

/* ---- blocks of pairs --------------------------------------------------------------------------
 */

static int64_t sum_floats(int in)
{
    return (int64_t)MOST_BLOCKS * BLOCK * tdmi_gemm_scratch_row(in / 2);
}

int64_t tdmi_strassen_scratch_floats(int in)
{
    return PRODUCTS * sum_floats(in);
}

/* Pixels of pairs, row floats apart, and how many there are of each half. */
struct operand {
    const float *upper, *lower;
    int64_t row;
    int n_upper, n_lower;
};

/* Some panels of the outputs of some pairs. job: as of tdmi_gemm_rows, for the first pair; the
 * outputs of partners are `lower` floats apart. */
static void multiply(const struct tdmi_gemm_kernels *kernels, const struct operand *a,
                     const struct tdmi_gemm_rows *job, int first_pair, int64_t lower,
                     int from_panel, int to_panel, float *scratch)
{
    const int half = job->depth / 2;
    const int64_t row = tdmi_gemm_scratch_row(half), product = sum_floats(job->depth);
    const struct tdmi_gemm_split_sums sums = {
        .from = a->upper,
        .from_row = a->row,
        .lower = a->lower - a->upper,
        .half = half,
        .n_upper = a->n_upper,
        .n_lower = a->n_lower,
        .copies = a->n_lower < a->n_upper || !tdmi_gemm_is_handy(a->row),
        .to = scratch,
        .to_row = row,
        .to_product = product,
    };
    kernels->split_sums(&sums);
#define SUM(i)                     \
    {                              \
        scratch + (i)*product, row \
    }
    struct tdmi_gemm_split split = {
        .a = {SUM(0), SUM(1), SUM(5), SUM(6), SUM(2), SUM(3), SUM(4)},
        .packed = job->packed,
        .packed_product = quarter_floats(job->depth, job->columns),
        .depth = half,
        .left = left_columns(job->columns),
        .from_panel = from_panel,
        .to_panel = to_panel,
        .n_upper = a->n_upper,
        .n_lower = a->n_lower,
        .first_pair = first_pair,
        .lower = lower,
        .to = *job,
    };
#undef SUM
    if (!sums.copies) {
        split.a[2] = (struct tdmi_gemm_split_pixels){a->upper, a->row};
        split.a[3] = (struct tdmi_gemm_split_pixels){a->lower + half, a->row};
    }
    kernels->split(&split);
}

/* ---- one picture ------------------------------------------------------------------------------
 */

int tdmi_strassen_blocks(int64_t pixels)
{
    return (int)blocks_of(pixels);
}

int tdmi_strassen_panels(int out)
{
    return left_columns(out) / (WIDE * TDMI_GEMM_ROUND);
}

int tdmi_strassen_most_pixels(void)
{
    return MOST_BLOCKS * BLOCK;
}

/* Pairs of a picture, and of them those that have a lower pixel. */
struct pairs {
    int first, n, n_lower;
};

static struct pairs pairs_of(const struct tdmi_strassen *job, int first, int n)
{
    const int half_pixels = (int)blocks_of(job->n) * BLOCK;
    const int left = job->n - half_pixels - first;
    return (struct pairs){first, n, left < 0 ? 0 : left < n ? left : n};
}

/* Pixels of the pairs in half 0 or 1. */
static const float *pixels_of(const struct tdmi_strassen *job, const struct pairs *pairs, int half)
{
    const int at = pairs->first + half * (int)blocks_of(job->n) * BLOCK;
    const int n = half ? pairs->n_lower : pairs->n;
    if (!job->feed)
        return job->a + (int64_t)at * job->in;
    return job->feed->pixels(job->feed->self, half, at, at + n);
}

static struct tdmi_gemm_ahead ahead_of(const struct tdmi_strassen *job, const struct pairs *pairs,
                                       int half, bool is_next)
{
    const int at = pairs->first + half * (int)blocks_of(job->n) * BLOCK;
    const int n = half ? pairs->n_lower : pairs->n, picture = is_next ? job->n : 0;
    const float *a = is_next ? job->next : job->a;
    if (job->feed)
        return job->feed->ahead(job->feed->self, half, picture + at, picture + at + n);
    return (struct tdmi_gemm_ahead){a ? a + (int64_t)at * job->in : NULL, (int64_t)n * job->in};
}

/* Some panels of the outputs of some pairs. */
static void run_pairs(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job,
                      const struct pairs *pairs, int from_panel, int to_panel,
                      const struct tdmi_gemm_ahead ahead[2])
{
    const int half_pixels = (int)blocks_of(job->n) * BLOCK;
    const int64_t c = (int64_t)pairs->first * job->out;
    struct operand a = {.upper = pixels_of(job, pairs, 0),
                        .row = job->in,
                        .n_upper = pairs->n,
                        .n_lower = pairs->n_lower};
    a.lower = pairs->n_lower > 0 ? pixels_of(job, pairs, 1) : a.upper;
    const struct tdmi_gemm_rows to = {.packed = job->packed,
                                      .depth = job->in,
                                      .columns = job->out,
                                      .c = job->c + c,
                                      .c_row = job->out,
                                      .end = TDMI_GEMM_ACTIVATED,
                                      .bias = job->bias,
                                      .residual = job->residual ? job->residual + c : NULL,
                                      .read.act = job->act,
                                      .ahead = {ahead[0], ahead[1]}};
    multiply(kernels, &a, &to, 0, (int64_t)half_pixels * job->out, from_panel, to_panel,
             job->scratch);
}

/* The number of parts from `at` on that are computed at once: a few blocks, or panels of one. */
static int parts_at_once(const struct tdmi_strassen *job, int at)
{
    const int panels = tdmi_strassen_panels(job->out), left = job->to - at;
    const int blocks = left / panels, behind = panels - at % panels;
    if (behind < panels || blocks == 0)
        return left < behind ? left : behind;
    return blocks / ((blocks + MOST_BLOCKS - 1) / MOST_BLOCKS) * panels;
}

/* The pairs of the blocks that such parts are of. */
static struct pairs pairs_of_parts(const struct tdmi_strassen *job, int at, int n)
{
    const int panels = tdmi_strassen_panels(job->out), first = at / panels;
    return pairs_of(job, first * BLOCK, ((at + n + panels - 1) / panels - first) * BLOCK);
}

void tdmi_strassen(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job)
{
    const int panels = tdmi_strassen_panels(job->out);
    const bool ends_picture = job->to == blocks_of(job->n) * panels;
    for (int at = job->from, n; at < job->to; at += n) {
        n = parts_at_once(job, at);
        const int behind = at + n;
        const bool is_last = behind == job->to, asks = !is_last || ends_picture;
        const struct pairs pairs = pairs_of_parts(job, at, n);
        const struct pairs next = !asks ? (struct pairs){0}
                                  : is_last
                                      ? pairs_of_parts(job, 0, n)
                                      : pairs_of_parts(job, behind, parts_at_once(job, behind));
        const struct tdmi_gemm_ahead ahead[2] = {ahead_of(job, &next, 0, is_last),
                                                 ahead_of(job, &next, 1, is_last)};
        run_pairs(kernels, job, &pairs, at % panels, n < panels ? at % panels + n : panels, ahead);
    }
}

/* ---- chunks of training ------------------------------------------------------------------------
 */

int64_t tdmi_strassen_half(int64_t n)
{
    return blocks_of(n) * BLOCK;
}

/* Blocks that begin in its pixels, if a block of pairs were a stretch of them. */
struct tdmi_share tdmi_strassen_share(struct tdmi_share pixels)
{
    return (struct tdmi_share){blocks_of(pixels.first), blocks_of(pixels.end)};
}

int64_t tdmi_strassen_pieces(int64_t n)
{
    return 4 * blocks_of(n);
}

void tdmi_strassen_rows(const struct tdmi_gemm_kernels *kernels, const struct tdmi_gemm_rows *job,
                        const float *a, int64_t a_row, int64_t n, struct tdmi_share blocks,
                        float *scratch)
{
    const int64_t half = tdmi_strassen_half(n);
    struct tdmi_gemm_rows part = *job;
    part.c_row = job->columns;
    for (int64_t at = blocks.first, some; at < blocks.end; at += some) {
        const int64_t left = blocks.end - at, first = at * BLOCK, c = first * job->columns;
        some = left / ((left + MOST_BLOCKS - 1) / MOST_BLOCKS);
        const int64_t upper = n - first, lower = n - half - first, most = some * BLOCK;
        struct operand pixels = {.upper = a + first * a_row,
                                 .row = a_row,
                                 .n_upper = (int)(upper < most ? upper : most),
                                 .n_lower = lower < 0 ? 0 : (int)(lower < most ? lower : most)};
        pixels.lower = pixels.n_lower > 0 ? pixels.upper + half * a_row : pixels.upper;
        part.c = job->c + c;
        part.x = job->x ? job->x + c : NULL;
        part.add = job->add ? job->add + c : NULL;
        multiply(kernels, &pixels, &part, (int)first, half * job->columns, 0,
                 tdmi_strassen_panels(job->columns), scratch);
        memset(part.ahead, 0, sizeof part.ahead);
    }
}

/* Adds each half of the columns, panel by panel. A block of three vectors is two of half the
 * height.
 */
void tdmi_strassen_add_pieces(const struct tdmi_gemm_kernels *kernels,
                              const struct tdmi_gemm_rows *job, int64_t n, int64_t first,
                              int64_t end)
{
    const int lanes = kernels->lanes;
    for (int right = 0; right < 2; right++) {
        int64_t at = right * left_columns(job->columns);
        int left = left_columns(job->columns) / lanes, wide;
        for (; left > 0; at += wide * lanes, left -= wide) {
            wide = tdmi_gemm_panel(left, WIDE);
            const int64_t behind = at + wide * lanes;
            const struct tdmi_share of = {at > first ? at : first, behind < end ? behind : end};
            tdmi_pieces_add(job->pieces, (wide == WIDE ? 2 : 4) * blocks_of(n),
                            tdmi_gemm_round(job->columns), of, job->sum, job->square);
        }
    }
}

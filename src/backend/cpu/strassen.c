/* Quarters: the upper and lower half of the pixels, the left and right half of the channels. */
#include "backend/cpu/strassen.h"
#include "base/multiversion.h"

#include <math.h>
#include <string.h>

enum { LEAST = 256, LEAST_PIXELS = 96, WIDE = 2, PRODUCTS = 7, HALF = TDMI_STRASSEN_PIXELS / 2 };

/* Both halves of the outputs are equally many vectors, so that their panels can be added up. */
bool tdmi_strassen_is_for(enum tdmi_isa isa, int64_t pixels, int in, int out)
{
    return isa == TDMI_ISA_AVX512 && pixels >= LEAST_PIXELS && in >= LEAST && out >= LEAST &&
           in % 2 == 0 && tdmi_gemm_round(out) % (2 * TDMI_GEMM_ROUND) == 0;
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

static void pack_quarter(const struct tdmi_gemm_kernels *kernels, int in, int out, int row,
                         int column, const float *weights, const float *scale, float *packed)
{
    const int left = left_columns(out);
    struct tdmi_gemm_matrix matrix = {.from = weights + (int64_t)row * out + column,
                                      .row_step = out,
                                      .column_step = 1,
                                      .rows = in / 2,
                                      .columns = column ? out - left : left,
                                      .scale = scale ? scale + column : NULL};
    tdmi_gemm_pack(&matrix, kernels->lanes, WIDE, matrix.rows, 0, packed);
}

/* to = a + sign · b */
static void add_all(float *to, const float *a, const float *b, float sign, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] + sign * b[i];
}

void tdmi_strassen_pack(const struct tdmi_gemm_kernels *kernels, int in, int out,
                        const float *weights, const float *scale, float *packed)
{
    const int half = in / 2, left = left_columns(out);
    const int64_t n = quarter_floats(in, out);
    float *of[PRODUCTS + 1] = {NULL};
    for (int i = 1; i <= PRODUCTS; i++)
        of[i] = packed + (i - 1) * n;
    memset(packed, 0, sizeof(float) * (size_t)(PRODUCTS * n));
    pack_quarter(kernels, in, out, 0, 0, weights, scale, of[2]);
    pack_quarter(kernels, in, out, 0, left, weights, scale, of[3]);
    pack_quarter(kernels, in, out, half, 0, weights, scale, of[4]);
    pack_quarter(kernels, in, out, half, left, weights, scale, of[5]);
    add_all(of[1], of[2], of[5], 1.0f, n);
    add_all(of[6], of[2], of[3], 1.0f, n);
    add_all(of[7], of[4], of[5], 1.0f, n);
    add_all(of[3], of[3], of[5], -1.0f, n);
    add_all(of[4], of[4], of[2], -1.0f, n);
}

/* ---- one job ----------------------------------------------------------------------------------
 */

static int64_t a_scratch(int in)
{
    return tdmi_gemm_scratch_row(in / 2);
}

static int64_t c_scratch(int out)
{
    return tdmi_gemm_scratch_row(left_columns(out));
}

/* For an odd number of pixels: all of A with a row of zeros, all of C. */
static int64_t odd_floats(int in, int out)
{
    return (int64_t)TDMI_STRASSEN_PIXELS * (tdmi_gemm_scratch_row(in) + tdmi_gemm_round(out));
}

int64_t tdmi_strassen_scratch_floats(int in, int out)
{
    return HALF * (a_scratch(in) + c_scratch(out)) + odd_floats(in, out);
}

/* Rows of floats, row apart. */
struct rows {
    const float *at;
    int64_t row;
};

/* to = a + sign · b */
TDMI_MULTIVERSION
static void add_rows(float *restrict to, int64_t to_row, struct rows a, struct rows b, float sign,
                     int n_rows, int columns)
{
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < columns; j++)
            to[i * to_row + j] = a.at[i * a.row + j] + sign * b.at[i * b.row + j];
}

/* c = t, or c = from + sign · t; from may be c */
TDMI_MULTIVERSION
static void add_product(float *c, int64_t c_row, struct rows from, struct rows t, float sign,
                        int n_rows, int columns)
{
    for (int i = 0; i < n_rows; i++) {
        float *to = c + i * c_row;
        const float *value = t.at + i * t.row;
        if (from.at)
            for (int j = 0; j < columns; j++)
                to[j] = from.at[i * from.row + j] + sign * value[j];
        else
            memcpy(to, value, sizeof(float) * (size_t)columns);
    }
}

/* c = act(c + t + bias) */
TDMI_MULTIVERSION
static void end_product(float *c, int64_t c_row, struct rows t, const float *bias, float low,
                        float high, int n_rows, int columns)
{
    for (int i = 0; i < n_rows; i++) {
        float *to = c + i * c_row;
        const float *value = t.at + i * t.row;
        for (int j = 0; j < columns; j++) {
            float z = to[j] + value[j] + (bias ? bias[j] : 0.0f);
            z = z < low ? low : z;
            to[j] = z > high ? high : z;
        }
    }
}

struct work {
    const struct tdmi_gemm_kernels *kernels;
    const struct tdmi_strassen *job;
    int m, half, left, right; /* rows of a quarter, channels of one of A, columns of both of C */
    float *s, *t;
    struct rows sums, product;
};

static void multiply(struct work *work, int index, struct rows a)
{
    const struct tdmi_strassen *job = work->job;
    struct tdmi_gemm_segment segment = {a.at, 0, work->half};
    work->kernels->rows(&(struct tdmi_gemm_rows){
        .segments = &segment,
        .n_segments = 1,
        .n_images = 1,
        .n_lines = 1,
        .n_rows = work->m,
        .a_row = a.row,
        .packed = job->packed + (index - 1) * quarter_floats(job->in, job->out),
        .depth = work->half,
        .columns = work->left,
        .wide = WIDE,
        .c = work->t,
        .c_row = work->product.row,
        .end = TDMI_GEMM_ACTIVATED,
        .ahead = {index == PRODUCTS ? job->ahead : (struct tdmi_gemm_ahead){NULL, 0}}});
}

static struct rows sum_of(struct work *work, struct rows a, struct rows b, float sign)
{
    add_rows(work->s, work->sums.row, a, b, sign, work->m, work->half);
    return work->sums;
}

static int64_t quarter_at(const struct work *work, int row, int column)
{
    return (int64_t)row * work->m * work->job->out + (int64_t)column * work->left;
}

/* The first product of a quarter of C, with the residual, or NULL; or one more. */
static void begin(struct work *work, int row, int column)
{
    const struct tdmi_strassen *job = work->job;
    int64_t at = quarter_at(work, row, column);
    struct rows from = {job->residual ? job->residual + at : NULL, job->out};
    add_product(job->c + at, job->out, from, work->product, 1.0f, work->m,
                column ? work->right : work->left);
}

static void more(struct work *work, int row, int column, float sign)
{
    const struct tdmi_strassen *job = work->job;
    float *c = job->c + quarter_at(work, row, column);
    add_product(c, job->out, (struct rows){c, job->out}, work->product, sign, work->m,
                column ? work->right : work->left);
}

static void end(struct work *work, int row, int column)
{
    const struct tdmi_strassen *job = work->job;
    const bool is_clamp = job->act != TDMI_ACT_NONE;
    end_product(job->c + quarter_at(work, row, column), job->out, work->product,
                job->bias ? job->bias + (column ? work->left : 0) : NULL,
                is_clamp ? 0.0f : -INFINITY, job->act == TDMI_ACT_RELU6 ? 6.0f : INFINITY, work->m,
                column ? work->right : work->left);
}

static void run_even(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job)
{
    struct work work = {.kernels = kernels,
                        .job = job,
                        .m = job->n / 2,
                        .half = job->in / 2,
                        .left = left_columns(job->out)};
    work.right = job->out - work.left;
    work.s = job->scratch;
    work.t = work.s + HALF * a_scratch(job->in);
    work.sums = (struct rows){work.s, a_scratch(job->in)};
    work.product = (struct rows){work.t, c_scratch(job->out)};
    const struct rows a11 = {job->a, job->a_row}, a12 = {job->a + work.half, job->a_row};
    const struct rows a21 = {job->a + work.m * job->a_row, job->a_row};
    const struct rows a22 = {a21.at + work.half, job->a_row};
    multiply(&work, 1, sum_of(&work, a11, a22, 1.0f));
    begin(&work, 0, 0);
    begin(&work, 1, 1);
    multiply(&work, 2, sum_of(&work, a21, a22, 1.0f));
    begin(&work, 1, 0);
    more(&work, 1, 1, -1.0f);
    multiply(&work, 3, a11);
    begin(&work, 0, 1);
    more(&work, 1, 1, 1.0f);
    multiply(&work, 4, a22);
    more(&work, 0, 0, 1.0f);
    end(&work, 1, 0);
    multiply(&work, 5, sum_of(&work, a11, a12, 1.0f));
    more(&work, 0, 0, -1.0f);
    end(&work, 0, 1);
    multiply(&work, 6, sum_of(&work, a21, a11, -1.0f));
    end(&work, 1, 1);
    multiply(&work, 7, sum_of(&work, a12, a22, -1.0f));
    end(&work, 0, 0);
}

/* One pixel more, of zeros. */
static void run_odd(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job)
{
    const int64_t row = tdmi_gemm_scratch_row(job->in), values = (int64_t)job->n * job->out;
    struct tdmi_strassen even = *job;
    float *a = job->scratch + HALF * (a_scratch(job->in) + c_scratch(job->out));
    float *c = a + TDMI_STRASSEN_PIXELS * row;
    memset(a, 0, sizeof(float) * (size_t)((job->n + 1) * row));
    for (int i = 0; i < job->n; i++)
        memcpy(a + i * row, job->a + i * job->a_row, sizeof(float) * (size_t)job->in);
    memset(c + values, 0, sizeof(float) * (size_t)job->out);
    if (job->residual)
        memcpy(c, job->residual, sizeof(float) * (size_t)values);
    even.n++;
    even.a = a;
    even.a_row = row;
    even.c = c;
    even.residual = job->residual ? c : NULL;
    run_even(kernels, &even);
    memcpy(job->c, c, sizeof(float) * (size_t)values);
}

void tdmi_strassen(const struct tdmi_gemm_kernels *kernels, const struct tdmi_strassen *job)
{
    if (job->n % 2)
        run_odd(kernels, job);
    else
        run_even(kernels, job);
}

/*
 * The 1 × 1 convolution of stride 1 (conv_gemm.h): a matrix product over pixels, cut into chunks
 * whose scratch memory stays in the second cache. A chunk is read through its form, multiplied, and
 * its statistics are taken while results are in registers, so that training reads x once and writes
 * y once forward, and reads x, g, y (and add) once and writes dx once backward.
 *
 * Chunks of pixels: how many is a rule of the shape alone, so that bits do not depend on anything
 * else. x and dy are multiplied where they are when their form is plain and their rows lie handily.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/conv/conv_sums.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/strassen.h"

#include <string.h>

enum {
    STEP = 14,                    /* pixels of a block; chunks are whole blocks */
    MAX_FORWARD = 72 * STEP,      /* pixels of a chunk */
    MIN_FORWARD = 4 * STEP,       /* the weights are read again for each chunk */
    MIN_FORWARD_LARGE = 8 * STEP, /* … which come from far away where they are so many: */
    LARGE_WEIGHTS = 1 << 20,
    MAX_BACKWARD = 36 * STEP,
    MIN_BACKWARD = 8 * STEP,   /* their gradient is read and written again */
    FORWARD_BYTES = 192 << 10, /* of a chunk's scratch */
    BACKWARD_BYTES = 320 << 10,
    WIDE = 2
};

static bool accepts(const struct tdmi_conv_gemm *desc)
{
    return desc->kernel_h == 1 && desc->kernel_w == 1 && desc->stride == 1 && desc->pad_top == 0 &&
           desc->pad_left == 0 && desc->out_h == desc->in_h && desc->out_w == desc->in_w;
}

/* Pixels of one image. */
static int64_t pixels_of(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)desc->in_h * desc->in_w;
}

static int64_t chunk_pixels(int64_t row_floats, int64_t bytes, int64_t least, int64_t most)
{
    int64_t n = bytes / (row_floats * (int64_t)sizeof(float)) / STEP * STEP;
    return n < least ? least : n > most ? most : n;
}

static int64_t forward_chunk(const struct tdmi_conv_gemm *desc)
{
    const bool is_large = (int64_t)desc->in_c * desc->out_c >= LARGE_WEIGHTS;
    return chunk_pixels(tdmi_gemm_scratch_row(desc->in_c), FORWARD_BYTES,
                        is_large ? MIN_FORWARD_LARGE : MIN_FORWARD, MAX_FORWARD);
}

static int64_t backward_chunk(const struct tdmi_conv_gemm *desc)
{
    return chunk_pixels(tdmi_gemm_scratch_row(desc->in_c) + tdmi_gemm_scratch_row(desc->out_c),
                        BACKWARD_BYTES, MIN_BACKWARD, MAX_BACKWARD);
}

/* The layout of the workspace. */
struct scratch {
    double *sum, *square, *dbias;
    float *x, *dy;
};

static struct scratch scratch_of(const struct tdmi_conv_gemm *desc, void *workspace)
{
    struct scratch scratch = {.sum = workspace};
    int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    scratch.dbias = scratch.square + n;
    scratch.dy = (float *)(scratch.dbias + n);
    scratch.x = scratch.dy + backward_chunk(desc) * tdmi_gemm_scratch_row(desc->out_c);
    return scratch;
}

static struct scratch cleared_scratch_of(const struct tdmi_conv_gemm *desc, void *workspace)
{
    struct scratch scratch = scratch_of(desc, workspace);
    memset(scratch.sum, 0, sizeof(double) * (size_t)(3 * tdmi_conv_sums_values(desc)));
    return scratch;
}

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    int64_t in = tdmi_gemm_scratch_row(desc->in_c), out = tdmi_gemm_scratch_row(desc->out_c);
    if (desc->is_split)
        return sizeof(float) * (size_t)tdmi_strassen_scratch_floats(desc->in_c);
    int64_t most =
        forward_chunk(desc) > backward_chunk(desc) ? forward_chunk(desc) : backward_chunk(desc);
    return sizeof(double) * (size_t)(3 * tdmi_conv_sums_values(desc)) +
           sizeof(float) * (size_t)(backward_chunk(desc) * out + most * in);
}

static size_t packed_bytes(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction)
{
    if (desc->is_split)
        return sizeof(float) * (size_t)tdmi_strassen_packed_floats(desc->in_c, desc->out_c);
    return sizeof(float) * (size_t)(direction == TDMI_CONV_FORWARD
                                        ? tdmi_gemm_packed_floats(desc->in_c, desc->out_c)
                                        : tdmi_gemm_packed_floats(desc->out_c, desc->in_c));
}

static void pack(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction,
                 const float *weights, const float *scale, float *packed)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    if (desc->is_split) {
        tdmi_strassen_pack(kernels, desc->in_c, desc->out_c, weights, scale, packed);
        return;
    }
    struct tdmi_gemm_matrix matrix = {weights, desc->out_c, 1, desc->in_c, desc->out_c, scale};
    if (direction == TDMI_CONV_BACKWARD)
        matrix = (struct tdmi_gemm_matrix){weights, 1, desc->out_c, desc->out_c, desc->in_c, NULL};
    tdmi_gemm_pack(&matrix, kernels->lanes, WIDE, matrix.rows, 0, packed);
}

static bool is_streamed(const struct tdmi_conv_gemm *desc, int channels, const float *to)
{
    return tdmi_conv_is_streamed(desc, pixels_of(desc) * channels, channels, to);
}

/* n pixels of x as a product reads them, and how far apart they then are. */
static const float *read_pixels(const struct tdmi_gemm_kernels *kernels, const float *x, int64_t n,
                                int channels, const struct tdmi_read_form *form, float *scratch,
                                int64_t *row)
{
    *row = channels;
    if (tdmi_read_form_is_plain(form) && tdmi_gemm_is_handy(channels))
        return x;
    *row = tdmi_gemm_scratch_row(channels);
    kernels->read(&(struct tdmi_gemm_copy){x, NULL, n, channels, channels, scratch, *row}, form);
    return scratch;
}

/* Pixels at to at + n of a tensor, as far as it has them. */
static struct tdmi_gemm_ahead ahead_of(const float *tensor, int64_t at, int64_t n, int64_t pixels,
                                       int channels)
{
    int64_t left = pixels - at < n ? pixels - at : n;
    if (!tensor || left <= 0)
        return (struct tdmi_gemm_ahead){NULL, 0};
    return (struct tdmi_gemm_ahead){tensor + at * channels, left * channels};
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* The product of one chunk; job has what is not the chunk's. */
static void multiply_chunk(const struct tdmi_gemm_kernels *kernels, struct tdmi_gemm_rows *job,
                           const float *a, int64_t a_row, int64_t n)
{
    struct tdmi_gemm_segment segment = {a, 0, job->depth};
    job->segments = &segment;
    job->n_segments = 1;
    job->a_row = a_row;
    job->n_images = 1;
    job->n_lines = 1;
    job->n_rows = (int)n;
    job->wide = WIDE;
    job->c_row = job->columns;
    kernels->rows(job);
    job->segments = NULL;
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    struct scratch scratch = cleared_scratch_of(desc, call->workspace);
    const int64_t chunk = forward_chunk(desc), pixels = call->n * pixels_of(desc);
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = desc->in_c,
                                 .columns = desc->out_c,
                                 .is_streamed = is_streamed(desc, desc->out_c, call->y),
                                 .end = TDMI_GEMM_RAW,
                                 .bias = call->bias,
                                 .centre = call->sums.centre,
                                 .sum = scratch.sum,
                                 .square = scratch.square};
    for (int64_t at = 0; at < pixels; at += chunk) {
        int64_t n = pixels - at < chunk ? pixels - at : chunk, a_row;
        const float *a = read_pixels(kernels, call->x + at * desc->in_c, n, desc->in_c, &call->read,
                                     scratch.x, &a_row);
        job.ahead[0] = ahead_of(call->x, at + chunk, chunk, pixels, desc->in_c);
        job.c = call->y + at * desc->out_c;
        multiply_chunk(kernels, &job, a, a_row, n);
    }
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square, desc->out_c);
}

/* The same by strassen.h, picture by picture: rounding reaches from one pixel of a job to another,
 * and must not from one picture to another. The scratch for x lies before that of the jobs. */
static void infer_split(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    struct tdmi_strassen job = {.in = desc->in_c,
                                .out = desc->out_c,
                                .n = (int)pixels_of(desc),
                                .packed = call->packed,
                                .bias = call->bias,
                                .act = call->act,
                                .scratch = call->workspace};
    for (int i = 0; i < call->n; i++) {
        const int64_t at = i * pixels_of(desc);
        job.a = call->x + at * desc->in_c;
        job.residual = call->residual ? call->residual + at * desc->out_c : NULL;
        job.c = call->y + at * desc->out_c;
        job.next = i + 1 < call->n ? job.a + pixels_of(desc) * desc->in_c : NULL;
        tdmi_strassen(kernels, &job);
    }
}

static void infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    if (desc->is_split) {
        infer_split(desc, call);
        return;
    }
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    struct scratch scratch = scratch_of(desc, call->workspace);
    const int64_t chunk = forward_chunk(desc), pixels = call->n * pixels_of(desc);
    const struct tdmi_read_form plain = {NULL, NULL, TDMI_ACT_NONE};
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = desc->in_c,
                                 .columns = desc->out_c,
                                 .is_streamed = is_streamed(desc, desc->out_c, call->y),
                                 .end = TDMI_GEMM_ACTIVATED,
                                 .bias = call->bias,
                                 .read.act = call->act};
    for (int64_t at = 0; at < pixels; at += chunk) {
        int64_t n = pixels - at < chunk ? pixels - at : chunk, a_row;
        const float *a = read_pixels(kernels, call->x + at * desc->in_c, n, desc->in_c, &plain,
                                     scratch.x, &a_row);
        job.ahead[0] = ahead_of(call->x, at + chunk, chunk, pixels, desc->in_c);
        if (at + chunk >= pixels)
            job.ahead[1] = (struct tdmi_gemm_ahead){call->next, call->next_floats};
        job.c = call->y + at * desc->out_c;
        job.residual = call->residual ? call->residual + at * desc->out_c : NULL;
        multiply_chunk(kernels, &job, a, a_row, n);
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

static const float *read_gradient(const struct tdmi_gemm_kernels *kernels,
                                  const struct tdmi_conv_gemm *desc,
                                  const struct tdmi_conv_backward *call, int64_t at, int64_t n,
                                  const struct scratch *scratch, int64_t *row)
{
    const float *g = call->g + at * desc->out_c;
    bool is_plain_form = !call->gradient.of_g && !call->gradient.of_y && !call->gradient.one;
    *row = desc->out_c;
    /* The gradient of the weights reads whole vectors of it. */
    if (is_plain_form && !call->dbias && desc->out_c % TDMI_GEMM_ROUND == 0 &&
        tdmi_gemm_is_handy(desc->out_c))
        return g;
    *row = tdmi_gemm_scratch_row(desc->out_c);
    kernels->gradient(&(struct tdmi_gemm_copy){g, call->y ? call->y + at * desc->out_c : NULL, n,
                                               desc->out_c, desc->out_c, scratch->dy, *row},
                      &call->gradient, call->dbias ? scratch->dbias : NULL);
    return scratch->dy;
}

static void backward_weights(const struct tdmi_gemm_kernels *kernels,
                             const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call, int64_t at, int64_t n,
                             const struct scratch *scratch, const float *dy, int64_t dy_row,
                             const struct tdmi_gemm_ahead ahead[2])
{
    int64_t x_row;
    const float *x = read_pixels(kernels, call->x + at * desc->in_c, n, desc->in_c, &call->read,
                                 scratch->x, &x_row);
    kernels->outer(&(struct tdmi_gemm_outer){.a = x,
                                             .b = dy,
                                             .a_pixel = x_row,
                                             .b_pixel = dy_row,
                                             .n_images = 1,
                                             .n_lines = 1,
                                             .n_pixels = (int)n,
                                             .rows = desc->in_c,
                                             .columns = desc->out_c,
                                             .c = call->dweights,
                                             .c_row = desc->out_c,
                                             .adds = at > 0,
                                             .ahead = {ahead[0], ahead[1]}});
}

/* The fields of the job for dx that all chunks share. */
static struct tdmi_gemm_rows input_job(const struct tdmi_conv_gemm *desc,
                                       const struct tdmi_conv_backward *call,
                                       const struct scratch *scratch)
{
    return (struct tdmi_gemm_rows){.packed = call->packed,
                                   .depth = desc->out_c,
                                   .columns = desc->in_c,
                                   .is_streamed = is_streamed(desc, desc->in_c, call->dx),
                                   .end = TDMI_GEMM_GRADIENT,
                                   .centre = call->sums.centre,
                                   .sum = scratch->sum,
                                   .square = scratch->square,
                                   .read = call->read};
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct scratch scratch = cleared_scratch_of(desc, call->workspace);
    const int64_t chunk = backward_chunk(desc), pixels = call->n * pixels_of(desc);
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    struct tdmi_gemm_rows job = input_job(desc, call, &scratch);
    for (int64_t at = 0; at < pixels; at += chunk) {
        int64_t n = pixels - at < chunk ? pixels - at : chunk, dy_row;
        const float *dy = read_gradient(kernels, desc, call, at, n, &scratch, &dy_row);
        if (call->dweights)
            backward_weights(kernels, desc, call, at, n, &scratch, dy, dy_row,
                             (struct tdmi_gemm_ahead[]){
                                 ahead_of(call->g, at + chunk, chunk, pixels, desc->out_c),
                                 ahead_of(call->gradient.of_y ? call->y : NULL, at + chunk, chunk,
                                          pixels, desc->out_c)});
        if (!call->dx)
            continue;
        job.ahead[0] = ahead_of(call->x, at + chunk, chunk, pixels, desc->in_c);
        job.ahead[1] = ahead_of(call->add, at + chunk, chunk, pixels, desc->in_c);
        job.c = call->dx + at * desc->in_c;
        job.add = call->add ? call->add + at * desc->in_c : NULL;
        job.x = reads_x ? call->x + at * desc->in_c : NULL;
        multiply_chunk(kernels, &job, dy, dy_row, n);
    }
    tdmi_conv_bias_deliver(call->dbias, scratch.dbias, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch.square, desc->in_c);
}

const struct tdmi_conv_algorithm tdmi_conv_by_pointwise = {
    accepts, workspace_bytes, packed_bytes, pack, forward, infer, backward};

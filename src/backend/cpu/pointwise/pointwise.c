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

/* ---- what a team does at once -------------------------------------------------------------------
 *
 * A team computes a few chunks between two waits, each member some pixels of them. */

enum { PIECES_BYTES = 2 << 20, STEPS_A_MEMBER = 8 };

static int team_of(const struct tdmi_conv_gemm *desc)
{
    return desc->team > 1 ? desc->team : 1;
}

static int64_t pieces_floats(const struct tdmi_conv_gemm *desc, int64_t pixels, int channels)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    return tdmi_pieces_floats(tdmi_gemm_blocks(kernels, WIDE, pixels), channels);
}

/* Whole chunks, at least `least` pixels of them. */
static int64_t stretch_of(const struct tdmi_conv_gemm *desc, int64_t chunk, int64_t least)
{
    const int64_t all = desc->max_images * pixels_of(desc);
    const int64_t chunks = (all + chunk - 1) / chunk, wanted = (least + chunk - 1) / chunk;
    return (wanted < chunks ? wanted : chunks) * chunk;
}

/* As many as have room for the sums of their blocks. */
static int64_t forward_stretch(const struct tdmi_conv_gemm *desc)
{
    const int64_t chunk = forward_chunk(desc);
    const int64_t of_chunk = pieces_floats(desc, chunk, desc->out_c) * (int64_t)sizeof(float);
    const int64_t fitting = PIECES_BYTES / of_chunk * chunk;
    const int64_t least = (int64_t)team_of(desc) * STEPS_A_MEMBER * STEP;
    return stretch_of(desc, chunk, fitting > least ? fitting : least);
}

/* A chunk for each member, whose x and dy stay in its caches. */
static int64_t backward_stretch(const struct tdmi_conv_gemm *desc)
{
    const int64_t chunk = backward_chunk(desc);
    return stretch_of(desc, chunk, team_of(desc) * chunk);
}

/* The part of n pixels that a member computes: whole blocks. */
static struct tdmi_share share_pixels(const struct tdmi_member *member, int64_t n)
{
    const struct tdmi_share steps = tdmi_member_share(member, (n + STEP - 1) / STEP);
    return (struct tdmi_share){steps.first * STEP, steps.end * STEP < n ? steps.end * STEP : n};
}

/* The layout of the workspace. Forward, each member of a team has its x, and there are two sets of
 * pieces, so that one is added up while the other is filled. */
struct scratch {
    double *sum, *square, *dbias;
    float *x, *dy, *pieces;
};

static int64_t forward_x_floats(const struct tdmi_conv_gemm *desc)
{
    return forward_chunk(desc) * tdmi_gemm_scratch_row(desc->in_c);
}

static struct scratch forward_scratch(const struct tdmi_conv_gemm *desc, void *workspace,
                                      const struct tdmi_member *member)
{
    struct scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    float *x = (float *)(scratch.square + n);
    scratch.x = x + (member ? member->index : 0) * forward_x_floats(desc);
    scratch.pieces = x + team_of(desc) * forward_x_floats(desc);
    return scratch;
}

static int64_t forward_floats(const struct tdmi_conv_gemm *desc)
{
    const int64_t pieces = 2 * pieces_floats(desc, forward_stretch(desc), desc->out_c);
    return team_of(desc) * forward_x_floats(desc) + (team_of(desc) > 1 ? pieces : 0);
}

static struct scratch backward_scratch(const struct tdmi_conv_gemm *desc, void *workspace)
{
    struct scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    scratch.dbias = scratch.square + n;
    scratch.dy = (float *)(scratch.dbias + n);
    scratch.x = scratch.dy + backward_stretch(desc) * tdmi_gemm_scratch_row(desc->out_c);
    scratch.pieces = scratch.x + backward_stretch(desc) * tdmi_gemm_scratch_row(desc->in_c);
    return scratch;
}

static int64_t backward_floats(const struct tdmi_conv_gemm *desc)
{
    const int64_t pieces = pieces_floats(desc, backward_stretch(desc), desc->in_c);
    return backward_stretch(desc) *
               (tdmi_gemm_scratch_row(desc->in_c) + tdmi_gemm_scratch_row(desc->out_c)) +
           (team_of(desc) > 1 ? pieces : 0);
}

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    const int64_t forward = forward_floats(desc), backward = backward_floats(desc);
    if (desc->is_split)
        return sizeof(float) * (size_t)(team_of(desc) * tdmi_strassen_scratch_floats(desc->in_c));
    if (desc->only_infers) /* the sums are not used */
        return sizeof(double) * (size_t)(2 * tdmi_conv_sums_values(desc)) +
               sizeof(float) * (size_t)(team_of(desc) * forward_x_floats(desc));
    return sizeof(double) * (size_t)(3 * tdmi_conv_sums_values(desc)) +
           sizeof(float) * (size_t)(forward > backward ? forward : backward);
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

/* The pixels that are read after those of `part` of the chunk at `at`: those of the next chunk, or
 * for a member of a team its part of the next stretch. */
static struct tdmi_gemm_ahead next_part(const struct tdmi_member *member, const float *tensor,
                                        int64_t at, struct tdmi_share part, int64_t chunk,
                                        int64_t stretch, int64_t pixels, int channels)
{
    if (!member)
        return ahead_of(tensor, at + chunk, chunk, pixels, channels);
    return ahead_of(tensor, at + part.first + stretch, part.end - part.first, pixels, channels);
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* The product of a chunk of n pixels; job has what is not the chunk's. */
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

/* Product of a chunk of n pixels at `at`, those of `part` of it. */
static void forward_part(const struct tdmi_conv_gemm *desc, const struct tdmi_gemm_kernels *kernels,
                         const float *x, const struct tdmi_read_form *form, int64_t at, int64_t n,
                         struct tdmi_share part, const struct scratch *scratch,
                         struct tdmi_gemm_rows *job)
{
    /* A block that begins in the part may end behind it. */
    const int64_t seen = part.end + STEP < n ? part.end + STEP : n;
    int64_t a_row;
    const float *a =
        read_pixels(kernels, x + (at + part.first) * desc->in_c, seen - part.first, desc->in_c,
                    form, scratch->x + part.first * tdmi_gemm_scratch_row(desc->in_c), &a_row);
    job->from = part.first;
    job->to = part.end;
    multiply_chunk(kernels, job, a - part.first * a_row, a_row, n);
}

/* Add up the pieces of n pixels, chunk after chunk. */
static void add_pieces(const struct tdmi_gemm_kernels *kernels, struct tdmi_gemm_rows *job,
                       float *pieces, int64_t piece, int64_t n, int64_t chunk,
                       struct tdmi_share columns)
{
    job->n_images = job->n_lines = 1;
    job->wide = WIDE;
    for (int64_t at = 0; at < n; at += chunk) {
        job->n_rows = (int)(n - at < chunk ? n - at : chunk);
        job->pieces = pieces + at / chunk * piece;
        tdmi_gemm_add_pieces(kernels, job, columns.first, columns.end);
    }
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct scratch scratch = forward_scratch(desc, call->workspace, call->member);
    const int64_t chunk = forward_chunk(desc), pixels = call->n * pixels_of(desc);
    const int64_t stretch = call->member ? forward_stretch(desc) : pixels;
    const int64_t piece = pieces_floats(desc, chunk, desc->out_c);
    float *pieces = call->member ? scratch.pieces : NULL;
    float *others = pieces ? pieces + stretch / chunk * piece : NULL;
    const struct tdmi_share columns = tdmi_conv_sums_share(call->member, desc->out_c);
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = desc->in_c,
                                 .columns = desc->out_c,
                                 .is_streamed = is_streamed(desc, desc->out_c, call->y),
                                 .end = TDMI_GEMM_RAW,
                                 .bias = call->bias,
                                 .centre = call->sums.centre,
                                 .sum = scratch.sum,
                                 .square = scratch.square};
    tdmi_conv_sums_clear(scratch.sum, columns);
    tdmi_conv_sums_clear(scratch.square, columns);
    for (int64_t begin = 0; begin < pixels; begin += stretch) {
        const int64_t left = pixels - begin < stretch ? pixels - begin : stretch;
        const struct tdmi_share mine = share_pixels(call->member, left);
        struct tdmi_share part;
        for (int64_t at = 0; at < left; at += chunk) {
            const int64_t n = left - at < chunk ? left - at : chunk;
            if (!tdmi_share_within(mine, at, n, &part))
                continue;
            job.ahead[0] = next_part(call->member, call->x, begin + at, part, chunk, stretch,
                                     pixels, desc->in_c);
            job.c = call->y + (begin + at) * desc->out_c;
            job.pieces = pieces ? pieces + at / chunk * piece : NULL;
            forward_part(desc, kernels, call->x, &call->read, begin + at, n, part, &scratch, &job);
        }
        if (!pieces)
            continue;
        tdmi_member_wait(call->member);
        if (call->sums.sum)
            add_pieces(kernels, &job, pieces, piece, left, chunk, columns);
        float *const filled = pieces; /* not before the next wait is it filled again */
        pieces = others;
        others = filled;
    }
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, columns, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square, columns, desc->out_c);
}

/* The same by strassen.h, picture by picture: rounding reaches from one pixel of a job to another,
 * and must not from one picture to another. A team shares the blocks of pairs. */
static void infer_split(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    struct tdmi_strassen job = {.in = desc->in_c,
                                .out = desc->out_c,
                                .n = (int)pixels_of(desc),
                                .packed = call->packed,
                                .bias = call->bias,
                                .act = call->act,
                                .scratch = (float *)call->workspace +
                                           (call->member ? call->member->index : 0) *
                                               tdmi_strassen_scratch_floats(desc->in_c)};
    const int blocks = tdmi_strassen_blocks(pixels_of(desc));
    const struct tdmi_share mine = tdmi_member_share(call->member, (int64_t)call->n * blocks);
    struct tdmi_share part;
    for (int i = 0; i < call->n; i++) {
        const int64_t at = i * pixels_of(desc);
        if (!tdmi_share_within(mine, (int64_t)i * blocks, blocks, &part))
            continue;
        job.a = call->x + at * desc->in_c;
        job.residual = call->residual ? call->residual + at * desc->out_c : NULL;
        job.c = call->y + at * desc->out_c;
        job.next = i + 1 < call->n ? job.a + pixels_of(desc) * desc->in_c : NULL;
        job.from = (int)part.first;
        job.to = (int)part.end;
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
    const struct scratch scratch = forward_scratch(desc, call->workspace, call->member);
    const int64_t chunk = forward_chunk(desc), pixels = call->n * pixels_of(desc);
    const struct tdmi_read_form plain = {NULL, NULL, TDMI_ACT_NONE};
    const struct tdmi_share mine = share_pixels(call->member, pixels);
    struct tdmi_share part;
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = desc->in_c,
                                 .columns = desc->out_c,
                                 .is_streamed = is_streamed(desc, desc->out_c, call->y),
                                 .end = TDMI_GEMM_ACTIVATED,
                                 .bias = call->bias,
                                 .read.act = call->act};
    for (int64_t at = 0; at < pixels; at += chunk) {
        const int64_t n = pixels - at < chunk ? pixels - at : chunk;
        if (!tdmi_share_within(mine, at, n, &part))
            continue;
        job.ahead[0] = ahead_of(call->x, at + chunk, chunk, pixels, desc->in_c);
        if (at + chunk >= pixels)
            job.ahead[1] = (struct tdmi_gemm_ahead){call->next, call->next_floats};
        job.c = call->y + at * desc->out_c;
        job.residual = call->residual ? call->residual + at * desc->out_c : NULL;
        forward_part(desc, kernels, call->x, &plain, at, n, part, &scratch, &job);
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* x or dy of the stretch as products read it: where the tensor has it, or a copy. */
struct operand {
    const float *at; /* of the stretch's first pixel */
    int64_t row;
};

static struct operand x_operand(const struct tdmi_conv_gemm *desc,
                                const struct tdmi_conv_backward *call,
                                const struct scratch *scratch, int64_t begin)
{
    if (tdmi_read_form_is_plain(&call->read) && tdmi_gemm_is_handy(desc->in_c))
        return (struct operand){call->x + begin * desc->in_c, desc->in_c};
    return (struct operand){scratch->x, tdmi_gemm_scratch_row(desc->in_c)};
}

static struct operand dy_operand(const struct tdmi_conv_gemm *desc,
                                 const struct tdmi_conv_backward *call,
                                 const struct scratch *scratch, int64_t begin)
{
    const bool is_plain_form = !call->gradient.of_g && !call->gradient.of_y && !call->gradient.one;
    /* The gradient of the weights reads whole vectors of it. */
    if (is_plain_form && desc->out_c % TDMI_GEMM_ROUND == 0 && tdmi_gemm_is_handy(desc->out_c))
        return (struct operand){call->g + begin * desc->out_c, desc->out_c};
    return (struct operand){scratch->dy, tdmi_gemm_scratch_row(desc->out_c)};
}

/* Fill the copies of a part of the stretch at `begin`. */
static void copy_operands(const struct tdmi_gemm_kernels *kernels,
                          const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call,
                          int64_t begin, struct tdmi_share part, const struct scratch *scratch,
                          struct operand x, struct operand dy)
{
    const int64_t at = begin + part.first, n = part.end - part.first;
    const float *g = call->g + at * desc->out_c;
    if (dy.at == scratch->dy)
        kernels->gradient(&(struct tdmi_gemm_copy){g, call->y ? call->y + at * desc->out_c : NULL,
                                                   n, desc->out_c, desc->out_c,
                                                   scratch->dy + part.first * dy.row, dy.row},
                          &call->gradient);
    if (call->dweights && x.at == scratch->x)
        kernels->read(&(struct tdmi_gemm_copy){call->x + at * desc->in_c, NULL, n, desc->in_c,
                                               desc->in_c, scratch->x + part.first * x.row, x.row},
                      &call->read);
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

/* A stretch at work. */
struct stretch {
    int64_t begin, pixels; /* of all */
    int64_t most, chunk, n;
    struct operand x, dy;
};

/* The gradient of the weights: each member has blocks of it, and adds up all chunks. */
static void backward_weights(const struct tdmi_gemm_kernels *kernels,
                             const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call, const struct stretch *stretch)
{
    struct tdmi_gemm_outer job = {.a_pixel = stretch->x.row,
                                  .b_pixel = stretch->dy.row,
                                  .n_images = 1,
                                  .n_lines = 1,
                                  .rows = desc->in_c,
                                  .columns = desc->out_c,
                                  .c = call->dweights,
                                  .c_row = desc->out_c};
    const struct tdmi_share mine = share_pixels(call->member, stretch->n);
    for (int64_t at = 0; at < stretch->n; at += stretch->chunk) {
        const int64_t n = stretch->n - at < stretch->chunk ? stretch->n - at : stretch->chunk;
        const struct tdmi_share part = {mine.first + (mine.end - mine.first) * at / stretch->n,
                                        mine.first +
                                            (mine.end - mine.first) * (at + n) / stretch->n};
        job.n_pixels = (int)n;
        job.a = stretch->x.at + at * stretch->x.row;
        job.b = stretch->dy.at + at * stretch->dy.row;
        job.adds = stretch->begin + at > 0;
        job.ahead[0] = next_part(call->member, call->g, stretch->begin, part, stretch->chunk,
                                 stretch->most, stretch->pixels, desc->out_c);
        job.ahead[1] = next_part(call->member, call->gradient.of_y ? call->y : NULL, stretch->begin,
                                 part, stretch->chunk, stretch->most, stretch->pixels, desc->out_c);
        tdmi_gemm_outer_shared(kernels, &job, call->member);
    }
}

/* The gradient of the input: each member has some pixels. */
static void backward_input(const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call,
                           const struct stretch *stretch, struct tdmi_share mine, float *pieces,
                           struct tdmi_gemm_rows *job)
{
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    const int64_t chunk = stretch->chunk, piece = pieces_floats(desc, chunk, desc->in_c);
    struct tdmi_share part;
    for (int64_t at = 0; at < stretch->n; at += chunk) {
        const int64_t n = stretch->n - at < chunk ? stretch->n - at : chunk;
        const int64_t first = (stretch->begin + at) * desc->in_c;
        if (!tdmi_share_within(mine, at, n, &part))
            continue;
        job->from = part.first;
        job->to = part.end;
        job->pieces = pieces ? pieces + at / chunk * piece : NULL;
        job->ahead[0] = next_part(call->member, call->x, stretch->begin + at, part, chunk,
                                  stretch->most, stretch->pixels, desc->in_c);
        job->ahead[1] = next_part(call->member, call->add, stretch->begin + at, part, chunk,
                                  stretch->most, stretch->pixels, desc->in_c);
        job->c = call->dx + first;
        job->add = call->add ? call->add + first : NULL;
        job->x = reads_x ? call->x + first : NULL;
        multiply_chunk(kernels, job, stretch->dy.at + at * stretch->dy.row, stretch->dy.row, n);
    }
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct scratch scratch = backward_scratch(desc, call->workspace);
    const struct tdmi_share in = tdmi_conv_sums_share(call->member, desc->in_c);
    const struct tdmi_share out = tdmi_conv_sums_share(call->member, desc->out_c);
    struct stretch stretch = {.pixels = call->n * pixels_of(desc), .chunk = backward_chunk(desc)};
    stretch.most = call->member ? backward_stretch(desc) : stretch.chunk;
    float *pieces = call->member ? scratch.pieces : NULL;
    struct tdmi_gemm_rows job = input_job(desc, call, &scratch);
    tdmi_conv_sums_clear(scratch.sum, in);
    tdmi_conv_sums_clear(scratch.square, in);
    tdmi_conv_sums_clear(scratch.dbias, out);
    for (; stretch.begin < stretch.pixels; stretch.begin += stretch.most) {
        const int64_t left = stretch.pixels - stretch.begin;
        stretch.n = left < stretch.most ? left : stretch.most;
        stretch.x = x_operand(desc, call, &scratch, stretch.begin);
        stretch.dy = dy_operand(desc, call, &scratch, stretch.begin);
        const struct tdmi_share mine = share_pixels(call->member, stretch.n);
        copy_operands(kernels, desc, call, stretch.begin, mine, &scratch, stretch.x, stretch.dy);
        tdmi_member_wait(call->member);
        if (call->dbias)
            for (int64_t at = 0; at < stretch.n; at += stretch.chunk)
                tdmi_conv_bias_add(stretch.dy.at + at * stretch.dy.row, stretch.dy.row,
                                   stretch.n - at < stretch.chunk ? stretch.n - at : stretch.chunk,
                                   out, scratch.dbias);
        if (call->dweights)
            backward_weights(kernels, desc, call, &stretch);
        if (call->dx)
            backward_input(kernels, desc, call, &stretch, mine, pieces, &job);
        tdmi_member_wait(call->member);
        if (call->dx && call->sums.sum && pieces)
            add_pieces(kernels, &job, pieces, pieces_floats(desc, stretch.chunk, desc->in_c),
                       stretch.n, stretch.chunk, in);
    }
    tdmi_conv_bias_deliver(call->dbias, scratch.dbias, out, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, in, desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch.square, in, desc->in_c);
}

const struct tdmi_conv_algorithm tdmi_conv_by_pointwise = {
    accepts, workspace_bytes, packed_bytes, pack, forward, infer, backward};

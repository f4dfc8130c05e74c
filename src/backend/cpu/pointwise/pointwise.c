/*
 * The 1 × 1 convolution of stride 1 (conv_gemm.h): a matrix product over pixels, cut into chunks
 * whose scratch memory stays in the second cache. A chunk is read through its form, multiplied, and
 * its statistics are taken while results are in registers, so that training reads x once and writes
 * y once forward, and reads x, g, y (and add) once and writes dx once backward.
 *
 * Chunks of pixels: how many is a rule of the shape alone, so that bits do not depend on anything
 * else. x and dy are multiplied where they are when their form is plain and their rows lie handily.
 */
#include "backend/cpu/pointwise/pointwise_chunks.h"

enum {
    MOST_PIXELS = 72 * STEP,       /* in a chunk */
    LEAST_PIXELS = 4 * STEP,       /* the weights are read again for each chunk */
    LEAST_PIXELS_LARGE = 8 * STEP, /* … which come from far away where they are so many: */
    LARGE_WEIGHTS = 1 << 20,
    SPLIT_PIXELS = 6 * STEP, /* three blocks of pairs */
    CHUNK_BYTES = 192 << 10, /* scratch memory of a chunk */
    PIECES_BYTES = 1 << 20,
    STEPS_A_MEMBER = 8
};

static bool accepts(const struct tdmi_conv_gemm *desc)
{
    return desc->kernel_h == 1 && desc->kernel_w == 1 && desc->stride == 1 && desc->pad_top == 0 &&
           desc->pad_left == 0 && desc->out_h == desc->in_h && desc->out_w == desc->in_w;
}

static int64_t forward_chunk(const struct tdmi_conv_gemm *desc)
{
    if (desc->trains_split)
        return SPLIT_PIXELS;
    const bool is_large = (int64_t)desc->in_c * desc->out_c >= LARGE_WEIGHTS;
    return chunk_pixels(tdmi_gemm_scratch_row(desc->in_c), CHUNK_BYTES,
                        is_large ? LEAST_PIXELS_LARGE : LEAST_PIXELS, MOST_PIXELS);
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

/* The layout of the workspace: each member of a team has its x, and there are two sets of pieces,
 * so that one is added up while the other is filled. */
struct scratch {
    double *sum, *square;
    float *x, *split, *pieces;
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
    float *x = (float *)(scratch.square + n), *split = x + team_of(desc) * forward_x_floats(desc);
    scratch.x = x + (member ? member->index : 0) * forward_x_floats(desc);
    scratch.split = split + (member ? member->index : 0) * split_floats(desc, desc->in_c);
    scratch.pieces = split + team_of(desc) * split_floats(desc, desc->in_c);
    return scratch;
}

static int64_t forward_floats(const struct tdmi_conv_gemm *desc)
{
    const int64_t pieces = 2 * pieces_floats(desc, forward_stretch(desc), desc->out_c);
    return team_of(desc) * (forward_x_floats(desc) + split_floats(desc, desc->in_c)) +
           (team_of(desc) > 1 ? pieces : 0);
}

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    const int64_t forward = forward_floats(desc), backward = tdmi_pointwise_backward_floats(desc);
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
    const bool is_forward = direction == TDMI_CONV_FORWARD;
    const int in = is_forward ? desc->in_c : desc->out_c;
    const int out = is_forward ? desc->out_c : desc->in_c;
    return sizeof(float) * (size_t)(desc->is_split || desc->trains_split
                                        ? tdmi_strassen_packed_floats(in, out)
                                        : tdmi_gemm_packed_floats(in, out));
}

static void pack(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction,
                 const float *weights, const float *scale, float *packed)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    struct tdmi_gemm_matrix matrix = {weights, desc->out_c, 1, desc->in_c, desc->out_c, scale};
    if (direction == TDMI_CONV_BACKWARD)
        matrix = (struct tdmi_gemm_matrix){weights, 1, desc->out_c, desc->out_c, desc->in_c, NULL};
    if (desc->is_split || desc->trains_split)
        tdmi_strassen_pack(kernels, &matrix, packed);
    else
        tdmi_gemm_pack(&matrix, kernels->lanes, WIDE, matrix.rows, 0, packed);
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

/* The pixels that are read after a chunk of a share that ends at `at` of the stretch at `begin`. */
static struct tdmi_gemm_ahead ahead_in_share(const float *tensor, int64_t begin, int64_t at,
                                             struct tdmi_share mine, int64_t chunk, int64_t stretch,
                                             int64_t pixels, int channels)
{
    if (at < mine.end)
        return ahead_of(tensor, begin + at, chunk, begin + mine.end, channels);
    return ahead_of(tensor, begin + stretch + mine.first, chunk, pixels, channels);
}

/* Some of the n pixels of a chunk of x, each at its row of scratch memory or in place. Returns
 * where the first of the n is or would be. */
static const float *read_part(const struct tdmi_gemm_kernels *kernels, const float *x, int64_t n,
                              int channels, const struct tdmi_read_form *form,
                              struct tdmi_share part, float *scratch, int64_t *row)
{
    const int64_t end = part.end < n ? part.end : n, first = part.first < end ? part.first : end;
    const float *a = read_pixels(kernels, x + first * channels, end - first, channels, form,
                                 scratch + first * tdmi_gemm_scratch_row(channels), row);
    return a - first * *row;
}

/* Product of a chunk of n pixels at `at`, those of `part` of it. */
static void forward_part(const struct tdmi_conv_gemm *desc, const struct tdmi_gemm_kernels *kernels,
                         const float *x, const struct tdmi_read_form *form, int64_t at, int64_t n,
                         struct tdmi_share part, const struct scratch *scratch,
                         struct tdmi_gemm_rows *job)
{
    /* A block that begins in the part may end behind it. */
    struct tdmi_share read = {part.first, part.end + STEP};
    int64_t row;
    x += at * desc->in_c;
    if (desc->trains_split) {
        const struct tdmi_share blocks = tdmi_strassen_share(part);
        const int64_t half = tdmi_strassen_half(n);
        read = (struct tdmi_share){blocks.first * STEP, blocks.end * STEP};
        const struct tdmi_share lower = {half + read.first, half + read.end};
        (void)read_part(kernels, x, n, desc->in_c, form, lower, scratch->x, &row);
    }
    const float *a = read_part(kernels, x, n, desc->in_c, form, read, scratch->x, &row);
    multiply_chunk(desc, kernels, job, a, row, n, part, scratch->split);
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
            job.ahead[0] =
                ahead_in_share(call->x, begin, at + n, mine, chunk, stretch, pixels, desc->in_c);
            job.c = call->y + (begin + at) * desc->out_c;
            job.pieces = pieces ? pieces + at / chunk * piece : NULL;
            forward_part(desc, kernels, call->x, &call->read, begin + at, n, part, &scratch, &job);
        }
        if (!pieces)
            continue;
        tdmi_member_wait(call->member);
        if (call->sums.sum)
            add_pieces(desc, kernels, &job, pieces, piece, left, chunk, columns);
        float *const filled = pieces; /* not before the next wait is it filled again */
        pieces = others;
        others = filled;
    }
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, columns, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square, columns, desc->out_c);
}

/* The same by strassen.h, picture by picture: rounding reaches from one pixel of a job to another,
 * and must not from one picture to another. A team shares panels of blocks of pairs. */
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
    const int parts = tdmi_strassen_blocks(pixels_of(desc)) * tdmi_strassen_panels(desc->out_c);
    const struct tdmi_share mine = tdmi_member_share(call->member, (int64_t)call->n * parts);
    struct tdmi_share part;
    for (int i = 0; i < call->n; i++) {
        const int64_t at = i * pixels_of(desc);
        if (!tdmi_share_within(mine, (int64_t)i * parts, parts, &part))
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

/* Few pixels are divided by columns where that is more even, so that none of a team reads all
 * weights: the member's columns, or end 0. */
static struct tdmi_share share_columns(const struct tdmi_conv_gemm *desc,
                                       const struct tdmi_member *member, int64_t pixels)
{
    const int64_t lanes = tdmi_gemm_kernels_of(desc->isa)->lanes, width = WIDE * lanes;
    const int64_t size = tdmi_member_size(member);
    const int64_t panels = (desc->out_c + lanes - 1) / lanes / WIDE; /* the last one may be wider */
    const int64_t steps = (pixels + STEP - 1) / STEP;
    const int64_t most_panels = (panels + size - 1) / size;
    int64_t most_pixels = (steps + size - 1) / size * STEP;
    most_pixels = most_pixels < pixels ? most_pixels : pixels;
    if (pixels > desc->out_c || panels < size || most_panels * pixels >= most_pixels * panels)
        return (struct tdmi_share){0, 0};
    const struct tdmi_share mine = tdmi_member_share(member, panels);
    return (struct tdmi_share){mine.first * width, mine.end * width};
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
    const struct tdmi_share columns = share_columns(desc, call->member, pixels);
    const struct tdmi_share mine =
        columns.end > 0 ? (struct tdmi_share){0, pixels} : share_pixels(call->member, pixels);
    struct tdmi_share part;
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = desc->in_c,
                                 .columns = desc->out_c,
                                 .from_column = (int)columns.first,
                                 .to_column = (int)columns.end,
                                 .is_streamed = is_streamed(desc, desc->out_c, call->y),
                                 .end = TDMI_GEMM_ACTIVATED,
                                 .bias = call->bias,
                                 .read.act = call->act};
    for (int64_t at = 0; at < pixels; at += chunk) {
        const int64_t n = pixels - at < chunk ? pixels - at : chunk;
        if (!tdmi_share_within(mine, at, n, &part))
            continue;
        job.ahead[0] = ahead_of(call->x, at + chunk, chunk, mine.end, desc->in_c);
        if (at + chunk >= pixels)
            job.ahead[1] = (struct tdmi_gemm_ahead){call->next, call->next_floats};
        job.c = call->y + at * desc->out_c;
        job.residual = call->residual ? call->residual + at * desc->out_c : NULL;
        forward_part(desc, kernels, call->x, &plain, at, n, part, &scratch, &job);
    }
}

const struct tdmi_conv_algorithm tdmi_conv_by_pointwise = {
    accepts, workspace_bytes, packed_bytes, pack, forward, infer, tdmi_pointwise_backward};

/*
 * Gradients of the 1 × 1 convolution of stride 1. A chunk's dy and x are copied through their forms
 * where products cannot read them in place; both products, for the weights and for x, read the
 * copies while they are in the second cache.
 *
 * A team has two ways. Where the gradient of the weights is small beside a chunk, members compute
 * whole chunks alone, so that no copy moves from one CPU's cache to another's; each chunk's part of
 * that gradient is a piece, as its sums are, added up in the order of the chunks when all are
 * there. Else, and at the end where there are fewer chunks than members, they share each stretch:
 * the copies, after a wait the blocks of the weights' gradient, and the pixels of dx.
 */
#include "backend/cpu/pointwise/pointwise_chunks.h"

enum {
    MOST_PIXELS = 36 * STEP, /* in a chunk */
    LEAST_PIXELS = 8 * STEP, /* the gradient of the weights is read and written again for each */
    CHUNK_BYTES = 320 << 10, /* scratch memory of a chunk */
    OWN_BYTES = 1 << 20      /* pieces of the chunks that members compute alone between two waits */
};

static int64_t backward_chunk(const struct tdmi_conv_gemm *desc)
{
    return chunk_pixels(tdmi_gemm_scratch_row(desc->in_c) + tdmi_gemm_scratch_row(desc->out_c),
                        CHUNK_BYTES, LEAST_PIXELS, MOST_PIXELS);
}

/* A chunk for each member, whose x and dy stay in its caches. */
static int64_t backward_stretch(const struct tdmi_conv_gemm *desc)
{
    const int64_t chunk = backward_chunk(desc);
    return stretch_of(desc, chunk, team_of(desc) * chunk);
}

/* ---- the workspace ---- */

static int64_t gradient_floats(const struct tdmi_conv_gemm *desc)
{
    return tdmi_gemm_round((int64_t)desc->in_c * desc->out_c);
}

/* The pieces of a chunk: the gradient of the weights, and sums. */
static int64_t own_pieces_floats(const struct tdmi_conv_gemm *desc)
{
    return gradient_floats(desc) + pieces_floats(desc, backward_chunk(desc), desc->in_c);
}

static bool has_own_chunks(const struct tdmi_conv_gemm *desc)
{
    const int64_t pixels_floats = backward_chunk(desc) * (desc->in_c + desc->out_c);
    return team_of(desc) > 1 && 2 * gradient_floats(desc) <= pixels_floats;
}

/* Chunks whose pieces have room: at least one for each member. */
static int64_t own_room(const struct tdmi_conv_gemm *desc)
{
    const int64_t fitting = OWN_BYTES / (own_pieces_floats(desc) * (int64_t)sizeof(float));
    const int64_t chunks = desc->max_images * pixels_of(desc) / backward_chunk(desc);
    const int64_t n = fitting < chunks ? fitting : chunks;
    return n > team_of(desc) ? n : team_of(desc);
}

struct scratch {
    double *sum, *square, *dbias;
    float *dy, *x, *split, *pieces;
};

static struct scratch scratch_of(const struct tdmi_conv_gemm *desc, void *workspace,
                                 const struct tdmi_member *member)
{
    struct scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    scratch.dbias = scratch.square + n;
    scratch.dy = (float *)(scratch.dbias + n);
    scratch.x = scratch.dy + backward_stretch(desc) * tdmi_gemm_scratch_row(desc->out_c);
    scratch.split = scratch.x + backward_stretch(desc) * tdmi_gemm_scratch_row(desc->in_c);
    scratch.pieces = scratch.split + team_of(desc) * split_floats(desc, desc->out_c);
    scratch.split += (member ? member->index : 0) * split_floats(desc, desc->out_c);
    return scratch;
}

int64_t tdmi_pointwise_backward_floats(const struct tdmi_conv_gemm *desc)
{
    const int64_t shared = pieces_floats(desc, backward_stretch(desc), desc->in_c);
    const int64_t own = has_own_chunks(desc) ? own_room(desc) * own_pieces_floats(desc) : 0;
    return backward_stretch(desc) *
               (tdmi_gemm_scratch_row(desc->in_c) + tdmi_gemm_scratch_row(desc->out_c)) +
           team_of(desc) * split_floats(desc, desc->out_c) +
           (team_of(desc) == 1 ? 0
            : own > shared     ? own
                               : shared);
}

/* ---- a stretch ---- */

/* x or dy of the stretch as products read it: where the tensor has it, or a copy. */
struct operand {
    const float *at; /* the first pixel of the stretch */
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

/* The pixels of the next stretch that are read like `part` of those at `at`. */
static struct tdmi_gemm_ahead next_part(const float *tensor, int64_t at, struct tdmi_share part,
                                        int64_t stretch, int64_t pixels, int channels)
{
    return ahead_of(tensor, at + part.first + stretch, part.end - part.first, pixels, channels);
}

/* A stretch at work. */
struct stretch {
    int64_t begin, n; /* its first pixel and their number */
    int64_t pixels;   /* number of pixels of the call */
    int64_t most, chunk;
    bool adds; /* to the gradient of the weights */
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
        job.adds = stretch->adds || at > 0;
        job.ahead[0] =
            next_part(call->g, stretch->begin, part, stretch->most, stretch->pixels, desc->out_c);
        job.ahead[1] = next_part(call->gradient.of_y ? call->y : NULL, stretch->begin, part,
                                 stretch->most, stretch->pixels, desc->out_c);
        tdmi_gemm_outer_shared(kernels, &job, call->member);
    }
}

/* The gradient of the input: each member has some pixels. */
static void backward_input(const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call,
                           const struct stretch *stretch, struct tdmi_share mine, float *split,
                           float *pieces, struct tdmi_gemm_rows *job)
{
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    const int64_t chunk = stretch->chunk, piece = pieces_floats(desc, chunk, desc->in_c);
    struct tdmi_share part;
    for (int64_t at = 0; at < stretch->n; at += chunk) {
        const int64_t n = stretch->n - at < chunk ? stretch->n - at : chunk;
        const int64_t first = (stretch->begin + at) * desc->in_c;
        if (!tdmi_share_within(mine, at, n, &part))
            continue;
        job->pieces = pieces ? pieces + at / chunk * piece : NULL;
        job->ahead[0] = next_part(call->x, stretch->begin + at, part, stretch->most,
                                  stretch->pixels, desc->in_c);
        job->ahead[1] = next_part(call->add, stretch->begin + at, part, stretch->most,
                                  stretch->pixels, desc->in_c);
        job->c = call->dx + first;
        job->add = call->add ? call->add + first : NULL;
        job->x = reads_x ? call->x + first : NULL;
        multiply_chunk(desc, kernels, job, stretch->dy.at + at * stretch->dy.row, stretch->dy.row,
                       n, part, split);
    }
}

/* A stretch, by all members of the call. pieces NULL: the sums are complete. */
static void backward_one(const struct tdmi_gemm_kernels *kernels, const struct tdmi_conv_gemm *desc,
                         const struct tdmi_conv_backward *call, const struct scratch *scratch,
                         struct stretch *stretch, float *pieces, struct tdmi_gemm_rows *job)
{
    const struct tdmi_share mine = share_pixels(call->member, stretch->n);
    stretch->x = x_operand(desc, call, scratch, stretch->begin);
    stretch->dy = dy_operand(desc, call, scratch, stretch->begin);
    copy_operands(kernels, desc, call, stretch->begin, mine, scratch, stretch->x, stretch->dy);
    tdmi_member_wait(call->member);
    if (call->dbias)
        for (int64_t at = 0; at < stretch->n; at += stretch->chunk)
            tdmi_conv_bias_add(stretch->dy.at + at * stretch->dy.row, stretch->dy.row,
                               stretch->n - at < stretch->chunk ? stretch->n - at : stretch->chunk,
                               tdmi_conv_sums_share(call->member, desc->out_c), scratch->dbias);
    if (call->dweights)
        backward_weights(kernels, desc, call, stretch);
    if (call->dx)
        backward_input(kernels, desc, call, stretch, mine, scratch->split, pieces, job);
}

/* ---- chunks of members' own ---- */

/* Add up the pieces of n chunks. adds: there were some before. */
static void add_own_pieces(const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call,
                           float *pieces, int64_t n, bool adds, struct tdmi_gemm_rows *job)
{
    const int64_t chunk = backward_chunk(desc), piece = own_pieces_floats(desc);
    if (call->dweights)
        tdmi_pieces_add_arrays(pieces, n, piece, (int64_t)desc->in_c * desc->out_c, adds,
                               call->member, call->dweights);
    if (call->dx && call->sums.sum)
        add_pieces(desc, kernels, job, pieces + gradient_floats(desc), piece, n * chunk, chunk,
                   tdmi_conv_sums_share(call->member, desc->in_c));
}

/* The same number of chunks for every member, as many as there are. Returns their pixels. */
static int64_t backward_own(const struct tdmi_gemm_kernels *kernels,
                            const struct tdmi_conv_gemm *desc,
                            const struct tdmi_conv_backward *call, const struct scratch *scratch,
                            int64_t pixels, struct tdmi_gemm_rows *job)
{
    const int members = call->member->size;
    const int64_t chunk = backward_chunk(desc), piece = own_pieces_floats(desc);
    const int64_t chunks = pixels / (chunk * members) * members;
    const int64_t most = own_room(desc) / members * members;
    struct tdmi_conv_backward own = *call;
    struct scratch mine = *scratch;
    own.member = NULL;
    mine.x += call->member->index * chunk * tdmi_gemm_scratch_row(desc->in_c);
    mine.dy += call->member->index * chunk * tdmi_gemm_scratch_row(desc->out_c);
    for (int64_t at = 0; at < chunks; at += most) {
        const int64_t n = chunks - at < most ? chunks - at : most;
        if (at > 0)
            tdmi_member_wait(call->member);
        const struct tdmi_share part = tdmi_member_share(call->member, n);
        for (int64_t i = part.first; i < part.end; i++) {
            struct stretch stretch = {.begin = (at + i) * chunk,
                                      .pixels = (at + part.end) * chunk,
                                      .most = chunk,
                                      .chunk = chunk,
                                      .n = chunk};
            float *pieces = scratch->pieces + i * piece;
            own.dweights = call->dweights ? pieces : NULL;
            backward_one(kernels, desc, &own, &mine, &stretch, pieces + gradient_floats(desc), job);
        }
        tdmi_member_wait(call->member);
        add_own_pieces(kernels, desc, call, scratch->pieces, n, at > 0, job);
    }
    return chunks * chunk;
}

/* ---- the call ---- */

void tdmi_pointwise_backward(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct scratch scratch = scratch_of(desc, call->workspace, call->member);
    const struct tdmi_share in = tdmi_conv_sums_share(call->member, desc->in_c);
    const struct tdmi_share out = tdmi_conv_sums_share(call->member, desc->out_c);
    struct stretch stretch = {.pixels = call->n * pixels_of(desc), .chunk = backward_chunk(desc)};
    stretch.most = call->member ? backward_stretch(desc) : stretch.chunk;
    float *pieces = call->member ? scratch.pieces : NULL;
    struct tdmi_gemm_rows job = input_job(desc, call, &scratch);
    tdmi_conv_sums_clear(scratch.sum, in);
    tdmi_conv_sums_clear(scratch.square, in);
    tdmi_conv_sums_clear(scratch.dbias, out);
    if (call->member && has_own_chunks(desc) && !call->dbias)
        stretch.begin = backward_own(kernels, desc, call, &scratch, stretch.pixels, &job);
    for (; stretch.begin < stretch.pixels; stretch.begin += stretch.most) {
        const int64_t left = stretch.pixels - stretch.begin;
        stretch.n = left < stretch.most ? left : stretch.most;
        stretch.adds = stretch.begin > 0;
        backward_one(kernels, desc, call, &scratch, &stretch, pieces, &job);
        tdmi_member_wait(call->member);
        if (call->dx && call->sums.sum && pieces)
            add_pieces(desc, kernels, &job, pieces, pieces_floats(desc, stretch.chunk, desc->in_c),
                       stretch.n, stretch.chunk, in);
    }
    tdmi_conv_bias_deliver(call->dbias, scratch.dbias, out, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, in, desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch.square, in, desc->in_c);
}

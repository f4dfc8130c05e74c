/*
 * 3 × 3 convolutions of stride 1 with 16 products for 2 × 2 pixels where the definition has 36:
 * tiles of the input become 16 matrices (winograd_tiles.h), which are multiplied with 16 matrices
 * of weights, and the results are tiles again. Errors are no larger than those of the definition,
 * whose chains of additions are nine times as long.
 *
 * Work is done in chunks of tiles, so that the 16 matrices of both sides stay in the second cache
 * while the weights come from further away. The gradient of the weights is added up chunk by chunk,
 * so there the number of tiles depends on the shape alone, and bits do not depend on anything else.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/conv/conv_sums.h"
#include "backend/cpu/conv/winograd_tiles.h"

#include <string.h>

enum {
    POSITIONS = TDMI_WINOGRAD_POSITIONS,
    STEP = 14, /* tiles of a block of the product */
    CHUNK_BYTES = 512 << 10,
    MIN_TILES = 2 * STEP, /* all weights are read again for each chunk */
    MAX_TILES = 18 * STEP,
    WEIGHTS_BYTES = 768 << 10,
    MIN_WEIGHTS_TILES = 112, /* … and their gradient is read and written */
    LEAST_SIDE = 4,          /* below, too much of a tile is outside */
    WIDE = 2
};

TDMI_TABLE_OF(static const struct tdmi_winograd_kernels *kernels_of, tdmi_winograd)

static bool accepts(const struct tdmi_conv_gemm *desc)
{
    return desc->kernel_h == 3 && desc->kernel_w == 3 && desc->stride == 1 && desc->dilation == 1 &&
           desc->in_c % TDMI_WINOGRAD_CHANNELS == 0 && desc->out_c % TDMI_WINOGRAD_CHANNELS == 0 &&
           desc->out_h >= LEAST_SIDE && desc->out_w >= LEAST_SIDE;
}

/* ---- tiles and where they lie ------------------------------------------------------------------
 */

static struct tdmi_winograd_tiles tiles_of(int h, int w)
{
    return (struct tdmi_winograd_tiles){0, 0, (h + 1) / 2, (w + 1) / 2};
}

static int64_t all_tiles(const struct tdmi_winograd_tiles *tiles, int n)
{
    return (int64_t)n * tiles->down * tiles->across;
}

static int64_t tile_floats(const struct tdmi_conv_gemm *desc)
{
    return POSITIONS * (tdmi_gemm_scratch_row(desc->in_c) + tdmi_gemm_scratch_row(desc->out_c));
}

/* Tiles of a chunk: of all there are in a call, as many as bytes allow. */
static int64_t chunk_tiles(const struct tdmi_conv_gemm *desc, int h, int w, int64_t bytes,
                           int64_t least)
{
    const struct tdmi_winograd_tiles tiles = tiles_of(h, w);
    int64_t most = (all_tiles(&tiles, desc->max_images) + STEP - 1) / STEP * STEP;
    int64_t n = bytes / (tile_floats(desc) * (int64_t)sizeof(float)) / STEP * STEP;
    n = n < least ? least : n > MAX_TILES ? MAX_TILES : n;
    return n < most ? n : most;
}

static int64_t forward_tiles(const struct tdmi_conv_gemm *desc)
{
    return chunk_tiles(desc, desc->out_h, desc->out_w, CHUNK_BYTES, MIN_TILES);
}

static int64_t input_tiles(const struct tdmi_conv_gemm *desc)
{
    return chunk_tiles(desc, desc->in_h, desc->in_w, CHUNK_BYTES, MIN_TILES);
}

static int64_t weights_tiles(const struct tdmi_conv_gemm *desc)
{
    return chunk_tiles(desc, desc->out_h, desc->out_w, WEIGHTS_BYTES, MIN_WEIGHTS_TILES);
}

/* Positions of a chunk: a line more than they need, so that they do not all fall into one place of
 * the caches. */
static struct tdmi_winograd_places places_at(float *at, int64_t tiles, int channels)
{
    const int64_t row = tdmi_gemm_scratch_row(channels);
    return (struct tdmi_winograd_places){at, tiles * row + TDMI_GEMM_ROUND, row};
}

/* ---- what a team does at once -------------------------------------------------------------------
 *
 * Forward, and for the gradient of the input, each member computes tiles of its own from patches to
 * pixels. Where these would be so few that it reads all weights for a handful of tiles, the team
 * computes all tiles together, and divides the products by columns of the weights. For the gradient
 * of the weights it divides patches by tiles and products by rows of the result.
 */

enum { PIECES_BYTES = 1 << 20 };

static int team_of(const struct tdmi_conv_gemm *desc)
{
    return desc->team > 1 ? desc->team : 1;
}

static int64_t gradient_floats(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)POSITIONS * desc->in_c * desc->out_c;
}

static int64_t chunk_floats(const struct tdmi_conv_gemm *desc, int64_t tiles)
{
    return tiles * tile_floats(desc) + (int64_t)2 * POSITIONS * TDMI_GEMM_ROUND;
}

/* Tiles whose sums a team keeps as pieces before it adds them up. */
static int64_t stretch_of(const struct tdmi_conv_gemm *desc, int columns)
{
    const int64_t fitting = PIECES_BYTES / (2 * columns * (int64_t)sizeof(float));
    const int64_t least = (int64_t)team_of(desc) * MIN_TILES;
    return fitting > least ? fitting : least;
}

/* As many chunks as the caches of a team hold. */
static int64_t weights_stretch(const struct tdmi_conv_gemm *desc)
{
    const struct tdmi_winograd_tiles tiles = tiles_of(desc->out_h, desc->out_w);
    const int64_t chunk = weights_tiles(desc), all = all_tiles(&tiles, desc->max_images);
    const int64_t bytes = chunk_floats(desc, chunk) * (int64_t)sizeof(float);
    const int64_t fitting = (int64_t)team_of(desc) * WEIGHTS_BYTES / bytes;
    const int64_t chunks = (all + chunk - 1) / chunk;
    return chunk * (fitting < 1 ? 1 : fitting < chunks ? fitting : chunks);
}

/* The layout of the workspace: places of a team, and behind them pieces or the positions of the
 * weights' gradient. There are two sets of pieces, so that one is added up while the other is
 * filled. */
struct scratch {
    double *sum, *square;
    float *places, *rest;
};

static struct scratch scratch_of(const struct tdmi_conv_gemm *desc, void *workspace,
                                 int64_t places_floats)
{
    struct scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    scratch.places = (float *)(scratch.square + n);
    scratch.rest = scratch.places + places_floats;
    return scratch;
}

static struct tdmi_winograd_places places_behind(const struct tdmi_winograd_places *others,
                                                 int64_t tiles, int channels)
{
    return places_at(others->at + POSITIONS * others->position_step, tiles, channels);
}

/* Places for a chunk of each member, who together have no more tiles than there are, but for what
 * is rounded up. */
static int64_t places_floats(const struct tdmi_conv_gemm *desc, int h, int w, int64_t chunk)
{
    const struct tdmi_winograd_tiles tiles = tiles_of(h, w);
    const int64_t team = team_of(desc), all = all_tiles(&tiles, desc->max_images) + team;
    const int64_t lines = (team - 1) * chunk_floats(desc, 0);
    return team == 1 ? chunk_floats(desc, chunk)
                     : chunk_floats(desc, team * chunk < all ? team * chunk : all) + lines;
}

/* Places and pieces of products. */
static int64_t product_floats(const struct tdmi_conv_gemm *desc, int h, int w, int64_t chunk,
                              int columns)
{
    const struct tdmi_winograd_tiles tiles = tiles_of(h, w);
    const int64_t all = all_tiles(&tiles, desc->max_images), most = stretch_of(desc, columns);
    const int64_t pieces = 2 * (most < all ? most : all) * 2 * columns;
    return places_floats(desc, h, w, chunk) + (team_of(desc) > 1 ? pieces : 0);
}

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    const int64_t forward =
        product_floats(desc, desc->out_h, desc->out_w, forward_tiles(desc), desc->out_c);
    const int64_t input =
        product_floats(desc, desc->in_h, desc->in_w, input_tiles(desc), desc->in_c);
    const int64_t weights = chunk_floats(desc, weights_stretch(desc)) + gradient_floats(desc);
    const int64_t most = forward > input ? forward : input;
    return sizeof(double) * (size_t)(2 * tdmi_conv_sums_values(desc)) +
           sizeof(float) * (size_t)(most > weights ? most : weights);
}

/* ---- weights -----------------------------------------------------------------------------------
 */

static size_t packed_bytes(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction)
{
    (void)direction;
    return sizeof(float) * (size_t)gradient_floats(desc);
}

static void pack(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction,
                 const float *weights, const float *scale, float *packed)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(desc->isa);
    const struct tdmi_winograd_pack job = {weights, scale, desc->in_c, desc->out_c, packed};
    if (direction == TDMI_CONV_FORWARD)
        kernels->pack(&job);
    else
        kernels->pack_transposed(&job);
}

/* ---- products ----------------------------------------------------------------------------------
 */

/* One direction of a call: patches times weights. */
struct product {
    const struct tdmi_conv_gemm *desc;
    const struct tdmi_member *member;
    int n;                          /* images */
    struct tdmi_winograd_read read; /* all tiles; places are those of a chunk */
    struct tdmi_winograd_places to;
    int h, w; /* size of the result */
    const float *packed;
    struct tdmi_gemm_rows end; /* how the result is stored */
    bool takes_sums;
};

/* Each position's (tiles, depth) times its (depth, columns). together: each member some columns. */
static void multiply(const struct product *job, int64_t n, const struct tdmi_member *together)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(job->desc->isa);
    const struct tdmi_winograd_places *from = &job->read.to;
    const int depth = job->read.channels, columns = job->end.columns;
    const int width = together ? WIDE * kernels->lanes : columns, groups = columns / width;
    const struct tdmi_share mine = tdmi_member_share(together, (int64_t)POSITIONS * groups);
    struct tdmi_share part;
    for (int p = 0; p < POSITIONS; p++) {
        if (!tdmi_share_within(mine, (int64_t)p * groups, groups, &part))
            continue;
        struct tdmi_gemm_segment segment = {from->at + p * from->position_step, 0, depth};
        kernels->rows(&(struct tdmi_gemm_rows){
            .segments = &segment,
            .n_segments = 1,
            .n_images = 1,
            .n_lines = 1,
            .n_rows = (int)n,
            .a_row = from->tile_step,
            .packed = job->packed + (int64_t)p * depth * columns,
            .depth = depth,
            .columns = columns,
            .from_column = (int)part.first * width,
            .to_column = (int)part.end * width,
            .wide = WIDE,
            .c = job->to.at + p * job->to.position_step,
            .c_row = job->to.tile_step,
            .end = TDMI_GEMM_GRADIENT, /* without a mask or anything to add: as it is */
        });
    }
}

/* The tiles of a chunk; their pieces, if any, begin at `pieces`. together: by all members. */
static void run_chunk(const struct product *job, const struct tdmi_winograd_tiles *tiles,
                      float *pieces, const struct tdmi_member *together)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(job->desc->isa);
    const struct tdmi_share mine = tdmi_member_share(together, tiles->n);
    struct tdmi_winograd_read read = job->read;
    struct tdmi_gemm_rows end = job->end;
    struct tdmi_winograd_write write = {.from = job->to, .h = job->h, .w = job->w, .end = &end};
    read.tiles = *tiles;
    read.tiles.first += mine.first;
    read.tiles.n = mine.end - mine.first;
    read.to.at += mine.first * read.to.tile_step;
    write.tiles = read.tiles;
    write.from.at += mine.first * write.from.tile_step;
    end.pieces = pieces ? pieces + mine.first * 2 * end.columns : NULL;
    kernels->patches(&read);
    tdmi_member_wait(together);
    multiply(job, tiles->n, together);
    tdmi_member_wait(together);
    kernels->finish(&write);
}

/* Chunks of so many tiles; has_pieces: unless one thread adds up sums at once. */
static void run(struct product *job, int64_t chunk, const struct scratch *scratch, bool has_pieces)
{
    struct tdmi_winograd_tiles tiles = tiles_of(job->h, job->w);
    const int64_t all = all_tiles(&tiles, job->n), most = stretch_of(job->desc, job->end.columns);
    const int64_t size = tdmi_member_size(job->member), own = (all + size - 1) / size;
    const int64_t stretches = has_pieces ? (all + most - 1) / most : 1;
    const int64_t stretch = (all + stretches - 1) / stretches;
    const struct tdmi_member *together = all < size * MIN_TILES ? job->member : NULL;
    const int64_t at_once = together ? all : own < chunk ? own : chunk;
    const int64_t index = job->member && !together ? job->member->index : 0;
    float *const places = scratch->places + index * chunk_floats(job->desc, at_once);
    job->read.to = places_at(places, at_once, job->read.channels);
    job->to = places_behind(&job->read.to, at_once, job->end.columns);
    float *pieces = has_pieces ? scratch->rest : NULL;
    float *others = pieces ? pieces + stretch * 2 * job->end.columns : NULL;
    const struct tdmi_share columns = tdmi_conv_sums_share(job->member, job->end.columns);
    tdmi_conv_sums_clear(job->end.sum, columns);
    tdmi_conv_sums_clear(job->end.square, columns);
    for (int64_t begin = 0; begin < all; begin += stretch) {
        const int64_t n = all - begin < stretch ? all - begin : stretch;
        const struct tdmi_share mine =
            together ? (struct tdmi_share){0, n} : tdmi_member_share(job->member, n);
        for (int64_t at = mine.first; at < mine.end; at += at_once) {
            tiles.first = begin + at;
            tiles.n = mine.end - at < at_once ? mine.end - at : at_once;
            run_chunk(job, &tiles, pieces ? pieces + at * 2 * job->end.columns : NULL, together);
        }
        if (!pieces)
            continue;
        tdmi_member_wait(job->member);
        float *const filled = pieces;
        if (job->takes_sums)
            tdmi_pieces_add(pieces, n, job->end.columns, columns, job->end.sum, job->end.square);
        pieces = others; /* the set just filled is read until the next wait */
        others = filled;
    }
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static void run_forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call,
                        struct tdmi_gemm_rows end)
{
    const int64_t chunk = forward_tiles(desc);
    const struct scratch scratch =
        scratch_of(desc, call->workspace, places_floats(desc, desc->out_h, desc->out_w, chunk));
    const struct tdmi_share columns = tdmi_conv_sums_share(call->member, desc->out_c);
    struct product job = {.desc = desc,
                          .member = call->member,
                          .n = call->n,
                          .read = {.from = call->x,
                                   .h = desc->in_h,
                                   .w = desc->in_w,
                                   .channels = desc->in_c,
                                   .row = -desc->pad_top,
                                   .column = -desc->pad_left,
                                   .read = &call->read},
                          .h = desc->out_h,
                          .w = desc->out_w,
                          .packed = call->packed,
                          .end = end,
                          .takes_sums = call->sums.sum != NULL};
    job.end.c = call->y;
    job.end.bias = call->bias;
    job.end.columns = desc->out_c;
    job.end.sum = scratch.sum;
    job.end.square = scratch.square;
    job.end.is_streamed = tdmi_conv_is_streamed(
        desc, (int64_t)desc->out_h * desc->out_w * desc->out_c, desc->out_c, call->y);
    run(&job, chunk, &scratch, call->member && end.end == TDMI_GEMM_RAW);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, columns, desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square, columns, desc->out_c);
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    run_forward(desc, call,
                (struct tdmi_gemm_rows){.end = TDMI_GEMM_RAW, .centre = call->sums.centre});
}

static void infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    const struct tdmi_conv_forward plain = {.n = call->n,
                                            .member = call->member,
                                            .x = call->x,
                                            .read = {NULL, NULL, TDMI_ACT_NONE},
                                            .packed = call->packed,
                                            .bias = call->bias,
                                            .y = call->y,
                                            .workspace = call->workspace};
    run_forward(desc, &plain,
                (struct tdmi_gemm_rows){
                    .end = TDMI_GEMM_ACTIVATED, .residual = call->residual, .read.act = call->act});
}

/* ---- backward ----------------------------------------------------------------------------------
 */

/* Position 5 of a tile is the sum of its four pixels. */
static void add_bias(const struct tdmi_winograd_places *dy, int64_t n, struct tdmi_share columns,
                     double *sums)
{
    const float *from = dy->at + 5 * dy->position_step;
    for (int64_t i = 0; i < n; i++, from += dy->tile_step)
        for (int64_t c = columns.first; c < columns.end; c++)
            sums[c] += (double)from[c];
}

/* Patches of x and tiles of dy of a stretch, and what they are added to. */
struct stretch {
    struct tdmi_winograd_tiles tiles;
    struct tdmi_winograd_places in, out;
    float *positions;
};

/* Tiles at to at + n of the stretch are a chunk. Each member has some rows of the positions. */
static void multiply_weights(const struct tdmi_conv_gemm *desc, const struct stretch *stretch,
                             int64_t at, int64_t n, const struct tdmi_member *member)
{
    const struct tdmi_winograd_places *in = &stretch->in, *out = &stretch->out;
    const struct tdmi_share mine = tdmi_member_share(member, (int64_t)POSITIONS * desc->in_c);
    struct tdmi_share part;
    for (int p = 0; p < POSITIONS; p++) {
        if (!tdmi_share_within(mine, (int64_t)p * desc->in_c, desc->in_c, &part))
            continue;
        tdmi_gemm_kernels_of(desc->isa)->outer(&(struct tdmi_gemm_outer){
            .a = in->at + p * in->position_step + at * in->tile_step + part.first,
            .b = out->at + p * out->position_step + at * out->tile_step,
            .a_pixel = in->tile_step,
            .b_pixel = out->tile_step,
            .n_images = 1,
            .n_lines = 1,
            .n_pixels = (int)n,
            .rows = (int)(part.end - part.first),
            .columns = desc->out_c,
            .c = stretch->positions + ((int64_t)p * desc->in_c + part.first) * desc->out_c,
            .c_row = desc->out_c,
            .adds = stretch->tiles.first + at > 0,
        });
    }
}

/* The member's part of it. */
static void read_stretch(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call,
                         const struct stretch *stretch)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(desc->isa);
    const struct tdmi_share mine = tdmi_member_share(call->member, stretch->tiles.n);
    struct stretch part = *stretch;
    part.in.at += mine.first * part.in.tile_step;
    part.out.at += mine.first * part.out.tile_step;
    part.tiles.first += mine.first;
    part.tiles.n = mine.end - mine.first;
    kernels->spread(&(struct tdmi_winograd_read){part.tiles, call->g, call->y, desc->out_h,
                                                 desc->out_w, desc->out_c, 0, 0, NULL,
                                                 &call->gradient, part.out});
    if (call->dweights)
        kernels->patches(&(struct tdmi_winograd_read){part.tiles, call->x, NULL, desc->in_h,
                                                      desc->in_w, desc->in_c, -desc->pad_top,
                                                      -desc->pad_left, &call->read, NULL, part.in});
}

static void backward_weights(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call)
{
    const int64_t chunk = weights_tiles(desc);
    const int64_t most = call->member ? weights_stretch(desc) : chunk;
    const struct scratch scratch =
        scratch_of(desc, call->workspace, chunk_floats(desc, weights_stretch(desc)));
    const struct tdmi_share columns = tdmi_conv_sums_share(call->member, desc->out_c);
    struct stretch stretch = {.tiles = tiles_of(desc->out_h, desc->out_w),
                              .in = places_at(scratch.places, most, desc->in_c),
                              .positions = scratch.rest};
    stretch.out = places_behind(&stretch.in, most, desc->out_c);
    struct tdmi_winograd_tiles *tiles = &stretch.tiles;
    const int64_t all = all_tiles(tiles, call->n);
    tdmi_conv_sums_clear(scratch.sum, columns);
    for (; tiles->first < all; tiles->first += most) {
        tiles->n = all - tiles->first < most ? all - tiles->first : most;
        read_stretch(desc, call, &stretch);
        tdmi_member_wait(call->member);
        if (call->dbias)
            add_bias(&stretch.out, tiles->n, columns, scratch.sum);
        for (int64_t at = 0; call->dweights && at < tiles->n; at += chunk)
            multiply_weights(desc, &stretch, at, tiles->n - at < chunk ? tiles->n - at : chunk,
                             call->member);
        tdmi_member_wait(call->member);
    }
    tdmi_conv_bias_deliver(call->dbias, scratch.sum, columns, desc->out_c);
    if (!call->dweights)
        return;
    const int64_t matrix = (int64_t)desc->in_c * desc->out_c;
    const struct tdmi_share lines = tdmi_member_share(call->member, matrix / TDMI_GEMM_ROUND);
    kernels_of(desc->isa)->gather(stretch.positions, matrix, lines.first * TDMI_GEMM_ROUND,
                                  lines.end * TDMI_GEMM_ROUND, call->dweights);
}

static void backward_input(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    const int64_t chunk = input_tiles(desc);
    const struct scratch scratch =
        scratch_of(desc, call->workspace, places_floats(desc, desc->in_h, desc->in_w, chunk));
    const struct tdmi_share columns = tdmi_conv_sums_share(call->member, desc->in_c);
    struct product job = {
        .desc = desc,
        .member = call->member,
        .n = call->n,
        .read = {.from = call->g,
                 .y = call->y,
                 .h = desc->out_h,
                 .w = desc->out_w,
                 .channels = desc->out_c,
                 .row = desc->pad_top - 2,
                 .column = desc->pad_left - 2,
                 .gradient = &call->gradient},
        .h = desc->in_h,
        .w = desc->in_w,
        .packed = call->packed,
        .end = {.c = call->dx,
                .columns = desc->in_c,
                .is_streamed = tdmi_conv_is_streamed(
                    desc, (int64_t)desc->in_h * desc->in_w * desc->in_c, desc->in_c, call->dx),
                .end = TDMI_GEMM_GRADIENT,
                .centre = call->sums.centre,
                .sum = scratch.sum,
                .square = scratch.square,
                .add = call->add,
                .x = reads_x ? call->x : NULL,
                .read = call->read},
        .takes_sums = call->sums.sum != NULL};
    run(&job, chunk, &scratch, call->member && reads_x);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, columns, desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch.square, columns, desc->in_c);
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    if (call->dweights || call->dbias) {
        backward_weights(desc, call);
        tdmi_member_wait(call->member);
    }
    if (call->dx)
        backward_input(desc, call);
}

const struct tdmi_conv_algorithm tdmi_conv_by_winograd = {
    accepts, workspace_bytes, packed_bytes, pack, forward, infer, backward};

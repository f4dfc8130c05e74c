/*
 * 3 × 3 convolutions of stride 1 with 16 products for 2 × 2 pixels where the definition has 36:
 * tiles of the input become 16 matrices (winograd_tiles.h), which are multiplied with 16 matrices
 * of weights, and the results are tiles again. Errors are no larger than those of the definition,
 * whose chains of additions are nine times as long.
 *
 * Work is done in chunks of tiles, so that the 16 matrices of both sides stay in the second cache
 * while the weights come from further away. The number of tiles depends on the shape alone, so that
 * bits do not depend on anything else.
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

struct scratch {
    double *sum, *square;
    float *positions; /* of the weights' gradient */
    struct tdmi_winograd_places in, out;
};

static int64_t gradient_floats(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)POSITIONS * desc->in_c * desc->out_c;
}

static struct scratch scratch_of(const struct tdmi_conv_gemm *desc, void *workspace, int64_t tiles)
{
    struct scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc);
    scratch.square = scratch.sum + n;
    scratch.in = places_at((float *)(scratch.square + n), tiles, desc->in_c);
    scratch.out =
        places_at(scratch.in.at + POSITIONS * scratch.in.position_step, tiles, desc->out_c);
    scratch.positions = scratch.out.at + POSITIONS * scratch.out.position_step;
    memset(scratch.sum, 0, 2 * sizeof(double) * (size_t)n);
    return scratch;
}

static int64_t chunk_floats(const struct tdmi_conv_gemm *desc, int64_t tiles)
{
    return tiles * tile_floats(desc) + (int64_t)2 * POSITIONS * TDMI_GEMM_ROUND;
}

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    int64_t forward = chunk_floats(desc, forward_tiles(desc));
    int64_t input = chunk_floats(desc, input_tiles(desc));
    int64_t weights = chunk_floats(desc, weights_tiles(desc)) + gradient_floats(desc);
    int64_t most = forward > input ? forward : input;
    return sizeof(double) * (size_t)(2 * tdmi_conv_sums_values(desc)) +
           sizeof(float) * (size_t)(most > weights ? most : weights);
}

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

/* Each position's (tiles, depth) times its (depth, columns). */
static void multiply(const struct tdmi_conv_gemm *desc, int64_t n, int depth, int columns,
                     const float *packed, const struct tdmi_winograd_places *from,
                     const struct tdmi_winograd_places *to)
{
    const int64_t matrix = (int64_t)depth * columns;
    for (int p = 0; p < POSITIONS; p++) {
        struct tdmi_gemm_segment segment = {from->at + p * from->position_step, 0, depth};
        tdmi_gemm_kernels_of(desc->isa)->rows(&(struct tdmi_gemm_rows){
            .segments = &segment,
            .n_segments = 1,
            .n_images = 1,
            .n_lines = 1,
            .n_rows = (int)n,
            .a_row = from->tile_step,
            .packed = packed + p * matrix,
            .depth = depth,
            .columns = columns,
            .wide = WIDE,
            .c = to->at + p * to->position_step,
            .c_row = to->tile_step,
            .end = TDMI_GEMM_GRADIENT, /* without a mask or anything to add: as it is */
        });
    }
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static void run_forward(const struct tdmi_conv_gemm *desc, int n, const float *x,
                        const struct tdmi_read_form *read, const float *packed,
                        const struct scratch *scratch, struct tdmi_gemm_rows *end)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(desc->isa);
    const int64_t chunk = forward_tiles(desc);
    struct tdmi_winograd_tiles tiles = tiles_of(desc->out_h, desc->out_w);
    const int64_t all = all_tiles(&tiles, n);
    end->columns = desc->out_c;
    end->sum = scratch->sum;
    end->square = scratch->square;
    end->is_streamed = tdmi_conv_is_streamed(desc, (int64_t)desc->out_h * desc->out_w * desc->out_c,
                                             desc->out_c, end->c);
    for (; tiles.first < all; tiles.first += chunk) {
        tiles.n = all - tiles.first < chunk ? all - tiles.first : chunk;
        kernels->patches(&(struct tdmi_winograd_read){tiles, x, NULL, desc->in_h, desc->in_w,
                                                      desc->in_c, -desc->pad_top, -desc->pad_left,
                                                      read, NULL, scratch->in});
        multiply(desc, tiles.n, desc->in_c, desc->out_c, packed, &scratch->in, &scratch->out);
        kernels->finish(
            &(struct tdmi_winograd_write){tiles, scratch->out, desc->out_h, desc->out_w, end});
    }
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    const struct scratch scratch = scratch_of(desc, call->workspace, forward_tiles(desc));
    struct tdmi_gemm_rows end = {
        .c = call->y, .end = TDMI_GEMM_RAW, .bias = call->bias, .centre = call->sums.centre};
    run_forward(desc, call->n, call->x, &call->read, call->packed, &scratch, &end);
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, tdmi_conv_sums_share(NULL, desc->out_c),
                           desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square,
                           tdmi_conv_sums_share(NULL, desc->out_c), desc->out_c);
}

static void infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    const struct scratch scratch = scratch_of(desc, call->workspace, forward_tiles(desc));
    const struct tdmi_read_form plain = {NULL, NULL, TDMI_ACT_NONE};
    struct tdmi_gemm_rows end = {.c = call->y,
                                 .end = TDMI_GEMM_ACTIVATED,
                                 .bias = call->bias,
                                 .residual = call->residual,
                                 .read.act = call->act};
    run_forward(desc, call->n, call->x, &plain, call->packed, &scratch, &end);
}

/* ---- backward ----------------------------------------------------------------------------------
 */

/* Position 5 of a tile is the sum of its four pixels. */
static void add_bias(const struct tdmi_winograd_places *dy, int64_t n, int channels, double *sums)
{
    const float *from = dy->at + 5 * dy->position_step;
    for (int64_t i = 0; i < n; i++, from += dy->tile_step)
        for (int c = 0; c < channels; c++)
            sums[c] += (double)from[c];
}

static void multiply_weights(const struct tdmi_conv_gemm *desc, const struct scratch *scratch,
                             int64_t n, bool adds)
{
    const int64_t matrix = (int64_t)desc->in_c * desc->out_c;
    for (int p = 0; p < POSITIONS; p++)
        tdmi_gemm_kernels_of(desc->isa)->outer(&(struct tdmi_gemm_outer){
            .a = scratch->in.at + p * scratch->in.position_step,
            .b = scratch->out.at + p * scratch->out.position_step,
            .a_pixel = scratch->in.tile_step,
            .b_pixel = scratch->out.tile_step,
            .n_images = 1,
            .n_lines = 1,
            .n_pixels = (int)n,
            .rows = desc->in_c,
            .columns = desc->out_c,
            .c = scratch->positions + p * matrix,
            .c_row = desc->out_c,
            .adds = adds,
        });
}

static void backward_weights(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(desc->isa);
    const int64_t chunk = weights_tiles(desc);
    const struct scratch scratch = scratch_of(desc, call->workspace, chunk);
    struct tdmi_winograd_tiles tiles = tiles_of(desc->out_h, desc->out_w);
    const int64_t all = all_tiles(&tiles, call->n);
    for (; tiles.first < all; tiles.first += chunk) {
        tiles.n = all - tiles.first < chunk ? all - tiles.first : chunk;
        kernels->spread(&(struct tdmi_winograd_read){tiles, call->g, call->y, desc->out_h,
                                                     desc->out_w, desc->out_c, 0, 0, NULL,
                                                     &call->gradient, scratch.out});
        if (call->dbias)
            add_bias(&scratch.out, tiles.n, desc->out_c, scratch.sum);
        if (!call->dweights)
            continue;
        kernels->patches(&(struct tdmi_winograd_read){tiles, call->x, NULL, desc->in_h, desc->in_w,
                                                      desc->in_c, -desc->pad_top, -desc->pad_left,
                                                      &call->read, NULL, scratch.in});
        multiply_weights(desc, &scratch, tiles.n, tiles.first > 0);
    }
    tdmi_conv_bias_deliver(call->dbias, scratch.sum, tdmi_conv_sums_share(NULL, desc->out_c),
                           desc->out_c);
    if (call->dweights)
        kernels->gather(scratch.positions, desc->in_c, desc->out_c, call->dweights);
}

static void backward_input(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const struct tdmi_winograd_kernels *kernels = kernels_of(desc->isa);
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    const int64_t chunk = input_tiles(desc);
    const struct scratch scratch = scratch_of(desc, call->workspace, chunk);
    struct tdmi_winograd_tiles tiles = tiles_of(desc->in_h, desc->in_w);
    const int64_t all = all_tiles(&tiles, call->n);
    const struct tdmi_gemm_rows end = {
        .c = call->dx,
        .columns = desc->in_c,
        .is_streamed = tdmi_conv_is_streamed(desc, (int64_t)desc->in_h * desc->in_w * desc->in_c,
                                             desc->in_c, call->dx),
        .end = TDMI_GEMM_GRADIENT,
        .centre = call->sums.centre,
        .sum = scratch.sum,
        .square = scratch.square,
        .add = call->add,
        .x = reads_x ? call->x : NULL,
        .read = call->read};
    for (; tiles.first < all; tiles.first += chunk) {
        tiles.n = all - tiles.first < chunk ? all - tiles.first : chunk;
        kernels->patches(&(struct tdmi_winograd_read){
            tiles, call->g, call->y, desc->out_h, desc->out_w, desc->out_c, desc->pad_top - 2,
            desc->pad_left - 2, NULL, &call->gradient, scratch.out});
        multiply(desc, tiles.n, desc->out_c, desc->in_c, call->packed, &scratch.out, &scratch.in);
        kernels->finish(
            &(struct tdmi_winograd_write){tiles, scratch.in, desc->in_h, desc->in_w, &end});
    }
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, tdmi_conv_sums_share(NULL, desc->in_c),
                           desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch.square,
                           tdmi_conv_sums_share(NULL, desc->in_c), desc->in_c);
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    if (call->dweights || call->dbias)
        backward_weights(desc, call);
    if (call->dx)
        backward_input(desc, call);
}

const struct tdmi_conv_algorithm tdmi_conv_by_winograd = {
    accepts, workspace_bytes, packed_bytes, pack, forward, infer, backward};

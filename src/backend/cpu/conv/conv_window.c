/*
 * Convolutions with any window, stride, dilation and padding (conv_gemm.h): products over the
 * frames and chunks of conv_plan.h. The window is a few segments of the depth of one product, so a
 * frame is written once, not once for each place of the window. The gradient of the input is a
 * product over a frame of dy for each phase of the stride: no product is made with the zeros
 * between pixels, and nothing is added up in memory.
 *
 * A team fills the frames of a few chunks together, then multiplies them together: rows of the
 * result are divided among its members, and where the weights are larger than the frames, columns.
 */
#include "backend/cpu/conv/conv_frames.h"
#include "backend/cpu/conv/conv_sums.h"

/* ---- weights -----------------------------------------------------------------------------------
 */

static size_t workspace_bytes(const struct tdmi_conv_gemm *desc)
{
    return sizeof(float) * (size_t)tdmi_conv_workspace_floats(desc);
}

static int taps(const struct tdmi_conv_gemm *desc)
{
    return desc->kernel_h * desc->kernel_w;
}

static size_t packed_bytes(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction)
{
    return sizeof(float) * (size_t)taps(desc) *
           (size_t)(direction == TDMI_CONV_FORWARD
                        ? tdmi_gemm_packed_floats(desc->in_c, desc->out_c)
                        : tdmi_gemm_packed_floats(desc->out_c, desc->in_c));
}

static int forward_wide(const struct tdmi_conv_gemm *desc)
{
    return tdmi_conv_wide(desc->out_w);
}

/* Lines are those of one phase. */
static int input_wide(const struct tdmi_conv_gemm *desc)
{
    return tdmi_conv_wide((desc->in_w + desc->stride - 1) / desc->stride);
}

static void pack(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction,
                 const float *weights, const float *scale, float *packed)
{
    const int lanes = tdmi_gemm_kernels_of(desc->isa)->lanes, in = desc->in_c, out = desc->out_c;
    if (direction == TDMI_CONV_FORWARD) {
        struct tdmi_gemm_matrix matrix = {weights, out, 1, taps(desc) * in, out, scale};
        tdmi_gemm_pack(&matrix, lanes, forward_wide(desc), matrix.rows, 0, packed);
        return;
    }
    for (int tap = 0; tap < taps(desc); tap++) {
        struct tdmi_gemm_matrix matrix = {weights + (int64_t)tap * in * out, 1, out, out, in, NULL};
        tdmi_gemm_pack(&matrix, lanes, input_wide(desc), taps(desc) * out, tap * out, packed);
    }
}

/* ---- products ----------------------------------------------------------------------------------
 */

/* One product: a phase of the stride in a chunk, whose pixels are step apart, and the same taps
 * reach all of them. Forward a chunk is one phase. Its segments are in the scratch memory. */
struct product {
    struct tdmi_conv_place place;
    int row, column;
    int n_segments, n_lines, n_rows;
};

static int phases_of(const struct tdmi_conv_work *work)
{
    return work->step * work->step;
}

/* Number i of the n chunks from `begin` on. It has no lines where the chunk is too low for the
 * phase. */
static struct product product_of(const struct tdmi_conv_work *work, int64_t begin, int64_t i)
{
    const int step = work->step, phase = (int)(i % phases_of(work));
    const float *frames = tdmi_conv_frames_of(work, i / phases_of(work));
    struct product product = {.place = tdmi_conv_place_of(work, begin + i / phases_of(work)),
                              .row = phase / step,
                              .column = phase % step};
    product.n_lines = (product.place.rows - product.row + step - 1) / step;
    product.n_rows = (work->width - product.column + step - 1) / step;
    product.n_segments = work->is_input ? tdmi_conv_phase_window(work, &product.place, product.row,
                                                                 product.column, frames)
                                        : tdmi_conv_window(work, frames);
    return product;
}

static int64_t rows_of(const struct product *product)
{
    return (int64_t)product->place.images * product->n_lines * product->n_rows;
}

/* Cost of a row in values of the depth: the product, and the end of it. */
static int64_t cost_of(const struct tdmi_conv_work *work, const struct product *product)
{
    enum { END = 128 };
    int64_t depth = END;
    for (int s = 0; s < product->n_segments; s++)
        depth += work->scratch.segments[s].depth;
    return depth;
}

static float *pieces_of(const struct tdmi_conv_work *work, int64_t product_of_stretch)
{
    return work->member
               ? work->scratch.rest + product_of_stretch * (work->stretch.rest / phases_of(work))
               : NULL;
}

/* Set the fields of the job that all products share; c, add, x and residual are the call's. */
static void common_job(const struct tdmi_conv_work *work, struct tdmi_gemm_rows *job)
{
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    job->segments = work->scratch.segments;
    job->sum = work->scratch.sum;
    job->square = work->scratch.square;
    job->a_row = frame->step * frame->pixel;
    job->a_line = frame->w * job->a_row;
    job->a_image = tdmi_conv_frame_floats(frame);
    job->c_row = (int64_t)work->step * job->columns;
    job->c_line = work->width * job->c_row;
    job->c_image = (int64_t)work->image_rows * work->width * job->columns;
}

/* Some rows and columns of a product, its job without what is the product's. */
static void multiply(const struct tdmi_conv_work *work, const struct product *product,
                     struct tdmi_gemm_rows job)
{
    const struct tdmi_conv_place *place = &product->place;
    const int64_t row = place->row + product->row;
    const int64_t at =
        place->image * job.c_image + (row * work->width + product->column) * job.columns;
    job.n_segments = product->n_segments;
    job.n_images = place->images;
    job.n_lines = product->n_lines;
    job.n_rows = product->n_rows;
    job.c += at;
    job.add = job.add ? job.add + at : NULL;
    job.x = job.x ? job.x + at : NULL;
    job.residual = job.residual ? job.residual + at : NULL;
    work->kernels->rows(&job);
}

/* The member's part of the products of n chunks. A member that has few rows reads all weights for
 * them, one that has few columns all frames: the larger of both is divided. */
static void multiply_chunks(const struct tdmi_conv_work *work, int64_t begin, int64_t n,
                            struct tdmi_gemm_rows job)
{
    const int width = job.wide * work->kernels->lanes;
    const int64_t products = n * phases_of(work);
    const bool divides_columns =
        work->member && (int64_t)job.depth * job.columns > n * work->stretch.frames;
    const int groups = divides_columns ? (job.columns + width - 1) / width : 1;
    int64_t all = 0, at = 0;
    for (int64_t i = 0; i < products; i++) {
        const struct product product = product_of(work, begin, i);
        all += rows_of(&product) * cost_of(work, &product);
    }
    const struct tdmi_share mine = tdmi_member_share(work->member, groups * all);
    struct tdmi_share part;
    for (int group = 0; group < groups; group++) {
        job.from_column = group * width;
        job.to_column = divides_columns ? (group + 1) * width : 0;
        for (int64_t i = 0; i < products; i++) {
            const struct product product = product_of(work, begin, i);
            const int64_t cost = cost_of(work, &product), all_rows = rows_of(&product) * cost;
            const bool has_part = tdmi_share_within(mine, at, all_rows, &part);
            at += all_rows;
            job.from = (part.first + cost - 1) / cost;
            job.to = (part.end + cost - 1) / cost;
            if (!has_part || job.from == job.to)
                continue;
            job.pieces = pieces_of(work, i);
            multiply(work, &product, job);
        }
    }
}

/* The member's columns of the sums of n chunks. */
static void add_pieces(const struct tdmi_conv_work *work, int64_t begin, int64_t n,
                       struct tdmi_gemm_rows job)
{
    const struct tdmi_share columns = tdmi_conv_sums_share(work->member, job.columns);
    for (int64_t i = 0; i < n * phases_of(work); i++) {
        const struct product product = product_of(work, begin, i);
        job.n_images = product.place.images;
        job.n_lines = product.n_lines;
        job.n_rows = product.n_rows;
        job.pieces = pieces_of(work, i);
        tdmi_gemm_add_pieces(work->kernels, &job, columns.first, columns.end);
    }
}

/* All products of a call. to, of_square: where sums go; NULL: not wanted. */
static void run(const struct tdmi_conv_work *work, struct tdmi_gemm_rows *job, double *to,
                double *of_square)
{
    const int64_t all = tdmi_conv_all_chunks(work), most = work->member ? work->stretch.chunks : 1;
    const struct tdmi_share columns = tdmi_conv_sums_share(work->member, job->columns);
    common_job(work, job);
    tdmi_conv_sums_clear(job->sum, columns);
    tdmi_conv_sums_clear(job->square, columns);
    for (int64_t begin = 0; begin < all; begin += most) {
        const int64_t n = all - begin < most ? all - begin : most;
        tdmi_conv_fill_frames(work, begin, n);
        tdmi_member_wait(work->member);
        multiply_chunks(work, begin, n, *job);
        tdmi_member_wait(work->member);
        if (work->member && to)
            add_pieces(work, begin, n, *job);
    }
    tdmi_conv_sums_deliver(to, job->sum, columns, job->columns);
    tdmi_conv_sums_deliver(of_square, job->square, columns, job->columns);
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static int64_t output_values(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)desc->out_h * desc->out_w * desc->out_c;
}

static struct tdmi_conv_work forward_work(const struct tdmi_conv_gemm *desc,
                                          const struct tdmi_member *member, int n, const float *x,
                                          const struct tdmi_read_form *read, void *workspace)
{
    const struct tdmi_conv_stretch stretch = tdmi_conv_stretch_forward(desc);
    struct tdmi_conv_work work = tdmi_conv_work_of(desc, member, n, &stretch, workspace);
    work.source = (struct tdmi_conv_source){x, NULL, read, NULL};
    return work;
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    const struct tdmi_conv_work work =
        forward_work(desc, call->member, call->n, call->x, &call->read, call->workspace);
    struct tdmi_gemm_rows job = {
        .packed = call->packed,
        .depth = taps(desc) * desc->in_c,
        .columns = desc->out_c,
        .wide = forward_wide(desc),
        .c = call->y,
        .is_streamed = tdmi_conv_is_streamed(desc, output_values(desc), desc->out_c, call->y),
        .end = TDMI_GEMM_RAW,
        .bias = call->bias,
        .centre = call->sums.centre};
    run(&work, &job, call->sums.sum, call->sums.square);
}

static void infer_as(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call,
                     struct tdmi_conv_work *work, bool streams)
{
    struct tdmi_gemm_rows job = {.packed = call->packed,
                                 .depth = taps(desc) * desc->in_c,
                                 .columns = desc->out_c,
                                 .wide = forward_wide(desc),
                                 .c = call->y,
                                 .is_streamed = streams,
                                 .end = TDMI_GEMM_ACTIVATED,
                                 .bias = call->bias,
                                 .residual = call->residual,
                                 .read.act = call->act,
                                 .ahead = {{call->next, call->next_floats}}};
    run(work, &job, NULL, NULL);
}

static const struct tdmi_read_form plain = {NULL, NULL, TDMI_ACT_NONE};

static void infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    struct tdmi_conv_work work =
        forward_work(desc, call->member, call->n, call->x, &plain, call->workspace);
    infer_as(desc, call, &work,
             tdmi_conv_is_streamed(desc, output_values(desc), desc->out_c, call->y));
}

void tdmi_conv_gemm_infer_rows(const struct tdmi_conv_gemm *desc,
                               const struct tdmi_conv_infer *call, int first, int rows)
{
    struct tdmi_conv_work work = forward_work(desc, NULL, 1, call->x, &plain, call->workspace);
    work.first_row = first;
    work.rows = rows;
    infer_as(desc, call, &work, false);
}

/* ---- backward: weights --------------------------------------------------------------------------
 */

/* Pixels of dy in the places before a chunk. */
static int64_t pixels_before(const struct tdmi_conv_work *work, int64_t chunk)
{
    const struct tdmi_conv_place place = tdmi_conv_place_of(work, chunk);
    return chunk < tdmi_conv_all_chunks(work)
               ? ((int64_t)place.image * work->rows + place.row) * work->width
               : (int64_t)work->n * work->rows * work->width;
}

/* The member's part of dy of n chunks, whose pixels follow each other. */
static void read_gradients(const struct tdmi_conv_work *work, const struct tdmi_conv_backward *call,
                           int64_t begin, int64_t n)
{
    const int channels = work->desc->out_c;
    const int64_t first = pixels_before(work, begin), row = tdmi_gemm_scratch_row(channels);
    const struct tdmi_share mine =
        tdmi_member_share(work->member, pixels_before(work, begin + n) - first);
    const int64_t at = (first + mine.first) * channels;
    work->kernels->gradient(&(struct tdmi_gemm_copy){call->g + at, call->y ? call->y + at : NULL,
                                                     mine.end - mine.first, channels, channels,
                                                     work->scratch.rest + mine.first * row, row},
                            &call->gradient);
}

/* The member's rows of the weights' gradient of a chunk; dy is the chunk's. */
static void multiply_weights(const struct tdmi_conv_work *work, int64_t chunk, const float *frames,
                             const float *dy, float *dweights)
{
    const struct tdmi_conv_gemm *desc = work->desc;
    const struct tdmi_conv_frame *frame = &work->stretch.chunk.frame;
    const struct tdmi_gemm_segment *segments = work->scratch.segments;
    const struct tdmi_conv_place place = tdmi_conv_place_of(work, chunk);
    const int n_segments = tdmi_conv_window(work, frames);
    const struct tdmi_share mine =
        tdmi_member_share(work->member, (int64_t)taps(desc) * desc->in_c);
    struct tdmi_share part;
    struct tdmi_gemm_outer job = {.b = dy,
                                  .a_pixel = frame->step * frame->pixel,
                                  .a_image = tdmi_conv_frame_floats(frame),
                                  .b_pixel = tdmi_gemm_scratch_row(desc->out_c),
                                  .n_images = place.images,
                                  .n_lines = place.rows,
                                  .n_pixels = desc->out_w,
                                  .columns = desc->out_c,
                                  .c_row = desc->out_c,
                                  .adds = chunk > 0};
    job.a_line = frame->w * job.a_pixel;
    job.b_line = desc->out_w * job.b_pixel;
    job.b_image = place.rows * job.b_line;
    for (int s = 0; s < n_segments; s++) {
        if (!tdmi_share_within(mine, segments[s].first, segments[s].depth, &part))
            continue;
        job.a = segments[s].a + part.first;
        job.rows = (int)(part.end - part.first);
        job.c = dweights + (segments[s].first + part.first) * desc->out_c;
        work->kernels->outer(&job);
    }
}

static void backward_weights(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call)
{
    const struct tdmi_conv_stretch stretch = tdmi_conv_stretch_weights(desc);
    struct tdmi_conv_work work =
        tdmi_conv_work_of(desc, call->member, call->n, &stretch, call->workspace);
    const int64_t all = tdmi_conv_all_chunks(&work), most = call->member ? stretch.chunks : 1;
    const int64_t row = tdmi_gemm_scratch_row(desc->out_c);
    const struct tdmi_share columns = tdmi_conv_sums_share(call->member, desc->out_c);
    double *const dbias = work.scratch.dbias;
    work.source = (struct tdmi_conv_source){call->x, NULL, &call->read, NULL};
    tdmi_conv_sums_clear(dbias, columns);
    for (int64_t begin = 0; begin < all; begin += most) {
        const int64_t n = all - begin < most ? all - begin : most;
        read_gradients(&work, call, begin, n);
        if (call->dweights)
            tdmi_conv_fill_frames(&work, begin, n);
        tdmi_member_wait(call->member);
        for (int64_t i = 0; i < n; i++) {
            const int64_t first = pixels_before(&work, begin + i);
            const float *dy = work.scratch.rest + (first - pixels_before(&work, begin)) * row;
            if (call->dbias)
                tdmi_conv_bias_add(dy, row, pixels_before(&work, begin + i + 1) - first, columns,
                                   dbias);
            if (call->dweights)
                multiply_weights(&work, begin + i, tdmi_conv_frames_of(&work, i), dy,
                                 call->dweights);
        }
        tdmi_member_wait(call->member);
    }
    tdmi_conv_bias_deliver(call->dbias, dbias, columns, desc->out_c);
}

/* ---- backward: input ----------------------------------------------------------------------------
 */

static void backward_input(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    const struct tdmi_conv_stretch stretch = tdmi_conv_stretch_input(desc);
    struct tdmi_conv_work work =
        tdmi_conv_work_of(desc, call->member, call->n, &stretch, call->workspace);
    work.is_input = true;
    work.source = (struct tdmi_conv_source){call->g, call->y, NULL, &call->gradient};
    work.rows = work.image_rows = desc->in_h;
    work.width = desc->in_w;
    work.step = desc->stride;
    struct tdmi_gemm_rows job = {
        .packed = call->packed,
        .depth = taps(desc) * desc->out_c,
        .columns = desc->in_c,
        .wide = input_wide(desc),
        .c = call->dx,
        .is_streamed = tdmi_conv_is_streamed(desc, (int64_t)desc->in_h * desc->in_w * desc->in_c,
                                             desc->in_c, call->dx),
        .end = TDMI_GEMM_GRADIENT,
        .centre = call->sums.centre,
        .add = call->add,
        .x = reads_x ? call->x : NULL,
        .read = call->read};
    run(&work, &job, call->sums.sum, call->sums.product);
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    if (call->dweights || call->dbias)
        backward_weights(desc, call);
    if (call->dx)
        backward_input(desc, call);
}

const struct tdmi_conv_algorithm tdmi_conv_by_window = {
    NULL, workspace_bytes, packed_bytes, pack, forward, infer, backward};

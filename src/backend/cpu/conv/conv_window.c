/*
 * Convolutions with any window, stride, dilation and padding (conv_gemm.h): products over the
 * frames and chunks of conv_plan.h. The window is a few segments of the depth of one product, so a
 * frame is written once, not once for each place of the window. The gradient of the input is a
 * product over a frame of dy for each phase of the stride: no product is made with the zeros
 * between pixels, and nothing is added up in memory.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/conv/conv_plan.h"
#include "backend/cpu/conv/conv_sums.h"

#include <string.h>

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

/* ---- frames ------------------------------------------------------------------------------------
 */

/* A picture, or dy as one, and where a frame of it begins; row and column may be outside. */
struct picture {
    int h, w, c;
    int row, column;
};

/* Source of a frame, read through the gradient form, or the read form where that is NULL. */
struct source {
    const struct tdmi_gemm_kernels *kernels;
    const float *from, *y; /* of the picture's first pixel */
    const struct tdmi_read_form *read;
    const struct tdmi_gradient_form *gradient;
};

static bool is_dense(const struct tdmi_gemm_copy *copy)
{
    return copy->from_row == copy->channels && copy->to_row == copy->channels;
}

static void fill_row(const struct source *source, const struct picture *picture, int row,
                     const struct tdmi_conv_frame *frame, float *to)
{
    /* First and one past the last pixel of the frame that are in the picture. */
    int begin = picture->column < 0 ? (-picture->column + frame->take - 1) / frame->take : 0;
    int end = (picture->w - picture->column + frame->take - 1) / frame->take;
    end = end > frame->w ? frame->w : end;
    if (row < 0 || row >= picture->h || begin >= end)
        begin = end = 0;
    memset(to, 0, sizeof(float) * (size_t)(begin * frame->pixel));
    memset(to + end * frame->pixel, 0, sizeof(float) * (size_t)((frame->w - end) * frame->pixel));
    if (begin == end)
        return;
    int64_t at = ((int64_t)row * picture->w + picture->column + begin * frame->take) * picture->c;
    struct tdmi_gemm_copy copy = {source->from + at, source->y ? source->y + at : NULL,
                                  end - begin,       (int64_t)frame->take * picture->c,
                                  picture->c,        to + begin * frame->pixel,
                                  frame->pixel};
    if (source->gradient)
        source->kernels->gradient(&copy, source->gradient);
    else if (is_dense(&copy) && tdmi_read_form_is_plain(source->read))
        memcpy(copy.to, copy.from, sizeof(float) * (size_t)(copy.n * copy.channels));
    else
        source->kernels->read(&copy, source->read);
}

static void fill_frame(const struct source *source, const struct picture *picture,
                       const struct tdmi_conv_frame *frame, float *to)
{
    for (int row = 0; row < frame->h; row++, to += frame->w * frame->pixel)
        fill_row(source, picture, picture->row + row * frame->take, frame, to);
}

/* ---- chunks ------------------------------------------------------------------------------------
 */

/* One chunk of a call. */
struct piece {
    int image, images; /* first, how many */
    int row, rows;
};

/* The piece behind this one, beginning with {0}; false when there is none. */
static bool next_piece(struct piece *piece, const struct tdmi_conv_chunk *chunk, int n,
                       int all_rows)
{
    if (piece->images == 0) {
        *piece = (struct piece){0, 0, 0, 0};
    } else if (piece->row + piece->rows < all_rows) {
        piece->row += piece->rows;
    } else {
        piece->image += piece->images;
        piece->row = 0;
    }
    piece->images = n - piece->image < chunk->images ? n - piece->image : chunk->images;
    piece->rows = all_rows - piece->row < chunk->rows ? all_rows - piece->row : chunk->rows;
    return piece->image < n;
}

static void read_frames(const struct tdmi_conv_gemm *desc, const struct tdmi_gemm_kernels *kernels,
                        const float *x, const struct tdmi_read_form *form,
                        const struct piece *piece, const struct tdmi_conv_chunk *chunk,
                        float *frames)
{
    const int64_t image_values = (int64_t)desc->in_h * desc->in_w * desc->in_c;
    struct tdmi_conv_frame frame = chunk->frame;
    frame.h = (piece->rows - 1) * frame.step + (desc->kernel_h - 1) * desc->dilation + 1;
    for (int i = 0; i < piece->images; i++) {
        struct source source = {kernels, x + (piece->image + i) * image_values, NULL, form, NULL};
        struct picture picture = {desc->in_h, desc->in_w, desc->in_c,
                                  piece->row * desc->stride - desc->pad_top, -desc->pad_left};
        fill_frame(&source, &picture, &frame, frames + i * tdmi_conv_frame_floats(&chunk->frame));
    }
}

/* The window's segments over a frame of x; returns how many. */
static int window(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_frame *frame,
                  const float *frames, struct tdmi_gemm_segment *segments)
{
    const bool has_long_rows = tdmi_conv_has_long_rows(desc);
    const int columns = has_long_rows ? 1 : desc->kernel_w;
    const int depth = desc->in_c * (has_long_rows ? desc->kernel_w : 1);
    int n = 0;
    for (int ky = 0; ky < desc->kernel_h; ky++)
        for (int kx = 0; kx < columns; kx++, n++)
            segments[n] = (struct tdmi_gemm_segment){frames + ((int64_t)ky * frame->w + kx) *
                                                                  desc->dilation * frame->pixel,
                                                     n * depth, depth};
    return n;
}

/* ---- forward -----------------------------------------------------------------------------------
 */

static int64_t output_values(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)desc->out_h * desc->out_w * desc->out_c;
}

/* The product of the pieces of a call that lie in rows first to before end of each image; job has
 * what is not a piece's, c and residual where those rows of the first image are. */
static void forward_pieces(const struct tdmi_conv_gemm *desc, int n, int first, int end,
                           const float *x, const struct tdmi_read_form *read,
                           const struct tdmi_conv_scratch *scratch, struct tdmi_gemm_rows job)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_forward(desc);
    const int64_t line = (int64_t)desc->out_w * desc->out_c;
    struct tdmi_gemm_rows part = job;
    part.segments = scratch->segments;
    part.n_segments = window(desc, &chunk.frame, scratch->frame, scratch->segments);
    part.a_row = chunk.frame.step * chunk.frame.pixel;
    part.a_line = chunk.frame.w * part.a_row;
    part.a_image = tdmi_conv_frame_floats(&chunk.frame);
    part.c_row = desc->out_c;
    part.c_line = line;
    part.c_image = output_values(desc);
    part.n_rows = desc->out_w;
    part.depth = taps(desc) * desc->in_c;
    part.columns = desc->out_c;
    part.wide = forward_wide(desc);
    for (struct piece piece = {0}; next_piece(&piece, &chunk, n, end - first);) {
        int64_t at = piece.image * part.c_image + piece.row * line;
        struct piece rows = piece;
        rows.row += first;
        read_frames(desc, kernels, x, read, &rows, &chunk, scratch->frame);
        part.n_images = piece.images;
        part.n_lines = piece.rows;
        part.c = job.c + at;
        part.residual = job.residual ? job.residual + at : NULL;
        kernels->rows(&part);
    }
}

static void forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call)
{
    const struct tdmi_conv_scratch scratch = tdmi_conv_scratch_of(desc, call->workspace);
    forward_pieces(desc, call->n, 0, desc->out_h, call->x, &call->read, &scratch,
                   (struct tdmi_gemm_rows){.packed = call->packed,
                                           .c = call->y,
                                           .is_streamed = tdmi_conv_is_streamed(
                                               desc, output_values(desc), desc->out_c, call->y),
                                           .end = TDMI_GEMM_RAW,
                                           .bias = call->bias,
                                           .centre = call->sums.centre,
                                           .sum = scratch.sum,
                                           .square = scratch.square});
    tdmi_conv_sums_deliver(call->sums.sum, scratch.sum, tdmi_conv_sums_share(NULL, desc->out_c),
                           desc->out_c);
    tdmi_conv_sums_deliver(call->sums.square, scratch.square,
                           tdmi_conv_sums_share(NULL, desc->out_c), desc->out_c);
}

static void infer_range(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call,
                        int n, int first, int end, bool streams)
{
    const struct tdmi_conv_scratch scratch = tdmi_conv_scratch_of(desc, call->workspace);
    const struct tdmi_read_form plain = {NULL, NULL, TDMI_ACT_NONE};
    forward_pieces(desc, n, first, end, call->x, &plain, &scratch,
                   (struct tdmi_gemm_rows){.packed = call->packed,
                                           .c = call->y,
                                           .is_streamed = streams,
                                           .end = TDMI_GEMM_ACTIVATED,
                                           .bias = call->bias,
                                           .residual = call->residual,
                                           .read.act = call->act,
                                           .ahead = {{call->next, call->next_floats}}});
}

static void infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call)
{
    infer_range(desc, call, call->n, 0, desc->out_h,
                tdmi_conv_is_streamed(desc, output_values(desc), desc->out_c, call->y));
}

void tdmi_conv_gemm_infer_rows(const struct tdmi_conv_gemm *desc,
                               const struct tdmi_conv_infer *call, int first, int rows)
{
    infer_range(desc, call, 1, first, first + rows, false);
}

/* ---- backward: weights --------------------------------------------------------------------------
 */

static void gradient_rows(const struct tdmi_conv_gemm *desc,
                          const struct tdmi_gemm_kernels *kernels,
                          const struct tdmi_conv_backward *call, const struct piece *piece,
                          const struct tdmi_conv_scratch *scratch)
{
    const int64_t row = tdmi_gemm_scratch_row(desc->out_c);
    const int64_t at =
        piece->image * output_values(desc) + (int64_t)piece->row * desc->out_w * desc->out_c;
    /* Several images are whole, and so follow each other. */
    const int64_t n = (int64_t)piece->images * piece->rows * desc->out_w;
    kernels->gradient(&(struct tdmi_gemm_copy){call->g + at, call->y ? call->y + at : NULL, n,
                                               desc->out_c, desc->out_c, scratch->dy, row},
                      &call->gradient);
    if (call->dbias)
        tdmi_conv_bias_add(scratch->dy, row, n, tdmi_conv_sums_share(NULL, desc->out_c),
                           scratch->dbias);
}

static void backward_weights(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_gemm_kernels *kernels,
                             const struct tdmi_conv_backward *call,
                             const struct tdmi_conv_scratch *scratch)
{
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_forward(desc);
    const int n_segments = window(desc, &chunk.frame, scratch->frame, scratch->segments);
    struct tdmi_gemm_outer job = {.b = scratch->dy,
                                  .a_pixel = chunk.frame.step * chunk.frame.pixel,
                                  .a_image = tdmi_conv_frame_floats(&chunk.frame),
                                  .b_pixel = tdmi_gemm_scratch_row(desc->out_c),
                                  .n_pixels = desc->out_w,
                                  .columns = desc->out_c,
                                  .c_row = desc->out_c};
    job.a_line = chunk.frame.w * job.a_pixel;
    job.b_line = desc->out_w * job.b_pixel;
    for (struct piece piece = {0}; next_piece(&piece, &chunk, call->n, desc->out_h);) {
        gradient_rows(desc, kernels, call, &piece, scratch);
        if (!call->dweights)
            continue;
        read_frames(desc, kernels, call->x, &call->read, &piece, &chunk, scratch->frame);
        job.n_images = piece.images;
        job.n_lines = piece.rows;
        job.b_image = piece.rows * job.b_line;
        job.adds = piece.image > 0 || piece.row > 0;
        for (int s = 0; s < n_segments; s++) {
            job.a = scratch->segments[s].a;
            job.rows = scratch->segments[s].depth;
            job.c = call->dweights + (int64_t)scratch->segments[s].first * desc->out_c;
            kernels->outer(&job);
        }
    }
}

/* ---- backward: input ----------------------------------------------------------------------------
 */

/* Frames of dy for input rows piece->row on. Returns the output row they begin at. */
static int gradient_frames(const struct tdmi_conv_gemm *desc,
                           const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_backward *call, const struct piece *piece,
                           const struct tdmi_conv_chunk *chunk, float *frames)
{
    struct picture picture = {
        desc->out_h, desc->out_w, desc->out_c,
        tdmi_conv_first_output(piece->row, desc->pad_top, desc->kernel_h, desc->dilation,
                               desc->stride),
        tdmi_conv_first_output(0, desc->pad_left, desc->kernel_w, desc->dilation, desc->stride)};
    struct tdmi_conv_frame frame = chunk->frame;
    frame.h = tdmi_conv_last_output(piece->row + piece->rows - 1, desc->pad_top, desc->stride) -
              picture.row + 1;
    for (int i = 0; i < piece->images; i++) {
        const int64_t at = (piece->image + i) * output_values(desc);
        struct source source = {kernels, call->g + at, call->y ? call->y + at : NULL, NULL,
                                &call->gradient};
        fill_frame(&source, &picture, &frame, frames + i * tdmi_conv_frame_floats(&chunk->frame));
    }
    return picture.row;
}

/* The taps that reach input (row, column), which is the first of its phase in a chunk whose frame
 * begins at output (first_row, first_column). */
static int phase_window(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_frame *frame,
                        const float *frames, int row, int column, int first_row, int first_column,
                        struct tdmi_gemm_segment *segments)
{
    int n = 0;
    for (int ky = 0; ky < desc->kernel_h; ky++)
        for (int kx = 0; kx < desc->kernel_w; kx++) {
            /* In the units of the input, from the frame's first pixel: never negative. */
            int down = row + desc->pad_top - ky * desc->dilation - first_row * desc->stride;
            int right = column + desc->pad_left - kx * desc->dilation - first_column * desc->stride;
            if (down % desc->stride || right % desc->stride)
                continue;
            segments[n++] = (struct tdmi_gemm_segment){
                frames + ((int64_t)(down / desc->stride) * frame->w + right / desc->stride) *
                             frame->pixel,
                (ky * desc->kernel_w + kx) * desc->out_c, desc->out_c};
        }
    return n;
}

/* One phase of the stride: its pixels are stride apart, and the same taps reach all of them. */
static void backward_phase(const struct tdmi_conv_gemm *desc,
                           const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_backward *call, const struct piece *piece,
                           int row, int column, struct tdmi_gemm_rows *job)
{
    const int64_t image = (int64_t)desc->in_h * desc->in_w * desc->in_c;
    const int64_t at =
        piece->image * image + ((int64_t)(piece->row + row) * desc->in_w + column) * desc->in_c;
    const bool reads_x = call->sums.sum || call->read.act != TDMI_ACT_NONE;
    job->n_images = piece->images;
    job->n_lines = (piece->rows - row + desc->stride - 1) / desc->stride;
    job->n_rows = (desc->in_w - column + desc->stride - 1) / desc->stride;
    job->c_image = image;
    job->c_line = (int64_t)desc->stride * desc->in_w * desc->in_c;
    job->c_row = (int64_t)desc->stride * desc->in_c;
    job->c = call->dx + at;
    job->add = call->add ? call->add + at : NULL;
    job->x = reads_x ? call->x + at : NULL;
    kernels->rows(job);
}

static void backward_input(const struct tdmi_conv_gemm *desc,
                           const struct tdmi_gemm_kernels *kernels,
                           const struct tdmi_conv_backward *call,
                           const struct tdmi_conv_scratch *scratch)
{
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_input(desc);
    const int first_column =
        tdmi_conv_first_output(0, desc->pad_left, desc->kernel_w, desc->dilation, desc->stride);
    struct tdmi_gemm_rows job = {
        .packed = call->packed,
        .depth = taps(desc) * desc->out_c,
        .columns = desc->in_c,
        .wide = input_wide(desc),
        .segments = scratch->segments,
        .a_row = chunk.frame.pixel,
        .a_line = chunk.frame.w * chunk.frame.pixel,
        .a_image = tdmi_conv_frame_floats(&chunk.frame),
        .is_streamed = tdmi_conv_is_streamed(desc, (int64_t)desc->in_h * desc->in_w * desc->in_c,
                                             desc->in_c, call->dx),
        .end = TDMI_GEMM_GRADIENT,
        .centre = call->sums.centre,
        .sum = scratch->sum,
        .square = scratch->square,
        .read = call->read};
    for (struct piece piece = {0}; next_piece(&piece, &chunk, call->n, desc->in_h);) {
        int first_row = gradient_frames(desc, kernels, call, &piece, &chunk, scratch->frame);
        for (int row = 0; row < desc->stride && row < piece.rows; row++)
            for (int column = 0; column < desc->stride && column < desc->in_w; column++) {
                job.n_segments = phase_window(desc, &chunk.frame, scratch->frame, piece.row + row,
                                              column, first_row, first_column, scratch->segments);
                backward_phase(desc, kernels, call, &piece, row, column, &job);
            }
    }
    tdmi_conv_sums_deliver(call->sums.sum, scratch->sum, tdmi_conv_sums_share(NULL, desc->in_c),
                           desc->in_c);
    tdmi_conv_sums_deliver(call->sums.product, scratch->square,
                           tdmi_conv_sums_share(NULL, desc->in_c), desc->in_c);
}

static void backward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    const struct tdmi_conv_scratch scratch = tdmi_conv_scratch_of(desc, call->workspace);
    if (call->dweights || call->dbias)
        backward_weights(desc, kernels, call, &scratch);
    tdmi_conv_bias_deliver(call->dbias, scratch.dbias, tdmi_conv_sums_share(NULL, desc->out_c),
                           desc->out_c);
    if (call->dx)
        backward_input(desc, kernels, call, &scratch);
}

const struct tdmi_conv_algorithm tdmi_conv_by_window = {
    NULL, workspace_bytes, packed_bytes, pack, forward, infer, backward};

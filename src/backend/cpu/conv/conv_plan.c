/* Frames and chunks of a convolution: as many rows, then images, as keep scratch memory small. */
#include "backend/cpu/conv/conv_plan.h"
#include "backend/cpu/conv/conv_sums.h"

#include "base/system/multiversion.h"

enum {
    FRAME_BYTES = 384 << 10,
    MEMBER_BYTES = 768 << 10, /* a member's part of a stretch */
    TIGHT_CHANNELS = 64       /* with fewer a row of the window is one segment */
};

static int ceiling_of(int a, int b)
{
    return (a + b - 1) / b;
}

static int floor_of(int a, int b)
{
    return a >= 0 ? a / b : -ceiling_of(-a, b);
}

int tdmi_conv_first_output(int first, int pad, int kernel, int dilation, int stride)
{
    return floor_of(first + pad - (kernel - 1) * dilation, stride);
}

int tdmi_conv_last_output(int last, int pad, int stride)
{
    return floor_of(last + pad, stride);
}

bool tdmi_conv_has_long_rows(const struct tdmi_conv_gemm *desc)
{
    return desc->in_c < TIGHT_CHANNELS && desc->dilation == 1;
}

int tdmi_conv_wide(int pixels)
{
    return pixels <= 7 ? 4 : 2;
}

static int extent(int outputs, int step, int kernel, int dilation)
{
    return (outputs - 1) * step + (kernel - 1) * dilation + 1;
}

static int64_t bytes_of(const struct tdmi_conv_frame *frame)
{
    return tdmi_conv_frame_floats(frame) * (int64_t)sizeof(float);
}

/* Sets images, rows (a multiple of unit, or all) and the frame's height, which is
 * (rows - 1) · numerator / denominator + more. */
static void fit(struct tdmi_conv_chunk *chunk, const struct tdmi_conv_gemm *desc, int all_rows,
                int unit, int numerator, int denominator, int more)
{
    chunk->rows = all_rows;
    for (;;) {
        chunk->frame.h = (chunk->rows - 1) * numerator / denominator + more;
        if (bytes_of(&chunk->frame) <= FRAME_BYTES || chunk->rows <= unit)
            break;
        int n_chunks = ceiling_of(all_rows, chunk->rows) + 1;
        int fewer = ceiling_of(ceiling_of(all_rows, n_chunks), unit) * unit;
        chunk->rows = fewer < chunk->rows ? fewer : (chunk->rows - 1) / unit * unit;
    }
    chunk->images = 1;
    if (chunk->rows == all_rows) {
        int64_t fitting = FRAME_BYTES / bytes_of(&chunk->frame);
        chunk->images = fitting < 1                  ? 1
                        : fitting > desc->max_images ? desc->max_images
                                                     : (int)fitting;
    }
}

struct tdmi_conv_chunk tdmi_conv_chunk_forward(const struct tdmi_conv_gemm *desc)
{
    const bool is_point = desc->kernel_h == 1 && desc->kernel_w == 1;
    struct tdmi_conv_chunk chunk;
    chunk.frame.step = is_point ? 1 : desc->stride;
    chunk.frame.take = is_point ? desc->stride : 1;
    chunk.frame.pixel =
        tdmi_conv_has_long_rows(desc) ? desc->in_c : tdmi_gemm_scratch_row(desc->in_c);
    chunk.frame.w = extent(desc->out_w, chunk.frame.step, desc->kernel_w, desc->dilation);
    fit(&chunk, desc, desc->out_h, 1, chunk.frame.step, 1,
        extent(1, chunk.frame.step, desc->kernel_h, desc->dilation));
    return chunk;
}

struct tdmi_conv_chunk tdmi_conv_chunk_input(const struct tdmi_conv_gemm *desc)
{
    struct tdmi_conv_chunk chunk;
    chunk.frame.step = 1;
    chunk.frame.take = 1;
    chunk.frame.pixel = tdmi_gemm_scratch_row(desc->out_c);
    chunk.frame.w =
        tdmi_conv_last_output(desc->in_w - 1, desc->pad_left, desc->stride) -
        tdmi_conv_first_output(0, desc->pad_left, desc->kernel_w, desc->dilation, desc->stride) + 1;
    /* floor(a + b) - floor(a) is at most b rounded up. */
    fit(&chunk, desc, desc->in_h, desc->stride, 1, desc->stride,
        ceiling_of((desc->kernel_h - 1) * desc->dilation, desc->stride) + 2);
    return chunk;
}

static int64_t segments_floats(const struct tdmi_conv_gemm *desc)
{
    size_t bytes =
        sizeof(struct tdmi_gemm_segment) * (size_t)desc->kernel_h * (size_t)desc->kernel_w;
    return tdmi_gemm_round((int64_t)(bytes / sizeof(float)));
}

static int64_t frames_floats(const struct tdmi_conv_chunk *chunk)
{
    return tdmi_gemm_round(chunk->images * tdmi_conv_frame_floats(&chunk->frame));
}

static int team_of(const struct tdmi_conv_gemm *desc)
{
    return desc->team > 1 ? desc->team : 1;
}

/* As many chunks as the caches of the team hold. */
static struct tdmi_conv_stretch stretch_of(const struct tdmi_conv_gemm *desc, int all_rows,
                                           struct tdmi_conv_chunk chunk, int64_t rest)
{
    struct tdmi_conv_stretch stretch = {chunk, 1, frames_floats(&chunk), rest};
    const int64_t bytes = (stretch.frames + rest) * (int64_t)sizeof(float);
    const int64_t fitting = team_of(desc) * (int64_t)MEMBER_BYTES / bytes;
    const int64_t all =
        (int64_t)ceiling_of(desc->max_images, chunk.images) * ceiling_of(all_rows, chunk.rows);
    if (team_of(desc) > 1 && fitting > 1)
        stretch.chunks = fitting < all ? fitting : all;
    return stretch;
}

/* Pieces of a product with step · step phases; one thread has none. */
static int64_t pieces_floats(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_chunk *chunk,
                             int step, int width, int columns)
{
    const int64_t lines = (int64_t)chunk->images * ceiling_of(chunk->rows, step);
    const int line = ceiling_of(width, step);
    const int64_t blocks =
        tdmi_gemm_blocks(tdmi_gemm_kernels_of(desc->isa), tdmi_conv_wide(line), line);
    return team_of(desc) > 1 ? step * step * tdmi_pieces_floats(lines * blocks, columns) : 0;
}

struct tdmi_conv_stretch tdmi_conv_stretch_forward(const struct tdmi_conv_gemm *desc)
{
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_forward(desc);
    return stretch_of(desc, desc->out_h, chunk,
                      pieces_floats(desc, &chunk, 1, desc->out_w, desc->out_c));
}

struct tdmi_conv_stretch tdmi_conv_stretch_weights(const struct tdmi_conv_gemm *desc)
{
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_forward(desc);
    return stretch_of(desc, desc->out_h, chunk,
                      (int64_t)chunk.images * chunk.rows * desc->out_w *
                          tdmi_gemm_scratch_row(desc->out_c));
}

struct tdmi_conv_stretch tdmi_conv_stretch_input(const struct tdmi_conv_gemm *desc)
{
    const struct tdmi_conv_chunk chunk = tdmi_conv_chunk_input(desc);
    return stretch_of(desc, desc->in_h, chunk,
                      pieces_floats(desc, &chunk, desc->stride, desc->in_w, desc->in_c));
}

struct tdmi_conv_scratch tdmi_conv_scratch_of(const struct tdmi_conv_gemm *desc,
                                              const struct tdmi_conv_stretch *stretch,
                                              const struct tdmi_member *member, void *workspace)
{
    struct tdmi_conv_scratch scratch = {.sum = workspace};
    const int64_t n = tdmi_conv_sums_values(desc), index = member ? member->index : 0;
    scratch.square = scratch.sum + n;
    scratch.dbias = scratch.square + n;
    float *segments = (float *)(scratch.dbias + n);
    scratch.segments =
        (struct tdmi_gemm_segment *)(void *)(segments + index * segments_floats(desc));
    scratch.frames = segments + team_of(desc) * segments_floats(desc);
    scratch.rest = scratch.frames + stretch->chunks * stretch->frames;
    return scratch;
}

int64_t tdmi_conv_workspace_floats(const struct tdmi_conv_gemm *desc)
{
    const struct tdmi_conv_stretch stretches[] = {tdmi_conv_stretch_forward(desc),
                                                  tdmi_conv_stretch_weights(desc),
                                                  tdmi_conv_stretch_input(desc)};
    const int64_t sums =
        3 * tdmi_conv_sums_values(desc) * (int64_t)(sizeof(double) / sizeof(float));
    int64_t most = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t floats = stretches[i].chunks * (stretches[i].frames + stretches[i].rest);
        most = floats > most ? floats : most;
    }
    return sums + team_of(desc) * segments_floats(desc) + most;
}

TDMI_MULTIVERSION
void tdmi_conv_bias_add(const float *dy, int64_t dy_row, int64_t n, struct tdmi_share columns,
                        double *sums)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *a = dy + i * dy_row, *b = a + dy_row, *c = b + dy_row, *d = c + dy_row;
        for (int64_t k = columns.first; k < columns.end; k++)
            sums[k] += (double)(0.0f + a[k] + b[k] + c[k] + d[k]);
    }
    for (int64_t k = columns.first; i < n && k < columns.end; k++) {
        float sum = 0.0f;
        for (int64_t pixel = i; pixel < n; pixel++)
            sum += dy[pixel * dy_row + k];
        sums[k] += (double)sum;
    }
}

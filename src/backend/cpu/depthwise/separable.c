/*
 * Both halves of a picture have a window of rows: those that the job at hand reads, side by side.
 * A row that the next job reads, too, is moved to the window's beginning. A job's rows are read
 * while the one before it multiplies: they are prefetched then.
 */
#include "backend/cpu/depthwise/separable.h"
#include "backend/cpu/gemm/strassen.h"

#include <string.h>

enum {
    ROW_PAIR = 2,            /* the depthwise kernel works on two rows at a time */
    WINDOW_BYTES = 480 << 10 /* of both windows, in the second cache beside the job's sums */
};

/* The rows of y that are there. */
struct window {
    int first, end;
    float *at;
};

struct work {
    struct tdmi_depthwise shape;
    struct tdmi_depthwise_forward between; /* x, y are the strip's */
    const struct tdmi_depthwise_kernels *kernels;
    const float *x, *x_end; /* of the picture; of all pictures */
    struct window windows[2];
};

static int window_rows(const struct tdmi_depthwise *shape)
{
    return (tdmi_strassen_most_pixels() + shape->out_w - 2) / shape->out_w + 1;
}

static int64_t row_floats(const struct tdmi_depthwise *shape)
{
    return (int64_t)shape->out_w * shape->channels;
}

/* Floats of one window, whole cache lines. */
static int64_t window_floats(const struct tdmi_depthwise *shape)
{
    return tdmi_gemm_round(window_rows(shape) * row_floats(shape));
}

bool tdmi_separable_is_for(const struct tdmi_op_desc *depthwise, const struct tdmi_op_desc *product)
{
    const struct tdmi_depthwise shape = tdmi_depthwise_of(depthwise);
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(product);
    return conv.is_split && tdmi_conv_by_pointwise.accepts(&conv) && shape.stride == 1 &&
           shape.dilation == 1 && ROW_PAIR * shape.out_w <= tdmi_strassen_most_pixels() &&
           2 * window_floats(&shape) * (int64_t)sizeof(float) <= WINDOW_BYTES;
}

/* Workspace of a member of a team: both windows, and the scratch of a kernel. */
static int64_t member_floats(const struct tdmi_depthwise *shape, int in)
{
    const int64_t between = (int64_t)(tdmi_depthwise_workspace_bytes(shape) / sizeof(float));
    const int64_t multiply = tdmi_strassen_scratch_floats(in);
    return 2 * window_floats(shape) + tdmi_gemm_round(between > multiply ? between : multiply);
}

size_t tdmi_separable_workspace_bytes(const struct tdmi_op_desc *depthwise,
                                      const struct tdmi_op_desc *product)
{
    const struct tdmi_depthwise shape = tdmi_depthwise_of(depthwise);
    const int team = product->team > 1 ? product->team : 1;
    return sizeof(float) * (size_t)(team * member_floats(&shape, product->in[0].c));
}

/* Rows first to end of y, from x where the windows of the first begin. */
static void make_rows(struct work *work, int first, int end, float *to)
{
    const struct tdmi_depthwise *shape = &work->shape;
    const int corner = first - shape->top, from = corner > 0 ? corner : 0;
    const int below = end - 1 - shape->top + shape->kernel;
    struct tdmi_depthwise strip = *shape;
    strip.out_h = end - first;
    strip.top = from - corner;
    strip.h = (below < shape->h ? below : shape->h) - from;
    work->between.x = work->x + (int64_t)from * shape->w * shape->channels;
    work->between.y = to;
    work->kernels->forward(&strip, &work->between);
}

static const float *pixels(void *self, int half, int first, int end)
{
    struct work *work = self;
    struct window *window = &work->windows[half];
    const struct tdmi_depthwise *shape = &work->shape;
    const int64_t row = row_floats(shape);
    const int first_row = first / shape->out_w, end_row = (end + shape->out_w - 1) / shape->out_w;
    if (first_row >= window->end)
        window->end = first_row;
    else if (first_row > window->first)
        memmove(window->at, window->at + (first_row - window->first) * row,
                sizeof(float) * (size_t)((window->end - first_row) * row));
    window->first = first_row;
    if (window->end < end_row) {
        make_rows(work, window->end, end_row, window->at + (window->end - first_row) * row);
        window->end = end_row;
    }
    return window->at + (int64_t)(first - first_row * shape->out_w) * shape->channels;
}

static struct tdmi_gemm_ahead ahead(const void *self, int half, int first, int end)
{
    const struct work *work = self;
    const struct tdmi_depthwise *shape = &work->shape;
    const int64_t row = (int64_t)shape->w * shape->channels;
    const int pixels = shape->out_h * shape->out_w, picture = first / pixels;
    int from = first % pixels / shape->out_w - shape->top;
    int to = (end - 1 - picture * pixels) / shape->out_w - shape->top + shape->kernel;
    from = from > 0 ? from : 0;
    to = to < shape->h ? to : shape->h;
    (void)half;
    const float *at = work->x + (picture * shape->h + from) * row;
    if (at >= work->x_end || first >= end)
        return (struct tdmi_gemm_ahead){NULL, 0};
    return (struct tdmi_gemm_ahead){at, (to - from) * row};
}

void tdmi_separable_forward(const struct tdmi_op_desc *const links[2],
                            const struct tdmi_op_call calls[2])
{
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(links[1]);
    const struct tdmi_conv_infer product = tdmi_conv_gemm_call_of(links[1], &calls[1]);
    const struct tdmi_member *member = calls[1].member;
    struct work work = {.shape = tdmi_depthwise_of(links[0]),
                        .between = tdmi_depthwise_call_of(links[0], &calls[0]),
                        .kernels = tdmi_depthwise_kernels(conv.isa)};
    const int64_t x_image = tdmi_shape_values(links[0]->in[0]);
    const int64_t y_image = tdmi_shape_values(links[1]->out);
    const int64_t window = window_floats(&work.shape);
    float *room = (float *)calls[1].workspace +
                  (member ? member->index : 0) * member_floats(&work.shape, conv.in_c);
    const int blocks = tdmi_strassen_blocks((int64_t)conv.out_h * conv.out_w);
    const int panels = tdmi_strassen_panels(conv.out_c);
    const struct tdmi_share mine = tdmi_member_share(member, (int64_t)calls[1].n * blocks);
    struct tdmi_share part;
    const struct tdmi_strassen_feed feed = {&work, pixels, ahead};
    work.x_end = calls[0].x[0] + calls[1].n * x_image;
    work.between.n = 1;
    work.between.workspace = room + 2 * window;
    for (int i = 0; i < calls[1].n; i++) {
        const int64_t at = i * y_image;
        if (!tdmi_share_within(mine, (int64_t)i * blocks, blocks, &part))
            continue;
        work.x = calls[0].x[0] + i * x_image;
        for (int half = 0; half < 2; half++)
            work.windows[half] = (struct window){0, 0, room + half * window};
        tdmi_strassen(
            tdmi_gemm_kernels_of(conv.isa),
            &(struct tdmi_strassen){.in = conv.in_c,
                                    .out = conv.out_c,
                                    .n = conv.out_h * conv.out_w,
                                    .feed = &feed,
                                    .packed = product.packed,
                                    .bias = product.bias,
                                    .residual = product.residual ? product.residual + at : NULL,
                                    .act = product.act,
                                    .c = product.y + at,
                                    .scratch = room + 2 * window,
                                    .from = (int)part.first * panels,
                                    .to = (int)part.end * panels});
    }
}

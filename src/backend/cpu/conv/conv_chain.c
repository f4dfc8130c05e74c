/*
 * Strips: rows of the depthwise convolution's output, with the rows of the expansion that their
 * windows see. Those lie in a ring of rows, so that what the next strip sees, too, stays where it
 * is. Each member of a team computes some rows of the output, and has strips of its own: what the
 * windows of its first row see it expands itself, although a member before it does, too.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/depthwise/separable.h"
#include "backend/cpu/gemm/strassen.h"

enum {
    STRIP_BYTES = 320 << 10, /* of what lies between the links, in the second cache */
    MOST_BYTES = 384 << 10,  /* the same of a strip that cannot be lower */
    /* Weights are read again for each strip, and what a chain saves is small beside large ones: */
    WEIGHT_BYTES = 160 << 10,
    EXPANDED_WEIGHT_BYTES = 640 << 10, /* where two tensors are saved, not one */
    ROW_PAIR = 2                       /* the depthwise kernel works on two rows at a time */
};

struct chain {
    bool expands;
    struct tdmi_conv_gemm head; /* what expands: a plain product or a window */
    bool is_window;
    int in, out;                    /* channels of the first and the last tensor */
    struct tdmi_depthwise between;  /* all of it */
    int rows, n_strips;             /* rows of a strip; strips of an image */
    int slots;                      /* rows of the ring */
    int64_t expanded, narrow, room; /* floats: strips of what the depthwise kernel reads and
                                     * writes, workspace of the kernels */
};

static int window_rows(const struct tdmi_depthwise *shape, int rows)
{
    return (rows - 1) * shape->stride + (shape->kernel - 1) * shape->dilation + 1;
}

/* A strip of an expansion or of a projection, which are products of pixels; it is of the tensor
 * that n_strips of them make, which decides whether the result stays in a cache. */
static struct tdmi_conv_gemm product_of(int n_strips, int pixels, int in, int out)
{
    return (struct tdmi_conv_gemm){.max_images = n_strips,
                                   .in_h = 1,
                                   .in_w = pixels,
                                   .in_c = in,
                                   .out_c = out,
                                   .isa = tdmi_isa_best(),
                                   .only_infers = true};
}

static int64_t line(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static int64_t expanded_floats(const struct chain *chain, int rows)
{
    int seen = window_rows(&chain->between, rows);
    return chain->expands ? line((int64_t)seen * chain->between.w * chain->between.channels) : 0;
}

static int64_t narrow_floats(const struct chain *chain, int rows)
{
    return line((int64_t)rows * chain->between.out_w * chain->between.channels);
}

static int64_t strip_bytes(const struct chain *chain, int rows)
{
    return (expanded_floats(chain, rows) + narrow_floats(chain, rows)) * (int64_t)sizeof(float);
}

static int64_t member_floats(const struct chain *chain)
{
    return chain->expanded + chain->narrow + chain->room;
}

static struct chain chain_of(const struct tdmi_op_desc *const *links, int n)
{
    struct chain chain = {.expands = n == 3,
                          .in = links[0]->in[0].c,
                          .out = links[n - 1]->out.c,
                          .between = tdmi_depthwise_of(links[n - 2])};
    if (chain.expands) {
        chain.head = tdmi_conv_gemm_of(links[0]);
        chain.head.team = 1;
        chain.is_window = !tdmi_conv_by_pointwise.accepts(&chain.head);
    }
    const struct tdmi_depthwise *shape = &chain.between;
    int most = ROW_PAIR;
    while (most < shape->out_h && strip_bytes(&chain, most + ROW_PAIR) <= STRIP_BYTES)
        most += ROW_PAIR;
    /* Strips of nearly equal height. */
    int n_strips = (shape->out_h + most - 1) / most,
        rows = (shape->out_h + n_strips - 1) / n_strips;
    chain.rows = (rows + ROW_PAIR - 1) / ROW_PAIR * ROW_PAIR;
    chain.n_strips = n_strips;
    chain.slots = window_rows(shape, chain.rows);
    chain.expanded = expanded_floats(&chain, chain.rows);
    chain.narrow = narrow_floats(&chain, chain.rows);
    const struct tdmi_conv_gemm project = product_of(1, 1, shape->channels, chain.out);
    size_t needs[] = {
        tdmi_depthwise_workspace_bytes(shape),
        chain.expands ? tdmi_conv_gemm_algorithm(&chain.head)->workspace_bytes(&chain.head) : 0,
        tdmi_conv_by_pointwise.workspace_bytes(&project)};
    for (int i = 0; i < 3; i++) {
        int64_t floats = line((int64_t)(needs[i] / sizeof(float)));
        chain.room = floats > chain.room ? floats : chain.room;
    }
    return chain;
}

static bool is_separable(const struct tdmi_op_desc *const *links, int n)
{
    return n == 2 && tdmi_separable_is_for(links[0], links[1]);
}

static bool is_plain_product(const struct tdmi_op_desc *desc)
{
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(desc);
    return tdmi_conv_by_pointwise.accepts(&conv);
}

static bool is_of_picture(const struct tdmi_op_desc *desc)
{
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(desc);
    return tdmi_conv_gemm_is_of_picture(&conv);
}

bool tdmi_conv_chain_is_for(const struct tdmi_op_desc *const *links, int n)
{
    if (is_separable(links, n))
        return true;
    const struct chain chain = chain_of(links, n);
    int64_t weights = (int64_t)chain.between.channels * (chain.out + (n == 3 ? chain.in : 0));
    const enum tdmi_isa isa = tdmi_isa_best();
    for (int i = 0; i < n; i++) /* its weights would be packed for that */
        if (i != n - 2 && tdmi_strassen_is_for(isa, tdmi_shape_pixels(links[i]->in[0]),
                                               links[i]->in[0].c, links[i]->out.c))
            return false;
    return is_plain_product(links[n - 1]) &&
           (n == 2 || is_plain_product(links[0]) || is_of_picture(links[0])) &&
           weights * (int64_t)sizeof(float) <= (n == 3 ? EXPANDED_WEIGHT_BYTES : WEIGHT_BYTES) &&
           strip_bytes(&chain, ROW_PAIR) <= MOST_BYTES;
}

size_t tdmi_conv_chain_workspace_bytes(const struct tdmi_op_desc *const *links, int n)
{
    if (is_separable(links, n))
        return tdmi_separable_workspace_bytes(links[0], links[1]);
    const struct chain chain = chain_of(links, n);
    const int team = links[n - 1]->team > 1 ? links[n - 1]->team : 1;
    return sizeof(float) * (size_t)(team * member_floats(&chain));
}

/* One call at work. */
struct work {
    struct chain chain;
    struct tdmi_conv_infer expand, project; /* x, y and residual are the strip's */
    struct tdmi_depthwise_forward between;
    const struct tdmi_depthwise_kernels *kernels;
    float *expanded, *narrow;
    const float *x_end; /* of all pictures of the call */
    int n_strips;       /* strips of all images */
};

/* x: of the strip behind this one, or of the next picture where this one ends. */
static void look_ahead(struct work *work, const float *x, int64_t floats)
{
    const int64_t left = work->x_end - x;
    work->expand.next = left > 0 ? x : NULL;
    work->expand.next_floats = floats < left ? floats : left;
}

/* Rows from to end, which lie together in the ring. */
static void expand_run(struct work *work, const float *x, int from, int end)
{
    const struct chain *chain = &work->chain;
    const struct tdmi_conv_gemm *head = &chain->head;
    const int64_t row = (int64_t)chain->between.w * chain->between.channels;
    work->expand.y = work->expanded + from % chain->slots * row;
    if (chain->is_window) {
        work->expand.x = x;
        tdmi_conv_gemm_infer_rows(head, &work->expand, from, end - from);
        return;
    }
    const struct tdmi_conv_gemm product =
        product_of(1, (end - from) * head->in_w, chain->in, chain->between.channels);
    work->expand.x = x + (int64_t)from * head->in_w * chain->in;
    tdmi_conv_by_pointwise.infer(&product, &work->expand);
}

/* While a run is expanded, as many rows of the next strip are prefetched. */
static void expand_rows(struct work *work, const float *x, int first, int end)
{
    const struct chain *chain = &work->chain;
    const struct tdmi_conv_gemm *head = &chain->head;
    const int64_t row = (int64_t)head->in_w * chain->in * (chain->is_window ? head->stride : 1);
    for (int from = first, to; from < end; from = to) {
        to = from - from % chain->slots + chain->slots;
        to = to < end ? to : end;
        look_ahead(work, x + (from + end - first) * row, (to - from) * row);
        expand_run(work, x, from, to);
    }
}

static void project_rows(struct work *work, int64_t at, int pixels, const float *residual, float *y)
{
    const struct chain *chain = &work->chain;
    const struct tdmi_conv_gemm product =
        product_of(work->n_strips, pixels, chain->between.channels, chain->out);
    work->project.x = work->narrow;
    work->project.y = y + at * chain->out;
    work->project.residual = residual ? residual + at * chain->out : NULL;
    tdmi_conv_by_pointwise.infer(&product, &work->project);
}

/* Rows first_row to end_row of the output of a picture. */
static void run_rows(struct work *work, const float *x, const float *residual, float *y,
                     int first_row, int end_row)
{
    const struct tdmi_depthwise *shape = &work->chain.between;
    int kept_end = 0; /* rows of the expansion before it are in the ring, or past */
    for (int row = first_row; row < end_row; row += work->chain.rows) {
        int rows = end_row - row < work->chain.rows ? end_row - row : work->chain.rows;
        int corner = row * shape->stride - shape->top, first = corner > 0 ? corner : 0;
        int end = corner + window_rows(shape, rows);
        end = end < shape->h ? end : shape->h;
        struct tdmi_depthwise strip = *shape;
        strip.out_h = rows;
        strip.top = first - corner;
        if (work->chain.expands) {
            expand_rows(work, x, kept_end > first ? kept_end : first, end);
            kept_end = end;
            strip.h = end - first;
            work->between.slots = (struct tdmi_depthwise_slots){work->chain.slots, first};
            work->between.x = work->expanded;
        } else { /* the product has time to prefetch the next strip */
            const float *next = x + (int64_t)end * shape->w * shape->channels;
            const int64_t left = work->x_end - next;
            strip.h = end - first;
            work->between.x = x + (int64_t)first * shape->w * shape->channels;
            work->project.next = left > 0 ? next : NULL;
            work->project.next_floats = (int64_t)rows * shape->stride * shape->w * shape->channels;
            if (work->project.next_floats > left)
                work->project.next_floats = left;
        }
        work->kernels->forward(&strip, &work->between);
        project_rows(work, (int64_t)row * shape->out_w, rows * shape->out_w, residual, y);
    }
}

void tdmi_conv_chain_forward(const struct tdmi_op_desc *const *links,
                             const struct tdmi_op_call *calls, int n)
{
    const struct tdmi_member *member = calls[n - 1].member;
    if (is_separable(links, n)) {
        tdmi_separable_forward(links, calls);
        return;
    }
    struct work work = {.chain = chain_of(links, n),
                        .between = tdmi_depthwise_call_of(links[n - 2], &calls[n - 2]),
                        .project = tdmi_conv_gemm_call_of(links[n - 1], &calls[n - 1]),
                        .kernels = tdmi_depthwise_kernels(tdmi_isa_best())};
    work.expanded =
        (float *)calls[n - 1].workspace + (member ? member->index : 0) * member_floats(&work.chain);
    work.n_strips = work.chain.n_strips * calls[n - 1].n;
    const float *residual = work.project.residual;
    float *y = work.project.y;
    if (n == 3)
        work.expand = tdmi_conv_gemm_call_of(links[0], &calls[0]);
    work.narrow = work.expanded + work.chain.expanded;
    float *room = work.narrow + work.chain.narrow;
    work.expand.n = work.between.n = work.project.n = 1;
    work.expand.member = work.project.member = NULL;
    work.expand.workspace = work.between.workspace = work.project.workspace = room;
    work.between.y = work.narrow;
    const int64_t x_image = tdmi_shape_values(links[0]->in[0]);
    const int64_t y_image = tdmi_shape_values(links[n - 1]->out);
    work.x_end = calls[0].x[0] + calls[n - 1].n * x_image;
    const int64_t h = work.chain.between.out_h;
    const struct tdmi_share mine = tdmi_member_share(member, calls[n - 1].n * h);
    struct tdmi_share rows;
    for (int i = 0; i < calls[n - 1].n; i++)
        if (tdmi_share_within(mine, i * h, h, &rows))
            run_rows(&work, calls[0].x[0] + i * x_image, residual ? residual + i * y_image : NULL,
                     y + i * y_image, (int)rows.first, (int)rows.end);
}

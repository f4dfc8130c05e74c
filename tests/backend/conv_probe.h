/*
 * One convolution through the kernel table of a backend, against its formula in double: alone, and
 * with all that a kernel may fuse (read and gradient forms, sums, gradients to add to, a folded
 * batch norm, a residual, an activation, a max pool). Every test of a convolution kernel runs its
 * cases with check_conv. TANDEM_TEST_SEED chooses other values and shapes.
 */
#pragma once

#include "backend/backend.h"
#include "base/hash/rng.h"
#include "base/memory.h"
#include "graph/op.h"
#include "sanitized.h"
#include "unit.h"

#include <math.h>

enum { conv_guard = 16 }; /* values behind each written array that must stay */

struct conv_probe {
    const struct tdmi_kernel *kernel;
    struct tdmi_op_desc desc;
    int n;
    bool adds;                           /* dx_add is given */
    int64_t n_x, n_y, n_full, n_weights; /* values; full: of the convolution before a pool */
    float *x, *weights, *bias, *g, *residual, *add;
    float *y, *dx, *dw, *db;
    float *in_vectors, *out_vectors; /* scale, shift, mean; of_g, of_x, one, centre */
    float *norm;                     /* gamma, beta, mean, variance of the folded batch norm */
    double *in_sums, *out_sums;
    uint8_t *saved;
    float *workspace, *packed;
    char name[280];
};

static inline uint64_t conv_seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static inline int conv_between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static inline float *conv_filled(int64_t n, uint64_t stream, float low, float high)
{
    float *values = tdmi_alloc_aligned(sizeof(float) * (size_t)(n + conv_guard));
    tdmi_rng rng = tdmi_rng_at(conv_seed(), TDMI_RNG_TEST, 5, stream);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, low, high);
    for (int64_t i = n; i < n + conv_guard; i++)
        values[i] = 1234.5f;
    return values;
}

static inline float *conv_unwritten(int64_t n)
{
    float *values = conv_filled(n, 0, 0.0f, 1.0f);
    for (int64_t i = 0; i < n; i++)
        values[i] = NAN;
    return values;
}

/* Fill all inputs with values from low to high and prepare the kernel. */
static inline void conv_begin_with(struct conv_probe *p, const struct tdmi_kernel *kernel,
                                   const struct tdmi_op_desc *desc, int n, bool adds, float low,
                                   float high)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    const struct tdmi_op_fusion *f = &desc->fusion;
    const int in = desc->in[0].c, out = desc->out.c;
    *p = (struct conv_probe){.kernel = kernel, .desc = *desc, .n = n};
    p->adds = adds && kernel->adds_dx;
    p->n_x = n * tdmi_shape_values(desc->in[0]);
    p->n_y = n * tdmi_shape_values(tdmi_op_result(desc));
    p->n_full = n * tdmi_shape_values(desc->out);
    p->n_weights = (int64_t)a->kernel * a->kernel * (in / a->groups) * out;
    p->x = conv_filled(p->n_x, 1, 3 * low, 3 * high);
    p->weights = conv_filled(p->n_weights, 2, low, high);
    p->bias = conv_filled(out, 3, low, high);
    p->g = conv_filled(p->n_y, 4, low, high);
    p->residual = conv_filled(p->n_y, 5, low, high);
    p->add = conv_filled(p->n_x, 6, low, high);
    p->in_vectors = conv_filled((int64_t)3 * in, 7, 2 * low, 2 * high);
    p->out_vectors = conv_filled((int64_t)4 * out, 8, low, high);
    p->norm = conv_filled((int64_t)4 * out, 9, low, high);
    for (int c = 3 * out; c < 4 * out; c++) /* a variance */
        p->norm[c] = 0.1f + fabsf(p->norm[c]);
    p->y = conv_unwritten(p->n_y);
    p->dx = conv_unwritten(p->n_x);
    p->dw = conv_unwritten(p->n_weights);
    p->db = conv_unwritten(out);
    p->in_sums = (double *)(void *)conv_unwritten((int64_t)4 * in);
    p->out_sums = (double *)(void *)conv_unwritten((int64_t)4 * out);
    snprintf(p->name, sizeof p->name,
             "%d of %d images %dx%dx%d -> %dx%dx%d, kernel %d, stride %d, dilation %d, groups %d, "
             "pads %d %d, bias %d, training %d, dx %d, add %d, norm %d, residual %d, act %d, sums "
             "%d, gradient %d, in %d %d, pool %d",
             n, desc->max_images, desc->in[0].h, desc->in[0].w, in, desc->out.h, desc->out.w, out,
             a->kernel, a->stride, a->dilation, a->groups, a->pad_top, a->pad_left, a->has_bias,
             desc->is_training, desc->wants_dx, p->adds, f->folds_norm, f->adds_residual,
             (int)f->act, f->gives_sums, f->reads_gradient_form, f->in[0].has_norm,
             (int)f->in[0].act, f->pool);
    tdm_error err = {0};
    if (kernel->prepare && kernel->prepare(&p->desc, &p->desc.prepared, &err) != TDM_OK)
        fail_msg("%s: preparing fails", p->name);
    const struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(kernel, &p->desc);
    p->workspace = conv_unwritten((int64_t)(needs.workspace_bytes / sizeof(float)) + 16);
    p->packed = conv_unwritten((int64_t)(needs.packed_bytes / sizeof(float)) + 16);
    p->saved = (uint8_t *)(void *)conv_unwritten((int64_t)(needs.saved_bytes / sizeof(float)) + 16);
}

static inline void conv_begin(struct conv_probe *p, const struct tdmi_kernel *kernel,
                              const struct tdmi_op_desc *desc, int n, bool adds)
{
    conv_begin_with(p, kernel, desc, n, adds, -1.0f, 1.0f);
}

static inline void conv_end(struct conv_probe *p)
{
    void *all[] = {p->x,         p->weights,    p->bias,        p->g,    p->residual, p->add,
                   p->y,         p->dx,         p->dw,          p->db,   p->in_sums,  p->out_sums,
                   p->workspace, p->in_vectors, p->out_vectors, p->norm, p->packed,   p->saved};
    const float *written[] = {p->y + p->n_y, p->dx + p->n_x, p->dw + p->n_weights,
                              p->db + p->desc.out.c};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        for (int k = 0; k < conv_guard; k++)
            if (written[i][k] != 1234.5f)
                fail_msg("%s: writes behind array %zu", p->name, i);
    if (p->desc.prepared)
        p->kernel->release(p->desc.prepared);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

static inline struct tdmi_op_call conv_call(struct conv_probe *p)
{
    const int in = p->desc.in[0].c, out = p->desc.out.c;
    struct tdmi_op_call call = {.n = p->n,
                                .x = {p->x},
                                .y = p->y,
                                .dy = p->g,
                                .params = {p->weights, p->bias},
                                .dparams = {p->dw, p->db},
                                .saved = p->saved,
                                .workspace = p->workspace,
                                .packed = p->packed,
                                .residual = p->desc.fusion.adds_residual ? p->residual : NULL};
    call.norm.centre = p->out_vectors + (ptrdiff_t)3 * out;
    call.norm.sums = p->out_sums;
    call.norm.of_g = p->out_vectors;
    call.norm.of_x = p->out_vectors + out;
    call.norm.one = p->out_vectors + (ptrdiff_t)2 * out;
    call.in_norm[0].scale = p->in_vectors;
    call.in_norm[0].shift = p->in_vectors + in;
    call.in_norm[0].mean = p->in_vectors + (ptrdiff_t)2 * in;
    if (p->desc.is_training && p->desc.wants_dx) {
        call.dx[0] = p->dx;
        call.dx_add[0] = p->adds ? p->dx : NULL; /* as an executor does: the array it writes */
        call.dx_sums[0] = p->desc.fusion.in[0].has_norm ? p->in_sums : NULL;
    }
    return call;
}

static inline void conv_pack(struct conv_probe *p, tdmi_stream *stream)
{
    const int out = p->desc.out.c;
    if (p->kernel->pack)
        p->kernel->pack(stream, &p->desc,
                        &(struct tdmi_pack_call){.params = {p->weights, p->bias},
                                                 .norm_params = {p->norm, p->norm + out},
                                                 .norm_states = {p->norm + (ptrdiff_t)2 * out,
                                                                 p->norm + (ptrdiff_t)3 * out},
                                                 .norm_epsilon = 1e-3,
                                                 .packed = p->packed});
}

/* Forward and, in training, backward of the first n images. */
static inline void conv_run(struct conv_probe *p, int n)
{
    struct tdmi_op_call call = conv_call(p);
    call.n = n;
    conv_pack(p, NULL);
    p->kernel->forward(NULL, &p->desc, &call);
    if (!p->desc.is_training)
        return;
    if (call.dx_add[0])
        memcpy(p->dx, p->add, sizeof(float) * (size_t)p->n_x);
    p->kernel->backward(NULL, &p->desc, &call);
}

/* ---- the formula -------------------------------------------------------------------------- */

static inline double conv_act(enum tdmi_act kind, double v)
{
    switch (kind) {
    case TDMI_ACT_RELU:
        return fmax(v, 0.0);
    case TDMI_ACT_RELU6:
        return fmin(fmax(v, 0.0), 6.0);
    case TDMI_ACT_HSWISH:
        return v * fmin(fmax(v + 3.0, 0.0), 6.0) / 6.0;
    case TDMI_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-v));
    case TDMI_ACT_NONE:
        break;
    }
    return v;
}

static inline double conv_z(const struct conv_probe *p, int64_t at)
{
    const int in = p->desc.in[0].c, c = (int)(at % in);
    const double x = (double)p->x[at];
    return p->desc.fusion.in[0].has_norm
               ? (double)p->in_vectors[c] * x + (double)p->in_vectors[in + c]
               : x;
}

struct conv_wanted {
    double *v, *dy, *y, *dv, *dw, *y_size, *dv_size, *dw_size; /* sizes: Σ of absolute terms */
};

/* Terms of an output; with the channels of the output, of a gradient of the input. */
static inline double conv_depth(const struct conv_probe *p, int channels)
{
    const struct tdmi_op_attrs *a = &p->desc.attrs;
    return (double)a->kernel * a->kernel * (channels / a->groups);
}

/* Visit every product: add to y, or with dy to the gradients. */
UNSANITIZED static inline void conv_products(const struct conv_probe *p, struct conv_wanted *to,
                                             bool is_backward)
{
    const struct tdmi_op_attrs *a = &p->desc.attrs;
    const struct tdmi_shape in = p->desc.in[0], out = p->desc.out;
    const int in_group = in.c / a->groups, out_group = out.c / a->groups;
    for (int64_t pixel = 0; pixel < p->n * tdmi_shape_pixels(out); pixel++)
        for (int tap = 0; tap < a->kernel * a->kernel; tap++) {
            const int64_t image = pixel / tdmi_shape_pixels(out);
            const int y = (int)(pixel / out.w % out.h) * a->stride + tap / a->kernel * a->dilation -
                          a->pad_top;
            const int x =
                (int)(pixel % out.w) * a->stride + tap % a->kernel * a->dilation - a->pad_left;
            if (y < 0 || y >= in.h || x < 0 || x >= in.w)
                continue;
            for (int i = 0; i < in_group; i++)
                for (int o = 0; o < out.c; o++) {
                    const int64_t at_y = pixel * out.c + o;
                    const int64_t at_x =
                        ((image * in.h + y) * in.w + x) * in.c + o / out_group * in_group + i;
                    const int64_t at_w = ((int64_t)tap * in_group + i) * out.c + o;
                    const double v = to->v[at_x], w = (double)p->weights[at_w];
                    if (!is_backward) {
                        to->y[at_y] += v * w;
                        to->y_size[at_y] += fabs(v * w);
                        continue;
                    }
                    const double dy = to->dy[at_y];
                    to->dv[at_x] += dy * w;
                    to->dv_size[at_x] += fabs(dy * w);
                    to->dw[at_w] += dy * v;
                    to->dw_size[at_w] += fabs(dy * v);
                }
        }
}

/* depth: the number of terms; size: the sum of their absolute values. 4: transforms of Winograd. */
static inline void conv_near(const struct conv_probe *p, const char *what, int64_t at, double got,
                             double wanted, double size, double depth)
{
    const double by_depth = 2e-5 * 3.0 * sqrt(depth) + 1e-5 * fabs(wanted); /* 3: x is up to 3 */
    if (!(fabs(got - wanted) <= fmin(3e-6 * (4.0 + size), by_depth)))
        fail_msg("%s: %s[%lld] is %.9g, expected %.9g", p->name, what, (long long)at, got, wanted);
}

/* The convolution with bias, folded batch norm, residual and activation; *size of its terms. */
static inline double conv_output(const struct conv_probe *p, const struct conv_wanted *w, int64_t i,
                                 double *size)
{
    const struct tdmi_op_fusion *f = &p->desc.fusion;
    const int out = p->desc.out.c, c = (int)(i % out);
    double v = w->y[i] + (p->desc.attrs.has_bias ? (double)p->bias[c] : 0.0);
    *size = 2.0 * w->y_size[i];
    if (f->folds_norm) {
        double factor = (double)p->norm[c] / sqrt((double)p->norm[3 * out + c] + 1e-3);
        v = (v - (double)p->norm[2 * out + c]) * factor + (double)p->norm[out + c];
        *size *= 1.0 + fabs(factor);
    }
    if (f->adds_residual)
        v += (double)p->residual[i];
    return conv_act(f->act, v);
}

/* A pooled value must be the maximum of its window, and its winner a pixel that has it; the winner
 * gets the gradient. pool · pool as winner: ReLU cut all of the window off. */
static inline void conv_check_pool(const struct conv_probe *p, struct conv_wanted *w)
{
    const int pool = p->desc.fusion.pool, cut = pool * pool;
    const struct tdmi_shape full = p->desc.out, pooled = tdmi_op_result(&p->desc);
    for (int64_t i = 0; i < p->n_y; i++) {
        const int64_t pixel = i / pooled.c, image = pixel / tdmi_shape_pixels(pooled);
        const int64_t row = pixel / pooled.w % pooled.h * pool, column = pixel % pooled.w * pool;
        const int winner = p->saved[i];
        double best = -HUGE_VAL, size = 0.0, of_winner = 0.0;
        int64_t at_winner = -1;
        for (int tap = 0; tap < cut; tap++) {
            const int64_t at =
                ((image * full.h + row + tap / pool) * full.w + column + tap % pool) * full.c +
                i % pooled.c;
            double one_size, value = conv_output(p, w, at, &one_size);
            best = fmax(best, value);
            size = fmax(size, one_size);
            if (tap == winner) {
                of_winner = value;
                at_winner = at;
            }
        }
        conv_near(p, "y", i, (double)p->y[i], best, size, conv_depth(p, p->desc.in[0].c));
        if (winner == cut && p->desc.fusion.act == TDMI_ACT_RELU) {
            assert_true(p->y[i] == 0.0f);
            continue;
        }
        assert_in_range(winner, 0, cut - 1);
        conv_near(p, "winner", i, of_winner, best, size, conv_depth(p, p->desc.in[0].c));
        w->dy[at_winner] = (double)p->g[i];
    }
}

static inline void conv_check_forward(const struct conv_probe *p, struct conv_wanted *w)
{
    const struct tdmi_op_fusion *f = &p->desc.fusion;
    const int out = p->desc.out.c;
    if (f->pool) {
        conv_check_pool(p, w);
        return;
    }
    for (int64_t i = 0; i < p->n_y; i++) {
        const int c = (int)(i % out);
        double size, value = conv_output(p, w, i, &size);
        conv_near(p, "y", i, (double)p->y[i], value, size, conv_depth(p, p->desc.in[0].c));
        w->dy[i] = (double)p->g[i];
        if (f->reads_gradient_form) /* made of the kernel's own y, which has been checked */
            w->dy[i] = (double)p->out_vectors[c] * w->dy[i] +
                       (double)p->out_vectors[out + c] * (double)p->y[i] +
                       (double)p->out_vectors[2 * out + c];
    }
}

/* Sums must be those of the values that the kernel wrote. */
static inline void conv_check_sums(const struct conv_probe *p, const char *what,
                                   const float *values, const float *other, const double *got,
                                   const float *centre, int channels, int64_t pixels)
{
    for (int c = 0; c < channels; c++) {
        double sum = 0.0, product = 0.0, sum_size = 0.0, product_size = 0.0;
        for (int64_t at = c; at < pixels * channels; at += channels) {
            double off = (double)(other ? other : values)[at] - (double)centre[c];
            double first = other ? (double)values[at] : off;
            sum += first;
            product += first * off;
            sum_size += fabs(first);
            product_size += fabs(first * off);
        }
        conv_near(p, what, c, got[c], sum, sum_size, (double)pixels);
        conv_near(p, what, channels + c, got[channels + c], product, product_size, (double)pixels);
    }
}

static inline void conv_check_backward(const struct conv_probe *p, const struct conv_wanted *w)
{
    const int out = p->desc.out.c;
    const enum tdmi_act kind = p->desc.fusion.in[0].act;
    for (int64_t i = 0; i < p->n_weights; i++)
        conv_near(p, "dw", i, (double)p->dw[i], w->dw[i], w->dw_size[i], (double)(p->n_full / out));
    for (int c = 0; p->desc.attrs.has_bias && c < out; c++) {
        double sum = 0.0, size = 0.0;
        for (int64_t i = c; i < p->n_full; i += out) {
            sum += w->dy[i];
            size += fabs(w->dy[i]);
        }
        conv_near(p, "db", c, (double)p->db[c], sum, size, (double)(p->n_full / out));
    }
    for (int64_t i = 0; p->desc.wants_dx && i < p->n_x; i++) {
        double z = conv_z(p, i), add = p->adds ? (double)p->add[i] : 0.0;
        bool passes = kind == TDMI_ACT_NONE || (z > 0.0 && (kind == TDMI_ACT_RELU || z < 6.0));
        bool is_kink = kind != TDMI_ACT_NONE && (fabs(z) < 1e-5 || fabs(z - 6.0) < 1e-5);
        if (!is_kink)
            conv_near(p, "dx", i, (double)p->dx[i], (passes ? w->dv[i] : 0.0) + add,
                      w->dv_size[i] + 1.0, conv_depth(p, out));
    }
}

/* Compare what conv_run wrote with the formula. */
static inline void conv_check(const struct conv_probe *p)
{
    double *room =
        tdmi_alloc((size_t)(3 * p->n_x + 3 * p->n_full + 2 * p->n_weights), sizeof *room);
    assert_non_null(room);
    struct conv_wanted w = {.v = room};
    w.dv = w.v + p->n_x;
    w.dv_size = w.dv + p->n_x;
    w.y = w.dv_size + p->n_x;
    w.y_size = w.y + p->n_full;
    w.dy = w.y_size + p->n_full;
    w.dw = w.dy + p->n_full;
    w.dw_size = w.dw + p->n_weights;
    for (int64_t i = 0; i < p->n_x; i++)
        w.v[i] = conv_act(p->desc.fusion.in[0].act, conv_z(p, i));
    conv_products(p, &w, false);
    conv_check_forward(p, &w);
    if (p->desc.fusion.gives_sums)
        conv_check_sums(p, "sums of y", p->y, NULL, p->out_sums,
                        p->out_vectors + (ptrdiff_t)3 * p->desc.out.c, p->desc.out.c,
                        p->n * tdmi_shape_pixels(p->desc.out));
    if (p->desc.is_training) {
        conv_products(p, &w, true);
        conv_check_backward(p, &w);
        if (p->desc.wants_dx && p->desc.fusion.in[0].has_norm)
            conv_check_sums(p, "sums of dx", p->dx, p->x, p->in_sums,
                            p->in_vectors + (ptrdiff_t)2 * p->desc.in[0].c, p->desc.in[0].c,
                            p->n * tdmi_shape_pixels(p->desc.in[0]));
    }
    tdmi_free(room);
}

/* ---- bits --------------------------------------------------------------------------------- */

static inline void conv_same(const struct conv_probe *p, const char *what, const void *a,
                             const void *b, size_t bytes)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s: other bits of %s", p->name, what);
}

/* A second run, with another workspace and dx_add beside dx, gives the same bits; so does the last
 * image alone, unless products pair pixels of several, and nothing behind it is written. */
static inline void conv_check_bits(struct conv_probe *p, const struct tdmi_op_desc *desc)
{
    struct conv_probe again;
    conv_begin(&again, p->kernel, desc, p->n, p->adds);
    memset(again.workspace, 0x7f, tdmi_kernel_needs_of(p->kernel, &again.desc).workspace_bytes);
    struct tdmi_op_call call = conv_call(&again);
    conv_pack(&again, NULL);
    p->kernel->forward(NULL, &again.desc, &call);
    conv_same(p, "y", p->y, again.y, sizeof(float) * (size_t)p->n_y);
    if (desc->fusion.gives_sums)
        conv_same(p, "sums of y", p->out_sums, again.out_sums,
                  2 * sizeof(double) * (size_t)desc->out.c);
    if (desc->is_training) {
        call.dx_add[0] = call.dx_add[0] ? again.add : NULL;
        p->kernel->backward(NULL, &again.desc, &call);
        conv_same(p, "dw", p->dw, again.dw, sizeof(float) * (size_t)p->n_weights);
        if (call.dx[0])
            conv_same(p, "dx", p->dx, again.dx, sizeof(float) * (size_t)p->n_x);
        if (call.dx_sums[0])
            conv_same(p, "sums of dx", p->in_sums, again.in_sums,
                      2 * sizeof(double) * (size_t)desc->in[0].c);
    }
    const int64_t y_image = p->n_y / p->n, x_image = p->n_x / p->n;
    for (int64_t i = 0; i < p->n_y; i++)
        again.y[i] = NAN;
    for (int64_t i = 0; i < p->n_x; i++)
        again.x[i] = i < x_image ? p->x[p->n_x - x_image + i] : again.x[i];
    for (int64_t i = 0; i < y_image; i++)
        again.residual[i] = p->residual[p->n_y - y_image + i];
    call.n = 1;
    p->kernel->forward(NULL, &again.desc, &call);
    if (!desc->splits_products)
        conv_same(p, "the last image alone", p->y + p->n_y - y_image, again.y,
                  sizeof(float) * (size_t)y_image);
    for (int64_t i = y_image; i < p->n_y; i++)
        assert_true(isnan(again.y[i]));
    conv_end(&again);
}

/* Run a case on a kernel and check values and bits. */
static inline void check_conv(const struct tdmi_kernel *kernel, const struct tdmi_op_desc *desc,
                              int n, bool adds)
{
    struct conv_probe p;
    conv_begin(&p, kernel, desc, n, adds);
    conv_run(&p, n);
    conv_check(&p);
    conv_check_bits(&p, desc);
    conv_end(&p);
}

/* ---- the case list ------------------------------------------------------------------------ */

static inline bool conv_shape(struct tdmi_op_desc *desc)
{
    return tdmi_op_of(TDMI_OP_CONV)->shape(&desc->attrs, desc->in, &desc->out, NULL) == TDM_OK;
}

/* A random convolution whose output is not empty. */
static inline struct tdmi_op_desc conv_drawn(tdmi_rng *rng)
{
    static const int kernels[] = {1, 1, 3, 3, 3, 5, 2, 7};
    struct tdmi_op_desc d = {.kind = TDMI_OP_CONV};
    struct tdmi_op_attrs *a = &d.attrs;
    do {
        d.in[0] = (struct tdmi_shape){conv_between(rng, 1, 10), conv_between(rng, 1, 10),
                                      conv_between(rng, 1, 40)};
        a->kernel = kernels[conv_between(rng, 0, 7)];
        a->stride = conv_between(rng, 0, 4) ? conv_between(rng, 1, 2) : conv_between(rng, 3, 4);
        a->dilation = conv_between(rng, 0, 4) ? 1 : conv_between(rng, 2, 3);
        a->groups = 1;
        a->channels = conv_between(rng, 1, 40);
        const int kind = conv_between(rng, 0, 5);
        if (kind < 2) {
            a->groups = a->channels = d.in[0].c;
        } else if (kind == 2) {
            a->groups = conv_between(rng, 1, 4);
            d.in[0].c = a->groups * conv_between(rng, 1, 9);
            a->channels = a->groups * conv_between(rng, 1, 9);
        }
        const int most = conv_between(rng, 0, 3) ? a->kernel / 2 : (a->kernel - 1) * a->dilation;
        a->pad_top = conv_between(rng, 0, most);
        a->pad_left = conv_between(rng, 0, most);
        a->pad_bottom = conv_between(rng, 0, most);
        a->pad_right = conv_between(rng, 0, most);
        a->has_bias = conv_between(rng, 0, 1);
    } while (!conv_shape(&d));
    d.max_images = conv_between(rng, 1, 4);
    return d;
}

/* Case number i of the list that every kernel and backend runs: the first half in training, the
 * second in inference. Fusion is dropped where the kernel cannot do it. False: not for it. */
static inline bool check_conv_case(const struct tdmi_kernel *kernel, int i, bool is_training)
{
    tdmi_rng rng = tdmi_rng_at(conv_seed(), TDMI_RNG_TEST, is_training ? 6 : 7, (uint64_t)i);
    struct tdmi_op_desc desc = conv_drawn(&rng);
    struct tdmi_op_fusion *f = &desc.fusion;
    desc.is_training = is_training;
    if (is_training) {
        desc.wants_dx = conv_between(&rng, 0, 3);
        f->reads_gradient_form = conv_between(&rng, 0, 1);
        f->gives_sums = f->reads_gradient_form && conv_between(&rng, 0, 3);
        f->in[0].has_norm = conv_between(&rng, 0, 1);
        f->in[0].act = (enum tdmi_act)conv_between(&rng, 0, TDMI_ACT_RELU6);
    } else {
        f->folds_norm = conv_between(&rng, 0, 1);
        f->adds_residual = conv_between(&rng, 0, 1);
        f->act = (enum tdmi_act)conv_between(&rng, 0, TDMI_ACT_SIGMOID);
    }
    if (!kernel->can_fuse || !kernel->can_fuse(&desc))
        memset(f, 0, sizeof *f);
    if (kernel->can_run && !kernel->can_run(&desc))
        return false;
    check_conv(kernel, &desc, conv_between(&rng, 1, desc.max_images), conv_between(&rng, 0, 3));
    return true;
}

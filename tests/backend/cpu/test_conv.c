/*
 * Convolutions of backend cpu with all that they may carry, through the kernel table and so through
 * whichever way it chooses: in training read forms, sums, gradient forms and gradients to add to,
 * without it a folded batch norm, a residual and an activation. Judged by formulas in double.
 * TANDEM_TEST_SEED chooses other shapes; a failure prints the case.
 */
#include "backend/cpu/cpu.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "graph/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Everything a call has, as float arrays that are filled and double arrays that are wanted. */
struct probe {
    struct tdmi_op_desc desc;
    int n;
    int64_t x_values, y_values, n_weights;
    float *x, *weights, *bias, *g, *residual, *add;
    float *y, *dx, *dw, *db;
    float *in_vectors, *out_vectors; /* of the norms before and behind */
    float *gamma, *beta, *mean, *variance;
    double *in_sums, *out_sums;
    char name[240];
};

static uint64_t seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static int between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static float *filled(int64_t n, uint64_t stream, float low, float high)
{
    float *values = tdmi_alloc_aligned(sizeof(float) * (size_t)n);
    tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 5, stream);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, low, high);
    return values;
}

static float *unwritten(int64_t n)
{
    float *values = filled(n, 0, NAN, NAN);
    for (int64_t i = 0; i < n; i++)
        values[i] = NAN;
    return values;
}

static void begin(struct probe *p, const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    int in = desc->in[0].c, out = desc->out.c;
    memset(p, 0, sizeof *p);
    p->desc = *desc;
    p->n = n;
    p->x_values = tdmi_shape_values(desc->in[0]);
    p->y_values = tdmi_shape_values(desc->out);
    p->n_weights = (int64_t)a->kernel * a->kernel * (in / a->groups) * out;
    p->x = filled(n * p->x_values, 1, -3.0f, 3.0f);
    p->weights = filled(p->n_weights, 2, -1.0f, 1.0f);
    p->bias = filled(out, 3, -1.0f, 1.0f);
    p->g = filled(n * p->y_values, 4, -1.0f, 1.0f);
    p->residual = filled(n * p->y_values, 5, -1.0f, 1.0f);
    p->add = filled(n * p->x_values, 6, -1.0f, 1.0f);
    p->y = unwritten(n * p->y_values);
    p->dx = unwritten(n * p->x_values);
    p->dw = unwritten(p->n_weights);
    p->db = unwritten(out);
    p->in_vectors = filled((int64_t)3 * in, 7, -2.0f, 2.0f);   /* scale, shift, mean */
    p->out_vectors = filled((int64_t)4 * out, 8, -1.0f, 1.0f); /* of_g, of_x, one, centre */
    p->gamma = filled(out, 9, -1.0f, 1.0f);
    p->beta = filled(out, 10, -1.0f, 1.0f);
    p->mean = filled(out, 11, -1.0f, 1.0f);
    p->variance = filled(out, 12, 0.1f, 2.0f);
    p->in_sums = (double *)unwritten((int64_t)4 * in);
    p->out_sums = (double *)unwritten((int64_t)4 * out);
    const struct tdmi_op_fusion *f = &desc->fusion;
    snprintf(p->name, sizeof p->name,
             "%d of %d images %dx%dx%d -> %dx%dx%d, kernel %d, stride %d, dilation %d, groups %d, "
             "pads %d %d, bias %d, training %d, dx %d, norm %d, residual %d, act %d, sums %d, "
             "gradient %d, in %d %d",
             n, desc->max_images, desc->in[0].h, desc->in[0].w, in, desc->out.h, desc->out.w, out,
             a->kernel, a->stride, a->dilation, a->groups, a->pad_top, a->pad_left, a->has_bias,
             desc->is_training, desc->wants_dx, f->folds_norm, f->adds_residual, (int)f->act,
             f->gives_sums, f->reads_gradient_form, f->in[0].has_norm, (int)f->in[0].act);
}

static void end(struct probe *p)
{
    void *all[] = {p->x,          p->weights,     p->bias,  p->g,    p->residual, p->add,
                   p->y,          p->dx,          p->dw,    p->db,   p->in_sums,  p->out_sums,
                   p->in_vectors, p->out_vectors, p->gamma, p->beta, p->mean,     p->variance};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

/* ---- formulas ----------------------------------------------------------------------------- */

static double act(enum tdmi_act kind, double v)
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

static double z_of(const struct probe *p, int64_t at)
{
    int in = p->desc.in[0].c, c = (int)(at % in);
    double x = (double)p->x[at];
    return p->desc.fusion.in[0].has_norm
               ? (double)p->in_vectors[c] * x + (double)p->in_vectors[in + c]
               : x;
}

static double dy_of(const struct probe *p, int64_t at)
{
    int out = p->desc.out.c, c = (int)(at % out);
    double g = (double)p->g[at];
    return p->desc.fusion.reads_gradient_form
               ? (double)p->out_vectors[c] * g +
                     (double)p->out_vectors[out + c] * (double)p->y[at] +
                     (double)p->out_vectors[2 * out + c]
               : g;
}

struct wanted {
    double *y, *dv, *dw, *y_size, *dv_size, *dw_size; /* sizes: Σ of absolute terms */
};

/* Goes through every product of the convolution: y is wanted before it is known, so dy, which may
 * be made of it, takes the kernel's y, itself checked first. */
static void convolve(const struct probe *p, struct wanted *to)
{
    const struct tdmi_op_attrs *a = &p->desc.attrs;
    struct tdmi_shape in = p->desc.in[0], out = p->desc.out;
    int in_group = in.c / a->groups, out_group = out.c / a->groups;
    for (int64_t pixel = 0; pixel < p->n * tdmi_shape_pixels(out); pixel++)
        for (int o = 0; o < out.c; o++)
            for (int tap = 0; tap < a->kernel * a->kernel; tap++) {
                int64_t image = pixel / tdmi_shape_pixels(out);
                int row = (int)(pixel / out.w % out.h), column = (int)(pixel % out.w);
                int y = row * a->stride + tap / a->kernel * a->dilation - a->pad_top;
                int x = column * a->stride + tap % a->kernel * a->dilation - a->pad_left;
                if (y < 0 || y >= in.h || x < 0 || x >= in.w)
                    continue;
                for (int i = 0; i < in_group; i++) {
                    int64_t at_x =
                        ((image * in.h + y) * in.w + x) * in.c + o / out_group * in_group + i;
                    int64_t at_y = pixel * out.c + o,
                            at_w = ((int64_t)tap * in_group + i) * out.c + o;
                    double v = act(p->desc.fusion.in[0].act, z_of(p, at_x));
                    double w = (double)p->weights[at_w], dy = dy_of(p, at_y);
                    to->y[at_y] += v * w;
                    to->y_size[at_y] += fabs(v * w);
                    to->dv[at_x] += dy * w;
                    to->dv_size[at_x] += fabs(dy * w);
                    to->dw[at_w] += dy * v;
                    to->dw_size[at_w] += fabs(dy * v);
                }
            }
}

static void near(const struct probe *p, const char *what, int64_t at, double got, double wanted,
                 double size)
{
    if (!(fabs(got - wanted) <= 3e-6 * (1.0 + size)))
        fail_msg("%s: %s[%lld] is %.9g, wanted %.9g", p->name, what, (long long)at, got, wanted);
}

static void check_forward(const struct probe *p, const struct wanted *w)
{
    const struct tdmi_op_fusion *f = &p->desc.fusion;
    for (int64_t i = 0; i < p->n * p->y_values; i++) {
        int c = (int)(i % p->desc.out.c);
        double v = w->y[i] + (p->desc.attrs.has_bias ? (double)p->bias[c] : 0.0);
        double size = 2.0 * w->y_size[i];
        if (f->folds_norm) {
            double factor = (double)p->gamma[c] / sqrt((double)p->variance[c] + 1e-3);
            v = (v - (double)p->mean[c]) * factor + (double)p->beta[c];
            size *= 1.0 + fabs(factor);
        }
        if (f->adds_residual)
            v += (double)p->residual[i];
        near(p, "y", i, (double)p->y[i], act(f->act, v), size);
    }
}

/* Sums are judged by the y that was written: they are to be of it, not of a better one. */
static void check_sums(const struct probe *p, const char *what, const float *values,
                       const float *other, const double *got, const float *centre, int channels,
                       int64_t pixels)
{
    for (int c = 0; c < channels; c++) {
        double sum = 0.0, product = 0.0, sum_size = 0.0, product_size = 0.0;
        for (int64_t i = 0; i < pixels; i++) {
            int64_t at = i * channels + c;
            double off = (double)(other ? other : values)[at] - (double)centre[c];
            double first = other ? (double)values[at] : off;
            sum += first;
            product += first * off;
            sum_size += fabs(first);
            product_size += fabs(first * off);
        }
        near(p, what, c, got[c], sum, sum_size);
        near(p, what, channels + c, got[channels + c], product, product_size);
    }
}

static void check_backward(const struct probe *p, const struct wanted *w)
{
    int out = p->desc.out.c;
    for (int64_t i = 0; i < p->n_weights; i++)
        near(p, "dw", i, (double)p->dw[i], w->dw[i], w->dw_size[i]);
    for (int c = 0; p->desc.attrs.has_bias && c < out; c++) {
        double sum = 0.0, size = 0.0;
        for (int64_t i = c; i < p->n * p->y_values; i += out) {
            sum += dy_of(p, i);
            size += fabs(dy_of(p, i));
        }
        near(p, "db", c, (double)p->db[c], sum, size);
    }
    for (int64_t i = 0; p->desc.wants_dx && i < p->n * p->x_values; i++) {
        double z = z_of(p, i), add = (double)p->add[i];
        enum tdmi_act kind = p->desc.fusion.in[0].act;
        bool passes = kind == TDMI_ACT_NONE || (z > 0.0 && (kind == TDMI_ACT_RELU || z < 6.0));
        bool is_kink = kind != TDMI_ACT_NONE && (fabs(z) < 1e-5 || fabs(z - 6.0) < 1e-5);
        if (!is_kink)
            near(p, "dx", i, (double)p->dx[i], (passes ? w->dv[i] : 0.0) + add,
                 w->dv_size[i] + 1.0);
    }
}

static void check(const struct probe *p)
{
    int64_t n_x = p->n * p->x_values, n_y = p->n * p->y_values;
    double *room = calloc((size_t)(2 * (n_x + n_y + p->n_weights)), sizeof *room);
    assert_non_null(room);
    struct wanted w = {.y = room};
    w.dv = w.y + n_y;
    w.dw = w.dv + n_x;
    w.y_size = w.dw + p->n_weights;
    w.dv_size = w.y_size + n_y;
    w.dw_size = w.dv_size + n_x;
    convolve(p, &w);
    check_forward(p, &w);
    if (p->desc.fusion.gives_sums)
        check_sums(p, "sums of y", p->y, NULL, p->out_sums,
                   p->out_vectors + (ptrdiff_t)3 * p->desc.out.c, p->desc.out.c,
                   p->n * tdmi_shape_pixels(p->desc.out));
    if (p->desc.is_training)
        check_backward(p, &w);
    if (p->desc.is_training && p->desc.wants_dx && p->desc.fusion.in[0].has_norm)
        check_sums(p, "sums of dx", p->dx, p->x, p->in_sums,
                   p->in_vectors + (ptrdiff_t)2 * p->desc.in[0].c, p->desc.in[0].c,
                   p->n * tdmi_shape_pixels(p->desc.in[0]));
    free(room);
}

/* ---- running ------------------------------------------------------------------------------ */

static struct tdmi_op_call call_of(struct probe *p, void *workspace, const void *packed)
{
    int in = p->desc.in[0].c, out = p->desc.out.c;
    struct tdmi_op_call call = {
        .n = p->n,
        .x = {p->x},
        .y = p->y,
        .dy = p->g,
        .params = {p->weights, p->bias},
        .dparams = {p->dw, p->db},
        .workspace = workspace,
        .packed = packed,
        .residual = p->residual,
    };
    call.norm.centre = p->out_vectors + (ptrdiff_t)3 * out;
    call.norm.sums = p->out_sums;
    call.norm.of_g = p->out_vectors;
    call.norm.of_x = p->out_vectors + out;
    call.norm.one = p->out_vectors + (ptrdiff_t)2 * out;
    call.in_norm[0].scale = p->in_vectors;
    call.in_norm[0].shift = p->in_vectors + in;
    call.in_norm[0].mean = p->in_vectors + (ptrdiff_t)2 * in;
    return call;
}

static void run(struct probe *p)
{
    const struct tdmi_kernel *kernel = tdmi_backend_cpu.kernels[TDMI_OP_CONV];
    struct tdmi_kernel_needs needs = {0};
    tdm_error err = {0};
    assert_true(kernel->can_run(&p->desc));
    if (kernel->prepare(&p->desc, &p->desc.prepared, &err) != TDM_OK)
        fail_msg("%s: %s", p->name, tdm_error_sentence(&err, 0));
    kernel->needs(&p->desc, &needs);
    float *workspace = unwritten((int64_t)(needs.workspace_bytes / sizeof(float)) + 16);
    float *packed = unwritten((int64_t)(needs.packed_bytes / sizeof(float)) + 16);
    struct tdmi_op_call call = call_of(p, workspace, packed);
    if (needs.packed_bytes)
        kernel->pack(NULL, &p->desc,
                     &(struct tdmi_pack_call){.params = {p->weights, p->bias},
                                              .norm_params = {p->gamma, p->beta},
                                              .norm_states = {p->mean, p->variance},
                                              .norm_epsilon = 1e-3,
                                              .packed = packed});
    kernel->forward(NULL, &p->desc, &call);
    if (p->desc.is_training) {
        if (p->desc.wants_dx) {
            memcpy(p->dx, p->add, sizeof(float) * (size_t)(p->n * p->x_values));
            call.dx[0] = p->dx;
            call.dx_add[0] = p->dx; /* as a lane does: the array it writes */
            call.dx_sums[0] = p->desc.fusion.in[0].has_norm ? p->in_sums : NULL;
        }
        kernel->backward(NULL, &p->desc, &call);
    }
    kernel->release(p->desc.prepared);
    tdmi_free(workspace);
    tdmi_free(packed);
}

/* A random convolution whose output is not empty. */
static struct tdmi_op_desc drawn(tdmi_rng *rng)
{
    static const int kernels[] = {1, 1, 3, 3, 5};
    struct tdmi_op_desc d = {.kind = TDMI_OP_CONV};
    struct tdmi_op_attrs *a = &d.attrs;
    do {
        d.in[0] =
            (struct tdmi_shape){between(rng, 1, 10), between(rng, 1, 10), between(rng, 1, 40)};
        a->kernel = kernels[between(rng, 0, 4)];
        a->stride = between(rng, 1, 2);
        a->dilation = between(rng, 0, 4) ? 1 : 2;
        a->groups = 1;
        a->channels = between(rng, 1, 40);
        if (between(rng, 0, 2) == 0)
            a->groups = a->channels = d.in[0].c;
        a->pad_top = between(rng, 0, a->kernel / 2);
        a->pad_left = between(rng, 0, a->kernel / 2);
        a->pad_bottom = between(rng, 0, a->kernel / 2);
        a->pad_right = between(rng, 0, a->kernel / 2);
        a->has_bias = between(rng, 0, 1);
    } while (tdmi_op_of(TDMI_OP_CONV)->shape(a, d.in, &d.out, NULL) != TDM_OK);
    d.max_images = between(rng, 1, 4);
    return d;
}

static void in_training_neighbours_are_carried(void **state)
{
    int n_forms = 0;
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 6, i);
        struct tdmi_op_desc desc = drawn(&rng);
        desc.is_training = true;
        desc.wants_dx = between(&rng, 0, 3);
        desc.fusion.reads_gradient_form = between(&rng, 0, 1);
        desc.fusion.gives_sums = desc.fusion.reads_gradient_form && between(&rng, 0, 3);
        desc.fusion.in[0].has_norm = between(&rng, 0, 1);
        desc.fusion.in[0].act = (enum tdmi_act)between(&rng, 0, TDMI_ACT_RELU6);
        if (!tdmi_backend_cpu.kernels[TDMI_OP_CONV]->can_fuse(&desc))
            memset(&desc.fusion, 0, sizeof desc.fusion);
        else
            n_forms++;
        struct probe p;
        begin(&p, &desc, between(&rng, 1, desc.max_images));
        run(&p);
        check(&p);
        end(&p);
    }
    print_message("%d of 400 carried their neighbours\n", n_forms);
}

static void without_training_norm_residual_and_activation_are_one_call(void **state)
{
    int n_fused = 0;
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 7, i);
        struct tdmi_op_desc desc = drawn(&rng);
        desc.fusion.folds_norm = between(&rng, 0, 1);
        desc.fusion.adds_residual = between(&rng, 0, 1);
        desc.fusion.act = (enum tdmi_act)between(&rng, 0, TDMI_ACT_SIGMOID);
        if (!tdmi_backend_cpu.kernels[TDMI_OP_CONV]->can_fuse(&desc))
            memset(&desc.fusion, 0, sizeof desc.fusion);
        else
            n_fused++;
        struct probe p;
        begin(&p, &desc, between(&rng, 1, desc.max_images));
        run(&p);
        check(&p);
        end(&p);
    }
    print_message("%d of 400 carried their neighbours\n", n_fused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_training_neighbours_are_carried),
        cmocka_unit_test(without_training_norm_residual_and_activation_are_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

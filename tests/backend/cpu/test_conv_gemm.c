/*
 * The convolutions of backend cpu against their definition in double, over shapes that fall beside
 * every vector, block, chunk and frame, in every form and for every instruction set that is here.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "base/memory.h"
#include "sanitized.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct shape {
    int n, h, w, in, out, kernel, stride, dilation, pad, more_pad;
} shapes[] = {
    /* 1 × 1: one pixel, ragged channels, several chunks */
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
    {2, 3, 5, 7, 5, 1, 1, 1, 0, 0},
    {3, 7, 7, 24, 40, 1, 1, 1, 0, 0},
    {2, 13, 11, 33, 17, 1, 1, 1, 0, 0},
    {1, 40, 41, 16, 48, 1, 1, 1, 0, 0},
    /* one and a half vectors, alone and behind others; one, past the caches */
    {2, 15, 17, 70, 24, 1, 1, 1, 0, 0},
    {1, 10, 13, 5, 56, 1, 1, 1, 0, 0},
    {2, 14, 15, 20, 24, 3, 1, 1, 1, 1},
    {2, 24, 24, 3, 96, 1, 1, 1, 0, 0},
    {1, 9, 7, 512, 16, 1, 1, 1, 0, 0},
    {1, 182, 181, 33, 16, 1, 1, 1, 0, 0},
    {1, 8, 8, 16, 512, 1, 1, 1, 0, 0},
    {2, 32, 33, 65, 80, 1, 1, 1, 0, 0},
    {2, 8, 8, 20, 24, 1, 2, 1, 0, 0}, /* strided */
    {1, 7, 9, 64, 33, 1, 2, 1, 0, 0},
    {1, 10, 10, 5, 6, 1, 3, 1, 1, 1},
    /* windows */
    {1, 1, 1, 3, 4, 3, 1, 1, 1, 1},
    {2, 5, 6, 8, 16, 3, 1, 1, 1, 1},
    {2, 14, 14, 70, 32, 3, 1, 1, 1, 1},
    {3, 7, 7, 20, 90, 3, 1, 1, 1, 1},
    {2, 9, 8, 17, 19, 3, 2, 1, 1, 1},
    {1, 9, 8, 65, 19, 3, 2, 1, 0, 1},
    {1, 33, 31, 3, 32, 3, 2, 1, 0, 0},
    {1, 40, 38, 3, 20, 7, 2, 1, 3, 3},
    {1, 23, 23, 3, 9, 11, 4, 1, 2, 2},
    {2, 12, 11, 6, 7, 5, 1, 1, 2, 2},
    {1, 15, 15, 10, 12, 3, 1, 2, 2, 2},
    {1, 16, 15, 66, 12, 3, 2, 2, 2, 2},
    {1, 12, 12, 4, 5, 2, 3, 1, 0, 0},
    {1, 6, 6, 4, 5, 2, 1, 1, 0, 1},
    {1, 60, 60, 66, 16, 3, 1, 1, 1, 1},
    {1, 64, 63, 16, 70, 3, 2, 1, 1, 1},
    /* 3 × 3 by tiles: odd sides, padding on one side or none, too much of it, several chunks */
    {1, 4, 4, 32, 32, 3, 1, 1, 1, 1},
    {2, 7, 5, 32, 64, 3, 1, 1, 1, 1},
    {2, 6, 9, 32, 64, 3, 1, 1, 0, 0},
    {1, 8, 7, 96, 32, 3, 1, 1, 0, 1},
    {1, 5, 5, 32, 32, 3, 1, 1, 2, 3},
    {1, 27, 22, 32, 32, 3, 1, 1, 1, 1},
};
enum { n_shapes = sizeof shapes / sizeof *shapes };

/* What of a call is varied. */
struct variant {
    enum tdmi_act act;
    bool has_form, has_gradient_form, has_add, has_bias;
};

static const struct variant variants[] = {
    {TDMI_ACT_RELU6, true, true, true, false},  {TDMI_ACT_RELU, true, false, false, true},
    {TDMI_ACT_NONE, false, true, true, true},   {TDMI_ACT_NONE, false, false, false, false},
    {TDMI_ACT_RELU, false, true, false, false},
};
enum { n_variants = sizeof variants / sizeof *variants };

enum { X, W, Y, G, ADD, RESIDUAL, SCALE, SHIFT, CENTRE, OF_G, OF_Y, ONE, BIAS, n_tensors };

struct data {
    struct tdmi_conv_gemm conv;
    float *at[n_tensors];
    size_t ins, outs, weights;
    float *forward, *backward;
    void *workspace;
};

static float next_value(void)
{
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static float *values(size_t n)
{
    float *made = tdmi_alloc_aligned(n * sizeof *made);
    assert_non_null(made);
    for (size_t i = 0; i < n; i++)
        made[i] = next_value();
    return made;
}

/* What comes out must be written, not added to. */
static float *nothing(size_t n)
{
    float *made = values(n);
    for (size_t i = 0; i < n; i++)
        made[i] = NAN;
    return made;
}

static int outputs(int size, const struct shape *shape)
{
    int reach = (shape->kernel - 1) * shape->dilation + 1;
    return (size + shape->pad + shape->more_pad - reach) / shape->stride + 1;
}

static void data_init(struct data *data, const struct shape *shape, enum tdmi_isa isa)
{
    struct tdmi_conv_gemm *conv = &data->conv;
    *conv = (struct tdmi_conv_gemm){.max_images = shape->n,
                                    .in_h = shape->h,
                                    .in_w = shape->w,
                                    .in_c = shape->in,
                                    .out_h = outputs(shape->h, shape),
                                    .out_w = outputs(shape->w, shape),
                                    .out_c = shape->out,
                                    .kernel_h = shape->kernel,
                                    .kernel_w = shape->kernel,
                                    .stride = shape->stride,
                                    .dilation = shape->dilation,
                                    .pad_top = shape->pad,
                                    .pad_left = shape->pad,
                                    .isa = isa};
    data->ins = (size_t)(shape->n * shape->h * shape->w * shape->in);
    data->outs = (size_t)(shape->n * conv->out_h * conv->out_w * shape->out);
    data->weights = (size_t)(shape->kernel * shape->kernel * shape->in * shape->out);
    const size_t ic = (size_t)shape->in, oc = (size_t)shape->out;
    const size_t sizes[n_tensors] = {
        data->ins, data->weights,     data->outs, data->outs, data->ins, data->outs, ic,
        ic,        ic > oc ? ic : oc, oc,         oc,         oc,        oc};
    for (int i = 0; i < n_tensors; i++)
        data->at[i] = values(sizes[i]);
    size_t forward = tdmi_conv_gemm_packed_bytes(conv, TDMI_CONV_FORWARD);
    size_t backward = tdmi_conv_gemm_packed_bytes(conv, TDMI_CONV_BACKWARD);
    data->forward = nothing(forward / sizeof(float));
    data->backward = nothing(backward / sizeof(float));
    data->workspace = nothing(tdmi_conv_gemm_workspace_bytes(conv) / sizeof(float));
    tdmi_conv_gemm_pack(conv, TDMI_CONV_FORWARD, data->at[W], NULL, data->forward);
    tdmi_conv_gemm_pack(conv, TDMI_CONV_BACKWARD, data->at[W], NULL, data->backward);
}

static void data_release(struct data *data)
{
    for (int i = 0; i < n_tensors; i++)
        tdmi_free(data->at[i]);
    tdmi_free(data->forward);
    tdmi_free(data->backward);
    tdmi_free(data->workspace);
}

static struct tdmi_read_form read_of(const struct data *data, const struct variant *variant)
{
    return (struct tdmi_read_form){variant->has_form ? data->at[SCALE] : NULL,
                                   variant->has_form ? data->at[SHIFT] : NULL, variant->act};
}

/* ---- the definition -----------------------------------------------------------------------------
 */

static double activate(double z, enum tdmi_act act)
{
    switch (act) {
    case TDMI_ACT_RELU:
        return z > 0 ? z : 0;
    case TDMI_ACT_RELU6:
        return z > 0 ? z < 6 ? z : 6 : 0;
    case TDMI_ACT_HSWISH:
        return z * activate(z + 3, TDMI_ACT_RELU6) / 6;
    default:
        return z;
    }
}

static double z_of(const struct data *data, const struct variant *variant, size_t i)
{
    size_t c = i % (size_t)data->conv.in_c;
    double x = (double)data->at[X][i];
    return variant->has_form ? (double)data->at[SCALE][c] * x + (double)data->at[SHIFT][c] : x;
}

/* Calls back for every product of the convolution: places of input, weight and output. */
typedef void each_function(void *context, size_t in, size_t weight, size_t out);

UNSANITIZED static void each_product(const struct tdmi_conv_gemm *d, int n, each_function *each,
                                     void *context)
{
    for (int p = 0; p < n * d->out_h * d->out_w; p++)
        for (int tap = 0; tap < d->kernel_h * d->kernel_w; tap++) {
            int y =
                p / d->out_w % d->out_h * d->stride - d->pad_top + tap / d->kernel_w * d->dilation;
            int x = p % d->out_w * d->stride - d->pad_left + tap % d->kernel_w * d->dilation;
            if (y < 0 || y >= d->in_h || x < 0 || x >= d->in_w)
                continue;
            int pixel = (p / d->out_w / d->out_h * d->in_h + y) * d->in_w + x;
            for (int i = 0; i < d->in_c; i++)
                for (int o = 0; o < d->out_c; o++)
                    each(context, (size_t)(pixel * d->in_c + i),
                         (size_t)((tap * d->in_c + i) * d->out_c + o), (size_t)(p * d->out_c + o));
        }
}

struct formula {
    const double *v, *w, *dy;
    double *y, *dv, *dw;
};

UNSANITIZED static void forward_product(void *context, size_t in, size_t weight, size_t out)
{
    struct formula *f = context;
    f->y[out] += f->v[in] * f->w[weight];
}

UNSANITIZED static void backward_product(void *context, size_t in, size_t weight, size_t out)
{
    struct formula *f = context;
    f->dv[in] += f->dy[out] * f->w[weight];
    f->dw[weight] += f->dy[out] * f->v[in];
}

static double *zeros(size_t n)
{
    double *made = tdmi_alloc(n, sizeof *made);
    assert_non_null(made);
    return made;
}

static double *widened(const float *from, size_t n)
{
    double *made = zeros(n);
    for (size_t i = 0; i < n; i++)
        made[i] = (double)from[i];
    return made;
}

static double *read_widened(const struct data *data, const struct variant *variant)
{
    double *v = zeros(data->ins);
    for (size_t i = 0; i < data->ins; i++)
        v[i] = activate(z_of(data, variant, i), variant->act);
    return v;
}

static void assert_near(double found, double wanted, double size, const char *what, size_t at)
{
    if (!(fabs(found - wanted) <= 2e-5 * size + 1e-5 * fabs(wanted)))
        fail_msg("%s[%zu]: %.9g, not %.9g", what, at, found, wanted);
}

/* ---- the checks ---------------------------------------------------------------------------------
 */

static void assert_sums(const double *found, const double *wanted, int n, double size,
                        const char *what)
{
    for (int c = 0; c < n; c++)
        assert_near(found[c], wanted[c], size, what, (size_t)c);
}

static void check_forward(const struct data *data, const struct variant *variant)
{
    const int c = data->conv.out_c;
    double *v = read_widened(data, variant), *w = widened(data->at[W], data->weights);
    double *y = zeros(data->outs), *sums = zeros(4 * (size_t)c);
    double *found = zeros(2 * (size_t)c);
    float *out = nothing(data->outs);
    const float *centre = variant->has_form ? data->at[CENTRE] : NULL;
    each_product(&data->conv, data->conv.max_images, forward_product,
                 &(struct formula){.v = v, .w = w, .y = y});
    found[0] = found[c] = NAN;
    tdmi_conv_gemm_forward(
        &data->conv, &(struct tdmi_conv_forward) {
            .n = data->conv.max_images, .x = data->at[X], .read = read_of(data, variant),
            .packed = data->forward, .bias = variant->has_bias ? data->at[BIAS] : NULL, .y = out,
            .sums = {centre, found, found + c}, .workspace = data->workspace
        });
    double depth = sqrt((double)(data->weights / (size_t)c));
    for (size_t i = 0; i < data->outs; i++) {
        size_t channel = i % (size_t)c;
        y[i] += variant->has_bias ? (double)data->at[BIAS][channel] : 0.0;
        double far = y[i] - (centre ? (double)centre[channel] : 0.0);
        sums[channel] += far;
        sums[(size_t)c + channel] += far * far;
        assert_near((double)out[i], y[i], depth, "y", i);
    }
    double n = (double)(data->outs / (size_t)c);
    assert_sums(found, sums, c, depth * sqrt(n), "sum");
    assert_sums(found + c, sums + c, c, depth * depth * sqrt(n), "square");
    tdmi_free(v);
    tdmi_free(w);
    tdmi_free(y);
    tdmi_free(sums);
    tdmi_free(found);
    tdmi_free(out);
}

static void check_infer(const struct data *data, enum tdmi_act act, bool has_residual)
{
    double *v = widened(data->at[X], data->ins), *w = widened(data->at[W], data->weights);
    double *y = zeros(data->outs);
    float *out = nothing(data->outs);
    each_product(&data->conv, data->conv.max_images, forward_product,
                 &(struct formula){.v = v, .w = w, .y = y});
    tdmi_conv_gemm_infer(
        &data->conv, &(struct tdmi_conv_infer) {
            .n = data->conv.max_images, .x = data->at[X], .packed = data->forward,
            .bias = has_residual ? NULL : data->at[BIAS],
            .residual = has_residual ? data->at[RESIDUAL] : NULL, .act = act, .y = out,
            .workspace = data->workspace
        });
    double depth = sqrt((double)(data->weights / (size_t)data->conv.out_c));
    for (size_t i = 0; i < data->outs; i++) {
        double more = (double)(has_residual ? data->at[RESIDUAL][i]
                                            : data->at[BIAS][i % (size_t)data->conv.out_c]);
        /* hswish is as steep as 1.5, and z · gate doubles the error of z. */
        assert_near((double)out[i], activate(y[i] + more, act), 3 * depth, "inferred", i);
    }
    tdmi_free(v);
    tdmi_free(w);
    tdmi_free(y);
    tdmi_free(out);
}

static double *gradient_widened(const struct data *data, const struct variant *variant)
{
    double *dy = widened(data->at[G], data->outs);
    for (size_t i = 0; i < data->outs && variant->has_gradient_form; i++) {
        size_t c = i % (size_t)data->conv.out_c;
        dy[i] = (double)data->at[OF_G][c] * dy[i] +
                (double)data->at[OF_Y][c] * (double)data->at[Y][i] + (double)data->at[ONE][c];
    }
    return dy;
}

static void check_bias(const struct data *data, const double *dy, const float *dbias)
{
    double *sums = zeros((size_t)data->conv.out_c);
    for (size_t i = 0; i < data->outs; i++)
        sums[i % (size_t)data->conv.out_c] += dy[i];
    for (int c = 0; c < data->conv.out_c; c++)
        assert_near((double)dbias[c], sums[c], sqrt((double)data->outs), "dbias", (size_t)c);
    tdmi_free(sums);
}

/* found: the gradient and its sums; dv: what the products give. */
static void check_input(const struct data *data, const struct variant *variant, const double *dv,
                        const float *dx, const double *found)
{
    const size_t c = (size_t)data->conv.in_c;
    double *sums = zeros(2 * c);
    double size = sqrt((double)(data->weights / c));
    for (size_t i = 0; i < data->ins; i++) {
        double z = z_of(data, variant, i), g = dv[i];
        bool is_edge = fabs(z) < 1e-6 || fabs(z - 6) < 1e-5;
        if ((variant->act != TDMI_ACT_NONE && z <= 0) || (variant->act == TDMI_ACT_RELU6 && z >= 6))
            g = 0;
        g += variant->has_add ? (double)data->at[ADD][i] : 0.0;
        if (is_edge) /* the kernel rounds z once less or more */
            g = (double)dx[i];
        assert_near((double)dx[i], g, size, "dx", i);
        sums[i % c] += g;
        sums[c + i % c] += g * ((double)data->at[X][i] - (double)data->at[CENTRE][i % c]);
    }
    assert_sums(found, sums, (int)c, size * sqrt((double)(data->ins / c)), "sum of dx");
    assert_sums(found + c, sums + c, (int)c, 2 * size * sqrt((double)(data->ins / c)),
                "product of dx");
    tdmi_free(sums);
}

static struct tdmi_conv_backward backward_call(const struct data *data,
                                               const struct variant *variant)
{
    struct tdmi_conv_backward call = {
        .n = data->conv.max_images,
        .x = data->at[X],
        .read = read_of(data, variant),
        .g = data->at[G],
        .packed = data->backward,
        .workspace = data->workspace
    };
    if (variant->has_gradient_form) {
        call.y = data->at[Y];
        call.gradient = (struct tdmi_gradient_form){data->at[OF_G], data->at[OF_Y], data->at[ONE]};
    }
    return call;
}

static void check_backward(const struct data *data, const struct variant *variant)
{
    const size_t c = (size_t)data->conv.in_c;
    double *v = read_widened(data, variant), *w = widened(data->at[W], data->weights);
    double *dy = gradient_widened(data, variant), *dv = zeros(data->ins);
    double *dw = zeros(data->weights), *found = zeros(2 * c);
    float *dx = nothing(data->ins), *dweights = nothing(data->weights);
    float *dbias = nothing((size_t)data->conv.out_c);
    struct tdmi_conv_backward call = backward_call(data, variant);
    each_product(&data->conv, data->conv.max_images, backward_product,
                 &(struct formula){.v = v, .w = w, .dy = dy, .dv = dv, .dw = dw});
    found[0] = found[c] = NAN;
    call.dweights = dweights;
    call.dbias = variant->has_bias ? dbias : NULL;
    call.dx = dx;
    call.sums = (struct tdmi_backward_sums){data->at[CENTRE], found, found + c};
    if (variant->has_add) { /* in place, as the planner will do */
        memcpy(dx, data->at[ADD], data->ins * sizeof *dx);
        call.add = dx;
    }
    tdmi_conv_gemm_backward(&data->conv, &call);
    double size = sqrt((double)(data->outs / (size_t)data->conv.out_c));
    for (size_t i = 0; i < data->weights; i++)
        assert_near((double)dweights[i], dw[i], 2 * size, "dweights", i);
    if (variant->has_bias)
        check_bias(data, dy, dbias);
    check_input(data, variant, dv, dx, found);
    tdmi_free(v);
    tdmi_free(w);
    tdmi_free(dy);
    tdmi_free(dv);
    tdmi_free(dw);
    tdmi_free(found);
    tdmi_free(dx);
    tdmi_free(dweights);
    tdmi_free(dbias);
}

static void for_each_shape(void (*check)(struct data *data, int number))
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct data data;
            data_init(&data, &shapes[i], (enum tdmi_isa)isa);
            check(&data, i);
            data_release(&data);
        }
}

static void forward_of_one(struct data *data, int number)
{
    (void)number;
    for (int i = 0; i < n_variants; i++)
        check_forward(data, &variants[i]);
}

static void forward_is_the_convolution_and_its_sums(void **state)
{
    (void)state;
    for_each_shape(forward_of_one);
}

static void infer_of_one(struct data *data, int number)
{
    static const enum tdmi_act acts[] = {TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6,
                                         TDMI_ACT_HSWISH};
    check_infer(data, acts[number % 4], number % 3 == 0);
    check_infer(data, acts[(number + 1) % 4], number % 3 != 0);
}

static void inference_adds_bias_and_residual_before_it_activates(void **state)
{
    (void)state;
    for_each_shape(infer_of_one);
}

static void backward_of_one(struct data *data, int number)
{
    (void)number;
    for (int i = 0; i < n_variants; i++)
        check_backward(data, &variants[i]);
}

static void backward_is_the_gradient_of_weights_bias_and_input(void **state)
{
    (void)state;
    for_each_shape(backward_of_one);
}

/* ---- bits and what is left alone
 * ----------------------------------------------------------------- */

static void forward_of(const struct data *data, int n, float *y, double *sums)
{
    tdmi_conv_gemm_forward(
        &data->conv, &(struct tdmi_conv_forward) {
            .n = n, .x = data->at[X], .read = read_of(data, &variants[0]), .packed = data->forward,
            .y = y, .sums = {NULL, sums, sums + data->conv.out_c}, .workspace = data->workspace
        });
}

static void ragged_of_one(struct data *data, int number)
{
    (void)number;
    const size_t sums_bytes = 2 * sizeof(double) * (size_t)data->conv.out_c;
    const size_t image = data->outs / (size_t)data->conv.max_images;
    float *all = nothing(data->outs), *again = nothing(data->outs);
    double *sums = zeros(2 * (size_t)data->conv.out_c);
    double *sums_again = zeros(2 * (size_t)data->conv.out_c);
    forward_of(data, data->conv.max_images, all, sums);
    forward_of(data, data->conv.max_images, again, sums_again);
    assert_memory_equal(all, again, data->outs * sizeof *all);
    assert_memory_equal(sums, sums_again, sums_bytes);
    for (int n = 1; n < data->conv.max_images; n++) {
        for (size_t i = 0; i < data->outs; i++)
            again[i] = 12345.0f;
        forward_of(data, n, again, sums_again);
        assert_memory_equal(all, again, (size_t)n * image * sizeof *all);
        for (size_t i = (size_t)n * image; i < data->outs; i++)
            assert_true(again[i] == 12345.0f);
    }
    tdmi_free(all);
    tdmi_free(again);
    tdmi_free(sums);
    tdmi_free(sums_again);
}

static void an_image_has_the_same_bits_in_a_ragged_shard_and_a_second_run(void **state)
{
    (void)state;
    for_each_shape(ragged_of_one);
}

/* A call of n images, bits of it and nothing behind it. */
static void backward_bits_of_one(struct data *data, int number)
{
    (void)number;
    const size_t image = data->ins / (size_t)data->conv.max_images;
    struct tdmi_conv_backward call = backward_call(data, &variants[0]);
    float *dw[2] = {nothing(data->weights), nothing(data->weights)};
    float *dx[2] = {nothing(data->ins), nothing(data->ins)};
    double *sums[2] = {zeros(2 * (size_t)data->conv.in_c), zeros(2 * (size_t)data->conv.in_c)};
    call.n = 1;
    for (int run = 0; run < 2; run++) {
        call.dweights = dw[run];
        call.dx = dx[run];
        call.sums = (struct tdmi_backward_sums){NULL, sums[run], sums[run] + data->conv.in_c};
        tdmi_conv_gemm_backward(&data->conv, &call);
    }
    assert_memory_equal(dw[0], dw[1], data->weights * sizeof(float));
    assert_memory_equal(dx[0], dx[1], image * sizeof(float));
    assert_memory_equal(sums[0], sums[1], 2 * sizeof(double) * (size_t)data->conv.in_c);
    for (size_t i = image; i < data->ins; i++)
        assert_true(isnan(dx[0][i]));
    /* All images at once: the first one's gradient has the same bits. */
    call.n = data->conv.max_images;
    tdmi_conv_gemm_backward(&data->conv, &call);
    assert_memory_equal(dx[0], dx[1], image * sizeof(float));
    for (int run = 0; run < 2; run++) {
        tdmi_free(dw[run]);
        tdmi_free(dx[run]);
        tdmi_free(sums[run]);
    }
}

static void gradients_have_the_same_bits_in_a_second_run(void **state)
{
    (void)state;
    for_each_shape(backward_bits_of_one);
}

static void packing_multiplies_each_output_by_its_scale(void **state)
{
    (void)state;
    struct data data;
    data_init(&data, &shapes[13], tdmi_isa_best());
    float *plain = nothing(data.outs), *scaled = nothing(data.outs);
    double *sums = zeros(2 * (size_t)data.conv.out_c);
    forward_of(&data, 1, plain, sums);
    tdmi_conv_gemm_pack(&data.conv, TDMI_CONV_FORWARD, data.at[W], data.at[BIAS], data.forward);
    forward_of(&data, 1, scaled, sums);
    for (size_t i = 0; i < data.outs / (size_t)data.conv.max_images; i++)
        assert_near((double)scaled[i],
                    (double)plain[i] * (double)data.at[BIAS][i % (size_t)data.conv.out_c], 5,
                    "scaled", i);
    tdmi_free(plain);
    tdmi_free(scaled);
    tdmi_free(sums);
    data_release(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_convolution_and_its_sums),
        cmocka_unit_test(inference_adds_bias_and_residual_before_it_activates),
        cmocka_unit_test(backward_is_the_gradient_of_weights_bias_and_input),
        cmocka_unit_test(an_image_has_the_same_bits_in_a_ragged_shard_and_a_second_run),
        cmocka_unit_test(gradients_have_the_same_bits_in_a_second_run),
        cmocka_unit_test(packing_multiplies_each_output_by_its_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

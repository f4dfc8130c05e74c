/*
 * Every op of the reference backend against its formula written out plainly, in double, over random
 * shapes. The formulas below share nothing with the kernels: no frames, no matrix products.
 * TANDEM_TEST_SEED chooses other shapes; a failure prints the case.
 */
#include "base/rng.h"
#include "nn/op.h"
#include "train/selftest/op_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* An op at work: the case, what it read and wrote, and its output shape. */
struct probe {
    struct tdmi_case it;
    struct tdmi_op_values values;
    struct tdmi_shape out;
    tdmi_arena arena;
    char name[200];
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

static void run(struct probe *probe, struct tdmi_case it, bool is_training)
{
    tdm_error err = {0};
    memset(probe, 0, sizeof *probe);
    probe->it = it;
    probe->it.name = "random";
    tdmi_arena_init(&probe->arena, 0);
    assert_int_equal(tdmi_op_of(it.kind)->shape(&it.attrs, &it.in, &probe->out, &err), TDM_OK);
    snprintf(probe->name, sizeof probe->name,
             "%s of %d images %dx%dx%d, channels %d, kernel %d, stride %d, pads %d %d, bias %d%s",
             tdmi_op_name(it.kind), it.n, it.in.h, it.in.w, it.in.c, it.attrs.channels,
             it.attrs.kernel, it.attrs.stride, it.attrs.pad_before, it.attrs.pad_after,
             it.attrs.has_bias, is_training ? ", training" : "");
    assert_int_equal(
        tdmi_op_values_make(&probe->it, is_training, &probe->arena, &probe->values, &err), TDM_OK);
    tdmi_device *device;
    assert_int_equal(tdmi_backend_ref.device.open(0, &device, &err), TDM_OK);
    assert_int_equal(
        tdmi_op_run(&tdmi_backend_ref, device, &probe->it, is_training, &probe->values, &err),
        TDM_OK);
    tdmi_backend_ref.device.close(device);
}

static void end(struct probe *probe)
{
    tdmi_arena_release(&probe->arena);
}

static void same(const struct probe *probe, enum tdmi_op_tensor tensor, int64_t at, double wanted,
                 double scale)
{
    double got = (double)probe->values.of[tensor][at];
    if (!(fabs(got - wanted) <= 2e-6 * (scale > 1.0 ? scale : 1.0)))
        fail_msg("%s: %s[%lld] is %.9g, wanted %.9g", probe->name, tdmi_op_tensor_name(tensor),
                 (long long)at, got, wanted);
}

/* Index of (image, y, x, channel). */
static int64_t at(struct tdmi_shape shape, int n, int y, int x, int c)
{
    return (((int64_t)n * shape.h + y) * shape.w + x) * shape.c + c;
}

static double x_at(const struct probe *probe, int n, int y, int x, int c)
{
    struct tdmi_shape in = probe->it.in;
    if (y < 0 || y >= in.h || x < 0 || x >= in.w)
        return 0.0;
    return (double)probe->values.of[TDMI_T_X][at(in, n, y, x, c)];
}

static double param(const struct probe *probe, int which, int64_t i)
{
    return (double)probe->values.of[TDMI_T_PARAM0 + which][i];
}

static double dy_at(const struct probe *probe, int n, int y, int x, int c)
{
    return (double)probe->values.dy[at(probe->out, n, y, x, c)];
}

/* ---- convolution: seven loops ------------------------------------------------------------- */

static void check_conv_forward(const struct probe *p)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    int in_c = p->it.in.c, out_c = p->out.c;
    for (int n = 0; n < p->it.n; n++)
        for (int y = 0; y < p->out.h; y++)
            for (int x = 0; x < p->out.w; x++)
                for (int o = 0; o < out_c; o++) {
                    double sum = a->has_bias ? param(p, 1, o) : 0.0;
                    for (int ky = 0; ky < a->kernel; ky++)
                        for (int kx = 0; kx < a->kernel; kx++)
                            for (int c = 0; c < in_c; c++)
                                sum +=
                                    x_at(p, n, y * a->stride + ky - a->pad_before,
                                         x * a->stride + kx - a->pad_before, c) *
                                    param(p, 0,
                                          ((int64_t)(ky * a->kernel + kx) * in_c + c) * out_c + o);
                    same(p, TDMI_T_Y, at(p->out, n, y, x, o), sum, a->kernel * a->kernel * in_c);
                }
}

/* Both gradients by going through every product of the forward pass once. */
static void check_conv_backward(const struct probe *p)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    struct tdmi_shape in = p->it.in;
    int64_t n_weights = (int64_t)a->kernel * a->kernel * in.c * p->out.c;
    int64_t n_x = p->it.n * tdmi_shape_values(in);
    double *dw = calloc((size_t)n_weights, sizeof *dw), *dx = calloc((size_t)n_x, sizeof *dx);
    double *db = calloc((size_t)p->out.c, sizeof *db);
    assert_true(dw && dx && db);
    for (int n = 0; n < p->it.n; n++)
        for (int y = 0; y < p->out.h; y++)
            for (int x = 0; x < p->out.w; x++)
                for (int o = 0; o < p->out.c; o++) {
                    double dy = dy_at(p, n, y, x, o);
                    db[o] += dy;
                    for (int ky = 0; ky < a->kernel; ky++)
                        for (int kx = 0; kx < a->kernel; kx++)
                            for (int c = 0; c < in.c; c++) {
                                int row = y * a->stride + ky - a->pad_before;
                                int column = x * a->stride + kx - a->pad_before;
                                int64_t w =
                                    ((int64_t)(ky * a->kernel + kx) * in.c + c) * p->out.c + o;
                                dw[w] += dy * x_at(p, n, row, column, c);
                                if (row >= 0 && row < in.h && column >= 0 && column < in.w)
                                    dx[at(in, n, row, column, c)] += dy * param(p, 0, w);
                            }
                }
    for (int64_t i = 0; i < n_weights; i++)
        same(p, TDMI_T_DPARAM0, i, dw[i], (double)(p->it.n * tdmi_shape_pixels(p->out)));
    for (int64_t i = 0; i < n_x; i++)
        same(p, TDMI_T_DX, i, dx[i], (double)(a->kernel * a->kernel * p->out.c));
    for (int o = 0; a->has_bias && o < p->out.c; o++)
        same(p, TDMI_T_DPARAM1, o, db[o], (double)(p->it.n * tdmi_shape_pixels(p->out)));
    free(dw);
    free(dx);
    free(db);
}

static struct tdmi_op_attrs random_window(tdmi_rng *rng, struct tdmi_shape *in, int largest)
{
    struct tdmi_op_attrs attrs = {0};
    attrs.kernel = between(rng, 1, largest);
    attrs.stride = between(rng, 1, 4);
    attrs.pad_before = between(rng, 0, attrs.kernel - 1);
    attrs.pad_after = between(rng, 0, attrs.kernel - 1);
    int least = attrs.kernel - attrs.pad_before - attrs.pad_after;
    least = least < 1 ? 1 : least;
    *in = (struct tdmi_shape){between(rng, least, least + 8), between(rng, least, least + 8),
                              between(rng, 1, 6)};
    return attrs;
}

static void convolution_is_its_seven_loops(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 1, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_CONV, .n = between(&rng, 1, 3)};
        it.attrs = random_window(&rng, &it.in, 7);
        it.attrs.channels = between(&rng, 1, i % 10 == 0 ? 40 : 9);
        it.attrs.has_bias = tdmi_rng_below(&rng, 2);
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe probe;
        run(&probe, it, true);
        check_conv_forward(&probe);
        check_conv_backward(&probe);
        end(&probe);
        run(&probe, it, false);
        check_conv_forward(&probe);
        end(&probe);
    }
}

/* ---- dense -------------------------------------------------------------------------------- */

static void check_dense(const struct probe *p, bool is_training)
{
    int64_t in = tdmi_shape_values(p->it.in), out = p->out.c;
    const float *x = p->values.of[TDMI_T_X], *dy = p->values.dy;
    for (int n = 0; n < p->it.n; n++) {
        for (int64_t o = 0; o < out; o++) {
            double sum = p->it.attrs.has_bias ? param(p, 1, o) : 0.0;
            for (int64_t i = 0; i < in; i++)
                sum += (double)x[n * in + i] * param(p, 0, i * out + o);
            same(p, TDMI_T_Y, n * out + o, sum, (double)in);
        }
        for (int64_t i = 0; is_training && i < in; i++) {
            double sum = 0.0;
            for (int64_t o = 0; o < out; o++)
                sum += (double)dy[n * out + o] * param(p, 0, i * out + o);
            same(p, TDMI_T_DX, n * in + i, sum, (double)out);
        }
    }
    for (int64_t o = 0; is_training && o < out; o++) {
        double bias = 0.0;
        for (int n = 0; n < p->it.n; n++)
            bias += (double)dy[n * out + o];
        if (p->it.attrs.has_bias)
            same(p, TDMI_T_DPARAM1, o, bias, p->it.n);
        for (int64_t i = 0; i < in; i++) {
            double sum = 0.0;
            for (int n = 0; n < p->it.n; n++)
                sum += (double)x[n * in + i] * (double)dy[n * out + o];
            same(p, TDMI_T_DPARAM0, i * out + o, sum, p->it.n);
        }
    }
}

static void a_dense_layer_is_a_sum_of_products(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 2, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_DENSE, .n = between(&rng, 1, 9)};
        it.in = (struct tdmi_shape){between(&rng, 1, 4), between(&rng, 1, 4), between(&rng, 1, 20)};
        it.attrs.channels = between(&rng, 1, 70);
        it.attrs.has_bias = tdmi_rng_below(&rng, 2);
        it.max_images = it.n + between(&rng, 0, 3);
        struct probe probe;
        for (int training = 0; training < 2; training++) {
            run(&probe, it, training);
            check_dense(&probe, training);
            end(&probe);
        }
    }
}

/* ---- batch norm --------------------------------------------------------------------------- */

static void check_batch_norm_training(const struct probe *p, int c)
{
    int64_t pixels = p->it.n * tdmi_shape_pixels(p->out), channels = p->out.c;
    const float *x = p->values.of[TDMI_T_X], *dy = p->values.dy;
    double mean = 0.0, variance = 0.0, sum_dy = 0.0, sum_dyx = 0.0, m = (double)pixels;
    for (int64_t i = 0; i < pixels; i++)
        mean += (double)x[i * channels + c] / m;
    for (int64_t i = 0; i < pixels; i++)
        variance += ((double)x[i * channels + c] - mean) * ((double)x[i * channels + c] - mean) / m;
    double scale = 1.0 / sqrt(variance + p->it.attrs.epsilon), gain = param(p, 0, c);
    for (int64_t i = 0; i < pixels; i++) {
        double hat = ((double)x[i * channels + c] - mean) * scale;
        same(p, TDMI_T_Y, i * channels + c, gain * hat + param(p, 1, c), scale);
        sum_dy += (double)dy[i * channels + c];
        sum_dyx += (double)dy[i * channels + c] * hat;
    }
    same(p, TDMI_T_DPARAM1, c, sum_dy, m);
    same(p, TDMI_T_DPARAM0, c, sum_dyx, m * scale);
    for (int64_t i = 0; i < pixels; i++) {
        double hat = ((double)x[i * channels + c] - mean) * scale;
        double wanted =
            gain * scale * ((double)dy[i * channels + c] - sum_dy / m - hat * sum_dyx / m);
        same(p, TDMI_T_DX, i * channels + c, wanted, 10.0 * scale);
    }
    same(p, TDMI_T_STATE_SUM0, c, mean * p->it.n, p->it.n);
    same(p, TDMI_T_STATE_SUM1, c, variance * (pixels > 1 ? m / (m - 1.0) : 1.0) * p->it.n, p->it.n);
}

static void check_batch_norm_inference(const struct probe *p, int c)
{
    int64_t pixels = p->it.n * tdmi_shape_pixels(p->out), channels = p->out.c;
    double mean = (double)p->values.of[TDMI_T_STATE0][c];
    double scale = 1.0 / sqrt((double)p->values.of[TDMI_T_STATE1][c] + p->it.attrs.epsilon);
    for (int64_t i = 0; i < pixels; i++) {
        double hat = ((double)p->values.of[TDMI_T_X][i * channels + c] - mean) * scale;
        same(p, TDMI_T_Y, i * channels + c, param(p, 0, c) * hat + param(p, 1, c), 4.0 * scale);
    }
}

static void batch_norm_uses_the_statistics_of_the_shard_or_the_running_ones(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 3, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_BATCH_NORM, .n = between(&rng, 1, 5)};
        it.in = (struct tdmi_shape){between(&rng, 1, 6), between(&rng, 1, 6), between(&rng, 1, 20)};
        it.attrs.epsilon = i % 2 ? 1e-5 : 1e-3;
        it.attrs.momentum = 0.1;
        it.max_images = it.n + between(&rng, 0, 3);
        struct probe probe;
        run(&probe, it, true);
        for (int c = 0; c < it.in.c; c++)
            check_batch_norm_training(&probe, c);
        end(&probe);
        run(&probe, it, false);
        for (int c = 0; c < it.in.c; c++)
            check_batch_norm_inference(&probe, c);
        end(&probe);
    }
}

/* ---- pooling, ReLU ------------------------------------------------------------------------ */

static void check_max_pool(const struct probe *p, bool is_training)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    struct tdmi_shape in = p->it.in;
    int64_t n_x = p->it.n * tdmi_shape_values(in);
    double *dx = calloc((size_t)n_x, sizeof *dx);
    assert_non_null(dx);
    for (int n = 0; n < p->it.n; n++)
        for (int y = 0; y < p->out.h; y++)
            for (int x = 0; x < p->out.w; x++)
                for (int c = 0; c < in.c; c++) {
                    double best = -INFINITY;
                    int64_t winner = -1;
                    for (int ky = 0; ky < a->kernel; ky++)
                        for (int kx = 0; kx < a->kernel; kx++) {
                            int row = y * a->stride + ky - a->pad_before;
                            int column = x * a->stride + kx - a->pad_before;
                            if (row < 0 || row >= in.h || column < 0 || column >= in.w ||
                                x_at(p, n, row, column, c) <= best)
                                continue;
                            best = x_at(p, n, row, column, c);
                            winner = at(in, n, row, column, c);
                        }
                    assert_true(winner >= 0);
                    same(p, TDMI_T_Y, at(p->out, n, y, x, c), best, 1.0);
                    dx[winner] += dy_at(p, n, y, x, c);
                }
    for (int64_t i = 0; is_training && i < n_x; i++)
        same(p, TDMI_T_DX, i, dx[i], a->kernel * a->kernel);
    free(dx);
}

/* Padding is narrower than the window, so that every window sees a pixel. */
static void max_pooling_takes_the_largest_and_returns_the_gradient_to_it(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 4, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_MAX_POOL, .n = between(&rng, 1, 3)};
        it.attrs = random_window(&rng, &it.in, 5);
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe probe;
        for (int training = 0; training < 2; training++) {
            run(&probe, it, training);
            check_max_pool(&probe, training);
            end(&probe);
        }
    }
}

static void global_pooling_is_the_mean_of_every_channel(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 5, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_GLOBAL_POOL, .n = between(&rng, 1, 4)};
        it.in = (struct tdmi_shape){between(&rng, 1, 9), between(&rng, 1, 9), between(&rng, 1, 20)};
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        double pixels = (double)tdmi_shape_pixels(it.in);
        for (int n = 0; n < it.n; n++)
            for (int c = 0; c < it.in.c; c++) {
                double sum = 0.0;
                for (int y = 0; y < it.in.h; y++)
                    for (int x = 0; x < it.in.w; x++) {
                        sum += x_at(&p, n, y, x, c);
                        same(&p, TDMI_T_DX, at(it.in, n, y, x, c), dy_at(&p, n, 0, 0, c) / pixels,
                             1.0);
                    }
                same(&p, TDMI_T_Y, (int64_t)n * it.in.c + c, sum / pixels, 1.0);
            }
        end(&p);
    }
}

static void relu_cuts_at_zero_and_lets_the_gradient_through_above_it(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 6, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_RELU, .n = between(&rng, 1, 4)};
        it.in = (struct tdmi_shape){between(&rng, 1, 9), between(&rng, 1, 9), between(&rng, 1, 20)};
        it.max_images = it.n;
        struct probe p;
        run(&p, it, true);
        for (int64_t k = 0; k < p.values.n[TDMI_T_X]; k++) {
            double x = (double)p.values.of[TDMI_T_X][k];
            same(&p, TDMI_T_Y, k, x > 0.0 ? x : 0.0, 1.0);
            same(&p, TDMI_T_DX, k, x > 0.0 ? (double)p.values.dy[k] : 0.0, 1.0);
        }
        end(&p);
    }
}

/* ---- softmax, input ----------------------------------------------------------------------- */

static void softmax_gives_probabilities_the_loss_and_its_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 7, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_SOFTMAX, .n = between(&rng, 1, 6)};
        it.in = (struct tdmi_shape){1, 1, between(&rng, 1, i % 5 ? 12 : 300)};
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        for (int n = 0; n < it.n; n++) {
            double sum = 0.0, total = 0.0, largest = -INFINITY;
            int label = p.values.labels[n], other = p.values.mixed[n].other, guess = 0;
            double weight = (double)p.values.mixed[n].weight;
            for (int c = 0; c < it.in.c; c++) {
                sum += exp(x_at(&p, n, 0, 0, c));
                if (x_at(&p, n, 0, 0, c) > largest) {
                    largest = x_at(&p, n, 0, 0, c);
                    guess = c;
                }
            }
            for (int c = 0; c < it.in.c; c++) {
                double y = exp(x_at(&p, n, 0, 0, c)) / sum;
                same(&p, TDMI_T_Y, (int64_t)n * it.in.c + c, y, 1.0);
                double wanted = weight * (c == label) + (1.0 - weight) * (c == other);
                same(&p, TDMI_T_DX, (int64_t)n * it.in.c + c, y - wanted, 1.0);
                total += (double)p.values.of[TDMI_T_Y][(int64_t)n * it.in.c + c];
            }
            assert_true(fabs(total - 1.0) < 1e-5);
            same(&p, TDMI_T_LOSS, n,
                 log(sum) - weight * x_at(&p, n, 0, 0, label) -
                     (1.0 - weight) * x_at(&p, n, 0, 0, other),
                 1.0);
            assert_int_equal(p.values.predicted[n], guess);
        }
        end(&p);
    }
}

static void softmax_of_huge_values_stays_finite_and_the_first_of_equals_wins(void **state)
{
    enum { classes = 4, images = 3 };
    const float x[images * classes] = {1e30f,  -1e30f, 0.0f,  1e30f, -1e38f, -1e38f,
                                       -1e38f, -1e38f, 88.0f, 89.0f, 90.0f,  91.0f};
    const int32_t labels[images] = {1, 2, 0};
    float y[images * classes];
    struct tdmi_judgement judgements[images];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_SOFTMAX,
                                .in = {{1, 1, classes}},
                                .out = {1, 1, classes},
                                .max_images = images};
    (void)state;
    tdmi_backend_ref.kernels[TDMI_OP_SOFTMAX]->forward(
        NULL, &desc,
        &(struct tdmi_op_call){
            .n = images, .x = {x}, .y = y, .labels = labels, .judgements = judgements});
    for (int i = 0; i < images * classes; i++)
        assert_true(isfinite(y[i]));
    assert_int_equal(judgements[0].predicted, 0);
    assert_int_equal(judgements[1].predicted, 0);
    assert_int_equal(judgements[2].predicted, 3);
    assert_true(y[0] == 0.5f && y[3] == 0.5f && y[1] == 0.0f);
    assert_true(judgements[0].loss > 1e30f);
    assert_true(fabs((double)judgements[1].loss - log(4.0)) < 1e-6);
    assert_true(fabs((double)judgements[2].loss - 3.4401897) < 1e-6); /* log(1+e+e²+e³) */
}

static void equal_values_of_a_window_give_the_gradient_to_the_first(void **state)
{
    const float x[4] = {3.0f, 3.0f, 3.0f, 3.0f}, dy[1] = {5.0f};
    float y[1], dx[4];
    uint8_t saved[1];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_MAX_POOL,
                                .attrs = {.kernel = 2, .stride = 2},
                                .in = {{2, 2, 1}},
                                .out = {1, 1, 1},
                                .max_images = 1,
                                .is_training = true,
                                .wants_dx = true};
    struct tdmi_op_call call = {.n = 1, .x = {x}, .y = y, .dy = dy, .dx = dx, .saved = saved};
    const struct tdmi_kernel *kernel = tdmi_backend_ref.kernels[TDMI_OP_MAX_POOL];
    (void)state;
    kernel->forward(NULL, &desc, &call);
    kernel->backward(NULL, &desc, &call);
    assert_true(y[0] == 3.0f);
    assert_true(dx[0] == 5.0f && dx[1] == 0.0f && dx[2] == 0.0f && dx[3] == 0.0f);
}

static void input_turns_bytes_into_numbers_by_the_scale(void **state)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
    (void)state;
    for (int scale = TDMI_SCALE_TF; scale <= TDMI_SCALE_RAW; scale++) {
        struct tdmi_case it = {.kind = TDMI_OP_INPUT, .n = 3, .max_images = 4};
        it.attrs.preprocess = (struct tdmi_preprocess){.width = 5,
                                                       .height = 7,
                                                       .channels = 3,
                                                       .crop_fraction = 1.0,
                                                       .scale = (enum tdmi_scale)scale};
        struct probe p;
        run(&p, it, true);
        for (int64_t i = 0; i < p.values.n[TDMI_T_Y]; i++) {
            double byte = p.values.pixels[i];
            double wanted[] = {byte / 127.5 - 1.0, (byte / 255.0 - mean[i % 3]) / deviation[i % 3],
                               byte / 255.0, byte};
            same(&p, TDMI_T_Y, i, wanted[scale], 1.0);
        }
        end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_is_its_seven_loops),
        cmocka_unit_test(a_dense_layer_is_a_sum_of_products),
        cmocka_unit_test(batch_norm_uses_the_statistics_of_the_shard_or_the_running_ones),
        cmocka_unit_test(max_pooling_takes_the_largest_and_returns_the_gradient_to_it),
        cmocka_unit_test(global_pooling_is_the_mean_of_every_channel),
        cmocka_unit_test(relu_cuts_at_zero_and_lets_the_gradient_through_above_it),
        cmocka_unit_test(softmax_gives_probabilities_the_loss_and_its_gradient),
        cmocka_unit_test(softmax_of_huge_values_stays_finite_and_the_first_of_equals_wins),
        cmocka_unit_test(equal_values_of_a_window_give_the_gradient_to_the_first),
        cmocka_unit_test(input_turns_bytes_into_numbers_by_the_scale),
    };
    print_message("# seed %llu\n", (unsigned long long)seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

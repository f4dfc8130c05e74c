/*
 * Dense layers, batch norm and the input of the reference backend against their formulas, which
 * share nothing with the kernels: no frames, no matrix products. Convolutions: test_conv.c.
 */
#include "backend/probe.h"

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

TEST(a_dense_layer_is_a_sum_of_products)
{
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
    double unbiased = pixels > 1 && !p->it.attrs.is_biased ? m / (m - 1.0) : 1.0;
    same(p, TDMI_T_STATE_SUM1, c, variance * unbiased * p->it.n, p->it.n);
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

TEST(batch_norm_uses_the_statistics_of_the_group_or_the_running_ones)
{
    for (int i = 0; i < 100; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 3, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_BATCH_NORM, .n = between(&rng, 1, 5)};
        it.in = (struct tdmi_shape){between(&rng, 1, 6), between(&rng, 1, 6), between(&rng, 1, 20)};
        it.attrs.epsilon = i % 2 ? 1e-5 : 1e-3;
        it.attrs.is_biased = i % 3 == 0;
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

/* ---- input -------------------------------------------------------------------------------- */

TEST(input_turns_bytes_into_numbers_by_the_scale)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
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

TEST_MAIN(print_seed, NULL)

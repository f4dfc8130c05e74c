/* Dropout and local response normalisation of the reference backend. */
#include "backend/probe.h"

/* ---- dropout -------------------------------------------------------------------------------- */

enum { values = 3 * 1000, images = 2 };

/* One call of dropout on ones, forward and backward. */
static void drop(double rate, int stream, struct tdmi_draws draws, bool is_training, float *y,
                 float *dx)
{
    static float ones[images * values];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_DROPOUT,
                                .attrs = {.rate = rate, .stream = stream},
                                .in = {{10, 100, 3}},
                                .out = {10, 100, 3},
                                .max_images = images,
                                .is_training = is_training,
                                .wants_dx = true};
    for (int i = 0; i < images * values; i++)
        ones[i] = 1.0f;
    struct tdmi_op_call call = {
        .n = images, .x = {ones}, .y = y, .dy = ones, .dx = {dx}, .draws = draws};
    tdmi_backend_ref.kernels[TDMI_OP_DROPOUT]->forward(NULL, &desc, &call);
    tdmi_backend_ref.kernels[TDMI_OP_DROPOUT]->backward(NULL, &desc, &call);
}

TEST(dropout_zeroes_its_part_and_scales_the_rest_and_backward_draws_the_same)
{
    const int64_t samples[images] = {17, 4};
    const double rates[] = {0.0, 0.2, 0.5, 0.9};
    float y[images * values], dx[images * values];
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        double rate = rates[r], n_zero = 0.0, n = images * values;
        drop(rate, 0, (struct tdmi_draws){&(struct tdmi_draw_key){9, 2}, samples}, true, y, dx);
        for (int i = 0; i < images * values; i++) {
            assert_true(y[i] == 0.0f || y[i] == (float)(1.0 / (1.0 - rate)));
            n_zero += y[i] == 0.0f;
        }
        assert_memory_equal(y, dx, sizeof y);
        assert_true(fabs(n_zero - rate * n) <= 5.0 * sqrt(rate * (1.0 - rate) * n));
    }
}

TEST(draws_of_dropout_belong_to_seed_epoch_sample_and_stream)
{
    const int64_t samples[images] = {17, 4}, turned[images] = {4, 17};
    float first[images * values], y[images * values], dx[images * values];
    drop(0.5, 1, (struct tdmi_draws){&(struct tdmi_draw_key){9, 2}, samples}, true, first, dx);
    drop(0.5, 1, (struct tdmi_draws){&(struct tdmi_draw_key){9, 2}, turned}, true, y, dx);
    assert_memory_equal(first, y + values, sizeof(float) * values);
    assert_memory_equal(first + values, y, sizeof(float) * values);
    const struct {
        int stream;
        struct tdmi_draws draws;
    } others[] = {{0, {&(struct tdmi_draw_key){9, 2}, samples}},
                  {1, {&(struct tdmi_draw_key){8, 2}, samples}},
                  {1, {&(struct tdmi_draw_key){9, 1}, samples}},
                  {1, {&(struct tdmi_draw_key){9, 2}, NULL}},
                  {1, {&(struct tdmi_draw_key){9, 2}, turned}}};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        double n_same = 0.0;
        drop(0.5, others[k].stream, others[k].draws, true, y, dx);
        for (int i = 0; i < images * values; i++)
            n_same += first[i] == y[i];
        double n = images * values;
        assert_true(fabs(n_same - n / 2.0) <= 5.0 * sqrt(n / 4.0));
    }
}

/* The formula of the header of rng.h and of the kernel, block by block. */
TEST(the_first_draws_are_those_of_the_counter_generator)
{
    const int64_t samples[images] = {(int64_t)5 << 33 | 1, 4};
    float y[images * values], dx[images * values];
    drop(0.3, 7, (struct tdmi_draws){&(struct tdmi_draw_key){11, 3}, samples}, true, y, dx);
    tdmi_rng rng = tdmi_rng_at(11, TDMI_RNG_DROPOUT, 3, (uint64_t)samples[0]);
    for (uint32_t block = 0; block < 5; block++) {
        uint32_t counter[4] = {7u << 24 | block, 3, 1, 10}, words[4];
        tdmi_philox(counter, rng.key, words);
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(y[4 * block + k] == 0.0f, (float)(words[k] >> 8) / 16777216.0f < 0.3f);
    }
}

TEST(outside_training_dropout_changes_nothing)
{
    float y[images * values], dx[images * values];
    drop(0.9, 0, (struct tdmi_draws){&(struct tdmi_draw_key){1, 1}, NULL}, false, y, dx);
    for (int i = 0; i < images * values; i++)
        assert_true(y[i] == 1.0f);
}

/* ---- local response normalisation ------------------------------------------------------------ */

/* As PyTorch writes it: kernel / 2 channels of zeros before, (kernel - 1) / 2 behind. */
static double normalised(const struct probe *p, const double *x, int channel)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    double sum = 0.0;
    for (int k = 0; k < a->kernel; k++) {
        int c = channel - a->kernel / 2 + k;
        if (c >= 0 && c < p->it.in.c)
            sum += x[c] * x[c];
    }
    return x[channel] / pow(a->offset + a->alpha * sum / a->kernel, a->beta);
}

/* Its gradient by central differences, in double, where they are exact enough. */
static void check_lrn_pixel(const struct probe *p, int64_t pixel)
{
    enum { most = 16 };
    const double step = 1e-5;
    int channels = p->it.in.c;
    double x[most];
    for (int c = 0; c < channels; c++)
        x[c] = (double)p->values.of[TDMI_T_X][pixel * channels + c];
    for (int c = 0; c < channels; c++) {
        double slope = 0.0, kept = x[c];
        same(p, TDMI_T_Y, pixel * channels + c, normalised(p, x, c), 1.0);
        for (int o = 0; o < channels; o++) {
            x[c] = kept + step;
            double above = normalised(p, x, o);
            x[c] = kept - step;
            double below = normalised(p, x, o);
            x[c] = kept;
            slope += (above - below) / (2.0 * step) * (double)p->values.dy[pixel * channels + o];
        }
        same(p, TDMI_T_DX, pixel * channels + c, slope, 2.0);
    }
}

TEST(response_normalisation_divides_by_the_neighbouring_channels)
{
    for (int i = 0; i < 80; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 11, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_LRN, .n = between(&rng, 1, 3)};
        it.in = (struct tdmi_shape){between(&rng, 1, 4), between(&rng, 1, 4), between(&rng, 1, 16)};
        it.attrs.kernel = between(&rng, 1, 7);
        it.attrs.alpha = i % 2 ? 1e-4 : 0.9;
        it.attrs.beta = i % 3 ? 0.75 : 0.5;
        it.attrs.offset = i % 5 ? 2.0 : 1.0;
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        for (int64_t pixel = 0; pixel < it.n * tdmi_shape_pixels(it.in); pixel++)
            check_lrn_pixel(&p, pixel);
        end(&p);
    }
}

TEST_MAIN(print_seed, NULL)

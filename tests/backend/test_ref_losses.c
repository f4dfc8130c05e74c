/* Softmax of the reference backend against its formula. */
#include "probe.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_gives_probabilities_the_loss_and_its_gradient),
        cmocka_unit_test(softmax_of_huge_values_stays_finite_and_the_first_of_equals_wins),
    };
    print_message("# seed %llu\n", (unsigned long long)seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Softmax and the logistic loss of the reference backend against their formulas. */
#include "backend/probe.h"

/* t: shares of the labels, then smoothed. */
static double target(const struct probe *p, int n, int class)
{
    double weight = (double)p->values.mixed[n].weight;
    double share = weight * (p->values.labels[n] == class) +
                   (1.0 - weight) * (p->values.mixed[n].other == class);
    double smoothing = p->it.attrs.label_smoothing;
    return (1.0 - smoothing) * share + smoothing / p->out.c;
}

static double class_weight(const struct probe *p, int class)
{
    return p->values.class_weights ? (double)p->values.class_weights[class] : 1.0;
}

static void check_softmax(const struct probe *p, int n)
{
    int classes = p->it.in.c, guess = 0;
    double sum = 0.0, loss = 0.0, weights = 0.0, total = 0.0;
    for (int c = 0; c < classes; c++) {
        sum += exp(x_at(p, n, 0, 0, c));
        guess = x_at(p, n, 0, 0, c) > x_at(p, n, 0, 0, guess) ? c : guess;
        weights += class_weight(p, c) * target(p, n, c);
    }
    for (int c = 0; c < classes; c++) {
        double y = exp(x_at(p, n, 0, 0, c)) / sum;
        int64_t at_c = (int64_t)n * classes + c;
        same(p, TDMI_T_Y, at_c, y, 1.0);
        same(p, TDMI_T_DX, at_c, y * weights - class_weight(p, c) * target(p, n, c), 1.0);
        loss -= class_weight(p, c) * target(p, n, c) * log(y);
        total += (double)p->values.of[TDMI_T_Y][at_c];
    }
    assert_true(fabs(total - 1.0) < 1e-5);
    same(p, TDMI_T_LOSS, n, loss, 4.0);
    assert_int_equal(p->values.predicted[n], guess);
}

TEST(softmax_gives_probabilities_the_loss_and_its_gradient)
{
    for (int i = 0; i < 90; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 7, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_SOFTMAX, .n = between(&rng, 1, 6)};
        it.in = (struct tdmi_shape){1, 1, between(&rng, 1, i % 5 ? 12 : 300)};
        it.attrs.label_smoothing = i % 3 ? 0.0 : 0.1;
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        for (int n = 0; n < it.n; n++)
            check_softmax(&p, n);
        end(&p);
    }
}

static void check_logistic(const struct probe *p, int n)
{
    int logits = p->it.in.c, classes = p->out.c, guess = 0;
    double loss = 0.0;
    for (int c = 0; c < classes; c++) {
        double z = logits > 1 ? x_at(p, n, 0, 0, c) : (c ? 1.0 : -1.0) * x_at(p, n, 0, 0, 0);
        double y = 1.0 / (1.0 + exp(-z)), t = target(p, n, c), w = class_weight(p, c);
        same(p, TDMI_T_Y, (int64_t)n * classes + c, y, 1.0);
        if (p->values.of[TDMI_T_Y][(int64_t)n * classes + c] >
            p->values.of[TDMI_T_Y][(int64_t)n * classes + guess])
            guess = c;
        loss -= w * t * log(y);
        if (logits > 1) {
            loss -= w * (1.0 - t) * log(1.0 - y);
            same(p, TDMI_T_DX, (int64_t)n * logits + c, w * (y - t), 1.0);
        }
    }
    if (logits == 1) {
        double y = 1.0 / (1.0 + exp(-x_at(p, n, 0, 0, 0)));
        same(p, TDMI_T_DX, n,
             class_weight(p, 0) * target(p, n, 0) * y -
                 class_weight(p, 1) * target(p, n, 1) * (1.0 - y),
             1.0);
    }
    same(p, TDMI_T_LOSS, n, loss, 4.0);
    assert_int_equal(p->values.predicted[n], guess);
}

TEST(logistic_asks_yes_or_no_for_every_class)
{
    for (int i = 0; i < 90; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 10, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_LOGISTIC, .n = between(&rng, 1, 6)};
        it.in = (struct tdmi_shape){1, 1, i % 2 ? 1 : between(&rng, 2, 12)};
        it.attrs.label_smoothing = i % 3 ? 0.0 : 0.1;
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        assert_int_equal(p.out.c, it.in.c == 1 ? 2 : it.in.c);
        for (int n = 0; n < it.n; n++)
            check_logistic(&p, n);
        end(&p);
    }
}

TEST(logits_far_out_keep_a_finite_loss_and_a_gradient)
{
    const float x[3] = {1e30f, -1000.0f, 0.0f};
    const int32_t labels[3] = {0, 1, 1};
    float y[6], dx[3];
    struct tdmi_judgement judgements[3];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_LOGISTIC,
                                .in = {{1, 1, 1}},
                                .out = {1, 1, 2},
                                .max_images = 3,
                                .is_training = true,
                                .wants_dx = true};
    struct tdmi_op_call call = {
        .n = 3, .x = {x}, .y = y, .dx = {dx}, .labels = labels, .judgements = judgements};
    tdmi_backend_ref.kernels[TDMI_OP_LOGISTIC]->forward(NULL, &desc, &call);
    tdmi_backend_ref.kernels[TDMI_OP_LOGISTIC]->backward(NULL, &desc, &call);
    assert_true(judgements[0].loss == 1e30f && judgements[1].loss == 1000.0f);
    assert_true(fabs((double)judgements[2].loss - log(2.0)) < 1e-7);
    assert_true(dx[0] == 1.0f && dx[1] == -1.0f && dx[2] == -0.5f);
    assert_true(y[0] == 0.0f && y[1] == 1.0f && y[2] == 1.0f && y[3] == 0.0f);
    assert_int_equal(judgements[2].predicted, 0); /* the first of equals */
}

TEST(outside_training_the_loss_is_the_plain_one)
{
    static const enum tdmi_op_kind kinds[] = {TDMI_OP_SOFTMAX, TDMI_OP_LOGISTIC};
    for (int k = 0; k < 2; k++) {
        struct tdmi_case it = {.kind = kinds[k], .in = {1, 1, 5}, .n = 3, .max_images = 3};
        struct probe smoothed, plain;
        it.attrs.label_smoothing = 0.3;
        run(&smoothed, it, false);
        it.attrs.label_smoothing = 0.0;
        run(&plain, it, false);
        assert_memory_equal(smoothed.values.of[TDMI_T_LOSS], plain.values.of[TDMI_T_LOSS],
                            3 * sizeof(float));
        smoothed.it.attrs.label_smoothing = 0.0;
        smoothed.values.class_weights = NULL;
        double loss = 0.0, sum = 0.0;
        for (int c = 0; c < 5; c++)
            sum += exp(x_at(&smoothed, 0, 0, 0, c));
        for (int c = 0; c < 5; c++) {
            double y = kinds[k] == TDMI_OP_SOFTMAX
                           ? exp(x_at(&smoothed, 0, 0, 0, c)) / sum
                           : 1.0 / (1.0 + exp(-x_at(&smoothed, 0, 0, 0, c)));
            double t = target(&smoothed, 0, c);
            loss -= t * log(y);
            if (kinds[k] == TDMI_OP_LOGISTIC)
                loss -= (1.0 - t) * log(1.0 - y);
        }
        same(&smoothed, TDMI_T_LOSS, 0, loss, 4.0);
        end(&smoothed);
        end(&plain);
    }
}

TEST(softmax_of_huge_values_stays_finite_and_the_first_of_equals_wins)
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

TEST_MAIN(print_seed, NULL)

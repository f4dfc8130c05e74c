/* Activations of the reference backend against their formulas. */
#include "backend/probe.h"

static double relu(double x)
{
    return x > 0.0 ? x : 0.0;
}

static double relu6(double x)
{
    return fmin(relu(x), 6.0);
}

static double hswish(double x)
{
    return x * fmin(relu(x + 3.0), 6.0) / 6.0;
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static const struct {
    enum tdmi_op_kind kind;
    double (*value)(double x);
} activations[] = {
    {TDMI_OP_RELU, relu},
    {TDMI_OP_RELU6, relu6},
    {TDMI_OP_HSWISH, hswish},
    {TDMI_OP_SIGMOID, sigmoid},
};

enum { n_activations = sizeof activations / sizeof activations[0] };

/* In double, where a small step is exact enough; the values are away from the bends. */
static double slope(double (*value)(double x), double x)
{
    const double step = 1e-6;
    return (value(x + step) - value(x - step)) / (2.0 * step);
}

TEST(activations_are_their_formulas_and_let_the_gradient_through_by_their_slope)
{
    for (int i = 0; i < 30 * n_activations; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 6, (uint64_t)i);
        double (*value)(double x) = activations[i % n_activations].value;
        struct tdmi_case it = {.kind = activations[i % n_activations].kind,
                               .n = between(&rng, 1, 4)};
        it.in = (struct tdmi_shape){between(&rng, 1, 9), between(&rng, 1, 9), between(&rng, 1, 20)};
        it.max_images = it.n;
        struct probe p;
        run(&p, it, true);
        for (int64_t k = 0; k < p.values.n[TDMI_T_X]; k++) {
            double x = (double)p.values.of[TDMI_T_X][k];
            same(&p, TDMI_T_Y, k, value(x), fabs(x));
            same(&p, TDMI_T_DX, k, slope(value, x) * (double)p.values.dy[k], 1.0);
        }
        end(&p);
    }
}

TEST(activations_hold_at_their_bends_and_far_out)
{
    enum { n = 9 };
    const float x[n] = {0.0f, 6.0f, 3.0f, -3.0f, 1e30f, -1e30f, 1e-30f, 7.0f, -7.0f};
    static const float wanted[][n] = {
        {0.0f, 6.0f, 3.0f, 0.0f, 1e30f, 0.0f, 1e-30f, 7.0f, 0.0f},
        {0.0f, 6.0f, 3.0f, 0.0f, 6.0f, 0.0f, 1e-30f, 6.0f, 0.0f},
        {0.0f, 6.0f, 3.0f, 0.0f, 1e30f, 0.0f, 0.5e-30f, 7.0f, 0.0f},
    };
    struct tdmi_op_desc desc = {
        .in = {{1, 1, n}}, .out = {1, 1, n}, .max_images = 1, .wants_dx = true};
    float y[n], dx[n], dy[n];
    for (int i = 0; i < n; i++)
        dy[i] = 1.0f;
    for (int a = 0; a < n_activations; a++) {
        const struct tdmi_kernel *kernel = tdmi_backend_ref.kernels[activations[a].kind];
        struct tdmi_op_call call = {.n = 1, .x = {x}, .y = y, .dy = dy, .dx = {dx}};
        kernel->forward(NULL, &desc, &call);
        kernel->backward(NULL, &desc, &call);
        for (int i = 0; i < n; i++) {
            if (a < 3)
                assert_true(fabsf(y[i] - wanted[a][i]) <= 1e-6f * wanted[a][i]);
            assert_true(dx[i] >= -0.5f && dx[i] <= 1.5f);
        }
    }
    assert_true(y[0] == 0.5f && y[4] == 1.0f && y[5] == 0.0f && dx[5] == 0.0f);
}

TEST_MAIN(print_seed, NULL)

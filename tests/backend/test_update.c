/* The optimiser step and the moving of running statistics: numbers worked by hand, and runs of
 * another program (tests/fixtures/nn/sgd.txt, made by bench/peers/fixtures/make_fixtures.py). */
#include "backend/ref/ref.h"
#include "graph/fixture.h"
#include "unit.h"

#include <math.h>

static void near(float got, double wanted)
{
    if (!(fabs((double)got - wanted) <= 1e-6 * (1.0 + fabs(wanted))))
        fail_msg("%.9g, wanted %.9g", (double)got, wanted);
}

/* g = 8 · 0.25 + 0.5 · 2 = 3;  v = 0.5 · 4 + 3 = 5;  nesterov g + 0.5 · v = 5.5, plain v = 5. */
TEST(a_step_is_the_one_worked_by_hand)
{
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        float param = 2.0f, velocity = 4.0f;
        const float sum = 8.0f;
        tdmi_ref_update.sgd(NULL, &(struct tdmi_update_call){.params = &param,
                                                             .gradient_sums = &sum,
                                                             .slots = {&velocity},
                                                             .n = 1,
                                                             .gradient_scale = 0.25f,
                                                             .learning_rate = 0.1f,
                                                             .momentum = 0.5f,
                                                             .weight_decay = 0.5f,
                                                             .is_nesterov = nesterov});
        near(velocity, 5.0);
        near(param, nesterov ? 2.0 - 0.55 : 2.0 - 0.5);
    }
}

TEST(without_momentum_a_step_is_plain_descent)
{
    float params[3] = {1.0f, -2.0f, 0.5f}, velocity[3] = {9.0f, 9.0f, 9.0f};
    const float sums[3] = {10.0f, 0.0f, -30.0f};
    tdmi_ref_update.sgd(NULL, &(struct tdmi_update_call){.params = params,
                                                         .gradient_sums = sums,
                                                         .slots = {velocity},
                                                         .n = 3,
                                                         .gradient_scale = 0.1f,
                                                         .learning_rate = 0.5f});
    near(params[0], 0.5);
    near(params[1], -2.0);
    near(params[2], 2.0);
}

/* 0.9 · 10 + 0.1 · (6 · 0.5) = 9.3 */
TEST(running_statistics_move_by_momentum_towards_the_mean)
{
    float states[2] = {10.0f, 0.0f};
    const float sums[2] = {6.0f, -8.0f};
    tdmi_ref_update.blend(NULL, states, sums, 2, 0.5f, 0.1f);
    near(states[0], 9.3);
    near(states[1], -0.4);
    tdmi_ref_update.blend(NULL, states, sums, 2, 0.5f, 1.0f);
    near(states[0], 3.0);
    tdmi_ref_update.blend(NULL, states, sums, 2, 0.5f, 0.0f);
    near(states[0], 3.0);
}

/* Lines: case momentum decay nesterov rate n steps, then w, then per step g and the w after it. */
TEST(steps_are_those_of_pytorch)
{
    struct fixture *fixture = fixture_open("nn/sgd.txt");
    int n_cases = (int)fixture_number(fixture, "cases");
    assert_true(n_cases >= 4);
    for (int c = 0; c < n_cases; c++) {
        double momentum = fixture_number(fixture, "momentum");
        double decay = fixture_number(fixture, "decay");
        int nesterov = (int)fixture_number(fixture, "nesterov");
        double rate = fixture_number(fixture, "rate");
        int steps = (int)fixture_number(fixture, "steps");
        double wanted[8], gradient[8];
        float params[8], velocity[8] = {0}, sums[8];
        fixture_numbers(fixture, "start", wanted, 8);
        for (int i = 0; i < 8; i++)
            params[i] = (float)wanted[i];
        for (int s = 0; s < steps; s++) {
            fixture_numbers(fixture, "gradient", gradient, 8);
            fixture_numbers(fixture, "after", wanted, 8);
            for (int i = 0; i < 8; i++)
                sums[i] = (float)(gradient[i] * 32.0);
            tdmi_ref_update.sgd(NULL, &(struct tdmi_update_call){.params = params,
                                                                 .gradient_sums = sums,
                                                                 .slots = {velocity},
                                                                 .n = 8,
                                                                 .gradient_scale = 1.0f / 32,
                                                                 .learning_rate = (float)rate,
                                                                 .momentum = (float)momentum,
                                                                 .weight_decay = (float)decay,
                                                                 .is_nesterov = nesterov});
            for (int i = 0; i < 8; i++)
                near(params[i], wanted[i]);
        }
    }
    fixture_close(fixture);
}

TEST_MAIN(NULL, NULL)

/*
 * Nadam: Adam that looks ahead, with a momentum that rises from half of beta1 to all of it,
 *
 *     mu(t) = beta1 · (1 - 0.5 · 0.96^(t · momentum-decay))
 *
 * as Keras defines it (momentum-decay 1) and PyTorch (0.004 there unless told otherwise). Epsilon
 * is added to the corrected root; weight decay is part of the gradient.
 */
#include "optim/optimizer.h"

#include <math.h>

enum { BETA1, BETA2, EPSILON, MOMENTUM_DECAY };

static const struct tdmi_parameter parameters[] = {
    TDMI_MOMENTS_PARAMETERS(1e-8),
    {"momentum-decay", 1, 0, 100, false, "how soon the momentum is full"},
    {.name = NULL},
};

static double momentum_of(const double *values, int64_t step)
{
    return values[BETA1] * (1.0 - 0.5 * pow(0.96, (double)step * values[MOMENTUM_DECAY]));
}

static void prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call)
{
    if (momenta->step != step - 1 || momenta->step == 0)
        *momenta = (struct tdmi_momenta){0, 1.0};
    while (momenta->step < step)
        momenta->product *= momentum_of(values, ++momenta->step);
    const double now = momentum_of(values, step), next = momentum_of(values, step + 1);
    tdmi_moments_prepare(values, step, momenta, call);
    call->moments.of_first = (float)(next / (1.0 - momenta->product * next));
    call->moments.of_gradient = (float)((1.0 - now) / (1.0 - momenta->product));
}

const struct tdmi_optimizer tdmi_optimizer_nadam = {
    .name = "nadam",
    .summary = "Adam with a Nesterov momentum that rises at first",
    .n_slots = 2,
    .slot_names = {"mean", "square"},
    .parameters = parameters,
    .learning_rate = 1e-3,
    .scaling = TDMI_SCALING_SQRT,
    .momentum = -1.0,
    .weight_decay = 0.0,
    .prepare = prepare,
    .step = tdmi_moments_step,
    .rule = TDMI_RULE_ADAM,
};

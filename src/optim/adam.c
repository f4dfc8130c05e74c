/* Adam as PyTorch defines it: both means corrected for their beginning at 0, epsilon added to the
 * corrected root; weight decay is part of the gradient. */
#include "optim/optimizer.h"

static const struct tdmi_parameter parameters[] = {
    TDMI_MOMENTS_PARAMETERS(1e-8),
    {.name = NULL},
};

const struct tdmi_optimizer tdmi_optimizer_adam = {
    .name = "adam",
    .summary = "a running mean of gradients over the root of that of their squares",
    .n_slots = 2,
    .slot_names = {"mean", "square"},
    .parameters = parameters,
    .learning_rate = 1e-3,
    .scaling = TDMI_SCALING_SQRT,
    .momentum = -1.0,
    .weight_decay = 0.0,
    .prepare = tdmi_moments_prepare,
    .step = tdmi_moments_step,
    .rule = TDMI_RULE_ADAM,
};

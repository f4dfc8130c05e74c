/* Adam as PyTorch defines it: both means corrected for their beginning at 0, epsilon added to the
 * corrected root; weight decay is part of the gradient. */
#include "optim/optimizer.h"

static const struct tdmi_parameter parameters[] = {
    {"beta1", 0.9, 0, 0.9999, false, "what is kept of the mean of gradients"},
    {"beta2", 0.999, 0, 0.999999, false, "what is kept of the mean of their squares"},
    {"epsilon", 1e-8, 1e-15, 1, false, "added to its root"},
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

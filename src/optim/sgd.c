/* SGD with momentum (Nesterov's form unless that is turned off), as PyTorch defines it. */
#include "optim/optimizer.h"

enum { NESTEROV };

static const struct tdmi_parameter parameters[] = {
    [NESTEROV] = {"nesterov", 1, 0, 1, true, "1: look ahead by Nesterov's form; 0: plain momentum"},
    {.name = NULL},
};

static void prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call)
{
    (void)step;
    (void)momenta;
    call->is_nesterov = values[NESTEROV] > 0.0 && call->momentum > 0.0f;
}

const struct tdmi_optimizer tdmi_optimizer_sgd = {
    .name = "sgd",
    .summary = "stochastic gradient descent with Nesterov momentum",
    .n_slots = 1,
    .slot_names = {"momentum"},
    .parameters = parameters,
    .learning_rate = 0.0,
    .scaling = TDMI_SCALING_LINEAR,
    .momentum = 0.9,
    .weight_decay = 5e-4,
    .prepare = prepare,
    .step = tdmi_momentum_step,
    .rule = TDMI_RULE_SGD,
};

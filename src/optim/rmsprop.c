/* RMSprop as PyTorch defines it: epsilon is added to the root, momentum follows the division. */
#include "optim/optimizer.h"

enum { RHO, EPSILON };

static const struct tdmi_parameter parameters[] = {
    [RHO] = {"rho", 0.99, 0, 0.999999, false, "decay of the mean of squares"},
    [EPSILON] = {"epsilon", 1e-8, 1e-15, 1, false, "added to its root"},
    {.name = NULL},
};

static void prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call)
{
    (void)step;
    (void)momenta;
    call->moments.second = (float)(1.0 - values[RHO]);
    call->moments.epsilon = (float)values[EPSILON];
}

static void step(const struct tdmi_backend *backend, tdmi_stream *stream,
                 const struct tdmi_update_call *call)
{
    backend->update->rmsprop(stream, call);
}

const struct tdmi_optimizer tdmi_optimizer_rmsprop = {
    .name = "rmsprop",
    .summary = "gradients divided by the root of their running mean square",
    .n_slots = 2,
    .slot_names = {"square", "momentum"},
    .parameters = parameters,
    .learning_rate = 1e-3,
    .scaling = TDMI_SCALING_SQRT,
    .momentum = 0.0,
    .weight_decay = 0.0,
    .prepare = prepare,
    .step = step,
    .rule = TDMI_RULE_RMSPROP,
};

/*
 * LARS (You, Gitman, Ginsburg 2017): SGD with momentum whose gradient, decay included, is made as
 * long in every tensor as `trust` of its weights:
 *
 *     trust · |w| / (|g| + decay · |w| + epsilon)
 *
 * times the gradient, which is what its usual implementations do; the paper moves the rate into the
 * momentum, the same where it does not change. Tensors without decay (biases, batch norms) and
 * those of length 0 are stepped as SGD does.
 */
#include "optim/optimizer.h"

enum { TRUST, EPSILON, NESTEROV };

static const struct tdmi_parameter parameters[] = {
    [TRUST] = {"trust", 0.001, 1e-8, 1, false, "length of a step, in parts of its weights'"},
    [EPSILON] = {"epsilon", 1e-8, 0, 1, false, "added to the length that is divided by"},
    [NESTEROV] = {"nesterov", 0, 0, 1, true, "1: look ahead by Nesterov's form"},
    {.name = NULL},
};

static void prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call)
{
    (void)step;
    (void)momenta;
    call->is_nesterov = values[NESTEROV] > 0.0 && call->momentum > 0.0f;
}

static void measure(const struct tdmi_backend *backend, tdmi_stream *stream,
                    const struct tdmi_update_call *call, double squares[2])
{
    backend->update->squares(stream, call->params, call->n, &squares[0]);
    backend->update->squares(stream, call->gradient_sums, call->n, &squares[1]);
}

static void adapt(const double *values, const double lengths[2], struct tdmi_update_call *call)
{
    const double weights = lengths[0], gradient = lengths[1] * (double)call->gradient_scale;
    if (!(weights > 0.0) || !(gradient > 0.0))
        return;
    const double trust = values[TRUST] * weights /
                         (gradient + (double)call->weight_decay * weights + values[EPSILON]);
    call->gradient_scale = (float)(trust * (double)call->gradient_scale);
    call->weight_decay = (float)(trust * (double)call->weight_decay);
}

static void set_facts(const double *values, const struct tdmi_update_call *requested,
                      struct tdmi_step_facts *facts)
{
    (void)requested;
    facts->trust = values[TRUST];
    facts->trust_epsilon = values[EPSILON];
}

const struct tdmi_optimizer tdmi_optimizer_lars = {
    .name = "lars",
    .summary = "SGD with steps as long as a part of each tensor's weights, for large batches",
    .n_slots = 1,
    .slot_names = {"momentum"},
    .parameters = parameters,
    .learning_rate = 1.0,
    .scaling = TDMI_SCALING_LINEAR,
    .momentum = 0.9,
    .weight_decay = 1e-4,
    .prepare = prepare,
    .measure = measure,
    .adapt = adapt,
    .step = tdmi_momentum_step,
    .rule = TDMI_RULE_LARS,
    .set_facts = set_facts,
};

/*
 * LAMB (You and others 2019): the step of Adam, with decay beside it as in AdamW, made as long in
 * every tensor as its weights: times |w| / |step|. Tensors without decay (biases, batch norms) and
 * those of length 0 take Adam's step.
 */
#include "optim/optimizer.h"

static const struct tdmi_parameter parameters[] = {
    TDMI_MOMENTS_PARAMETERS(1e-6),
    {.name = NULL},
};

static void measure(const struct tdmi_backend *backend, tdmi_stream *stream,
                    const struct tdmi_update_call *call, double squares[2])
{
    backend->update->lamb_measure(stream, call, squares);
}

static void adapt(const double *values, const double lengths[2], struct tdmi_update_call *call)
{
    (void)values;
    if (lengths[0] > 0.0 && lengths[1] > 0.0)
        call->learning_rate = (float)((double)call->learning_rate * lengths[0] / lengths[1]);
}

static void step(const struct tdmi_backend *backend, tdmi_stream *stream,
                 const struct tdmi_update_call *call)
{
    backend->update->lamb_step(stream, call);
}

const struct tdmi_optimizer tdmi_optimizer_lamb = {
    .name = "lamb",
    .summary = "Adam with steps as long as each tensor's weights, for large batches",
    .n_slots = 2,
    .slot_names = {"mean", "square"},
    .parameters = parameters,
    .learning_rate = 2e-3,
    .scaling = TDMI_SCALING_SQRT,
    .momentum = -1.0,
    .weight_decay = 0.01,
    .prepare = tdmi_moments_prepare,
    .measure = measure,
    .adapt = adapt,
    .step = step,
    .rule = TDMI_RULE_LAMB,
};

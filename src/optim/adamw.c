/* AdamW as PyTorch defines it: Adam, but weights shrink by rate · decay beside the step, so that
 * decay is not divided by the root. */
#include "optim/optimizer.h"

static const struct tdmi_parameter parameters[] = {
    TDMI_MOMENTS_PARAMETERS(1e-8),
    {.name = NULL},
};

static void prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call)
{
    tdmi_moments_prepare(values, step, momenta, call);
    call->moments.keep = (float)(1.0 - (double)call->learning_rate * (double)call->weight_decay);
    call->weight_decay = 0.0f;
}

static void set_facts(const double *values, const struct tdmi_update_call *requested,
                      struct tdmi_step_facts *facts)
{
    (void)values;
    facts->beside = requested->weight_decay;
}

const struct tdmi_optimizer tdmi_optimizer_adamw = {
    .name = "adamw",
    .summary = "Adam with weight decay beside the step instead of in the gradient",
    .n_slots = 2,
    .slot_names = {"mean", "square"},
    .parameters = parameters,
    .learning_rate = 1e-3,
    .scaling = TDMI_SCALING_SQRT,
    .momentum = -1.0,
    .weight_decay = 0.01,
    .prepare = prepare,
    .step = tdmi_moments_step,
    .rule = TDMI_RULE_ADAM,
    .set_facts = set_facts,
};

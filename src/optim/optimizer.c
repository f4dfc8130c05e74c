/* The optimizers as one table, and how the learning rate depends on the batch. */
#include "optim/optimizer.h"
#include "base/scope.h"
#include "base/text/choice.h"

#include <math.h>
#include <stdio.h>

/* ---- sgd, lars, rmsprop ---------------------------------------------------------------------- */

enum { SGD_NESTEROV };

static void prepare_sgd(const double *values, int64_t step, struct tdmi_momenta *momenta,
                        struct tdmi_update_call *call)
{
    (void)step;
    (void)momenta;
    call->is_nesterov = values[SGD_NESTEROV] > 0.0 && call->momentum > 0.0f;
}

/*
 * LARS (You, Gitman, Ginsburg 2017): SGD with momentum whose gradient, decay included, is made as
 * long in every tensor as `trust` of its weights:
 *
 *     trust · |w| / (|g| + decay · |w| + epsilon)
 *
 * times the gradient, as its usual implementations do; the paper moves the rate into the momentum,
 * which is the same while the rate is constant. Tensors without decay (biases, batch norms) and
 * those of length 0 are stepped as in SGD.
 */
enum { LARS_TRUST, LARS_EPSILON, LARS_NESTEROV };

static void prepare_lars(const double *values, int64_t step, struct tdmi_momenta *momenta,
                         struct tdmi_update_call *call)
{
    prepare_sgd(values + LARS_NESTEROV, step, momenta, call);
}

static void measure_lars(const struct tdmi_backend *backend, tdmi_stream *stream,
                         const struct tdmi_update_call *call, double squares[2])
{
    backend->update->squares(stream, call->params, call->n, &squares[0]);
    backend->update->squares(stream, call->gradient_sums, call->n, &squares[1]);
}

static void adapt_lars(const double *values, const double lengths[2], struct tdmi_update_call *call)
{
    const double weights = lengths[0], gradient = lengths[1] * (double)call->gradient_scale;
    if (!(weights > 0.0) || !(gradient > 0.0))
        return;
    const double trust = values[LARS_TRUST] * weights /
                         (gradient + (double)call->weight_decay * weights + values[LARS_EPSILON]);
    call->gradient_scale = (float)(trust * (double)call->gradient_scale);
    call->weight_decay = (float)(trust * (double)call->weight_decay);
}

static void set_lars_facts(const double *values, const struct tdmi_update_call *requested,
                           struct tdmi_step_facts *facts)
{
    (void)requested;
    facts->trust = values[LARS_TRUST];
    facts->trust_epsilon = values[LARS_EPSILON];
}

/* RMSprop as PyTorch defines it: epsilon is added to the root, momentum follows the division. */
static void prepare_rmsprop(const double *values, int64_t step, struct tdmi_momenta *momenta,
                            struct tdmi_update_call *call)
{
    (void)step;
    (void)momenta;
    call->moments.second = (float)(1.0 - values[0]);
    call->moments.epsilon = (float)values[1];
}

/* ---- adam, adamw, nadam, lamb ---------------------------------------------------------------- */

enum { BETA1, BETA2, EPSILON, MOMENTUM_DECAY };

/* The first three parameters of all four. */
#define MOMENTS(of_epsilon)                                                         \
    {"beta1", 0.9, 0, 0.9999, false, "decay of the mean of gradients"},             \
        {"beta2", 0.999, 0, 0.999999, false, "decay of the mean of their squares"}, \
    {                                                                               \
        "epsilon", of_epsilon, 1e-15, 1, false, "added to its root"                 \
    }

/* Adam as PyTorch defines it: both means are corrected for starting at 0, epsilon is added to the
 * corrected root; weight decay is part of the gradient. */
static void prepare_adam(const double *values, int64_t step, struct tdmi_momenta *momenta,
                         struct tdmi_update_call *call)
{
    (void)momenta;
    const double beta1 = values[BETA1], beta2 = values[BETA2], t = (double)step;
    call->moments = (struct tdmi_moments){
        .first = (float)(1.0 - beta1),
        .second = (float)(1.0 - beta2),
        .of_first = (float)(1.0 / (1.0 - pow(beta1, t))),
        .of_root = (float)(1.0 / sqrt(1.0 - pow(beta2, t))),
        .epsilon = (float)values[EPSILON],
        .keep = 1.0f,
    };
}

/* AdamW as PyTorch defines it: Adam, but weights shrink by rate · decay beside the step, so that
 * decay is not divided by the root. */
static void prepare_adamw(const double *values, int64_t step, struct tdmi_momenta *momenta,
                          struct tdmi_update_call *call)
{
    prepare_adam(values, step, momenta, call);
    call->moments.keep = (float)(1.0 - (double)call->learning_rate * (double)call->weight_decay);
    call->weight_decay = 0.0f;
}

static void set_adamw_facts(const double *values, const struct tdmi_update_call *requested,
                            struct tdmi_step_facts *facts)
{
    (void)values;
    facts->beside = requested->weight_decay;
}

/*
 * Nadam: Adam that looks ahead, with a momentum that rises from half of beta1 to all of it,
 *
 *     mu(t) = beta1 · (1 - 0.5 · 0.96^(t · momentum-decay))
 *
 * as Keras defines it (momentum-decay 1) and PyTorch (default 0.004). Epsilon is added to the
 * corrected root; weight decay is part of the gradient.
 */
static double nadam_momentum(const double *values, int64_t step)
{
    return values[BETA1] * (1.0 - 0.5 * pow(0.96, (double)step * values[MOMENTUM_DECAY]));
}

static void prepare_nadam(const double *values, int64_t step, struct tdmi_momenta *momenta,
                          struct tdmi_update_call *call)
{
    if (momenta->step != step - 1 || momenta->step == 0)
        *momenta = (struct tdmi_momenta){0, 1.0};
    while (momenta->step < step)
        momenta->product *= nadam_momentum(values, ++momenta->step);
    const double now = nadam_momentum(values, step), next = nadam_momentum(values, step + 1);
    prepare_adam(values, step, momenta, call);
    call->moments.of_first = (float)(next / (1.0 - momenta->product * next));
    call->moments.of_gradient = (float)((1.0 - now) / (1.0 - momenta->product));
}

/*
 * LAMB (You and others 2019): the step of Adam, with decay beside it as in AdamW, made as long in
 * every tensor as its weights: times |w| / |step|. Tensors without decay (biases, batch norms) and
 * those of length 0 take Adam's step.
 */
static void measure_lamb(const struct tdmi_backend *backend, tdmi_stream *stream,
                         const struct tdmi_update_call *call, double squares[2])
{
    backend->update->lamb_measure(stream, call, squares);
}

static void adapt_lamb(const double *values, const double lengths[2], struct tdmi_update_call *call)
{
    (void)values;
    if (lengths[0] > 0.0 && lengths[1] > 0.0)
        call->learning_rate = (float)((double)call->learning_rate * lengths[0] / lengths[1]);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct tdmi_optimizer optimizers[] = {
    {
        .name = "sgd",
        .summary = "stochastic gradient descent with Nesterov momentum",
        .rule = TDMI_RULE_SGD,
        .n_slots = 1,
        .slot_names = {"momentum"},
        .parameters = {{"nesterov", 1, 0, 1, true,
                        "1: look ahead by Nesterov's form; 0: plain momentum"}},
        .scaling = TDMI_SCALING_LINEAR,
        .momentum = 0.9,
        .weight_decay = 5e-4,
        .prepare = prepare_sgd,
    },
    {
        .name = "rmsprop",
        .summary = "gradients divided by the root of their running mean square",
        .rule = TDMI_RULE_RMSPROP,
        .n_slots = 2,
        .slot_names = {"square", "momentum"},
        .parameters = {{"rho", 0.99, 0, 0.999999, false, "decay of the mean of squares"},
                       {"epsilon", 1e-8, 1e-15, 1, false, "added to its root"}},
        .learning_rate = 1e-3,
        .scaling = TDMI_SCALING_SQRT,
        .prepare = prepare_rmsprop,
    },
    {
        .name = "adam",
        .summary = "a running mean of gradients over the root of that of their squares",
        .rule = TDMI_RULE_ADAM,
        .n_slots = 2,
        .slot_names = {"mean", "square"},
        .parameters = {MOMENTS(1e-8)},
        .learning_rate = 1e-3,
        .scaling = TDMI_SCALING_SQRT,
        .momentum = -1.0,
        .prepare = prepare_adam,
    },
    {
        .name = "adamw",
        .summary = "Adam with weight decay beside the step instead of in the gradient",
        .rule = TDMI_RULE_ADAM,
        .n_slots = 2,
        .slot_names = {"mean", "square"},
        .parameters = {MOMENTS(1e-8)},
        .learning_rate = 1e-3,
        .scaling = TDMI_SCALING_SQRT,
        .momentum = -1.0,
        .weight_decay = 0.01,
        .prepare = prepare_adamw,
        .set_facts = set_adamw_facts,
    },
    {
        .name = "nadam",
        .summary = "Adam with a Nesterov momentum that rises at first",
        .rule = TDMI_RULE_ADAM,
        .n_slots = 2,
        .slot_names = {"mean", "square"},
        .parameters = {MOMENTS(1e-8),
                       {"momentum-decay", 1, 0, 100, false, "how soon the momentum is full"}},
        .learning_rate = 1e-3,
        .scaling = TDMI_SCALING_SQRT,
        .momentum = -1.0,
        .prepare = prepare_nadam,
    },
    {
        .name = "lars",
        .summary = "SGD with steps as long as a part of each tensor's weights, for large batches",
        .rule = TDMI_RULE_LARS,
        .n_slots = 1,
        .slot_names = {"momentum"},
        .parameters = {{"trust", 0.001, 1e-8, 1, false,
                        "length of a step in parts of its weights'"},
                       {"epsilon", 1e-8, 0, 1, false, "added to the length that is divided by"},
                       {"nesterov", 0, 0, 1, true, "1: look ahead by Nesterov's form"}},
        .learning_rate = 1.0,
        .scaling = TDMI_SCALING_LINEAR,
        .momentum = 0.9,
        .weight_decay = 1e-4,
        .prepare = prepare_lars,
        .measure = measure_lars,
        .adapt = adapt_lars,
        .set_facts = set_lars_facts,
    },
    {
        .name = "lamb",
        .summary = "Adam with steps as long as each tensor's weights, for large batches",
        .rule = TDMI_RULE_LAMB,
        .n_slots = 2,
        .slot_names = {"mean", "square"},
        .parameters = {MOMENTS(1e-6)},
        .learning_rate = 2e-3,
        .scaling = TDMI_SCALING_SQRT,
        .momentum = -1.0,
        .weight_decay = 0.01,
        .prepare = prepare_adam,
        .measure = measure_lamb,
        .adapt = adapt_lamb,
    },
};

enum { n_optimizers = sizeof optimizers / sizeof optimizers[0] };

const struct tdmi_optimizer *tdmi_optimizer_at(int index)
{
    return index >= 0 && index < n_optimizers ? &optimizers[index] : NULL;
}

tdm_status tdmi_optimizer_find(const char *name, const struct tdmi_optimizer **optimizer,
                               tdm_error *err)
{
    const char *names[n_optimizers];
    int index;
    for (int i = 0; i < n_optimizers; i++)
        names[i] = optimizers[i].name;
    TDMI_TRY(tdmi_choice_find("optimizer", name, names, n_optimizers, &index, err));
    *optimizer = &optimizers[index];
    return TDM_OK;
}

tdm_status tdmi_optimizer_read(const char *text, struct tdmi_optimizer_choice *choice,
                               tdm_error *err)
{
    char name[64];
    const struct tdmi_optimizer *optimizer = NULL;
    snprintf(name, sizeof name, "%.*s", (int)tdmi_parameters_name_length(text), text);
    TDMI_TRY(tdmi_optimizer_find(name, &optimizer, err));
    TDMI_TRY(tdmi_parameters_read("optimizer", text, optimizer->parameters, choice->values, err));
    choice->optimizer = optimizer;
    return TDM_OK;
}

void tdmi_optimizer_step(const struct tdmi_optimizer *optimizer, const struct tdmi_backend *backend,
                         tdmi_stream *stream, const struct tdmi_update_call *call)
{
    const struct tdmi_update_table *update = backend->update;
    switch (optimizer->rule) {
    case TDMI_RULE_SGD:
    case TDMI_RULE_LARS:
        update->sgd(stream, call);
        break;
    case TDMI_RULE_RMSPROP:
        update->rmsprop(stream, call);
        break;
    case TDMI_RULE_ADAM:
        update->adam(stream, call);
        break;
    case TDMI_RULE_LAMB:
        update->lamb_step(stream, call);
        break;
    }
}

/* ---- the batch ------------------------------------------------------------------------------- */

static const char *const scalings[] = {"none", "linear", "sqrt"};

enum { n_scalings = sizeof scalings / sizeof scalings[0] };

const char *tdmi_scaling_word(int scaling)
{
    return scaling >= 0 && scaling < n_scalings ? scalings[scaling] : NULL;
}

tdm_status tdmi_scaling_find(const char *word, enum tdmi_scaling *scaling, tdm_error *err)
{
    int index;
    TDMI_TRY(tdmi_choice_find("scaling rule", word, scalings, n_scalings, &index, err));
    *scaling = (enum tdmi_scaling)index;
    return TDM_OK;
}

double tdmi_scaling_factor(enum tdmi_scaling scaling, double batch, double reference_batch)
{
    const double ratio = batch / reference_batch;
    return scaling == TDMI_SCALING_LINEAR ? ratio
           : scaling == TDMI_SCALING_SQRT ? sqrt(ratio)
                                          : 1.0;
}

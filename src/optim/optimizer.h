/*
 * Optimisers: what state they keep, what they usually run with, and how one step is asked of the
 * backend, which does the arithmetic. Listed in optimizers.def.
 *
 *     prepare   once a step: its place among the steps becomes coefficients
 *     measure   LARS and LAMB: lengths of a run of values; adapt: of a whole tensor, into its call
 *     step      a run of values
 *
 * A device that steps all tensors at once does the last two by itself: it is told the rule, and
 * facts of the step (backend/update.h).
 */
#pragma once

#include "backend/backend.h"
#include "optim/parameter.h"

enum { TDMI_OPTIMIZER_SLOTS = TDMI_UPDATE_SLOTS };

/* How the default learning rate follows the batch. */
enum tdmi_scaling { TDMI_SCALING_NONE, TDMI_SCALING_LINEAR, TDMI_SCALING_SQRT };

/* Nadam's product of the momenta of all steps so far: made again from step 1 where it is not of the
 * step before, so that no file carries it. */
struct tdmi_momenta {
    int64_t step;
    double product;
};

struct tdmi_optimizer {
    const char *name;
    const char *summary;
    int n_slots;
    const char
        *slot_names[TDMI_OPTIMIZER_SLOTS]; /* "momentum": part of tensor names in checkpoints */
    const struct tdmi_parameter *parameters;
    double learning_rate; /* at the reference batch; 0: the network's own */
    enum tdmi_scaling scaling;
    double momentum; /* usual; below 0: none of that name is known here */
    double weight_decay;
    /* call has rate, momentum and decay; step counts from 1. */
    void (*prepare)(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call);
    /* Both or neither. squares of weights, and of what adapt compares them with. adapt is given the
     * roots of the sums over a tensor. */
    void (*measure)(const struct tdmi_backend *backend, tdmi_stream *stream,
                    const struct tdmi_update_call *call, double squares[2]);
    void (*adapt)(const double *values, const double lengths[2], struct tdmi_update_call *call);
    /* call is complete but for the backend's function. */
    void (*step)(const struct tdmi_backend *backend, tdmi_stream *stream,
                 const struct tdmi_update_call *call);
    enum tdmi_update_rule rule;
    /* Optional: what of the facts is not as in the prepared call. asked is the call before it was
     * prepared. */
    void (*tell)(const double *values, const struct tdmi_update_call *asked,
                 struct tdmi_step_facts *facts);
};

/* One that was asked for, with its parameters' values. */
struct tdmi_optimizer_choice {
    const struct tdmi_optimizer *optimizer;
    double values[TDMI_PARAMETERS];
};

/* NULL past the last. */
const struct tdmi_optimizer *tdmi_optimizer_at(int index);
/* TDM_E_USAGE lists the names. */
tdm_status tdmi_optimizer_find(const char *name, const struct tdmi_optimizer **optimizer,
                               tdm_error *err) TDM_MUST_USE;
/* "adam:beta2=0.99"; TDM_E_USAGE says what is accepted. */
tdm_status tdmi_optimizer_read(const char *text, struct tdmi_optimizer_choice *choice,
                               tdm_error *err) TDM_MUST_USE;

/* "linear"; NULL past the last. */
const char *tdmi_scaling_word(int scaling);
tdm_status tdmi_scaling_find(const char *word, enum tdmi_scaling *scaling,
                             tdm_error *err) TDM_MUST_USE;
double tdmi_scaling_factor(enum tdmi_scaling scaling, double batch, double reference_batch);

/* ---- inside this room ------------------------------------------------------------------------ */

/* Shared by adam, adamw, nadam and lamb: the first three parameters, and the coefficients of a
 * step. Only nadam uses momenta. */
#define TDMI_MOMENTS_PARAMETERS(of_epsilon)                                                \
    {"beta1", 0.9, 0, 0.9999, false, "what is kept of the mean of gradients"},             \
        {"beta2", 0.999, 0, 0.999999, false, "what is kept of the mean of their squares"}, \
    {                                                                                      \
        "epsilon", of_epsilon, 1e-15, 1, false, "added to its root"                        \
    }
void tdmi_moments_prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                          struct tdmi_update_call *call);
/* The step of adam, adamw and nadam, and that of sgd and lars. */
void tdmi_moments_step(const struct tdmi_backend *backend, tdmi_stream *stream,
                       const struct tdmi_update_call *call);
void tdmi_momentum_step(const struct tdmi_backend *backend, tdmi_stream *stream,
                        const struct tdmi_update_call *call);

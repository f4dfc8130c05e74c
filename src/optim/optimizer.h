/*
 * Optimizers: their state, defaults, and the calls of the backend, which does the arithmetic.
 * The table is in optimizer.c.
 *
 *     prepare   once a step: coefficients from the step's number
 *     measure   LARS and LAMB: norms of a run of values; adapt applies a whole tensor's norms
 *     step      a run of values, by the rule
 *
 * A device that steps all tensors at once does the last two itself; it gets the rule and the facts
 * of the step (backend/update.h).
 */
#pragma once

#include "backend/backend.h"
#include "optim/parameter.h"

enum { TDMI_OPTIMIZER_SLOTS = TDMI_UPDATE_SLOTS };

/* How the default learning rate follows the batch. */
enum tdmi_scaling { TDMI_SCALING_NONE, TDMI_SCALING_LINEAR, TDMI_SCALING_SQRT };

/* Nadam's product of the momenta of all steps so far. It is computed again from step 1 where it
 * does not belong to the previous step, so no file stores it. */
struct tdmi_momenta {
    int64_t step;
    double product;
};

struct tdmi_optimizer {
    const char *name;
    const char *summary;
    enum tdmi_update_rule rule;
    int n_slots;
    const char
        *slot_names[TDMI_OPTIMIZER_SLOTS]; /* "momentum": part of tensor names in checkpoints */
    struct tdmi_parameter parameters[TDMI_PARAMETERS + 1];
    double learning_rate; /* at the reference batch; 0: the network's own */
    enum tdmi_scaling scaling;
    double momentum; /* default; below 0: the optimizer has no momentum */
    double weight_decay;
    /* call has rate, momentum and decay; step counts from 1. */
    void (*prepare)(const double *values, int64_t step, struct tdmi_momenta *momenta,
                    struct tdmi_update_call *call);
    /* Both or neither. squares of weights, and of what adapt compares them with. adapt is given the
     * roots of the sums over a tensor. */
    void (*measure)(const struct tdmi_backend *backend, tdmi_stream *stream,
                    const struct tdmi_update_call *call, double squares[2]);
    void (*adapt)(const double *values, const double lengths[2], struct tdmi_update_call *call);
    /* Optional: sets facts that differ from the prepared call. requested is the call before it was
     * prepared. */
    void (*set_facts)(const double *values, const struct tdmi_update_call *requested,
                      struct tdmi_step_facts *facts);
};

/* An optimizer and the values of its parameters. */
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

/* Step a run of values; the call is complete. */
void tdmi_optimizer_step(const struct tdmi_optimizer *optimizer, const struct tdmi_backend *backend,
                         tdmi_stream *stream, const struct tdmi_update_call *call);

/* "linear"; NULL past the last. */
const char *tdmi_scaling_word(int scaling);
tdm_status tdmi_scaling_find(const char *word, enum tdmi_scaling *scaling,
                             tdm_error *err) TDM_MUST_USE;
double tdmi_scaling_factor(enum tdmi_scaling scaling, double batch, double reference_batch);

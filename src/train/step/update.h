/*
 * The update of parameters and running statistics from the sums of a step: gradient clipping, one
 * optimizer step, and averages of the weights. The pool computes fixed pieces, so the number of
 * threads does not affect results.
 */
#pragma once

#include "base/thread.h"
#include "graph/graph.h"
#include "optim/optimizer.h"
#include "train/step/step.h"

/* Rates of one step. */
struct tdmi_update_rates {
    float learning_rate, momentum, weight_decay;
    int64_t step;         /* from 1; 0 counts as 1 */
    const double *values; /* of the optimizer's parameters; NULL: the defaults */
    double clip_norm;     /* upper bound for the norm of the mean gradient; 0: none */
    double average;       /* decay of averages (tdmi_update_average) */
};

typedef struct tdmi_update tdmi_update;

/* The arrays are in the backend's memory and lent for the update's life. Nodes before first_node
 * are frozen. */
tdm_status tdmi_update_open(const tdmi_graph *graph, int first_node,
                            const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_optimizer *optimizer, tdmi_pool *pool, float *params,
                            float *states, float *const *slots, tdmi_update **update,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_update_close(tdmi_update *update);

/* From now on params and states are running averages of the trained ones, in the same layout. */
void tdmi_update_average(tdmi_update *update, float *params, float *states);

/* The gradients are multiplied by this scale, on the device, lent; steps adjust it
 * (backend/update.h). Only for backends that step all tensors at once. */
void tdmi_update_loss_scale(tdmi_update *update, struct tdmi_loss_scale *loss_scale);

/* From now on running statistics do not change. */
void tdmi_update_keep_statistics(tdmi_update *update);

/* Factor on the learning rate for each parameter tensor of the graph; lent. */
void tdmi_update_scale(tdmi_update *update, const float *factors);

/* For backends that step all tensors at once (backend/update.h), an update without waiting: begin
 * uploads the facts of the step, and the work of tdmi_update_next is queued behind the work that
 * makes the sums. use_stream lends the stream for both. */
void tdmi_update_use_stream(tdmi_update *update, tdmi_stream *stream);
tdm_status tdmi_update_begin(tdmi_update *update, float n, struct tdmi_update_rates rates,
                             tdm_error *err) TDM_MUST_USE;
struct tdmi_step_next tdmi_update_next(tdmi_update *update);

/* sums are over n samples, n at least 1; the update divides by n. */
tdm_status tdmi_update_run(tdmi_update *update, const float *sums, float n,
                           struct tdmi_update_rates rates, tdm_error *err) TDM_MUST_USE;

/*
 * What happens to parameters and running statistics when the sums of a step are complete: one
 * optimiser step, spread over the pool in fixed pieces, so that the number of threads changes no
 * bit; before it the gradient may be made shorter, behind it averages may follow.
 */
#pragma once

#include "base/thread.h"
#include "graph/graph.h"
#include "optim/optimizer.h"
#include "train/step/queued.h"

/* Of one step. */
struct tdmi_update_rates {
    float learning_rate, momentum, weight_decay;
    int64_t step;         /* from 1; 0 is taken for 1 */
    const double *values; /* of the optimizer's parameters; NULL: the usual ones */
    double clip_norm;     /* no mean gradient is longer; 0: as it is */
    double average;       /* what is kept of averages (tdmi_update_average) */
};

typedef struct tdmi_update tdmi_update;

/* The arrays live on the backend's memory and are lent for the update's life. What belongs to nodes
 * before first_node is left alone: they are frozen. */
tdm_status tdmi_update_open(const tdmi_graph *graph, int first_node,
                            const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_optimizer *optimizer, tdmi_pool *pool, float *params,
                            float *states, float *const *slots, tdmi_update **update,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_update_close(tdmi_update *update);

/* From here on params and states follow those that are trained, as arrays of the same layout. */
void tdmi_update_average(tdmi_update *update, float *params, float *states);

/* Sums are of gradients that were multiplied by this, which steps move (backend/update.h): of the
 * device, lent. Only where a backend steps all tensors at once. */
void tdmi_update_loss_scale(tdmi_update *update, struct tdmi_loss_scale *loss_scale);

/* From here on running statistics stay as they are. */
void tdmi_update_keep_statistics(tdmi_update *update);

/* Each parameter tensor of the graph is stepped with so much of the rate; lent. */
void tdmi_update_scale(tdmi_update *update, const float *parts);

/* Of a backend that steps all tensors at once (backend/update.h), the same in parts that wait for
 * nothing: what the step is told is brought to the device; then the step itself, as told last,
 * follows what makes the sums, on a stream that is lent in place of one of its own. */
void tdmi_update_use_stream(tdmi_update *update, tdmi_stream *stream);
tdm_status tdmi_update_begin(tdmi_update *update, float n, struct tdmi_update_rates rates,
                             tdm_error *err) TDM_MUST_USE;
struct tdmi_step_next tdmi_update_next(tdmi_update *update);

/* sums are over n samples, n at least 1; the division happens here. */
tdm_status tdmi_update_run(tdmi_update *update, const float *sums, float n,
                           struct tdmi_update_rates rates, tdm_error *err) TDM_MUST_USE;

/*
 * What happens to parameters and running statistics when the sums of a step are complete: one
 * optimiser step, spread over the pool in fixed pieces.
 */
#ifndef TANDEM_TRAIN_UPDATE_H
#define TANDEM_TRAIN_UPDATE_H

#include "base/thread.h"
#include "nn/graph.h"
#include "optim/optimizer.h"

struct tdmi_update_rates {
    float learning_rate, momentum, weight_decay;
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

/* sums are over n samples, n at least 1; the division happens here. */
tdm_status tdmi_update_run(tdmi_update *update, const float *sums, float n,
                           struct tdmi_update_rates rates, tdm_error *err) TDM_MUST_USE;

#endif

/*
 * A network on a batch of noise in memory, opened as training or inference opens it: what the
 * measurements of `bench` run.
 */
#pragma once

#include "models/network.h"
#include "optim/optimizer.h"
#include "tandem/bench.h"
#include "train/evaluate/evaluator.h"
#include "train/step/step.h"
#include "train/step/update.h"

struct tdmi_bench_network {
    const struct tdm_bench_compute_options *options;
    bool is_training;
    struct tdmi_network network;
    const struct tdmi_backend *backend;
    enum tdmi_dtype storage; /* of activations */
    const struct tdmi_optimizer *optimizer;
    tdmi_device *device;
    tdmi_stream *stream;
    struct tdmi_placement placement;
    tdmi_pool *pool;
    int shard, n_executors;
    tdmi_graph *graph;
    tdmi_plan *plan;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS]; /* on the device */
    tdmi_step *step;
    tdmi_update *update;
    tdmi_evaluator *evaluator;

    struct tdmi_batch batch;
    uint8_t *pixels;
    void *device_pixels; /* NULL on the host */
    int32_t *labels;
    int64_t *items;
    struct tdmi_judgement *judgements;
    double start_seconds; /* until it could run */
    bool is_queued;       /* steps are, as training queues them on a device */
};

/* Zeroed before. Options are lent for its life. release it also after a failure. */
tdm_status tdmi_bench_network_open(const struct tdm_bench_compute_options *options,
                                   struct tdmi_bench_network *network, tdm_error *err) TDM_MUST_USE;
void tdmi_bench_network_release(struct tdmi_bench_network *network);
/* One step of training and its update, or one batch of features. */
tdm_status tdmi_bench_network_step(struct tdmi_bench_network *network, tdm_error *err) TDM_MUST_USE;
/* n updates alone, between two waits. */
tdm_status tdmi_bench_network_update(struct tdmi_bench_network *network, int n,
                                     tdm_error *err) TDM_MUST_USE;

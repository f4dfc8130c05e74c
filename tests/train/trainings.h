/* A small training from a bench's values, on any backend. */
#pragma once

#include "optim/optimizer.h"
#include "train/evaluate/evaluator.h"
#include "train/step/step.h"
#include "train/step/steps.h"
#include "train/step/update.h"
#include "unit.h"

/* A training from the bench's values on a backend; its arrays are the device's. */
struct training {
    const struct tdmi_backend *backend;
    const struct bench *of;
    tdmi_device *device;
    tdmi_stream *stream; /* of the test */
    tdmi_plan *plan, *evaluation_plan;
    tdmi_pool *pool;
    tdmi_step *step;
    tdmi_update *update;
    tdmi_evaluator *evaluator;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS], *sums;
    struct tdmi_loss_scale *loss_scale; /* of the device; NULL: none */
};

struct way {
    int shard, threads;
    const char *optimizer;
    bool has_weights; /* of classes */
    enum tdmi_dtype storage;
    float loss_scale; /* to begin with; 0: none */
    int first_trained;
    /* One of several ranks. */
    int gpu;
    tdmi_comm *comm;
    tdmi_peers *peers;
    bool is_fast;
};

/* And it is there when this returns. */
static inline void put_there(const struct training *it, void *to, const void *from, size_t bytes)
{
    assert_int_equal(it->backend->memory.upload(it->stream, to, from, bytes, NULL), TDM_OK);
    assert_int_equal(it->backend->stream.wait(it->stream, NULL), TDM_OK);
}

static inline void *placed(const struct training *it, const void *from, size_t bytes)
{
    void *to = it->backend->memory.alloc(it->device, bytes + sizeof(float));
    assert_non_null(to);
    if (from)
        put_there(it, to, from, bytes);
    return to;
}

static inline float *placed_floats(const struct training *it, const float *from, int64_t n)
{
    return placed(it, from, sizeof *from * (size_t)n);
}

/* Opens everything that depends on the freeze point; again after the point has moved. */
static inline void open_freeze_point(struct training *it, struct way way)
{
    static const float weights[classes] = {0.5f, 2.0f, 1.25f};
    const tdmi_graph *graph = it->of->graph;
    const struct tdmi_optimizer *optimizer;
    const struct tdmi_step_options options = {.max_batch = most_batch,
                                              .can_mix = true,
                                              .comm = way.comm,
                                              .peers = way.peers,
                                              .rounds = way.is_fast,
                                              .class_weights = way.has_weights ? weights : NULL,
                                              .loss_scale = it->loss_scale};
    struct tdmi_plan_options request = {.max_images = way.shard,
                                        .is_training = true,
                                        .storage = way.storage,
                                        .first_trained = way.first_trained,
                                        .device = it->device};
    assert_int_equal(tdmi_optimizer_find(way.optimizer, &optimizer, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_make(graph, it->backend, &request, &it->plan, NULL), TDM_OK);
    request.is_training = false;
    request.first_trained = 0;
    assert_int_equal(tdmi_plan_make(graph, it->backend, &request, &it->evaluation_plan, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_step_open(it->plan, it->device, it->pool, &options, &it->step, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_update_open(graph, way.first_trained, it->backend, it->device, optimizer,
                                      it->pool, it->params, it->states, it->slots, &it->update,
                                      NULL),
                     TDM_OK);
    if (it->loss_scale)
        tdmi_update_loss_scale(it->update, it->loss_scale);
    assert_int_equal(tdmi_evaluator_open(it->evaluation_plan, it->device, it->pool, most_batch,
                                         &it->evaluator, NULL),
                     TDM_OK);
}

static inline void close_freeze_point(struct training *it)
{
    tdmi_evaluator_close(it->evaluator);
    tdmi_update_close(it->update);
    tdmi_step_close(it->step);
    tdmi_plan_free(it->plan);
    tdmi_plan_free(it->evaluation_plan);
}

static inline struct training begin(const struct bench *of, const struct tdmi_backend *backend,
                                    struct way way)
{
    struct training it = {.backend = backend, .of = of};
    const struct tdmi_optimizer *optimizer;
    const struct tdmi_loss_scale scale = {.scale = way.loss_scale};
    const int64_t n = of->graph->param_values;
    assert_int_equal(tdmi_optimizer_find(way.optimizer, &optimizer, NULL), TDM_OK);
    assert_int_equal(backend->device.open(way.gpu, &it.device, NULL), TDM_OK);
    assert_int_equal(backend->stream.open(it.device, &it.stream, NULL), TDM_OK);
    it.params = placed_floats(&it, of->params, n);
    it.states = placed_floats(&it, of->states, of->graph->state_values);
    for (int i = 0; i < optimizer->n_slots; i++)
        it.slots[i] = placed_floats(&it, NULL, n);
    it.sums = calloc((size_t)tdmi_graph_sums_values(of->graph), sizeof *it.sums);
    if (way.loss_scale > 0.0f)
        it.loss_scale = placed(&it, &scale, sizeof scale);
    assert_int_equal(tdmi_pool_new(way.threads, NULL, &it.pool, NULL), TDM_OK);
    open_freeze_point(&it, way);
    return it;
}

static inline void end(struct training *it)
{
    close_freeze_point(it);
    tdmi_pool_free(it->pool);
    it->backend->memory.free(it->device, it->params);
    it->backend->memory.free(it->device, it->states);
    for (int i = 0; i < TDMI_OPTIMIZER_SLOTS; i++)
        if (it->slots[i])
            it->backend->memory.free(it->device, it->slots[i]);
    if (it->loss_scale)
        it->backend->memory.free(it->device, it->loss_scale);
    it->backend->stream.close(it->stream);
    it->backend->device.close(it->device);
    free(it->sums);
}

static inline void fetch(const struct training *it, float *to, const float *from, int64_t n)
{
    assert_int_equal(
        it->backend->memory.download(it->stream, to, from, sizeof *to * (size_t)n, NULL), TDM_OK);
    assert_int_equal(it->backend->stream.wait(it->stream, NULL), TDM_OK);
}

/* Sums of one batch, then a step; by_segment runs segments one by one. */
static inline void run(struct training *it, const struct tdmi_batch *batch,
                       const struct tdmi_mixing *mixing, bool by_segment, double clip_norm)
{
    const int last = it->plan->n_segments - 1;
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, mixing);
    for (int s = 0; s <= last; s = by_segment ? s + 1 : last + 1)
        assert_int_equal(tdmi_step_run(it->step, s, by_segment ? s : last, NULL), TDM_OK);
    fetch(it, it->sums, tdmi_step_sums(it->step), tdmi_graph_sums_values(it->of->graph));
    const float n = it->sums[tdmi_graph_tail_at(it->of->graph) + TDMI_TAIL_SAMPLES];
    const struct tdmi_update_rates rates = {.learning_rate = 0.02f,
                                            .momentum = 0.9f,
                                            .weight_decay = 1e-3f,
                                            .step = 1,
                                            .clip_norm = clip_norm};
    if (n > 0.0f)
        assert_int_equal(tdmi_update_run(it->update, tdmi_step_sums(it->step), n, rates, NULL),
                         TDM_OK);
}

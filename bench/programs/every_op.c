/*
 * A model with every op there is, in places where the forms of other programs could take it for
 * something else, and values that are drawn: for peers that are held to its answers.
 *
 *     every_op SCALE FILE.safetensors      SCALE: tf, torch, unit, raw, caffe
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "models/network.h"
#include "train/model/model_internal.h"

#include <stdio.h>
#include <string.h>

enum { height = 37, width = 30, classes = 7 };

static int add(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int input,
               struct tdmi_op_attrs attrs)
{
    return tdmi_graph_add(graph, kind, name, input, attrs);
}

/* Windows whose four sides differ, groups and dilation, both kinds of means. */
static int add_windows(tdmi_graph *graph, int x)
{
    x = add(graph, TDMI_OP_CONV, "conv", x,
            (struct tdmi_op_attrs){.channels = 12,
                                   .kernel = 3,
                                   .stride = 1,
                                   .dilation = 2,
                                   .groups = 3,
                                   .pad_top = 1,
                                   .pad_bottom = 2,
                                   .pad_left = 3,
                                   .pad_right = 4,
                                   .has_bias = true});
    x = add(graph, TDMI_OP_BATCH_NORM, "norm", x, (struct tdmi_op_attrs){.epsilon = 0.01});
    x = add(graph, TDMI_OP_RELU6, "relu6", x, (struct tdmi_op_attrs){0});
    x = add(graph, TDMI_OP_CONV, "depthwise", x,
            (struct tdmi_op_attrs){.channels = 24,
                                   .kernel = 4,
                                   .stride = 2,
                                   .dilation = 1,
                                   .groups = 12,
                                   .pad_bottom = 1,
                                   .pad_left = 2});
    x = add(graph, TDMI_OP_MAX_POOL, "max", x,
            (struct tdmi_op_attrs){
                .kernel = 3, .stride = 2, .pad_top = 1, .pad_bottom = 2, .pad_right = 2});
    x = add(graph, TDMI_OP_AVG_POOL, "mean", x,
            (struct tdmi_op_attrs){
                .kernel = 3, .stride = 1, .pad_top = 2, .pad_left = 1, .pad_right = 1});
    return add(
        graph, TDMI_OP_AVG_POOL, "whole_mean", x,
        (struct tdmi_op_attrs){
            .kernel = 2, .stride = 1, .pad_bottom = 1, .pad_right = 1, .counts_padding = true});
}

static void build(tdmi_graph *graph, const struct tdmi_preprocess *preprocess)
{
    const struct tdmi_op_attrs none = {0};
    int x = add_windows(graph, tdmi_add_input(graph, preprocess));
    int beside = add(graph, TDMI_OP_HSWISH, "hswish", x, none);
    x = add(graph, TDMI_OP_AVG_POOL, "pick", x, (struct tdmi_op_attrs){.kernel = 1, .stride = 1});
    x = tdmi_graph_join(graph, TDMI_OP_CONCAT, "concat", x, beside, none);
    x = add(graph, TDMI_OP_LRN, "lrn", x,
            (struct tdmi_op_attrs){.kernel = 5, .alpha = 0.3, .beta = 0.75, .offset = 1.5});
    x = add(graph, TDMI_OP_PAD, "pad", x,
            (struct tdmi_op_attrs){
                .pad_top = 1, .pad_left = 2, .pad_right = 1, .pad_front = 2, .pad_back = 1});
    beside = add(graph, TDMI_OP_GLOBAL_POOL, "pool", x, none);
    x = add(graph, TDMI_OP_DROPOUT, "drop", x, (struct tdmi_op_attrs){.rate = 0.5});
    x = tdmi_add_dense(graph, "dense", x, tdmi_channels_of(graph, beside));
    x = add(graph, TDMI_OP_BATCH_NORM, "flat_norm", x, (struct tdmi_op_attrs){.epsilon = 0.001});
    x = add(graph, TDMI_OP_SIGMOID, "sigmoid", x, none);
    x = tdmi_graph_join(graph, TDMI_OP_ADD, "add", x, beside, none);
    x = tdmi_graph_join(graph, TDMI_OP_CONCAT, "flat_concat", beside, x, none);
    x = add(graph, TDMI_OP_CONV, "last", x,
            (struct tdmi_op_attrs){
                .channels = classes, .kernel = 1, .stride = 1, .dilation = 1, .groups = 1});
    add(graph, TDMI_OP_LOGISTIC, "logistic", x, none);
}

static tdm_status fill(struct tdmi_model_file *file, tdm_error *err)
{
    static const char *const names[classes] = {"a", "b", "c", "d", "e", "f", "g"};
    const tdmi_graph *graph = file->graph;
    tdmi_rng rng = tdmi_rng_at(11, TDMI_RNG_TEST, 0, 0);
    size_t pixels = (size_t)height * width * 3;
    file->n_classes = classes;
    file->shard = 1;
    file->network = "every-op";
    file->classes = tdmi_arena_alloc(&file->arena, classes, sizeof *file->classes);
    file->params = tdmi_arena_alloc(&file->arena, (size_t)graph->param_values, sizeof(float));
    file->states = tdmi_arena_alloc(&file->arena, (size_t)graph->state_values, sizeof(float));
    file->test_pixels = tdmi_arena_alloc(&file->arena, pixels, 1);
    file->test_logits = tdmi_arena_alloc(&file->arena, classes, sizeof(float));
    file->train_hashes = file->val_hashes = tdmi_arena_alloc(&file->arena, 1, sizeof(uint64_t));
    if (!file->classes || !file->params || !file->states || !file->test_pixels ||
        !file->test_logits || !file->train_hashes)
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    for (int i = 0; i < classes; i++)
        file->classes[i] = names[i];
    tdmi_graph_init_values(graph, 11, file->params, file->states);
    for (int p = 0; p < graph->n_params; p++) /* biases, scales and shifts too */
        for (int64_t i = 0; graph->params[p].spec.n_dims == 1 && i < graph->params[p].n; i++)
            file->params[graph->params[p].offset + i] += tdmi_rng_uniform(&rng, -0.5f, 0.5f);
    for (int64_t i = 0; i < graph->state_values; i++)
        file->states[i] += tdmi_rng_uniform(&rng, 0.1f, 0.5f);
    for (size_t i = 0; i < pixels; i++)
        file->test_pixels[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    return TDM_OK;
}

/* The answer to its own picture, without which no model is opened. */
static tdm_status answer(struct tdmi_model_file *file, tdm_error *err)
{
    const int32_t label = 0;
    const int64_t item = 0;
    const struct tdmi_batch picture = {
        .n = 1, .pixels = file->test_pixels, .labels = &label, .items = &item};
    const struct tdmi_backend *backend = NULL;
    tdmi_device *device = NULL;
    tdmi_pool *pool = NULL;
    tdmi_plan *plan = NULL;
    tdmi_evaluator *evaluator = NULL;
    int device_index;
    tdm_status status = tdmi_backend_find("ref", &backend, &device_index, err);
    if (status == TDM_OK)
        status = backend->device.open(device_index, &device, err);
    if (status == TDM_OK)
        status = tdmi_pool_new(1, NULL, &pool, err);
    if (status == TDM_OK)
        status = tdmi_plan_new(file->graph, backend, 1, false, &plan, err);
    if (status == TDM_OK)
        status = tdmi_evaluator_open(plan, device, pool, 1, &evaluator, err);
    if (status == TDM_OK)
        status =
            tdmi_evaluator_take(evaluator, (struct tdmi_values){file->params, file->states}, err);
    if (status == TDM_OK)
        status = tdmi_evaluator_batch(evaluator, &picture, NULL, NULL, file->test_logits, err);
    tdmi_evaluator_close(evaluator);
    tdmi_plan_free(plan);
    tdmi_pool_free(pool);
    if (device)
        backend->device.close(device);
    return status;
}

int main(int n_arguments, char **arguments)
{
    static const char *const scales[] = {"tf", "torch", "unit", "raw", "caffe"};
    struct tdmi_preprocess preprocess = {.width = width,
                                         .height = height,
                                         .channels = 3,
                                         .fit = TDMI_FIT_STRETCH,
                                         .crop_fraction = 1,
                                         .filter = TDMI_FILTER_BILINEAR,
                                         .scale = TDMI_SCALE_TF};
    struct tdmi_model_file file = {.graph = tdmi_graph_new()};
    tdm_error err = {0};
    if (n_arguments != 3 || !file.graph) {
        fprintf(stderr, "usage: every_op SCALE FILE.safetensors\n");
        return 2;
    }
    for (int i = 0; i < 5; i++)
        if (strcmp(arguments[1], scales[i]) == 0)
            preprocess.scale = (enum tdmi_scale)i;
    tdmi_arena_init(&file.arena, 0);
    build(file.graph, &preprocess);
    tdm_status status = tdmi_graph_finish(file.graph, "every-op", &err);
    if (status == TDM_OK)
        status = fill(&file, &err);
    if (status == TDM_OK)
        status = answer(&file, &err);
    if (status == TDM_OK)
        status = tdmi_model_file_save(&file, arguments[2], &err);
    if (status != TDM_OK)
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, 0));
    tdmi_arena_release(&file.arena);
    tdmi_graph_free(file.graph);
    return tdm_status_exit(status);
}

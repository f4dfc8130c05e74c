/* A network with values, and a batch of noise for it. */
#pragma once

#include "base/memory.h"
#include "base/hash/rng.h"
#include "data/loader/loader.h"
#include "graph/graph.h"
#include "unit.h"

enum { most_batch = 17, classes = 3, size = 8 };

/* A graph on pictures of one channel; x: where its first layer reads. */
static inline tdmi_graph *begin_graph(int *x)
{
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    const struct tdmi_preprocess how = {
        .width = size, .height = size, .channels = 1, .crop_fraction = 1.0, .scale = TDMI_SCALE_TF};
    *x = tdmi_add_input(graph, &how);
    return graph;
}

struct bench {
    tdmi_graph *graph;
    float *params, *states;
    uint8_t *pixels;
    int32_t labels[most_batch];
    int64_t items[most_batch], image;
};

static inline void open_bench_of(struct bench *it, tdmi_graph *graph)
{
    it->graph = graph;
    it->image = tdmi_shape_values(it->graph->nodes[0].out);
    it->params = tdmi_alloc((size_t)it->graph->param_values, sizeof(float));
    it->states = tdmi_alloc((size_t)it->graph->state_values, sizeof(float));
    it->pixels = tdmi_alloc((size_t)(most_batch * it->image), 1);
    assert_true(it->params && it->states && it->pixels);
    tdmi_graph_init_values(it->graph, 3, it->params, it->states);
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < most_batch * it->image; i++)
        it->pixels[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    for (int i = 0; i < most_batch; i++) {
        it->labels[i] = (int32_t)tdmi_rng_below(&rng, classes);
        it->items[i] = i;
    }
}

static inline void close_bench(struct bench *it)
{
    tdmi_free(it->params);
    tdmi_free(it->states);
    tdmi_free(it->pixels);
    tdmi_graph_free(it->graph);
}

static inline struct tdmi_batch first_of(const struct bench *it, int n)
{
    return (struct tdmi_batch){
        .n = n, .pixels = it->pixels, .labels = it->labels, .items = it->items};
}

static inline float *copied(const float *values, int64_t n)
{
    float *copy = malloc(sizeof *copy * (size_t)n);
    assert_non_null(copy);
    memcpy(copy, values, sizeof *copy * (size_t)n);
    return copy;
}

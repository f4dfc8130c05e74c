/* A known network with fresh weights, and labelled images of noise for it. Some labels are -1. */
#pragma once

#include "base/hash/rng.h"
#include "base/memory.h"
#include "models/known_network.h"

struct noise {
    tdmi_graph *graph;
    float *params, *states;
    uint8_t *pixels;
    int32_t *labels;
};

static inline struct noise noise_new(const char *network, int size, int n_images, int n_classes)
{
    struct noise it = {.graph = network_new(network, size, n_classes)};
    const int64_t bytes = n_images * tdmi_shape_values(it.graph->nodes[0].out);
    it.params = tdmi_alloc((size_t)it.graph->param_values, sizeof *it.params);
    it.states = tdmi_alloc((size_t)it.graph->state_values + 1, sizeof *it.states);
    it.pixels = tdmi_alloc((size_t)bytes, 1);
    it.labels = tdmi_alloc((size_t)n_images, sizeof *it.labels);
    assert_true(it.params && it.states && it.pixels && it.labels);
    tdmi_graph_init_values(it.graph, 3, it.params, it.states);
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < bytes; i++)
        it.pixels[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    for (int i = 0; i < n_images; i++)
        it.labels[i] = i % 7 == 5 ? -1 : (int32_t)tdmi_rng_below(&rng, (uint32_t)n_classes);
    return it;
}

static inline void noise_free(struct noise *it)
{
    tdmi_free(it->params);
    tdmi_free(it->states);
    tdmi_free(it->pixels);
    tdmi_free(it->labels);
    tdmi_graph_free(it->graph);
}

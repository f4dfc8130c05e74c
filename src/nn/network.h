/*
 * The networks that are known by name.
 */
#ifndef TANDEM_NN_NETWORK_H
#define TANDEM_NN_NETWORK_H

#include "nn/graph.h"

struct tdmi_network {
    const char *name;
    const char *summary;
    struct tdmi_preprocess preprocess; /* its own input; training may ask for another size */
    int shard;                         /* images a shard unless --shard says otherwise */
    double learning_rate;              /* for SGD with momentum 0.9 at batch 32 */
    /* Adds all nodes, input to softmax. */
    void (*build)(tdmi_graph *graph, const struct tdmi_preprocess *preprocess, int classes);
};

/* TDM_E_USAGE lists the names. */
tdm_status tdmi_network_find(const char *name, const struct tdmi_network **network,
                             tdm_error *err) TDM_MUST_USE;
/* NULL past the end. */
const struct tdmi_network *tdmi_network_at(int index);

tdm_status tdmi_network_build(const struct tdmi_network *network,
                              const struct tdmi_preprocess *preprocess, int classes,
                              tdmi_graph **graph, tdm_error *err) TDM_MUST_USE;

/* ---- for builders: each returns the node it ends with ------------------------------------ */

int tdmi_add_input(tdmi_graph *graph, const struct tdmi_preprocess *preprocess);
/* "Same" padding for odd kernels at stride 1: kernel / 2 on every side. */
int tdmi_add_conv(tdmi_graph *graph, const char *name, int input, int channels, int kernel,
                  int stride, int pad, bool has_bias);
int tdmi_add_batch_norm(tdmi_graph *graph, const char *name, int input);
int tdmi_add_relu(tdmi_graph *graph, const char *name, int input);
int tdmi_add_max_pool(tdmi_graph *graph, const char *name, int input, int kernel, int stride);
int tdmi_add_global_pool(tdmi_graph *graph, const char *name, int input);
int tdmi_add_dense(tdmi_graph *graph, const char *name, int input, int channels);
int tdmi_add_sum(tdmi_graph *graph, const char *name, int first, int second);
int tdmi_add_softmax(tdmi_graph *graph, int input);

#endif

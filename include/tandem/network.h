/*
 * The networks known by name: what they are made of, how large, how much work, and their picture.
 */
#ifndef TANDEM_NETWORK_H
#define TANDEM_NETWORK_H

#include "tandem/error.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_network tdm_network;

struct tdm_network_options {
    const char *model; /* a name of tdm_network_name (tandem/train.h), or one of its forms */
    int classes;       /* 0: those it was published with */
    int size;          /* side of the input in pixels; 0: the network's own */
    int hidden;        /* outputs of a dense layer before the last; 0: none */
    double dropout;
};

enum { TDM_NETWORK_INPUTS = 2 };

/* One op. Multiplications and operations are of one image, forward. */
struct tdm_network_node {
    const char *name, *op;
    const char *detail; /* "3×3 stride 2, depthwise"; may be "" */
    int inputs[TDM_NETWORK_INPUTS], n_inputs;
    int height, width, channels; /* of what it gives */
    int64_t parameters;          /* changed by training */
    int64_t states;              /* running statistics */
    double multiplications;      /* of convolutions and dense layers, each with its addition */
    double flops;                /* all operations; a multiplication and its addition are two */
};

/* Sums over the nodes. */
struct tdm_network_totals {
    const char *name, *summary;
    int height, width, channels, classes; /* of the input; of the output */
    int nodes;
    int64_t parameters, states;
    double multiplications, flops;
};

/* The options' strings are read during the call alone. TDM_E_USAGE lists the models. */
TDM_API tdm_status tdm_network_open(const struct tdm_network_options *options,
                                    tdm_network **network, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_network_close(tdm_network *network);

/* Lent until close. */
TDM_API const struct tdm_network_totals *tdm_network_totals(const tdm_network *network);
TDM_API const struct tdm_network_node *tdm_network_node_at(const tdm_network *network, int index);

/* A drawing, whole or not at all; batch norms and activations stand in the box of what they follow.
 */
TDM_API tdm_status tdm_network_draw(const tdm_network *network, const char *path,
                                    tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif

/* A network, described: what the public header promises, and the graph for the drawing. */
#ifndef TANDEM_NN_DESCRIBE_H
#define TANDEM_NN_DESCRIBE_H

#include "base/text.h"
#include "nn/graph.h"
#include "tandem/network.h"

struct tdm_network {
    tdmi_graph *graph;
    struct tdm_network_totals totals;
    struct tdm_network_node *nodes; /* in the arena */
    tdmi_arena arena;
};

#endif

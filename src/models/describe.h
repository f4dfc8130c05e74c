/* A network, described: what the public header promises, and the graph for the drawing. */
#pragma once

#include "base/text/text.h"
#include "graph/graph.h"
#include "tandem/network.h"

struct tdm_network {
    tdmi_graph *graph;
    struct tdm_network_totals totals;
    struct tdm_network_node *nodes; /* in the arena */
    tdmi_arena arena;
};

TDMI_POINTER_RELEASE(tdm_network, tdm_network_close)

/* Fill nodes and totals from the finished graph; summary is lent. */
tdm_status tdmi_network_describe(struct tdm_network *network, const char *name, const char *summary,
                                 tdm_error *err) TDM_MUST_USE;
/* The whole picture as SVG. */
tdm_status tdmi_network_svg(const struct tdm_network *network, tdmi_text *text,
                            tdm_error *err) TDM_MUST_USE;

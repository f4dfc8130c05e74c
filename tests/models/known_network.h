/* A known network at a size, for tests. */
#pragma once

#include "models/network.h"
#include "unit.h"

static inline tdmi_graph *network_new(const char *name, int size, int classes)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    assert_int_equal(tdmi_network_find(name, &network, NULL), TDM_OK);
    struct tdmi_preprocess preprocess = network.preprocess;
    preprocess.width = preprocess.height = size;
    assert_int_equal(tdmi_network_build(&network, &preprocess, classes, &graph, NULL), TDM_OK);
    return graph;
}

/* The list of networks and the small calls their builders are written in. */
#include "nn/network.h"
#include "base/choice.h"

#define X(name) extern const struct tdmi_network tdmi_network_##name;
#include "nn/models/models.def"
#undef X

static const struct tdmi_network *const networks[] = {
#define X(name) &tdmi_network_##name,
#include "nn/models/models.def"
#undef X
};

static const char *const names[] = {
#define X(name) #name,
#include "nn/models/models.def"
#undef X
};

enum { n_networks = sizeof networks / sizeof networks[0] };

const struct tdmi_network *tdmi_network_at(int index)
{
    return index >= 0 && index < n_networks ? networks[index] : NULL;
}

tdm_status tdmi_network_find(const char *name, const struct tdmi_network **network, tdm_error *err)
{
    int index;
    tdm_status status = tdmi_choice_find("model", name, names, n_networks, &index, err);
    if (status == TDM_OK)
        *network = networks[index];
    return status;
}

tdm_status tdmi_network_build(const struct tdmi_network *network,
                              const struct tdmi_preprocess *preprocess, int classes,
                              tdmi_graph **graph, tdm_error *err)
{
    tdmi_graph *made = tdmi_graph_new();
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "building the network %s: out of memory", network->name);
    network->build(made, preprocess, classes);
    tdm_status status = tdmi_graph_finish(made, network->name, err);
    if (status != TDM_OK) {
        tdmi_graph_free(made);
        return status;
    }
    *graph = made;
    return TDM_OK;
}

int tdmi_add_input(tdmi_graph *graph, const struct tdmi_preprocess *preprocess)
{
    return tdmi_graph_add(graph, TDMI_OP_INPUT, "input", -1,
                          (struct tdmi_op_attrs){.preprocess = *preprocess});
}

int tdmi_add_conv(tdmi_graph *graph, const char *name, int input, int channels, int kernel,
                  int stride, int pad, bool has_bias)
{
    return tdmi_graph_add(graph, TDMI_OP_CONV, name, input,
                          (struct tdmi_op_attrs){.channels = channels,
                                                 .kernel = kernel,
                                                 .stride = stride,
                                                 .dilation = 1,
                                                 .groups = 1,
                                                 .pad_top = pad,
                                                 .pad_bottom = pad,
                                                 .pad_left = pad,
                                                 .pad_right = pad,
                                                 .has_bias = has_bias});
}

int tdmi_add_batch_norm(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_BATCH_NORM, name, input,
                          (struct tdmi_op_attrs){.epsilon = 1e-5, .momentum = 0.1});
}

int tdmi_add_relu(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_RELU, name, input, (struct tdmi_op_attrs){0});
}

int tdmi_add_max_pool(tdmi_graph *graph, const char *name, int input, int kernel, int stride)
{
    return tdmi_graph_add(graph, TDMI_OP_MAX_POOL, name, input,
                          (struct tdmi_op_attrs){.kernel = kernel, .stride = stride});
}

int tdmi_add_global_pool(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_GLOBAL_POOL, name, input, (struct tdmi_op_attrs){0});
}

int tdmi_add_dense(tdmi_graph *graph, const char *name, int input, int channels)
{
    return tdmi_graph_add(graph, TDMI_OP_DENSE, name, input,
                          (struct tdmi_op_attrs){.channels = channels, .has_bias = true});
}

int tdmi_add_softmax(tdmi_graph *graph, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_SOFTMAX, "softmax", input, (struct tdmi_op_attrs){0});
}

int tdmi_add_sum(tdmi_graph *graph, const char *name, int first, int second)
{
    return tdmi_graph_join(graph, TDMI_OP_ADD, name, first, second, (struct tdmi_op_attrs){0});
}

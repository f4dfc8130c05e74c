/* Networks that a program builds: thin names for the builders of network.h. */
#include "base/memory.h"
#include "models/describe.h"
#include "models/network.h"

#define NAME(network, word) tdmi_name(word "%d", (network)->graph->n_nodes).text

tdm_status tdm_network_new(int height, int width, int channels, tdm_network **network,
                           tdm_error *err)
{
    const struct tdmi_preprocess input = {.width = width,
                                          .height = height,
                                          .channels = channels,
                                          .fit = TDMI_FIT_PAD,
                                          .crop_fraction = 1,
                                          .filter = TDMI_FILTER_LANCZOS,
                                          .scale = TDMI_SCALE_TF,
                                          .uses_draft = true};
    if (height < 1 || height > 4096 || width < 1 || width > 4096 ||
        (channels != 1 && channels != 3))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "building a network for %d×%d×%d images; sides of 1 to 4096 and 1 or 3 "
                        "channels are accepted",
                        height, width, channels);
    TDMI_AT_END(tdm_network_close_at) tdm_network *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    tdmi_arena_init(&made->arena, 0);
    made->graph = tdmi_graph_new();
    if (!made->graph)
        return TDM_FAIL(err, TDM_E_MEMORY, "building a network: out of memory");
    (void)tdmi_add_input(made->graph, &input);
    *network = tdmi_take(&made);
    return TDM_OK;
}

int tdm_network_conv(tdm_network *network, int input, int channels, int kernel, int stride)
{
    return tdmi_add_conv(network->graph, NAME(network, "conv"), input, channels, kernel, stride,
                         kernel / 2, true);
}

int tdm_network_depthwise(tdm_network *network, int input, int kernel, int stride)
{
    const struct tdmi_build what = {.padding = TDMI_PADDING_SYMMETRIC};
    return tdmi_add_depthwise(network->graph, &what, NAME(network, "depthwise"), input, kernel,
                              stride);
}

int tdm_network_batch_norm(tdm_network *network, int input)
{
    return tdmi_add_batch_norm(network->graph, NAME(network, "norm"), input);
}

int tdm_network_relu(tdm_network *network, int input)
{
    return tdmi_add_relu(network->graph, NAME(network, "relu"), input);
}

int tdm_network_max_pool(tdm_network *network, int input, int kernel, int stride)
{
    return tdmi_add_max_pool(network->graph, NAME(network, "pool"), input, kernel, stride);
}

int tdm_network_global_pool(tdm_network *network, int input)
{
    return tdmi_add_global_pool(network->graph, NAME(network, "pool"), input);
}

int tdm_network_dropout(tdm_network *network, int input, double rate)
{
    return tdmi_add_dropout(network->graph, NAME(network, "dropout"), input, rate,
                            network->graph->n_nodes);
}

int tdm_network_dense(tdm_network *network, int input, int outputs)
{
    return tdmi_add_dense(network->graph, NAME(network, "dense"), input, outputs);
}

int tdm_network_sum(tdm_network *network, int first, int second)
{
    return tdmi_add_sum(network->graph, NAME(network, "sum"), first, second);
}

tdm_status tdm_network_finish(tdm_network *network, int input, tdm_error *err)
{
    static const char name[] = "a network of your own";
    (void)tdmi_add_softmax(network->graph, input);
    TDM_TRY(tdmi_graph_finish(network->graph, name, err), err, "building a network");
    return tdmi_network_describe(network, name, "", err);
}

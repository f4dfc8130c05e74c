/*
 * LeNet-5 (LeCun et al., 1998) as it is trained today: ReLU and max pooling, 28×28 grey pixels
 * padded by two so that the first layer sees the paper's 32×32; pictures of 32×32 want no padding.
 */
#include "models/network.h"

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    const int pad = what->padding == TDMI_PADDING_NONE ? 0 : 2;
    int x = tdmi_add_input(graph, &what->preprocess);
    x = tdmi_add_conv(graph, "conv1", x, 6, 5, 1, pad, true);
    x = tdmi_add_relu(graph, "relu1", x);
    x = tdmi_add_max_pool(graph, "pool1", x, 2, 2);
    x = tdmi_add_conv(graph, "conv2", x, 16, 5, 1, 0, true);
    x = tdmi_add_relu(graph, "relu2", x);
    x = tdmi_add_max_pool(graph, "pool2", x, 2, 2);
    x = tdmi_add_dense(graph, "dense1", x, 120);
    x = tdmi_add_relu(graph, "relu3", x);
    x = tdmi_add_dense(graph, "dense2", x, 84);
    x = tdmi_add_relu(graph, "relu4", x);
    tdmi_add_head(graph, &what->head, "dense3", x);
}

const struct tdmi_network tdmi_network_lenet5 = {
    .name = "lenet5",
    .summary = "LeNet-5 on 28×28 grey pixels, for digits and the like",
    .preprocess = TDMI_PADDED(28, 1, TDMI_SCALE_UNIT),
    .padding = TDMI_PADDING_SYMMETRIC,
    .classes = 10,
    .shard = 16,
    .learning_rate = 0.02,
    .build = build,
};

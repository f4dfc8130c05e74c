/*
 * The residual networks for CIFAR (He et al., 2016, section 4.2): 6n + 2 layers in three stages of
 * n basic blocks, 16, 32 and 64 channels, for 32×32 pixels. Shortcuts have no parameters (the
 * paper's option A): where a stage begins, every second pixel and zeros for the new channels, half
 * of them in front. So the usual trained files fit, whose last layer is called linear.
 * 20 layers: 0.27 million parameters, 41 million multiplications.
 */
#include "models/network.h"

#include <stdio.h>
#include <string.h>

static int conv_norm(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block,
                     int number, int x, int channels, int stride)
{
    x = tdmi_add_padded_conv(
        graph, what, tdmi_name("%s.conv%d", block.text, number).text, x,
        (struct tdmi_op_attrs){.channels = channels, .kernel = 3, .stride = stride});
    return tdmi_add_batch_norm(graph, tdmi_name("%s.bn%d", block.text, number).text, x);
}

/* Every second pixel, and as many channels of zeros as there were channels. */
static int shortcut(tdmi_graph *graph, struct tdmi_name block, int x)
{
    int half = tdmi_channels_of(graph, x) / 2;
    x = tdmi_graph_add(graph, TDMI_OP_AVG_POOL, tdmi_name("%s.shortcut.pick", block.text).text, x,
                       (struct tdmi_op_attrs){.kernel = 1, .stride = 2});
    return tdmi_graph_add(graph, TDMI_OP_PAD, tdmi_name("%s.shortcut.pad", block.text).text, x,
                          (struct tdmi_op_attrs){.pad_front = half, .pad_back = half});
}

static int basic(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block, int x,
                 int channels, int stride)
{
    int beside = stride == 1 ? x : shortcut(graph, block, x);
    x = conv_norm(graph, what, block, 1, x, channels, stride);
    x = tdmi_add_relu(graph, tdmi_name("%s.relu1", block.text).text, x);
    x = conv_norm(graph, what, block, 2, x, channels, 1);
    x = tdmi_add_sum(graph, tdmi_name("%s.add", block.text).text, x, beside);
    return tdmi_add_relu(graph, tdmi_name("%s.relu2", block.text).text, x);
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    int blocks = ((int)what->variant - 2) / 6, x = tdmi_add_input(graph, &what->preprocess);
    x = tdmi_add_conv(graph, "conv1", x, 16, 3, 1, 1, false);
    x = tdmi_add_batch_norm(graph, "bn1", x);
    x = tdmi_add_relu(graph, "relu", x);
    for (int stage = 1; stage <= 3; stage++)
        for (int i = 0; i < blocks; i++)
            x = basic(graph, what, tdmi_name("layer%d.%d", stage, i), x, 8 << stage,
                      stage > 1 && i == 0 ? 2 : 1);
    x = tdmi_add_global_pool(graph, "pool", x);
    tdmi_add_head(graph, &what->head, "linear", x);
}

/* "resnet56-cifar" */
static bool reads(const char *name, struct tdmi_network *network)
{
    enum { most = 998 };
    int layers, end = 0;
    if (sscanf(name, "resnet%3d-cifar%n", &layers, &end) != 1 || end == 0 || name[end] != '\0' ||
        layers < 8 || layers > most || layers % 6 != 2)
        return false;
    network->variant = layers;
    snprintf(network->name, sizeof network->name, "resnet%d-cifar", layers);
    return strcmp(network->name, name) == 0;
}

const struct tdmi_network tdmi_network_resnet_cifar = {
    .name = "resnet20-cifar",
    .summary = "residual networks of 6n + 2 layers for 32×32 pixels, such as resnet56-cifar",
    .forms = "resnetN-cifar (N = 6n + 2)",
    .reads = reads,
    .variant = 20.0,
    .preprocess = TDMI_PADDED(32, 3, TDMI_SCALE_TORCH),
    .padding = TDMI_PADDING_SYMMETRIC,
    .classes = 10,
    .shard = 8,
    .learning_rate = 0.025,
    .build = build,
};

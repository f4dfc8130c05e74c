/*
 * Xception (Chollet, 2017), laid out and named as keras.applications: an entry flow of three
 * residual blocks, a middle flow of eight, an exit flow. A separable convolution is two nodes,
 * <name>.depthwise and <name>.pointwise, with nothing between. 22.9 million parameters, 8.4
 * thousand million multiplications for 299×299 pixels.
 */
#include "models/network.h"

/* Convolution and batch norm. */
static int conv_norm(tdmi_graph *graph, const struct tdmi_build *what, const char *name, int x,
                     int channels, int kernel, int stride)
{
    struct tdmi_op_attrs attrs = {.channels = channels, .kernel = kernel, .stride = stride};
    x = tdmi_add_padded_conv(graph, what, name, x, attrs);
    return tdmi_add_keras_norm(graph, tdmi_name("%s_bn", name).text, x);
}

static int separable(tdmi_graph *graph, const struct tdmi_build *what, int block, int number, int x,
                     int channels)
{
    struct tdmi_name name = tdmi_name("block%d_sepconv%d", block, number);
    struct tdmi_op_attrs pointwise = {.channels = channels, .kernel = 1, .stride = 1};
    x = tdmi_add_depthwise(graph, what, tdmi_name("%s.depthwise", name.text).text, x, 3, 1);
    x = tdmi_add_padded_conv(graph, what, tdmi_name("%s.pointwise", name.text).text, x, pointwise);
    return tdmi_add_keras_norm(graph, tdmi_name("%s_bn", name.text).text, x);
}

static int act(tdmi_graph *graph, int block, const char *of, int x)
{
    return tdmi_add_relu(graph, tdmi_name("block%d_%s_act", block, of).text, x);
}

/* Two separable convolutions and a pool, beside a strided 1×1 convolution. */
static int strided_block(tdmi_graph *graph, const struct tdmi_build *what, int block, int x,
                         int first_channels, int channels)
{
    int beside =
        conv_norm(graph, what, tdmi_name("block%d_shortcut", block).text, x, channels, 1, 2);
    if (block > 2) /* the stem has just ended with one */
        x = act(graph, block, "sepconv1", x);
    x = separable(graph, what, block, 1, x, first_channels);
    x = act(graph, block, "sepconv2", x);
    x = separable(graph, what, block, 2, x, channels);
    x = tdmi_add_padded_max_pool(graph, what, tdmi_name("block%d_pool", block).text, x, 3, 2);
    return tdmi_add_sum(graph, tdmi_name("block%d_add", block).text, x, beside);
}

static int middle_block(tdmi_graph *graph, const struct tdmi_build *what, int block, int x)
{
    int beside = x;
    for (int i = 1; i <= 3; i++) {
        x = act(graph, block, tdmi_name("sepconv%d", i).text, x);
        x = separable(graph, what, block, i, x, 728);
    }
    return tdmi_add_sum(graph, tdmi_name("block%d_add", block).text, x, beside);
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    int x = tdmi_add_input(graph, &what->preprocess);
    x = tdmi_add_conv(graph, "block1_conv1", x, 32, 3, 2, 0, false);
    x = tdmi_add_keras_norm(graph, "block1_conv1_bn", x);
    x = act(graph, 1, "conv1", x);
    x = tdmi_add_conv(graph, "block1_conv2", x, 64, 3, 1, 0, false);
    x = tdmi_add_keras_norm(graph, "block1_conv2_bn", x);
    x = act(graph, 1, "conv2", x);
    x = strided_block(graph, what, 2, x, 128, 128);
    x = strided_block(graph, what, 3, x, 256, 256);
    x = strided_block(graph, what, 4, x, 728, 728);
    for (int block = 5; block <= 12; block++)
        x = middle_block(graph, what, block, x);
    x = strided_block(graph, what, 13, x, 728, 1024);
    x = separable(graph, what, 14, 1, x, 1536);
    x = act(graph, 14, "sepconv1", x);
    x = separable(graph, what, 14, 2, x, 2048);
    x = act(graph, 14, "sepconv2", x);
    x = tdmi_add_global_pool(graph, "avg_pool", x);
    tdmi_add_head(graph, &what->head, "predictions", x);
}

const struct tdmi_network tdmi_network_xception = {
    .name = "xception",
    .summary = "Xception, 299×299: the most accurate here, and the slowest",
    .preprocess = TDMI_CROPPED(299, TDMI_SCALE_TF),
    .padding = TDMI_PADDING_SAME,
    .classes = 1000,
    .shard = 4,
    .learning_rate = 0.045,
    .build = build,
};

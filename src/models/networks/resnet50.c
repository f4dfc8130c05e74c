/*
 * ResNet-50 (He et al., 2016) in the form that torchvision calls v1.5, with its names: the stride
 * of a stage lies in the 3×3 convolution of its first bottleneck. 25.6 million parameters, 4.1
 * thousand million multiplications for 224×224 pixels. Keras publishes the paper's form: the stride
 * in the first 1×1 convolution, biases before batch norms, and an epsilon of its own.
 */
#include "models/network.h"

/* Convolution and batch norm. */
static int conv_norm(tdmi_graph *graph, const struct tdmi_build *what, const char *conv,
                     const char *norm, int x, struct tdmi_op_attrs attrs)
{
    struct tdmi_op_attrs keras = {.epsilon = 1.001e-5, .momentum = 0.01, .is_biased = true};
    const bool is_keras = what->publisher == TDMI_PUBLISHER_KERAS;
    attrs.has_bias = is_keras;
    x = tdmi_add_padded_conv(graph, what, conv, x, attrs);
    return is_keras ? tdmi_graph_add(graph, TDMI_OP_BATCH_NORM, norm, x, keras)
                    : tdmi_add_batch_norm(graph, norm, x);
}

/* The same, named after their place in the block. */
static int inner(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block,
                 const char *conv, const char *norm, int x, struct tdmi_op_attrs attrs)
{
    return conv_norm(graph, what, tdmi_name("%s.%s", block.text, conv).text,
                     tdmi_name("%s.%s", block.text, norm).text, x, attrs);
}

/* Narrow by 1×1, look around, widen fourfold by 1×1. */
static int bottleneck(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block,
                      int x, int channels, int stride)
{
    const int first = what->publisher == TDMI_PUBLISHER_KERAS ? stride : 1;
    struct tdmi_op_attrs narrow = {.channels = channels, .kernel = 1, .stride = first};
    struct tdmi_op_attrs around = {.channels = channels, .kernel = 3, .stride = stride / first};
    struct tdmi_op_attrs widen = {.channels = 4 * channels, .kernel = 1, .stride = 1};
    struct tdmi_op_attrs project = {.channels = 4 * channels, .kernel = 1, .stride = stride};
    int beside = x;
    x = inner(graph, what, block, "conv1", "bn1", x, narrow);
    x = tdmi_add_relu(graph, tdmi_name("%s.relu1", block.text).text, x);
    x = inner(graph, what, block, "conv2", "bn2", x, around);
    x = tdmi_add_relu(graph, tdmi_name("%s.relu2", block.text).text, x);
    x = inner(graph, what, block, "conv3", "bn3", x, widen);
    if (tdmi_channels_of(graph, beside) != 4 * channels || stride != 1)
        beside = inner(graph, what, block, "downsample.0", "downsample.1", beside, project);
    x = tdmi_add_sum(graph, tdmi_name("%s.add", block.text).text, x, beside);
    return tdmi_add_relu(graph, tdmi_name("%s.relu3", block.text).text, x);
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    static const int blocks[] = {3, 4, 6, 3};
    int x = tdmi_add_input(graph, &what->preprocess);
    x = conv_norm(graph, what, "conv1", "bn1", x,
                  (struct tdmi_op_attrs){.channels = 64, .kernel = 7, .stride = 2});
    x = tdmi_add_relu(graph, "relu", x);
    x = tdmi_add_padded_max_pool(graph, what, "maxpool", x, 3, 2);
    for (int stage = 1; stage <= 4; stage++)
        for (int i = 0; i < blocks[stage - 1]; i++)
            x = bottleneck(graph, what, tdmi_name("layer%d.%d", stage, i), x, 32 << stage,
                           stage > 1 && i == 0 ? 2 : 1);
    x = tdmi_add_global_pool(graph, "avgpool", x);
    tdmi_add_head(graph, &what->head, "fc", x);
}

const struct tdmi_network tdmi_network_resnet50 = {
    .name = "resnet50",
    .summary = "ResNet-50, 224×224",
    .preprocess = TDMI_CROPPED(224, TDMI_SCALE_TORCH),
    .padding = TDMI_PADDING_SYMMETRIC,
    .classes = 1000,
    .shard = 8,
    .learning_rate = 0.0125,
    .build = build,
};

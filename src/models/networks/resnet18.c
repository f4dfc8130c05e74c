/*
 * ResNet-18 (He et al., 2016), laid out and named as torchvision: four stages of two basic blocks.
 * 11.7 million parameters, 1.8 thousand million multiplications for 224×224 pixels.
 */
#include "models/network.h"

/* Convolution and batch norm; both named after their place in the block. */
static int conv_norm(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block,
                     const char *conv, const char *norm, int x, struct tdmi_op_attrs attrs)
{
    x = tdmi_add_padded_conv(graph, what, tdmi_name("%s.%s", block.text, conv).text, x, attrs);
    return tdmi_add_batch_norm(graph, tdmi_name("%s.%s", block.text, norm).text, x);
}

static int basic(tdmi_graph *graph, const struct tdmi_build *what, struct tdmi_name block, int x,
                 int channels, int stride)
{
    struct tdmi_op_attrs first = {.channels = channels, .kernel = 3, .stride = stride};
    struct tdmi_op_attrs second = {.channels = channels, .kernel = 3, .stride = 1};
    struct tdmi_op_attrs project = {.channels = channels, .kernel = 1, .stride = stride};
    int beside = x;
    x = conv_norm(graph, what, block, "conv1", "bn1", x, first);
    x = tdmi_add_relu(graph, tdmi_name("%s.relu1", block.text).text, x);
    x = conv_norm(graph, what, block, "conv2", "bn2", x, second);
    if (stride != 1 || tdmi_channels_of(graph, beside) != channels)
        beside = conv_norm(graph, what, block, "downsample.0", "downsample.1", beside, project);
    x = tdmi_add_sum(graph, tdmi_name("%s.add", block.text).text, x, beside);
    return tdmi_add_relu(graph, tdmi_name("%s.relu2", block.text).text, x);
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    int x = tdmi_add_input(graph, &what->preprocess);
    x = tdmi_add_padded_conv(graph, what, "conv1", x,
                             (struct tdmi_op_attrs){.channels = 64, .kernel = 7, .stride = 2});
    x = tdmi_add_batch_norm(graph, "bn1", x);
    x = tdmi_add_relu(graph, "relu", x);
    x = tdmi_add_padded_max_pool(graph, what, "maxpool", x, 3, 2);
    for (int stage = 1; stage <= 4; stage++)
        for (int i = 0; i < 2; i++)
            x = basic(graph, what, tdmi_name("layer%d.%d", stage, i), x, 32 << stage,
                      stage > 1 && i == 0 ? 2 : 1);
    x = tdmi_add_global_pool(graph, "avgpool", x);
    tdmi_add_head(graph, &what->head, "fc", x);
}

const struct tdmi_network tdmi_network_resnet18 = {
    .name = "resnet18",
    .summary = "ResNet-18, 224×224",
    .preprocess = TDMI_CROPPED(224, TDMI_SCALE_TORCH),
    .padding = TDMI_PADDING_SYMMETRIC,
    .classes = 1000,
    .shard = 8,
    .learning_rate = 0.0125,
    .build = build,
};

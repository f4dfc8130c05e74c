/*
 * AlexNet as torchvision has it, with its names: the single-tower form of "One weird trick"
 * (Krizhevsky, 2014), which dropped the response normalisation of 2012. 61.1 million parameters,
 * 0.7 thousand million multiplications for 224×224 pixels. torchvision's pooling to 6×6 changes
 * nothing at that size; at others the first dense layer has as many inputs as there are.
 */
#include "models/network.h"

static int conv(tdmi_graph *graph, int number, int x, struct tdmi_op_attrs attrs)
{
    x = tdmi_add_conv(graph, tdmi_name("features.%d", number).text, x, attrs.channels, attrs.kernel,
                      attrs.stride, attrs.pad_top, true);
    return tdmi_add_relu(graph, tdmi_name("features.%d", number + 1).text, x);
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    int x = tdmi_add_input(graph, &what->preprocess);
    x = conv(graph, 0, x,
             (struct tdmi_op_attrs){.channels = 64, .kernel = 11, .stride = 4, .pad_top = 2});
    x = tdmi_add_max_pool(graph, "features.2", x, 3, 2);
    x = conv(graph, 3, x,
             (struct tdmi_op_attrs){.channels = 192, .kernel = 5, .stride = 1, .pad_top = 2});
    x = tdmi_add_max_pool(graph, "features.5", x, 3, 2);
    x = conv(graph, 6, x,
             (struct tdmi_op_attrs){.channels = 384, .kernel = 3, .stride = 1, .pad_top = 1});
    x = conv(graph, 8, x,
             (struct tdmi_op_attrs){.channels = 256, .kernel = 3, .stride = 1, .pad_top = 1});
    x = conv(graph, 10, x,
             (struct tdmi_op_attrs){.channels = 256, .kernel = 3, .stride = 1, .pad_top = 1});
    x = tdmi_add_max_pool(graph, "features.12", x, 3, 2);
    x = tdmi_add_dropout(graph, "classifier.0", x, 0.5, 1);
    x = tdmi_add_dense(graph, "classifier.1", x, 4096);
    x = tdmi_add_relu(graph, "classifier.2", x);
    x = tdmi_add_dropout(graph, "classifier.3", x, 0.5, 2);
    x = tdmi_add_dense(graph, "classifier.4", x, 4096);
    x = tdmi_add_relu(graph, "classifier.5", x);
    tdmi_add_head(graph, &what->head, "classifier.6", x);
}

const struct tdmi_network tdmi_network_alexnet = {
    .name = "alexnet",
    .summary = "AlexNet, 224×224, of historical interest",
    .preprocess = TDMI_CROPPED(224, TDMI_SCALE_TORCH),
    .padding = TDMI_PADDING_SYMMETRIC,
    .classes = 1000,
    .shard = 8,
    .learning_rate = 0.0025,
    .build = build,
};

/*
 * MobileNetV2 (Sandler et al., 2018), laid out and named as keras.applications, of any width: every
 * number of channels is a multiple of eight near width times the paper's. Seventeen inverted
 * residuals: expand by a 1×1 convolution, look around depthwise, project without an activation.
 * Width 1: 3.5 million parameters, 300 million multiplications for 224×224 pixels.
 */
#include "base/text/text.h"
#include "models/network.h"

#include <stdio.h>
#include <string.h>

/* keras.applications: to the nearest multiple of 8, but never below nine tenths. */
static int rounded(double channels)
{
    int whole = (int)(channels + 4.0) / 8 * 8;
    whole = whole < 8 ? 8 : whole;
    return (double)whole < 0.9 * channels ? whole + 8 : whole;
}

static int conv_norm(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                     const char *norm, int x, struct tdmi_op_attrs attrs)
{
    x = tdmi_add_padded_conv(graph, what, name, x, attrs);
    return tdmi_add_published_norm(graph, what, norm, x);
}

/* Block 0 does not expand, and Keras calls it expanded_conv. */
static int inverted_residual(tdmi_graph *graph, const struct tdmi_build *what, int block, int x,
                             int expansion, int channels, int stride)
{
    struct tdmi_name name = block ? tdmi_name("block_%d", block) : tdmi_name("expanded_conv");
    int beside = x, in = tdmi_channels_of(graph, x);
    if (block > 0) {
        x = conv_norm(graph, what, tdmi_name("%s_expand", name.text).text,
                      tdmi_name("%s_expand_BN", name.text).text, x,
                      (struct tdmi_op_attrs){.channels = expansion * in, .kernel = 1, .stride = 1});
        x = tdmi_add_relu6(graph, tdmi_name("%s_expand_relu", name.text).text, x);
    }
    x = tdmi_add_depthwise(graph, what, tdmi_name("%s_depthwise", name.text).text, x, 3, stride);
    x = tdmi_add_published_norm(graph, what, tdmi_name("%s_depthwise_BN", name.text).text, x);
    x = tdmi_add_relu6(graph, tdmi_name("%s_depthwise_relu", name.text).text, x);
    x = conv_norm(graph, what, tdmi_name("%s_project", name.text).text,
                  tdmi_name("%s_project_BN", name.text).text, x,
                  (struct tdmi_op_attrs){.channels = channels, .kernel = 1, .stride = 1});
    if (stride == 1 && in == channels)
        x = tdmi_add_sum(graph, tdmi_name("%s_add", name.text).text, x, beside);
    return x;
}

static void build(tdmi_graph *graph, const struct tdmi_build *what)
{
    /* The paper's table: expansion t, channels c, repeats n, stride s of the first. */
    static const struct {
        int t, c, n, s;
    } table[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const double width = what->variant;
    int block = 0, x = tdmi_add_input(graph, &what->preprocess);
    x = conv_norm(
        graph, what, "Conv1", "bn_Conv1", x,
        (struct tdmi_op_attrs){.channels = rounded(32 * width), .kernel = 3, .stride = 2});
    x = tdmi_add_relu6(graph, "Conv1_relu", x);
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
        for (int i = 0; i < table[row].n; i++)
            x = inverted_residual(graph, what, block++, x, table[row].t,
                                  rounded((int)(table[row].c * width)), i ? 1 : table[row].s);
    x = conv_norm(graph, what, "Conv_1", "Conv_1_bn", x,
                  (struct tdmi_op_attrs){.channels = width > 1.0 ? rounded(1280 * width) : 1280,
                                         .kernel = 1,
                                         .stride = 1});
    x = tdmi_add_relu6(graph, "out_relu", x);
    x = tdmi_add_global_pool(graph, "global_average_pooling2d", x);
    tdmi_add_head(graph, &what->head, "predictions", x);
}

/* "mobilenetv2-0.35"; -1 and -1.0 are the plain one. */
static bool reads(const char *name, struct tdmi_network *network)
{
    static const char stem[] = "mobilenetv2-";
    double width;
    if (strncmp(name, stem, sizeof stem - 1) != 0 || strlen(name) >= sizeof network->name ||
        name[sizeof stem - 1] < '0' || name[sizeof stem - 1] > '9' ||
        !tdmi_number_read(name + sizeof stem - 1, &width) || !(width >= 0.05 && width <= 4.0))
        return false;
    network->variant = width;
    if (width < 1.0 || width > 1.0) {
        char number[32];
        tdmi_number_write(width, number);
        snprintf(network->name, sizeof network->name, "mobilenetv2-%.19s", number);
    }
    return true;
}

const struct tdmi_network tdmi_network_mobilenetv2 = {
    .name = "mobilenetv2",
    .summary = "MobileNetV2, 224×224: small and fast; any width, such as mobilenetv2-0.35",
    .forms = "mobilenetv2-WIDTH (0.05 to 4)",
    .reads = reads,
    .variant = 1.0,
    .preprocess = TDMI_CROPPED(224, TDMI_SCALE_TF),
    .padding = TDMI_PADDING_SAME,
    .classes = 1000,
    .shard = 8,
    .learning_rate = 0.045,
    .build = build,
};

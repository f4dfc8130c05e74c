/* The list of networks and the small calls their builders are written in. */
#include "models/network.h"
#include "base/text/suggest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(name) extern const struct tdmi_network tdmi_network_##name;
#include "models/models.def"
#undef X

static const struct tdmi_network *const networks[] = {
#define X(name) &tdmi_network_##name,
#include "models/models.def"
#undef X
};

enum { n_networks = sizeof networks / sizeof networks[0] };

const struct tdmi_network *tdmi_network_at(int index)
{
    return index >= 0 && index < n_networks ? networks[index] : NULL;
}

tdm_status tdmi_network_find(const char *name, struct tdmi_network *network, tdm_error *err)
{
    char known[TDM_ERROR_TEXT_BYTES / 2] = "", nearest[100];
    tdmi_suggestion suggestion = {.typed = name};
    size_t length = 0;
    for (int i = 0; i < n_networks; i++) {
        struct tdmi_network found = *networks[i];
        if (strcmp(name, found.name) == 0 || (found.reads && found.reads(name, &found))) {
            *network = found;
            return TDM_OK;
        }
        tdmi_suggest_consider(&suggestion, networks[i]->name);
        int added = snprintf(known + length, sizeof known - length, "%s%s%s%s", i ? ", " : "",
                             found.name, found.forms ? ", " : "", found.forms ? found.forms : "");
        if (added > 0 && (size_t)added < sizeof known - length)
            length += (size_t)added;
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "choosing the model '%s': there is none of that name; there is %s%s", name,
                    known, tdmi_suggest_words(&suggestion, "", nearest, sizeof nearest));
}

struct tdmi_build tdmi_network_defaults(const struct tdmi_network *network, int classes)
{
    return (struct tdmi_build){.preprocess = network->preprocess,
                               .head = {.classes = classes},
                               .padding = network->padding,
                               .variant = network->variant};
}

tdm_status tdmi_network_make(const struct tdmi_network *network, const struct tdmi_build *what,
                             tdmi_graph **graph, tdm_error *err)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *made = tdmi_graph_new();
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "building the network %s: out of memory", network->name);
    network->build(made, what);
    TDMI_TRY(tdmi_graph_finish(made, network->name, err));
    *graph = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_network_build(const struct tdmi_network *network,
                              const struct tdmi_preprocess *preprocess, int classes,
                              tdmi_graph **graph, tdm_error *err)
{
    struct tdmi_build what = tdmi_network_defaults(network, classes);
    what.preprocess = *preprocess;
    return tdmi_network_make(network, &what, graph, err);
}

/* ---- for builders ------------------------------------------------------------------------ */

struct tdmi_name tdmi_name(const char *format, ...)
{
    struct tdmi_name name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name.text, sizeof name.text, format, arguments);
    va_end(arguments);
    return name;
}

/* After a mistake node numbers mean nothing, and nothing that is made of them is looked at. */
static struct tdmi_shape shape_of(const tdmi_graph *graph, int node)
{
    if (graph->mistake.code != TDM_OK || node < 0 || node >= graph->n_nodes)
        return (struct tdmi_shape){1, 1, 1};
    return graph->nodes[node].out;
}

int tdmi_channels_of(const tdmi_graph *graph, int node)
{
    return shape_of(graph, node).c;
}

const char *tdmi_padding_word(enum tdmi_padding padding)
{
    static const char *const words[] = {[TDMI_PADDING_SAME] = "same",
                                        [TDMI_PADDING_SYMMETRIC] = "symmetric",
                                        [TDMI_PADDING_NONE] = "none"};
    return words[padding];
}

/* Padding of one axis: "same" gives ceil(size / stride) windows. */
static void pads_of(enum tdmi_padding padding, int size, int kernel, int stride, int *before,
                    int *after)
{
    int total = padding == TDMI_PADDING_NONE ? 0 : 2 * ((kernel - 1) / 2);
    if (padding == TDMI_PADDING_SAME) {
        total = ((size + stride - 1) / stride - 1) * stride + kernel - size;
        total = total > 0 ? total : 0;
    }
    *before = total / 2;
    *after = total - total / 2;
}

static struct tdmi_op_attrs padded(const tdmi_graph *graph, const struct tdmi_build *what,
                                   int input, struct tdmi_op_attrs attrs)
{
    struct tdmi_shape in = shape_of(graph, input);
    pads_of(what->padding, in.h, attrs.kernel, attrs.stride, &attrs.pad_top, &attrs.pad_bottom);
    pads_of(what->padding, in.w, attrs.kernel, attrs.stride, &attrs.pad_left, &attrs.pad_right);
    return attrs;
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

int tdmi_add_padded_conv(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                         int input, struct tdmi_op_attrs attrs)
{
    attrs.dilation = attrs.dilation ? attrs.dilation : 1;
    attrs.groups = attrs.groups ? attrs.groups : 1;
    return tdmi_graph_add(graph, TDMI_OP_CONV, name, input, padded(graph, what, input, attrs));
}

int tdmi_add_depthwise(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                       int input, int kernel, int stride)
{
    int channels = tdmi_channels_of(graph, input);
    return tdmi_add_padded_conv(
        graph, what, name, input,
        (struct tdmi_op_attrs){
            .channels = channels, .kernel = kernel, .stride = stride, .groups = channels});
}

int tdmi_add_batch_norm(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_BATCH_NORM, name, input,
                          (struct tdmi_op_attrs){.epsilon = 1e-5, .momentum = 0.1});
}

int tdmi_add_keras_norm(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(
        graph, TDMI_OP_BATCH_NORM, name, input,
        (struct tdmi_op_attrs){.epsilon = 1e-3, .momentum = 0.01, .is_biased = true});
}

int tdmi_add_published_norm(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                            int input)
{
    return what->publisher == TDMI_PUBLISHER_TORCH ? tdmi_add_batch_norm(graph, name, input)
                                                   : tdmi_add_keras_norm(graph, name, input);
}

int tdmi_add_relu(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_RELU, name, input, (struct tdmi_op_attrs){0});
}

int tdmi_add_relu6(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_RELU6, name, input, (struct tdmi_op_attrs){0});
}

int tdmi_add_max_pool(tdmi_graph *graph, const char *name, int input, int kernel, int stride)
{
    return tdmi_graph_add(graph, TDMI_OP_MAX_POOL, name, input,
                          (struct tdmi_op_attrs){.kernel = kernel, .stride = stride});
}

int tdmi_add_padded_max_pool(tdmi_graph *graph, const struct tdmi_build *what, const char *name,
                             int input, int kernel, int stride)
{
    return tdmi_graph_add(
        graph, TDMI_OP_MAX_POOL, name, input,
        padded(graph, what, input, (struct tdmi_op_attrs){.kernel = kernel, .stride = stride}));
}

int tdmi_add_global_pool(tdmi_graph *graph, const char *name, int input)
{
    return tdmi_graph_add(graph, TDMI_OP_GLOBAL_POOL, name, input, (struct tdmi_op_attrs){0});
}

int tdmi_add_dropout(tdmi_graph *graph, const char *name, int input, double rate, int stream)
{
    return tdmi_graph_add(graph, TDMI_OP_DROPOUT, name, input,
                          (struct tdmi_op_attrs){.rate = rate, .stream = stream});
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

int tdmi_add_head(tdmi_graph *graph, const struct tdmi_head *head, const char *name, int input)
{
    int x = input;
    graph->head = graph->n_nodes;
    if (head->hidden > 0) {
        x = tdmi_add_dense(graph, "hidden", x, head->hidden);
        x = tdmi_add_relu(graph, "hidden_relu", x);
    }
    if (head->dropout > 0.0)
        x = tdmi_add_dropout(graph, "dropout", x, head->dropout, 0);
    bool is_one_logit = head->is_logistic && head->classes == 2;
    x = tdmi_add_dense(graph, name, x, is_one_logit ? 1 : head->classes);
    return tdmi_graph_add(graph, head->is_logistic ? TDMI_OP_LOGISTIC : TDMI_OP_SOFTMAX,
                          head->is_logistic ? "logistic" : "softmax", x,
                          (struct tdmi_op_attrs){.label_smoothing = head->label_smoothing});
}

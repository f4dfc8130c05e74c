/*
 * tandem model show NAME: a network, node by node, with shapes, parameters and work; as a drawing.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/network.h"

TDMI_POINTER_RELEASE(tdm_network, tdm_network_close)

struct values {
    struct tdm_network_options network;
    const char *svg;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.svg = NULL};
}

static void print_columns(struct tdmi_output *out, const char *shape, const char *parameters,
                          const char *flops, const char *op)
{
    tdmi_print(out, "  %-14s  %10s  %11s  %s", shape, parameters, flops, op);
}

static void print_node(struct tdmi_output *out, const struct tdm_network_node *node, int widest)
{
    char shape[48], parameters[24] = "", flops[24] = "";
    snprintf(shape, sizeof shape, "%d×%d×%d", node->height, node->width, node->channels);
    if (node->parameters > 0)
        snprintf(parameters, sizeof parameters, "%lld", (long long)node->parameters);
    if (node->flops > 0.0)
        tdmi_format_amount(node->flops, "FLOP", flops, sizeof flops);
    tdmi_print(out, "  %-*s", widest, node->name);
    print_columns(out, shape, parameters, flops, node->op);
    tdmi_print(out, "%s%s", *node->detail ? " " : "", node->detail);
}

static void report_node(const struct tdmi_call *call, const tdm_network *network, int index,
                        int widest)
{
    tdm_json_writer *json = call->json;
    const struct tdm_network_node *node = tdm_network_node_at(network, index);
    print_node(call->out, node, widest);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "name", node->name);
    tdm_json_string(json, "op", node->op);
    tdm_json_string(json, "detail", node->detail);
    tdm_json_array_begin(json, "inputs");
    for (int k = 0; k < node->n_inputs; k++) {
        const char *input = tdm_network_node_at(network, node->inputs[k])->name;
        tdm_json_string(json, NULL, input);
        if (node->n_inputs > 1 || node->inputs[k] != index - 1) /* not the node before */
            tdmi_print(call->out, "%s%s", k ? " and " : " of ", input);
    }
    tdm_json_array_end(json);
    tdmi_print(call->out, "\n");
    tdm_json_integer(json, "height", node->height);
    tdm_json_integer(json, "width", node->width);
    tdm_json_integer(json, "channels", node->channels);
    tdm_json_integer(json, "parameters", node->parameters);
    tdm_json_integer(json, "states", node->states);
    tdm_json_number(json, "multiplications", node->multiplications);
    tdm_json_number(json, "flops", node->flops);
    tdm_json_object_end(json);
}

static void report(const struct tdmi_call *call, const tdm_network *network)
{
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    const struct tdm_network_totals *totals = tdm_network_totals(network);
    const struct tdm_network_node *node;
    char flops[40], multiplications[40];
    int widest = 4;
    for (int i = 0; (node = tdm_network_node_at(network, i)) != NULL; i++)
        widest = tdmi_widest(widest, node->name, 1000);
    tdm_json_string(json, "model", totals->name);
    tdm_json_string(json, "summary", totals->summary);
    tdm_json_object_begin(json, "input");
    tdm_json_integer(json, "height", totals->height);
    tdm_json_integer(json, "width", totals->width);
    tdm_json_integer(json, "channels", totals->channels);
    tdm_json_object_end(json);
    tdm_json_integer(json, "classes", totals->classes);
    tdm_json_integer(json, "parameters", totals->parameters);
    tdm_json_integer(json, "states", totals->states);
    tdm_json_number(json, "multiplications", totals->multiplications);
    tdm_json_number(json, "flops", totals->flops);
    tdmi_print(out, "%s: %s\n\n  %-*s", totals->name, totals->summary, widest, "node");
    print_columns(out, "gives", "parameters", "work", "op");
    tdmi_print(out, "\n");
    tdm_json_array_begin(json, "nodes");
    for (int i = 0; i < totals->nodes; i++)
        report_node(call, network, i, widest);
    tdm_json_array_end(json);
    tdmi_print(
        out,
        "\n%d nodes, %lld parameters and %lld running statistics; an image takes %s: %s of "
        "multiplications, each with an addition, and the rest\n",
        totals->nodes, (long long)totals->parameters, (long long)totals->states,
        tdmi_format_amount(totals->flops, "FLOP", flops, sizeof flops),
        tdmi_format_amount(totals->multiplications, "", multiplications, sizeof multiplications));
}

static tdm_status show(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_network_options options = values->network;
    TDMI_AT_END(tdm_network_close_at) tdm_network *network = NULL;
    options.model = call->arguments[1];
    TDM_TRY(tdm_network_open(&options, &network, err), err, "showing a model");
    if (values->svg)
        TDMI_TRY(tdm_network_draw(network, values->svg, err));
    report(call, network);
    return TDM_OK;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    static const struct tdmi_verb verbs[] = {{"show", "one NAME", 2, 2, show}, {.name = NULL}};
    const struct tdmi_verb *verb;
    TDMI_TRY(tdmi_verb_find(call, verbs, &verb, err));
    return verb->run(call, err);
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT",
     .help = "show: list nodes with shapes, parameters and work",
     .choices = "show"},
    {.name = "NAME", .help = "network, as train --model takes it"},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(INTEGER, "classes", network.classes, "Network", "outputs of the last layer",
             .high = 1e6, .default_words = "as it was published"),
    TDMI_ROW(INTEGER, "size", network.size, "Network", "side of the square input", .high = 4096,
             .unit = "pixels", .value_name = "PX", .default_words = "the network's own"),
    TDMI_ROW(INTEGER, "hidden", network.hidden, "Network",
             "outputs of a dense layer with ReLU before the last one", .high = 1e6,
             .default_words = "none"),
    TDMI_ROW(PATH, "out", svg, "Result", "write a drawing (SVG) to FILE", .letter = 'o',
             .value_name = "FILE", .default_words = "none", .old_name = "svg"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem model show mobilenetv2 -o mobilenetv2.svg",
    "its layers, and a drawing",
    "tandem model show xception --classes 5 --json",
    "the same for a program",
    NULL,
};

TDMI_COMMAND(model, "show the layers of a network",
             "Lists the nodes of a network known by name: inputs, output shape, parameters, "
             "and the work of one image. The drawing shows batch norms and activations in "
             "the box of the layer that they follow.");

/*
 * Graphs as JSON. One list names every attribute once; each op says which of them it uses, so
 * writing and reading cannot drift apart.
 */
#include "graph/graph.h"

#include <string.h>

enum attr_type { ATTR_INT, ATTR_BOOL, ATTR_DOUBLE, ATTR_PREPROCESS };

static const struct attr {
    const char *name;
    enum attr_type type;
    size_t offset;
} attr_list[] = {
    {"channels", ATTR_INT, offsetof(struct tdmi_op_attrs, channels)},
    {"kernel", ATTR_INT, offsetof(struct tdmi_op_attrs, kernel)},
    {"stride", ATTR_INT, offsetof(struct tdmi_op_attrs, stride)},
    {"dilation", ATTR_INT, offsetof(struct tdmi_op_attrs, dilation)},
    {"groups", ATTR_INT, offsetof(struct tdmi_op_attrs, groups)},
    {"pad_top", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_top)},
    {"pad_bottom", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_bottom)},
    {"pad_left", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_left)},
    {"pad_right", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_right)},
    {"pad_front", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_front)},
    {"pad_back", ATTR_INT, offsetof(struct tdmi_op_attrs, pad_back)},
    {"has_bias", ATTR_BOOL, offsetof(struct tdmi_op_attrs, has_bias)},
    {"counts_padding", ATTR_BOOL, offsetof(struct tdmi_op_attrs, counts_padding)},
    {"epsilon", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, epsilon)},
    {"momentum", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, momentum)},
    {"is_biased", ATTR_BOOL, offsetof(struct tdmi_op_attrs, is_biased)},
    {"rate", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, rate)},
    {"stream", ATTR_INT, offsetof(struct tdmi_op_attrs, stream)},
    {"alpha", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, alpha)},
    {"beta", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, beta)},
    {"offset", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, offset)},
    {"label_smoothing", ATTR_DOUBLE, offsetof(struct tdmi_op_attrs, label_smoothing)},
    {"preprocess", ATTR_PREPROCESS, offsetof(struct tdmi_op_attrs, preprocess)},
};

/* Defaults for attributes that older files lack: the value of the attribute `was`, or this number.
 * A missing attribute that is not listed is an error. */
static const struct older {
    const char *name, *was;
    double value;
} older_list[] = {
    {"dilation", NULL, 1.0},          {"groups", NULL, 1.0},
    {"pad_top", "pad_before", 0.0},   {"pad_left", "pad_before", 0.0},
    {"pad_bottom", "pad_after", 0.0}, {"pad_right", "pad_after", 0.0},
    {"label_smoothing", NULL, 0.0},   {"is_biased", NULL, 0.0},
};

static const struct older *find_older(const char *name)
{
    for (size_t i = 0; i < sizeof older_list / sizeof older_list[0]; i++)
        if (strcmp(older_list[i].name, name) == 0)
            return &older_list[i];
    return NULL;
}
static const char *const input_keys[TDMI_OP_INPUTS] = {"input", "second_input"};

static const struct attr *find_attr(const char *name)
{
    size_t i = 0;
    while (strcmp(attr_list[i].name, name) != 0)
        i++; /* ops name only attributes of the list: checked by a test over all ops */
    return &attr_list[i];
}

static void write_attr(const struct attr *attr, const struct tdmi_op_attrs *attrs,
                       tdm_json_writer *writer)
{
    const void *at = (const char *)attrs + attr->offset;
    switch (attr->type) {
    case ATTR_INT:
        tdm_json_integer(writer, attr->name, *(const int *)at);
        break;
    case ATTR_BOOL:
        tdm_json_bool(writer, attr->name, *(const bool *)at);
        break;
    case ATTR_DOUBLE:
        tdm_json_number(writer, attr->name, *(const double *)at);
        break;
    case ATTR_PREPROCESS:
        tdmi_preprocess_to_json(at, writer, attr->name);
        break;
    }
}

void tdmi_graph_to_json(const tdmi_graph *graph, tdm_json_writer *writer, const char *key)
{
    tdm_json_array_begin(writer, key);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        const struct tdmi_op *op = tdmi_op_of(node->kind);
        tdm_json_object_begin(writer, NULL);
        tdm_json_string(writer, "name", node->name);
        tdm_json_string(writer, "op", tdmi_op_name(node->kind));
        for (int k = 0; k < node->n_inputs; k++)
            tdm_json_string(writer, input_keys[k], graph->nodes[node->inputs[k]].name);
        for (int a = 0; a < TDMI_OP_ATTRS && op->attrs[a]; a++)
            write_attr(find_attr(op->attrs[a]), &node->attrs, writer);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}

static void set_number(const struct attr *attr, double number, void *at)
{
    if (attr->type == ATTR_INT)
        *(int *)at = (int)number;
    else if (attr->type == ATTR_BOOL)
        *(bool *)at = number != 0.0;
    else
        *(double *)at = number;
}

static tdm_status read_attr(const struct attr *attr, const tdm_json_value *node,
                            struct tdmi_op_attrs *attrs, tdm_error *err)
{
    const tdm_json_value *value = tdm_json_member(node, attr->name);
    void *at = (char *)attrs + attr->offset;
    const struct older *older = value ? NULL : find_older(attr->name);
    bool fits = true;
    if (older && older->was) {
        value = tdm_json_member(node, older->was);
    } else if (older) {
        set_number(attr, older->value, at);
        return TDM_OK;
    }
    switch (attr->type) {
    case ATTR_INT: {
        int64_t number = tdm_json_as_integer(value, -1);
        fits = number >= 0 && number <= INT32_MAX;
        *(int *)at = fits ? (int)number : 0;
        break;
    }
    case ATTR_BOOL:
        fits = tdm_json_kind_of(value) == TDM_JSON_BOOL;
        *(bool *)at = tdm_json_as_bool(value, false);
        break;
    case ATTR_DOUBLE:
        fits = tdm_json_kind_of(value) == TDM_JSON_NUMBER;
        *(double *)at = tdm_json_as_number(value, 0.0);
        break;
    case ATTR_PREPROCESS:
        return tdmi_preprocess_from_json(value, attr->name, at, err);
    }
    if (!fits)
        return TDM_FAIL(err, TDM_E_INPUT, "attribute '%s' is missing or out of range", attr->name);
    return TDM_OK;
}

/* The earlier node that the member of that key names. */
static tdm_status read_input(const tdm_json_value *object, const tdmi_graph *graph,
                             const char *name, const char *key, int *input, tdm_error *err)
{
    const char *wanted = tdm_json_as_string(tdm_json_member(object, key), "");
    for (int i = 0; i < graph->n_nodes; i++) {
        if (strcmp(graph->nodes[i].name, wanted) == 0) {
            *input = i;
            return TDM_OK;
        }
    }
    return TDM_FAIL(err, TDM_E_INPUT, "node '%s' reads '%s', and no earlier node is called so",
                    name, wanted);
}

static tdm_status read_node(const tdm_json_value *object, tdmi_graph *graph, tdm_error *err)
{
    const char *name = tdm_json_as_string(tdm_json_member(object, "name"), "");
    const char *op_name = tdm_json_as_string(tdm_json_member(object, "op"), "");
    enum tdmi_op_kind kind = tdmi_op_find(op_name);
    if (*name == '\0' || kind == TDMI_OP_KINDS)
        return TDM_FAIL(err, TDM_E_INPUT, "node '%s' asks for the op '%s', which is not known here",
                        name, op_name);
    int inputs[TDMI_OP_INPUTS] = {-1, -1};
    for (int k = 0; k < tdmi_op_inputs(kind); k++)
        TDM_TRY(read_input(object, graph, name, input_keys[k], &inputs[k], err), err, "op %s",
                op_name);
    const struct tdmi_op *op = tdmi_op_of(kind);
    struct tdmi_op_attrs attrs = {0};
    for (int a = 0; a < TDMI_OP_ATTRS && op->attrs[a]; a++)
        TDM_TRY(read_attr(find_attr(op->attrs[a]), object, &attrs, err), err, "node '%s'", name);
    tdmi_graph_join(graph, kind, name, inputs[0], inputs[1], attrs);
    return TDM_OK; /* a mistake is kept for tdmi_graph_finish */
}

tdm_status tdmi_graph_from_json(const tdm_json_value *nodes, const char *name, tdmi_graph **graph,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *made = tdmi_graph_new();
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "reading the network of %s: out of memory", name);
    for (size_t i = 0; i < tdm_json_count(nodes) && made->mistake.code == TDM_OK; i++)
        TDM_TRY(read_node(tdm_json_at(nodes, i), made, err), err, "reading the network of %s",
                name);
    TDMI_TRY(tdmi_graph_finish(made, name, err));
    *graph = tdmi_take(&made);
    return TDM_OK;
}

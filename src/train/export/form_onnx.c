/*
 * ONNX: the format that runtimes of phones, servers and browsers open. The whole network node by
 * node with our names and nothing folded; images (n, c, h, w) as floats, or with preprocessing (n,
 * h, w, c) as bytes; logits and probabilities. Dropout is left out.
 *
 * The form is a Protocol Buffers message, which holds at most 2 GB.
 */
#include "train/export/onnx.h"
#include "base/scope.h"

#include <inttypes.h>

enum { IR_VERSION = 8, OPERATOR_SET = 17 };

/* The shape of an input or output: the number of images has a name instead of a size. */
static void describe_value(struct tdmi_onnx *onnx, int field, const char *name, int type,
                           struct tdmi_layout layout)
{
    tdmi_protobuf *out = &onnx->out;
    tdmi_protobuf_begin(out, field);
    tdmi_protobuf_string(out, ONNX_VALUE_NAME, name);
    tdmi_protobuf_begin(out, ONNX_VALUE_TYPE);
    tdmi_protobuf_begin(out, ONNX_TYPE_TENSOR);
    tdmi_protobuf_integer(out, ONNX_TYPE_ELEMENT, type);
    tdmi_protobuf_begin(out, ONNX_TYPE_SHAPE);
    tdmi_protobuf_begin(out, ONNX_SHAPE_DIM);
    tdmi_protobuf_string(out, ONNX_DIM_NAME, "batch");
    tdmi_protobuf_end(out);
    for (int d = 0; d < layout.rank; d++) {
        tdmi_protobuf_begin(out, ONNX_SHAPE_DIM);
        tdmi_protobuf_integer(out, ONNX_DIM_VALUE, layout.shape[d]);
        tdmi_protobuf_end(out);
    }
    tdmi_protobuf_end(out);
    tdmi_protobuf_end(out);
    tdmi_protobuf_end(out);
    tdmi_protobuf_end(out);
}

/* One operation of the preprocessing: what x is called afterwards. */
static const char *prepare(struct tdmi_onnx *onnx, const char *op, const char *what, const char *x,
                           const char *constant)
{
    const char *name = onnx->export->graph->nodes[0].name;
    const char *out = tdmi_onnx_name(onnx, name, what);
    tdmi_onnx_begin(onnx, op, tdmi_onnx_name(onnx, name, op), (const char *[]){x, constant, NULL},
                    out);
    return out;
}

/* The arithmetic of tdmi_preprocess_normalise in its order, so that the floats are the same. */
static const char *normalised(struct tdmi_onnx *onnx, const struct tdmi_preprocess *preprocess,
                              const char *x)
{
    enum { most = 3 };
    const char *name = onnx->export->graph->nodes[0].name;
    float means[most] = {0}, deviations[most] = {0};
    struct tdmi_normal first = tdmi_preprocess_normal(preprocess, 0);
    const struct tdmi_layout scalar = {0}, per_channel = {3, {preprocess->channels, 1, 1}};
    for (int c = 0; c < preprocess->channels && c < most; c++) {
        means[c] = tdmi_preprocess_normal(preprocess, c).mean;
        deviations[c] = tdmi_preprocess_normal(preprocess, c).deviation;
    }
    const char *divisor =
        tdmi_onnx_floats(onnx, tdmi_onnx_name(onnx, name, "divisor"), scalar, &first.divisor);
    const char *mean =
        tdmi_onnx_floats(onnx, tdmi_onnx_name(onnx, name, "mean"), per_channel, means);
    const char *deviation =
        tdmi_onnx_floats(onnx, tdmi_onnx_name(onnx, name, "deviation"), per_channel, deviations);
    x = prepare(onnx, "Div", "scaled", x, divisor);
    tdmi_onnx_end(onnx);
    x = prepare(onnx, "Sub", "centred", x, mean);
    tdmi_onnx_end(onnx);
    const char *out = tdmi_onnx_name(onnx, name, "out");
    tdmi_onnx_begin(onnx, "Div", tdmi_onnx_name(onnx, name, "normalise"),
                    (const char *[]){x, deviation, NULL}, out);
    tdmi_onnx_end(onnx);
    return out;
}

static void add_input(struct tdmi_onnx *onnx)
{
    static const int64_t channels_first[] = {0, 3, 1, 2};
    const tdmi_graph *graph = onnx->export->graph;
    const struct tdmi_shape shape = graph->nodes[0].out;
    const char *x = "input";
    if (onnx->export->has_preprocess) {
        describe_value(onnx, ONNX_GRAPH_INPUT, x, ONNX_UINT8,
                       (struct tdmi_layout){3, {shape.h, shape.w, shape.c}});
        x = prepare(onnx, "Transpose", "channels_first", x, NULL);
        tdmi_onnx_ints(onnx, "perm", channels_first, 4);
        tdmi_onnx_end(onnx);
        x = prepare(onnx, "Cast", "float", x, NULL);
        tdmi_onnx_int(onnx, "to", ONNX_FLOAT);
        tdmi_onnx_end(onnx);
        x = normalised(onnx, tdmi_graph_preprocess(graph), x);
    } else {
        describe_value(onnx, ONNX_GRAPH_INPUT, x, ONNX_FLOAT,
                       (struct tdmi_layout){3, {shape.c, shape.h, shape.w}});
    }
    onnx->values[0].name = x;
}

/* Dropout passes its input through. The logits are the input of the last node. */
static tdm_status find_makers(struct tdmi_onnx *onnx, tdm_error *err)
{
    const tdmi_graph *graph = onnx->export->graph;
    size_t n = (size_t)graph->n_nodes;
    onnx->values = tdmi_arena_alloc(&onnx->export->arena, n, sizeof *onnx->values);
    onnx->makers = tdmi_arena_alloc(&onnx->export->arena, n, sizeof *onnx->makers);
    TDMI_CHECK_MEMORY(onnx->values && onnx->makers, err);
    for (int i = 0; i < graph->n_nodes; i++)
        onnx->makers[i] =
            graph->nodes[i].kind == TDMI_OP_DROPOUT ? onnx->makers[graph->nodes[i].inputs[0]] : i;
    onnx->logits = onnx->makers[graph->nodes[graph->n_nodes - 1].inputs[0]];
    return TDM_OK;
}

static tdm_status add_graph(struct tdmi_onnx *onnx, tdm_error *err)
{
    const tdmi_graph *graph = onnx->export->graph;
    const struct tdmi_node *last = &graph->nodes[graph->n_nodes - 1];
    tdmi_protobuf_begin(&onnx->out, ONNX_MODEL_GRAPH);
    tdmi_protobuf_string(&onnx->out, ONNX_GRAPH_NAME, onnx->export->model->network);
    add_input(onnx);
    for (int i = 1; i < graph->n_nodes; i++)
        if (onnx->makers[i] == i)
            TDMI_TRY(tdmi_onnx_node(onnx, i, err));
    describe_value(onnx, ONNX_GRAPH_OUTPUT, "logits", ONNX_FLOAT,
                   (struct tdmi_layout){1, {last->in[0].c}});
    describe_value(onnx, ONNX_GRAPH_OUTPUT, "probabilities", ONNX_FLOAT,
                   (struct tdmi_layout){1, {last->out.c}});
    tdmi_protobuf_end(&onnx->out);
    return TDM_OK;
}

static tdm_status add_model(struct tdmi_onnx *onnx, tdm_error *err)
{
    tdmi_protobuf *out = &onnx->out;
    struct tdmi_export_note notes[TDMI_EXPORT_NOTES];
    tdmi_protobuf_integer(out, ONNX_MODEL_IR_VERSION, IR_VERSION);
    tdmi_protobuf_string(out, ONNX_MODEL_PRODUCER, "tandem");
    tdmi_protobuf_string(out, ONNX_MODEL_PRODUCER_VERSION, tdm_version());
    tdmi_protobuf_begin(out, ONNX_MODEL_OPSET);
    tdmi_protobuf_integer(out, ONNX_OPSET_VERSION, OPERATOR_SET);
    tdmi_protobuf_end(out);
    TDMI_TRY(add_graph(onnx, err));
    TDMI_TRY(tdmi_export_notes(onnx->export, notes, err));
    for (int i = 0; i < TDMI_EXPORT_NOTES; i++) {
        if (i == TDMI_EXPORT_PADDING || !*notes[i].text)
            continue; /* ONNX's nodes say how they pad */
        tdmi_protobuf_begin(out, ONNX_MODEL_METADATA);
        tdmi_protobuf_string(out, ONNX_ENTRY_KEY, notes[i].key);
        tdmi_protobuf_string(out, ONNX_ENTRY_VALUE, notes[i].text);
        tdmi_protobuf_end(out);
    }
    return TDM_OK;
}

static tdm_status check_size(const struct tdmi_export *export, int64_t bytes, tdm_error *err)
{
    if (bytes <= INT32_MAX)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "writing %s: the network has %" PRId64
                    " bytes, and an ONNX file holds at most %d; safetensors holds it",
                    export->path, bytes, INT32_MAX);
}

static void release(struct tdmi_onnx *onnx)
{
    tdmi_protobuf_release(&onnx->out);
}

tdm_status tdmi_export_onnx(struct tdmi_export *export, tdm_error *err)
{
    const tdmi_graph *graph = export->graph;
    const int64_t values = graph->param_values + graph->state_values;
    TDMI_AT_END(release) struct tdmi_onnx onnx = {.export = export};
    /* before any value is copied */
    TDMI_TRY(check_size(export, (int64_t)sizeof(float) * values, err));
    TDMI_TRY(find_makers(&onnx, err));
    TDMI_TRY(add_model(&onnx, err));
    TDMI_CHECK_MEMORY(!onnx.is_broken && !onnx.out.is_broken, err);
    TDMI_TRY(check_size(export, (int64_t)tdmi_protobuf_length(&onnx.out), err));
    return tdmi_protobuf_write(&onnx.out, export->path, err);
}

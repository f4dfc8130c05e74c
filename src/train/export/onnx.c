/* The words of an ONNX model: names, nodes, attributes, constants. */
#include "train/export/onnx.h"

#include <string.h>

const char *tdmi_onnx_name(struct tdmi_onnx *onnx, const char *node, const char *what)
{
    const char *name = tdmi_arena_printf(&onnx->export->arena, "%s.%s", node, what);
    onnx->is_broken |= !name;
    return name ? name : "";
}

void tdmi_onnx_begin(struct tdmi_onnx *onnx, const char *op, const char *name,
                     const char *const *inputs, const char *output)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_GRAPH_NODE);
    for (; *inputs; inputs++)
        tdmi_protobuf_string(&onnx->out, ONNX_NODE_INPUT, *inputs);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_OUTPUT, output);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_NAME, name);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_OP, op);
}

void tdmi_onnx_end(struct tdmi_onnx *onnx)
{
    tdmi_protobuf_end(&onnx->out);
}

static void attribute(struct tdmi_onnx *onnx, const char *name, int type)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_NODE_ATTRIBUTE);
    tdmi_protobuf_string(&onnx->out, ONNX_ATTRIBUTE_NAME, name);
    tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_TYPE, type);
}

void tdmi_onnx_int(struct tdmi_onnx *onnx, const char *name, int64_t value)
{
    attribute(onnx, name, ONNX_IS_INT);
    tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_INT, value);
    tdmi_protobuf_end(&onnx->out);
}

void tdmi_onnx_float(struct tdmi_onnx *onnx, const char *name, double value)
{
    attribute(onnx, name, ONNX_IS_FLOAT);
    tdmi_protobuf_float(&onnx->out, ONNX_ATTRIBUTE_FLOAT, (float)value);
    tdmi_protobuf_end(&onnx->out);
}

void tdmi_onnx_ints(struct tdmi_onnx *onnx, const char *name, const int64_t *values, int n)
{
    attribute(onnx, name, ONNX_IS_INTS);
    for (int i = 0; i < n; i++)
        tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_INTS, values[i]);
    tdmi_protobuf_end(&onnx->out);
}

void tdmi_onnx_constant(struct tdmi_onnx *onnx, const char *name, int type,
                        struct tdmi_layout layout, const void *values, size_t bytes)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_GRAPH_INITIALIZER);
    for (int d = 0; d < layout.rank; d++)
        tdmi_protobuf_integer(&onnx->out, ONNX_TENSOR_DIMS, layout.shape[d]);
    tdmi_protobuf_integer(&onnx->out, ONNX_TENSOR_TYPE, type);
    tdmi_protobuf_string(&onnx->out, ONNX_TENSOR_NAME, name);
    tdmi_protobuf_bytes(&onnx->out, ONNX_TENSOR_RAW, values, bytes);
    tdmi_protobuf_end(&onnx->out);
}

static const char *copied(struct tdmi_onnx *onnx, const char *name, int type,
                          struct tdmi_layout layout, const void *values, size_t bytes)
{
    void *copy = tdmi_arena_alloc(&onnx->export->arena, bytes, 1);
    onnx->is_broken |= !copy;
    if (copy) {
        memcpy(copy, values, bytes);
        tdmi_onnx_constant(onnx, name, type, layout, copy, bytes);
    }
    return name;
}

const char *tdmi_onnx_floats(struct tdmi_onnx *onnx, const char *name, struct tdmi_layout layout,
                             const float *values)
{
    int64_t n = 1;
    for (int d = 0; d < layout.rank; d++)
        n *= layout.shape[d];
    return copied(onnx, name, ONNX_FLOAT, layout, values, sizeof *values * (size_t)n);
}

const char *tdmi_onnx_longs(struct tdmi_onnx *onnx, const char *name, const int64_t *values,
                            int64_t n)
{
    return copied(onnx, name, ONNX_INT64, (struct tdmi_layout){1, {n}}, values,
                  sizeof *values * (size_t)n);
}

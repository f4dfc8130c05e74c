/*
 * An ONNX model as it is written: shared by onnx_ops.c and form_onnx.c. Tensors are
 * images (n, c, h, w), or flat (n, values) from the first dense layer on.
 *
 * What a node gives is called "<node>.out", constants "<node>.<what>": our tensors are called so
 * too, and node names are unique, so names never meet.
 */
#pragma once

#include "train/export/export.h"
#include "train/export/protobuf.h"

/* Fields of onnx.proto3. */
enum {
    ONNX_MODEL_IR_VERSION = 1,
    ONNX_MODEL_PRODUCER = 2,
    ONNX_MODEL_PRODUCER_VERSION = 3,
    ONNX_MODEL_GRAPH = 7,
    ONNX_MODEL_OPSET = 8,
    ONNX_MODEL_METADATA = 14,
    ONNX_OPSET_VERSION = 2,
    ONNX_ENTRY_KEY = 1,
    ONNX_ENTRY_VALUE = 2,
    ONNX_GRAPH_NODE = 1,
    ONNX_GRAPH_NAME = 2,
    ONNX_GRAPH_INITIALIZER = 5,
    ONNX_GRAPH_INPUT = 11,
    ONNX_GRAPH_OUTPUT = 12,
    ONNX_NODE_INPUT = 1,
    ONNX_NODE_OUTPUT = 2,
    ONNX_NODE_NAME = 3,
    ONNX_NODE_OP = 4,
    ONNX_NODE_ATTRIBUTE = 5,
    ONNX_ATTRIBUTE_NAME = 1,
    ONNX_ATTRIBUTE_FLOAT = 2,
    ONNX_ATTRIBUTE_INT = 3,
    ONNX_ATTRIBUTE_INTS = 8,
    ONNX_ATTRIBUTE_TYPE = 20,
    ONNX_TENSOR_DIMS = 1,
    ONNX_TENSOR_TYPE = 2,
    ONNX_TENSOR_NAME = 8,
    ONNX_TENSOR_RAW = 9,
    ONNX_VALUE_NAME = 1,
    ONNX_VALUE_TYPE = 2,
    ONNX_TYPE_TENSOR = 1,
    ONNX_TYPE_ELEMENT = 1,
    ONNX_TYPE_SHAPE = 2,
    ONNX_SHAPE_DIM = 1,
    ONNX_DIM_VALUE = 1,
    ONNX_DIM_NAME = 2
};
/* Values of its enums. */
enum { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT64 = 7 };
enum { ONNX_IS_FLOAT = 1, ONNX_IS_INT = 2, ONNX_IS_INTS = 7 };

/* The ONNX value that holds the result of one of our nodes. */
struct tdmi_onnx_value {
    const char *name;
    bool is_flat;
    const char *reshaped; /* the same, flat of an image or the reverse; NULL: not needed yet */
};

struct tdmi_onnx {
    struct tdmi_export *export;
    tdmi_protobuf out;
    struct tdmi_onnx_value *values; /* by node */
    int *makers;    /* by node: the node that makes its value; another node for dropout */
    int logits;     /* the node whose value is the logits */
    bool is_broken; /* out of memory for a name */
};

/* A name in the arena; "" when there is no memory. */
const char *tdmi_onnx_name(struct tdmi_onnx *onnx, const char *node, const char *what);

/* A node of theirs: begin, attributes, then end of out. Inputs end with a NULL. */
void tdmi_onnx_begin(struct tdmi_onnx *onnx, const char *op, const char *name,
                     const char *const *inputs, const char *output);
void tdmi_onnx_int(struct tdmi_onnx *onnx, const char *name, int64_t value);
void tdmi_onnx_ints(struct tdmi_onnx *onnx, const char *name, const int64_t *values, int n);
void tdmi_onnx_end(struct tdmi_onnx *onnx);

/* Add a constant of a few values, which are copied; returns the name. */
const char *tdmi_onnx_floats(struct tdmi_onnx *onnx, const char *name, struct tdmi_layout layout,
                             const float *values);

/* Add what computes node number index. TDM_E_INPUT when ONNX cannot say it. */
tdm_status tdmi_onnx_node(struct tdmi_onnx *onnx, int index, tdm_error *err) TDM_MUST_USE;

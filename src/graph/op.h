/*
 * The graph's description of an op: attributes, shape rule, parameters, cost, and the tensors that
 * its gradient reads. Backends compute it (backend/op.h).
 */
#pragma once

#include "backend/op.h"
#include "tandem/error.h"

enum tdmi_init {
    TDMI_INIT_ZERO,
    TDMI_INIT_ONE,
    TDMI_INIT_HE /* uniform in ±sqrt(6 / fan_in): keeps the variance through ReLUs */
};

/* A parameter (changed by gradients) or a state (a running statistic). */
struct tdmi_tensor_spec {
    const char *name; /* "weight": the tensor is called <node>.<name> */
    int dims[4], n_dims;
    enum tdmi_init init;
    int64_t fan_in;
    bool has_decay; /* weight decay applies */
};

enum { TDMI_OP_ATTRS = 12 };

struct tdmi_op {
    /* Names of the attributes it uses, of the list in graph/graph_json.c; NULL after the last. */
    const char *attrs[TDMI_OP_ATTRS];
    /* Refuses attributes and shapes it cannot do, in a sentence that starts after "node 'x': ".
     * Optional: NULL takes any input and gives its shape. Ask through tdmi_op_shape. */
    tdm_status (*shape)(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err);
    /* Optional. Fill at most TDMI_OP_PARAMS / TDMI_OP_STATES specs, return how many. */
    int (*params)(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                  struct tdmi_tensor_spec *specs);
    int (*states)(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                  struct tdmi_tensor_spec *specs);
    /* Optional: NULL means none. Multiplications and additions of one image's forward pass. */
    double (*flops)(const struct tdmi_op_attrs *attrs, struct tdmi_shape in, struct tdmi_shape out);
    bool backward_reads_x, backward_reads_y;
    bool is_output;    /* ends a network: y are probabilities of the classes; labels give a loss */
    enum tdmi_act act; /* of activations: which one others may carry for it */
};

const struct tdmi_op *tdmi_op_of(enum tdmi_op_kind kind);
tdm_status tdmi_op_shape(enum tdmi_op_kind kind, const struct tdmi_op_attrs *attrs,
                         const struct tdmi_shape *in, struct tdmi_shape *out,
                         tdm_error *err) TDM_MUST_USE;
int tdmi_op_inputs(enum tdmi_op_kind kind);

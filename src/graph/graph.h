/*
 * A network as a static graph of ops: nodes in the order they run, their shapes, and the flat
 * layout of parameters and states. It holds no values and no buffers.
 *
 *     params   one float array: every parameter tensor at its offset (64-byte aligned)
 *     states   another: running statistics
 *     sums     one array a group: [ gradients, laid out like params | state sums, like states |
 *              tail: samples, correct, loss ], so that everything which must be added over groups
 *              and ranks is one run of floats
 *
 * A builder function of src/models/networks adds nodes; the first mistake is remembered and
 * reported by tdmi_graph_finish, so builders read like the paper's table.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"
#include "graph/op.h"
#include "tandem/json.h"

struct tdmi_node {
    const char *name; /* unique: "conv1" */
    enum tdmi_op_kind kind;
    struct tdmi_op_attrs attrs;
    int inputs[TDMI_OP_INPUTS]; /* earlier nodes */
    int n_inputs;
    struct tdmi_shape in[TDMI_OP_INPUTS], out;
    int first_param, n_params; /* in graph->params */
    int first_state, n_states; /* in graph->states */
};

struct tdmi_tensor {
    const char *name; /* "conv1.weight" */
    struct tdmi_tensor_spec spec;
    int64_t offset, n; /* in floats */
};

typedef struct tdmi_graph {
    tdmi_arena arena; /* holds all below */
    struct tdmi_node *nodes;
    int n_nodes, node_capacity;
    int head; /* its first node: nodes before it can be frozen; 0: unknown */
    struct tdmi_tensor *params, *states;
    int n_params, n_states, param_capacity, state_capacity;
    int64_t param_values, state_values; /* lengths of the flat arrays, padding included */
    int64_t parameters;                 /* trainable numbers, padding not counted */
    tdm_error mistake;                  /* of the builder */
} tdmi_graph;

tdmi_graph *tdmi_graph_new(void);
void tdmi_graph_free(tdmi_graph *graph);
TDMI_POINTER_RELEASE(tdmi_graph, tdmi_graph_free)

/* Append a node; returns its index, to be used as input of later ones. input -1: none. After a
 * mistake nothing more is added and the returned value means nothing. */
int tdmi_graph_add(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int input,
                   struct tdmi_op_attrs attrs);
/* The same for ops of two inputs, which must be two different nodes. */
int tdmi_graph_join(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int first,
                    int second, struct tdmi_op_attrs attrs);
/* Copy the first n nodes of another graph, to which more can be added; NULL without memory. */
tdmi_graph *tdmi_graph_begun(const tdmi_graph *from, int n);
/* Check that the graph is complete: the first node is an input, and only the last one is not read.
 */
tdm_status tdmi_graph_finish(tdmi_graph *graph, const char *name, tdm_error *err) TDM_MUST_USE;

/* A frozen backbone: the nodes before `end`, of which only the last may be read by nodes behind
 * them (else TDM_E_USAGE). Its tensors have the same offsets as in the whole graph, whose values it
 * can use. */
tdm_status tdmi_graph_base(const tdmi_graph *graph, int end, tdmi_graph **base,
                           tdm_error *err) TDM_MUST_USE;

int64_t tdmi_graph_sums_values(const tdmi_graph *graph);
int64_t tdmi_graph_state_sums_at(const tdmi_graph *graph); /* offsets into sums */
int64_t tdmi_graph_tail_at(const tdmi_graph *graph);
/* Operations of one image, forward. */
double tdmi_node_flops(const struct tdmi_node *node);
const struct tdmi_preprocess *tdmi_graph_preprocess(const tdmi_graph *graph);
int tdmi_graph_classes(const tdmi_graph *graph);
/* Number of logits of the last node: one a class, or 1 for two classes. */
int tdmi_graph_logits(const tdmi_graph *graph);

/* Fill fresh values by each tensor's rule: a pure function of seed and tensor index. */
void tdmi_graph_init_values(const tdmi_graph *graph, uint64_t seed, float *params, float *states);
/*
 * One that is new where layers before it are known: the same draws, a sixth of the variance, since
 * what a new head says at first is noise to them (docs/design/models.md, "Initial values"). index
 * is its number among the graph's parameters or states.
 */
void tdmi_tensor_init_on_known(const struct tdmi_tensor *tensor, uint64_t seed, int index,
                               float *values);

/* Write the graph as an array of nodes under key, and read it. Model files have it, so that they
 * can be read after the builder of that name has changed. */
void tdmi_graph_to_json(const tdmi_graph *graph, tdm_json_writer *writer, const char *key);
tdm_status tdmi_graph_from_json(const tdm_json_value *nodes, const char *name, tdmi_graph **graph,
                                tdm_error *err) TDM_MUST_USE;

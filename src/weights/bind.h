/*
 * Which tensor of a file fills which of a network: the table that names or a model_config fill in,
 * the list of everything that does not fit, and the values. Whose weights a file has, and where in
 * it the tensors of one of our networks are, is found by the rules of names.h and by the other
 * names that published files use.
 */
#pragma once

#include "models/network.h"
#include "weights/weights.h"

struct tdmi_binding {                       /* of one tensor of the graph */
    const struct tdmi_weights_tensor *from; /* NULL: the file has none */
    const char *name;                       /* what it is called there; NULL: not known */
    bool is_fresh;                          /* keeps the value it begins training with */
};

struct tdmi_bindings {
    const tdmi_graph *graph;
    const char *network; /* whose names have rules, and what messages call the graph */
    const tdmi_weights *weights;
    enum tdmi_publisher layout;           /* whose order of axes */
    struct tdmi_binding *params, *states; /* by index of the graph */
    bool *is_taken;                       /* by index of the file: bound, or rightly left out */
    tdmi_arena *arena;
};

/* An empty table in the arena. network is lent. */
tdm_status tdmi_bindings_init(struct tdmi_bindings *bindings, const tdmi_graph *graph,
                              const char *network, const tdmi_weights *weights,
                              enum tdmi_publisher layout, tdmi_arena *arena,
                              tdm_error *err) TDM_MUST_USE;

/* The binding of tensor number i of a node: its parameters, then its states. NULL past the last. */
struct tdmi_binding *tdmi_binding_of(const struct tdmi_bindings *bindings, int node, int i);
/* The spec of the same. */
const struct tdmi_tensor *tdmi_binding_tensor(const struct tdmi_bindings *bindings, int node,
                                              int i);
/* Note from, which is taken, and the name under which it was looked for. */
tdm_status tdmi_bind(struct tdmi_bindings *bindings, struct tdmi_binding *binding,
                     const struct tdmi_weights_tensor *from, const char *name,
                     tdm_error *err) TDM_MUST_USE;
void tdmi_bindings_take(struct tdmi_bindings *bindings, const struct tdmi_weights_tensor *tensor);

/* Do the tensors of a node have their shapes? False when one is missing. */
bool tdmi_bindings_fit(const struct tdmi_bindings *bindings, int node);
/* TDM_E_INPUT lists what is missing, misshaped or fits nowhere; every line is a message too. */
tdm_status tdmi_bindings_check(const struct tdmi_bindings *bindings, tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT names a tensor that is no float, has a NaN or an infinity, or is a variance of a
 * batch norm that gives it no root. params and states are zeroed. */
tdm_status tdmi_bindings_fill(const struct tdmi_bindings *bindings, uint64_t seed, float *params,
                              float *states, tdm_error *err) TDM_MUST_USE;

/* ---- whose names the tensors have ---- */

/* By what most tensors are called ("kernel", "gamma": Keras; "weight", "running_mean": PyTorch);
 * of a model file of ours, and of neither, ours. */
enum tdmi_publisher tdmi_origin_of(const tdmi_weights *weights);
/* "Keras", "PyTorch", "tandem" */
const char *tdmi_origin_name(enum tdmi_publisher publisher);

/* Look for every tensor of the graph by the names of bindings->layout; takes what is no weight
 * (steps of an optimizer, counters) so that nobody misses it. */
tdm_status tdmi_origin_bind(struct tdmi_bindings *bindings, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_origin_bind_torch(struct tdmi_bindings *bindings, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_origin_bind_keras(struct tdmi_bindings *bindings, tdm_error *err) TDM_MUST_USE;

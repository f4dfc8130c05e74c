/*
 * Whose weights a file has, and where in it the tensors of one of our networks are: by the rules of
 * names.h, and by what else files that are around call them.
 */
#ifndef TANDEM_WEIGHTS_ORIGIN_H
#define TANDEM_WEIGHTS_ORIGIN_H

#include "weights/bind.h"

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

#endif

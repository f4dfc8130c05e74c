/*
 * A group of TensorFlow.js weights: a list of names, shapes and types, whose values stand one after
 * the other in files ("shards") that are taken as one.
 */
#pragma once

#include "weights/form.h"
#include "tandem/json.h"

/* Add the tensors of all groups to the list; their shards lie in folder ("" is here). TDM_E_INPUT:
 * a path that leaves the folder or is listed twice, a type that is not read, or shards of another
 * size than the shapes need, which is found out before memory is allocated. */
tdm_status tdmi_tfjs_add_groups(tdmi_weights *weights, const char *folder,
                                const tdm_json_value *groups, tdm_error *err) TDM_MUST_USE;

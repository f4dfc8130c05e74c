/*
 * A group of TensorFlow.js weights: a list of names, shapes and types, whose values stand one after
 * the other in files ("shards") that are taken as one.
 */
#ifndef TANDEM_WEIGHTS_TFJS_TFJS_WEIGHTS_H
#define TANDEM_WEIGHTS_TFJS_TFJS_WEIGHTS_H

#include "weights/form.h"
#include "tandem/json.h"

/* No shard may be named twice, in one group or in two, nor one file by many links: what is read
 * would be many times what there is. groups: the whole list; folder as below. */
tdm_status tdmi_tfjs_check_shards(const tdmi_weights *weights, const char *folder,
                                  const tdm_json_value *groups, tdm_error *err) TDM_MUST_USE;
/* Adds the group's tensors to the list; its shards lie in folder ("" is here). TDM_E_INPUT: a path
 * that leaves the folder, a type that is not read, or shards of another size than the shapes ask
 * for, which is found out before memory is asked for. */
tdm_status tdmi_tfjs_add_group(tdmi_weights *weights, const char *folder,
                               const tdm_json_value *group, tdm_error *err) TDM_MUST_USE;

#endif

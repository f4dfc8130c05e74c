/*
 * Which of a checkpoint's tensors are the model's. A checkpoint is a dict of a program's own
 * making: the state_dict alone, or that beside an optimizer's state, averages, counters and
 * options.
 *
 * The rule, at every level of dicts from the outermost: an entry with tensors that is called
 * state_dict, model_state_dict, model_state, weights, params, model, net, network or module is the
 * model (the first of that list counts). Else all entries with tensors are, less optimizers' (by
 * name, or by their "state" and "param_groups"), and less averages (ema) unless there is nothing
 * else. Inside the model a tensor's name is its keys joined by dots. Numbers and text on the way
 * become facts; what was left out is the fact "left_out".
 */
#pragma once

#include "base/text/text.h"
#include "weights/torch/torch_tensor.h"

tdm_status tdmi_torch_add_state(struct tdmi_torch_files *files, const struct tdmi_pickle *pickle,
                                tdm_error *err) TDM_MUST_USE;

/* torch_facts.c: the value as text when it is a number or text, as JSON when it is a small
 * container of such; else nothing is noted, nor what is very long or comes after very many.
 * Containers must not hold themselves. */
tdm_status tdmi_torch_note(struct tdmi_torch_files *files, const char *key,
                           const tdmi_pickle_value *value, tdm_error *err) TDM_MUST_USE;
/* The dict of an options object (argparse.Namespace), else value itself. */
const tdmi_pickle_value *tdmi_torch_plain(const tdmi_pickle_value *value);
/* A dict's key as text: text itself, or a whole number's digits. False for other keys, and for what
 * is too long to be a name. */
bool tdmi_torch_key(const tdmi_pickle_value *key, tdmi_text *text);

/*
 * Training options as a record: checked, written to run.json, and compared when a run is resumed.
 */
#ifndef TANDEM_TRAIN_OPTIONS_H
#define TANDEM_TRAIN_OPTIONS_H

#include "tandem/json.h"
#include "tandem/train.h"

/* Ranges, and limits that contradict each other. TDM_E_USAGE. */
tdm_status tdmi_options_check(const struct tdm_train_options *options, tdm_error *err) TDM_MUST_USE;

/* Another --split than the usual one: whoever asked for it is told where it decides nothing. */
bool tdmi_options_ask_for_split(const struct tdm_train_options *options);

void tdmi_options_to_json(const struct tdm_train_options *options, tdm_json_writer *writer,
                          const char *key);

/* What a recorded value means where it is no value that a person chose ("the optimizer's own"), and
 * "yes" or "no" of a flag. NULL: it speaks for itself, or there is no such option. */
const char *tdmi_options_words(const char *name, const tdm_json_value *value);

/* Do the recorded options give the same bits as these? TDM_E_USAGE names the first that does not,
 * with both values. Limits may have grown. */
tdm_status tdmi_options_match(const struct tdm_train_options *options,
                              const tdm_json_value *recorded, tdm_error *err) TDM_MUST_USE;

/* Over what is there: members called as options are, and source, run and resume; what
 * tdmi_options_to_json wrote is accepted. Strings live as long as the object's document.
 * TDM_E_USAGE names the member that is none, or of another kind. */
tdm_status tdmi_options_from_json(const tdm_json_value *object, struct tdm_train_options *options,
                                  tdm_error *err) TDM_MUST_USE;

#endif

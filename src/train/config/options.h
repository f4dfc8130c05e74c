/*
 * Training options as a record: checked, written to run.json, and compared when a run is resumed.
 */
#pragma once

#include "image/augment/augment.h"
#include "tandem/json.h"
#include "tandem/train.h"

/* Ranges, and limits that contradict each other. TDM_E_USAGE. */
tdm_status tdmi_options_check(const struct tdm_train_options *options, tdm_error *err) TDM_MUST_USE;

/* Does the split differ from the default? Then a source with a split of its own gives a note. */
bool tdmi_options_ask_for_split(const struct tdm_train_options *options);

/* Is it --augment auto, which the images decide? */
bool tdmi_options_augment_by_images(const struct tdm_train_options *options);
/* The changes that --augment names; none for auto. TDM_E_USAGE. */
tdm_status tdmi_options_read_augment(const struct tdm_train_options *options,
                                     struct tdmi_augment *augment, tdm_error *err) TDM_MUST_USE;

void tdmi_options_to_json(const struct tdm_train_options *options, tdm_json_writer *writer,
                          const char *key);

/* Words for a recorded value: "the optimizer's own" for an unset number, "yes" or "no" for a flag.
 * NULL: none are needed, or there is no such option. */
const char *tdmi_options_words(const char *name, const tdm_json_value *value);

/* Do the recorded options give the same bits as these? TDM_E_USAGE names the first that differs,
 * with both values. Limits may have grown. */
tdm_status tdmi_options_match(const struct tdm_train_options *options,
                              const tdm_json_value *recorded, tdm_error *err) TDM_MUST_USE;

/* Are these the options that another rank wrote by tdmi_options_to_json? TDM_E_USAGE names the
 * first that differs, with both values. */
tdm_status tdmi_options_same(const struct tdm_train_options *options, const tdm_json_value *theirs,
                             tdm_error *err) TDM_MUST_USE;

/* Set options from an object: members named as options are, and source, run and resume, as
 * tdmi_options_to_json writes them. Strings live as long as the object's document. TDM_E_USAGE
 * names the member that is unknown or of the wrong kind. */
tdm_status tdmi_options_from_json(const tdm_json_value *object, struct tdm_train_options *options,
                                  tdm_error *err) TDM_MUST_USE;

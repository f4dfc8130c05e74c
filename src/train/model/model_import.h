/* Weights of other programs, opened as a model by evaluate and predict. */
#pragma once

#include "tandem/model.h"
#include "train/model/model_file.h"

/* Is it a model written by tandem? Decided by the first bytes, so a damaged one counts. */
bool tdmi_model_is_ours(const char *file);
/* Is the folder a TensorFlow.js model? */
bool tdmi_model_is_foreign_folder(const char *folder);
/* TDM_E_USAGE: an option was given that a model written by tandem does not accept. */
tdm_status tdmi_model_check_ours(const struct tdm_model_options *options,
                                 tdm_error *err) TDM_MUST_USE;
/* The model has no self-test and no hashes of images. Assumptions are logged. */
tdm_status tdmi_model_import(const char *file, const struct tdm_model_options *options,
                             struct tdmi_model_file *model, tdm_error *err) TDM_MUST_USE;

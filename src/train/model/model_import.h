/*
 * Weights of another program as a model file of ours: what evaluate and predict open when a file is
 * none of ours.
 */
#pragma once

#include "tandem/model.h"
#include "train/model/model_file.h"

/* By the first bytes; a damaged model of ours is one too. */
bool tdmi_model_is_ours(const char *file);
/* A TensorFlow.js model. */
bool tdmi_model_is_foreign_folder(const char *folder);
/* A model of ours says everything itself: TDM_E_USAGE names an option that says it again. */
tdm_status tdmi_model_check_ours(const struct tdm_model_options *options,
                                 tdm_error *err) TDM_MUST_USE;
/* model has no self-test and remembers no pictures. What was taken for granted is a message. */
tdm_status tdmi_model_import(const char *file, const struct tdm_model_options *options,
                             struct tdmi_model_file *model, tdm_error *err) TDM_MUST_USE;

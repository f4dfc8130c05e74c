/*
 * Early stopping: which epoch is the best, which one improved, and when patience has run out. Pure
 * functions of scores and counts.
 */
#pragma once

#include "tandem/train.h"
#include "train/model/model_file.h"

/* Whether score is better by --monitor. accuracy: more right, ties go to the smaller loss. loss:
 * the smaller loss, ties go to more right. */
bool tdmi_stopping_is_better(const struct tdm_train_options *options, const tdm_score *score,
                             const tdm_score *than);

/* Adds a validation: progress counts validations since the last one that improved by more than
 * min_delta. Small gains add up, since each is measured from the last improvement. */
void tdmi_stopping_take(const struct tdm_train_options *options, const tdm_score *score,
                        struct tdmi_progress *progress);

/* Patience in effect, in validations without improvement; 0: unlimited. */
int tdmi_stopping_patience(const struct tdm_train_options *options);
bool tdmi_stopping_is_due(const struct tdm_train_options *options,
                          const struct tdmi_progress *progress);

/*
 * When a training has gone on for long enough: which epoch is the best, which one improved on what
 * was there, and how long that is waited for. Pure functions of what was counted.
 */
#ifndef TANDEM_TRAIN_STOPPING_H
#define TANDEM_TRAIN_STOPPING_H

#include "tandem/train.h"
#include "train/model/model_file.h"

/* Of a monitor the better score. By accuracy: more right, among equals the smaller loss. By loss:
 * the smaller loss, among equals more right. */
bool tdmi_stopping_is_better(const struct tdm_train_options *options, const tdm_score *score,
                             const tdm_score *than);

/* Takes a validation: progress counts those since the last that improved by more than min_delta.
 * Several small steps add up, since each is measured from the last improvement. */
void tdmi_stopping_take(const struct tdm_train_options *options, const tdm_score *score,
                        struct tdmi_progress *progress);

/* Validations without improvement that are borne; 0: any number of them. */
int tdmi_stopping_patience(const struct tdm_train_options *options);
bool tdmi_stopping_is_due(const struct tdm_train_options *options,
                          const struct tdmi_progress *progress);

#endif

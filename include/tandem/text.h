/*
 * Training and predicting for programs in other languages: options go in as one JSON object,
 * results come out as one, and no struct has to be known. examples/train.py does it from Python.
 */
#ifndef TANDEM_TEXT_H
#define TANDEM_TEXT_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* options: {"source": "photos", "run": "runs/first", "epochs": 5}, members called as the options of
 * `tandem train` are in run.json, whose values are accepted too; null is what is left to the
 * network, the optimizer or the schedule. With "resume": true and "run" what that run recorded
 * stands where nothing is said now. *answer gets what `tandem train --json` prints but its
 * options; after a failure the sentences that say why. Either is the caller's, for tdm_text_free;
 * NULL when there was no memory even for that. */
TDM_API tdm_status tdm_text_train(const char *options, tdm_sink sink, char **answer) TDM_MUST_USE;

/* *answer gets {"predictions": [{"path": …, "top": [{"index", "label", "probability"}]}]}, as
 * `tandem predict --json` prints it. */
TDM_API tdm_status tdm_text_predict(const char *model, const char *const *paths, size_t n_paths,
                                    int top, char **answer) TDM_MUST_USE;

TDM_API void tdm_text_free(char *text);

/* ---- the same, one by one, into a writer --------------------------------------------------- */

struct tdm_train_result;
/* As members of an object that is open. */
TDM_API void tdm_train_result_to_json(const struct tdm_train_result *result,
                                      tdm_json_writer *writer);
/* As an object. */
TDM_API void tdm_prediction_to_json(const struct tdm_prediction *prediction, bool has_logits,
                                    tdm_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif

/*
 * Validation and test: the evaluator, the outcome for every image, and the metrics of all.
 */
#pragma once

#include "tandem/metrics.h"
#include "train/evaluate/evaluator.h"
#include "train/evaluate/outcomes.h"
#include "train/session/network.h"

struct tdmi_evaluation {
    tdmi_evaluator *evaluator;
    tdmi_evaluator *test_evaluator;    /* of the self-test, see test_plan; or NULL */
    struct tdmi_judgement *judgements; /* of one batch */
    float *probabilities;              /* likewise */
    tdmi_outcomes outcomes;            /* of the newest validation */
    tdmi_outcomes best_outcomes;       /* of the best, until they are written */
    struct tdm_metrics metrics;        /* of the newest validation */
};

tdm_status tdmi_evaluation_open(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_evaluation_close(struct tdmi_evaluation *evaluation);
/* The score of the epoch so far, counted while training. Copies are met at different steps, so the
 * same part of the images and of the right ones counts as distinct. */
tdm_score tdmi_evaluation_of_training(const struct tdmi_session *session);
/* Computes the metrics of the outcomes. */
tdm_status tdmi_evaluation_count(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Sets the section "validation" of the record; not saved yet. */
tdm_status tdmi_evaluation_record(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* The outcomes of the best epoch from the run's folder, once they are written; n 0: an older run
 * kept none. */
tdm_status tdmi_evaluation_load_best(const struct tdmi_session *session, tdmi_outcomes *best,
                                     tdm_error *err) TDM_MUST_USE;
/* The epochs after the best one: how many, how long, and which images changed sides in them. */
tdm_status tdmi_evaluation_after_best(const struct tdmi_session *session,
                                      struct tdm_after_best *after, tdm_error *err) TDM_MUST_USE;

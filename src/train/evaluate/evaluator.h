/*
 * Judging pictures: forward passes without training, every position judged exactly once and counted
 * in whole numbers.
 */
#ifndef TANDEM_TRAIN_JUDGE_H
#define TANDEM_TRAIN_JUDGE_H

#include "base/thread.h"
#include "graph/executor.h"
#include "train/step/feed.h"

typedef struct tdmi_evaluator tdmi_evaluator;

/* What judging on so many threads reserves, in bytes. */
int64_t tdmi_evaluator_needs(const tdmi_plan *plan, int max_batch, int n_threads);

/* plan is for inference. */
tdm_status tdmi_evaluator_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                               int max_batch, tdmi_evaluator **evaluator,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_evaluator_close(tdmi_evaluator *evaluator);
/* Lent, from now on and before the first batch that names rows by number: where those are. */
void tdmi_evaluator_keep(tdmi_evaluator *evaluator, const tdmi_feature_table *kept);

/* The values to judge with from now on, lent; again whenever they have changed. */
tdm_status tdmi_evaluator_take(tdmi_evaluator *evaluator, struct tdmi_values values,
                               tdm_error *err) TDM_MUST_USE;
/* Fill judgements (where the label is not -1) and, unless NULL, probabilities and logits (each
 * (n, classes)) of a batch; all by position. A network with one logit for two classes gives its
 * negative and it. Of a base (tdmi_graph_base) probabilities are its features, and there is nothing
 * else. */
tdm_status tdmi_evaluator_batch(tdmi_evaluator *evaluator, const struct tdmi_batch *batch,
                                struct tdmi_judgement *judgements, float *probabilities,
                                float *logits, tdm_error *err) TDM_MUST_USE;
/* The same, but for logits, of the batch that this feed handed out last. Where memory is not the
 * host's the next one is asked for, and begins to be brought, while this one is computed. */
tdm_status tdmi_evaluator_feed(tdmi_evaluator *evaluator, tdmi_feed *feed,
                               const struct tdmi_batch *batch, struct tdmi_judgement *judgements,
                               float *probabilities, tdm_error *err) TDM_MUST_USE;
/* When no more of a feed is judged: nothing is copied from its pictures any more. */
tdm_status tdmi_evaluator_settle(tdmi_evaluator *evaluator, tdm_error *err) TDM_MUST_USE;

#endif

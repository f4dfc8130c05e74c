/*
 * Judging pictures: forward passes without training, every position judged exactly once and counted
 * in whole numbers.
 */
#ifndef TANDEM_TRAIN_JUDGE_H
#define TANDEM_TRAIN_JUDGE_H

#include "base/thread.h"
#include "nn/lane.h"
#include "train/feed.h"

typedef struct tdmi_judge tdmi_judge;

/* What judging on so many threads reserves, in bytes. */
int64_t tdmi_judge_needs(const tdmi_plan *plan, int max_batch, int n_threads);

/* plan is for inference. */
tdm_status tdmi_judge_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                           int max_batch, tdmi_judge **judge, tdm_error *err) TDM_MUST_USE;
void tdmi_judge_close(tdmi_judge *judge);
/* Lent, from now on and before the first batch that names rows by number: where those are. */
void tdmi_judge_keep(tdmi_judge *judge, const tdmi_kept_rows *kept);

/* The values to judge with from now on, lent; again whenever they have changed. */
tdm_status tdmi_judge_take(tdmi_judge *judge, struct tdmi_values values,
                           tdm_error *err) TDM_MUST_USE;
/* Fill judgements (where the label is not -1) and, unless NULL, probabilities and logits (each
 * (n, classes)) of a batch; all by position. A network with one logit for two classes gives its
 * negative and it. Of a base (tdmi_graph_base) probabilities are its features, and there is nothing
 * else. */
tdm_status tdmi_judge_batch(tdmi_judge *judge, const struct tdmi_batch *batch,
                            struct tdmi_judgement *judgements, float *probabilities, float *logits,
                            tdm_error *err) TDM_MUST_USE;
/* The same, but for logits, of the batch that this feed handed out last. Where memory is not the
 * host's the next one is asked for, and begins to be brought, while this one is computed. */
tdm_status tdmi_judge_feed(tdmi_judge *judge, tdmi_feed *feed, const struct tdmi_batch *batch,
                           struct tdmi_judgement *judgements, float *probabilities,
                           tdm_error *err) TDM_MUST_USE;
/* When no more of a feed is judged: nothing is copied from its pictures any more. */
tdm_status tdmi_judge_settle(tdmi_judge *judge, tdm_error *err) TDM_MUST_USE;

#endif

/* Forward passes without training: every position is evaluated exactly once. */
#pragma once

#include "base/thread.h"
#include "graph/executor.h"
#include "train/step/feed.h"

typedef struct tdmi_evaluator tdmi_evaluator;

/* Threads that should compute one image together at most, for the options of the plan: more would
 * only wait for each other. */
int tdmi_evaluator_team(const tdmi_graph *graph, const struct tdmi_backend *backend, int n_threads);

/* Bytes that an evaluator on so many threads reserves. */
int64_t tdmi_evaluator_needs(const tdmi_plan *plan, int max_batch, int n_threads);

/* plan is for inference; its team may be smaller than the pool. */
tdm_status tdmi_evaluator_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                               int max_batch, tdmi_evaluator **evaluator,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_evaluator_close(tdmi_evaluator *evaluator);
/* Record the CPU time of regions in log (base/team.h). Batches must be computed by one thread or
 * one team at a time. NULL: stop. */
void tdmi_evaluator_measure(tdmi_evaluator *evaluator, struct tdmi_team_log *log);
/* The feature rows that batches name by number, lent; before the first such batch. */
void tdmi_evaluator_keep(tdmi_evaluator *evaluator, const tdmi_feature_table *kept);

/* The values to evaluate, lent; again whenever they have changed. */
tdm_status tdmi_evaluator_take(tdmi_evaluator *evaluator, struct tdmi_values values,
                               tdm_error *err) TDM_MUST_USE;
/* Fill judgements (where the label is not -1) and, unless NULL, probabilities and logits (each
 * (n, classes)) of a batch, by position. A network with one logit for two classes gives its
 * negative and it. A backbone (tdmi_graph_base) gives its features as probabilities, and nothing
 * else. */
tdm_status tdmi_evaluator_batch(tdmi_evaluator *evaluator, const struct tdmi_batch *batch,
                                struct tdmi_judgement *judgements, float *probabilities,
                                float *logits, tdm_error *err) TDM_MUST_USE;
/* The same, but for logits, of the batch that this feed returned last. On a device with memory of
 * its own, the next batch is requested and its upload begins while this one is computed. */
tdm_status tdmi_evaluator_feed(tdmi_evaluator *evaluator, tdmi_feed *feed,
                               const struct tdmi_batch *batch, struct tdmi_judgement *judgements,
                               float *probabilities, tdm_error *err) TDM_MUST_USE;
/* After the last batch of a feed: wait until nothing is copied from its images any more. */
tdm_status tdmi_evaluator_settle(tdmi_evaluator *evaluator, tdm_error *err) TDM_MUST_USE;

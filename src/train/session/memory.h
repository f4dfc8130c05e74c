/*
 * Memory of a training, planned before any of it is reserved, and the plans of its network.
 */
#pragma once

#include "train/session/session.h"

/* Memory of a choice of batch, group and threads. On a GPU kernels get as much workspace as stays
 * within limit_bytes, else none (*most_workspace, as in plan.h). */
tdm_status tdmi_session_measure(const struct tdmi_session *session, struct tdmi_needs_choice choice,
                                int64_t limit_bytes, struct tdmi_needs *needs,
                                size_t *most_workspace, tdm_error *err) TDM_MUST_USE;
/* Memory for training on the device that computes. */
struct tdmi_memory_limit tdmi_memory_limit_of(const struct tdmi_session *session);
/* Reports that kernels get less workspace than they ask for, where they do. */
void tdmi_memory_report_workspace(const struct tdmi_run_record *record, size_t most_workspace,
                                  struct tdmi_memory_limit limit);

/* How training is planned with a freeze point and a group size. */
struct tdmi_plans_request {
    tdmi_device *device; /* NULL: without the workspace that the GPU's libraries need */
    int freeze_point, shard;
    size_t most_workspace;
};
struct tdmi_plan_options tdmi_plans_options(const struct tdmi_session *session,
                                            const struct tdmi_plans_request *plans);
tdm_status tdmi_plans_make(const struct tdmi_session *session,
                           const struct tdmi_plans_request *plans, tdmi_plan **train_plan,
                           tdmi_plan **evaluation_plan, tdm_error *err) TDM_MUST_USE;
/* The whole network in f32 for one image, the model's self-test; NULL where the plan of evaluation
 * stores f32. */
tdm_status tdmi_plans_make_test(const struct tdmi_session *session, tdmi_device *device,
                                size_t most_workspace, tdmi_plan **plan,
                                tdm_error *err) TDM_MUST_USE;

/* Plans of training, evaluation and self-test for a freeze point and a group size. */
#include "train/session/memory.h"

struct tdmi_plan_options tdmi_plans_options(const struct tdmi_train_config *config,
                                            const struct tdmi_compute *compute,
                                            const struct tdmi_train_network *network,
                                            const struct tdmi_feature_cache *cache,
                                            tdmi_device *device, int freeze_point, int shard)
{
    const bool reads_rows = cache->is_used && freeze_point == network->first_trained;
    return (struct tdmi_plan_options){
        .max_images = shard,
        .is_training = true,
        .device = device,
        .first_trained = freeze_point,
        .storage = config->storage,
        .allows_tf32 = config->allows_tf32,
        .may_vary = config->options.fast,
        .most_workspace = compute->most_workspace,
        .keeps_statistics = config->keeps_statistics,
        .first_node = reads_rows ? freeze_point : 0,
    };
}

tdm_status tdmi_plans_make(const struct tdmi_train_config *config,
                           const struct tdmi_compute *compute,
                           const struct tdmi_train_network *network,
                           const struct tdmi_feature_cache *cache,
                           const struct tdmi_plans_request *plans, tdmi_plan **train_plan,
                           tdmi_plan **evaluation_plan, tdm_error *err)
{
    struct tdmi_plan_options request = tdmi_plans_options(
        config, compute, network, cache, plans->device, plans->freeze_point, plans->shard);
    request.most_workspace = plans->most_workspace;
    TDM_TRY(tdmi_plan_make(network->graph, compute->backend, &request, train_plan, err), err,
            "planning training");
    request.is_training = false; /* in f32 evaluation computes what predict and evaluate compute */
    request.allows_tf32 = request.may_vary = false;
    return TDM_WRAP(
        err, tdmi_plan_make(network->graph, compute->backend, &request, evaluation_plan, err),
        "planning validation");
}

tdm_status tdmi_plans_make_test(const struct tdmi_train_config *config,
                                const struct tdmi_compute *compute,
                                const struct tdmi_train_network *network, tdmi_device *device,
                                size_t most_workspace, tdmi_plan **plan, tdm_error *err)
{
    const struct tdmi_plan_options request = {
        .max_images = 1, .device = device, .most_workspace = most_workspace};
    *plan = NULL;
    if (config->storage == TDMI_DTYPE_F32)
        return TDM_OK;
    return TDM_WRAP(err, tdmi_plan_make(network->graph, compute->backend, &request, plan, err),
                    "planning the model's self-test");
}

/*
 * Averages of weights and running statistics (--ema), updated after every step. They are evaluated
 * and kept, so a model file holds them as its weights; a checkpoint holds the trained values too.
 */
#include "train/session/session.h"

static tdm_status reserve(const struct tdmi_compute *compute, struct tdmi_train_network *network,
                          tdmi_arena *arena, tdm_error *err)
{
    const size_t params = (size_t)network->graph->param_values;
    const size_t states = (size_t)network->graph->state_values + 1;
    const struct tdmi_memory_table *memory = &compute->backend->memory;
    struct tdmi_model_file *host = &network->host;
    network->mean_params = memory->alloc(compute->device, sizeof(float) * params);
    network->mean_states = memory->alloc(compute->device, sizeof(float) * states);
    host->raw_params = tdmi_arena_alloc(arena, params, sizeof(float));
    host->raw_states = tdmi_arena_alloc(arena, states, sizeof(float));
    if (!network->mean_params || !network->mean_states || !host->raw_params || !host->raw_states)
        return TDM_FAIL(err, TDM_E_MEMORY, "reserving averages of %zu parameters: out of memory",
                        params);
    return TDM_OK;
}

/* The averages start as the values on the host: the first weights, or a checkpoint's averages. */
static tdm_status fill(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    struct tdmi_train_network *network = &session->network;
    const struct tdmi_model_file *host = &network->host, *resumed = session->resumed;
    if (resumed && !resumed->raw_params)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint of %s has no averages of weights, which --ema goes on with",
                        tdmi_run_path(session->record.run));
    TDM_TRY(reserve(compute, network, &session->arena, err), err, "preparing averages");
    TDM_TRY(tdmi_values_upload(compute, network, true, host->params, host->states, err), err,
            "preparing averages");
    if (resumed)
        TDM_TRY(tdmi_values_upload(compute, network, false, resumed->raw_params,
                                   resumed->raw_states, err),
                err, "going on beside averages");
    return TDM_OK;
}

tdm_status tdmi_session_open_average(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_network *network = &session->network;
    if (!(session->config.options.ema > 0.0))
        return TDM_OK;
    const tdm_status status = network->mean_params ? TDM_OK : fill(session, err);
    if (status == TDM_OK)
        tdmi_update_average(session->trainer.update, network->mean_params, network->mean_states);
    return status;
}

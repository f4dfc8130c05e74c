/*
 * Averages of weights and running statistics (--ema): arrays beside those that are trained, moved
 * behind every step. They judge and are kept, so every file has them where a model's weights are; a
 * checkpoint has what is trained too.
 */
#include "train/session/session.h"

static tdm_status reserve(struct tdmi_session *session, tdm_error *err)
{
    const size_t params = (size_t)session->graph->param_values;
    const size_t states = (size_t)session->graph->state_values + 1;
    const struct tdmi_memory_table *memory = &session->backend->memory;
    struct tdmi_model_file *host = &session->snapshot;
    session->mean_params = memory->alloc(session->device, sizeof(float) * params);
    session->mean_states = memory->alloc(session->device, sizeof(float) * states);
    host->raw_params = tdmi_arena_alloc(&session->arena, params, sizeof(float));
    host->raw_states = tdmi_arena_alloc(&session->arena, states, sizeof(float));
    if (!session->mean_params || !session->mean_states || !host->raw_params || !host->raw_states)
        return TDM_FAIL(err, TDM_E_MEMORY, "reserving averages of %zu parameters: out of memory",
                        params);
    return TDM_OK;
}

static tdm_status upload(struct tdmi_session *session, float *to_params, float *to_states,
                         const float *params, const float *states, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->backend->memory;
    const tdmi_graph *graph = session->graph;
    TDM_TRY(memory->upload(session->stream, to_params, params,
                           sizeof(float) * (size_t)graph->param_values, err),
            err, "placing weights");
    TDM_TRY(memory->upload(session->stream, to_states, states,
                           sizeof(float) * (size_t)graph->state_values, err),
            err, "placing running statistics");
    return session->backend->stream.wait(session->stream, err);
}

tdm_status tdmi_session_open_average(struct tdmi_session *session,
                                     const struct tdmi_model_file *stored, tdm_error *err)
{
    const struct tdmi_model_file *host = &session->snapshot;
    if (!(session->options.ema > 0.0))
        return TDM_OK;
    if (stored && !stored->raw_params)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint of %s has no averages of weights, which --ema goes on with",
                        tdmi_run_path(session->run));
    TDM_TRY(reserve(session, err), err, "preparing averages");
    /* What the session was filled with: the first weights, or the averages of the checkpoint. */
    TDM_TRY(upload(session, session->mean_params, session->mean_states, host->params, host->states,
                   err),
            err, "preparing averages");
    if (stored)
        TDM_TRY(upload(session, session->params, session->states, stored->raw_params,
                       stored->raw_states, err),
                err, "going on beside averages");
    tdmi_update_average(session->update, session->mean_params, session->mean_states);
    return TDM_OK;
}

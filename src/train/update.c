/*
 * The optimiser step in pieces: each is a run of values of one tensor, so that weight decay, which
 * biases and batch norm are spared, is one number for the whole piece.
 */
#include "train/update.h"
#include "base/memory.h"

/* few_values: a second thread would wake up for nothing. */
enum { piece_values = 64 * 1024, few_values = 64 * 1024 };

struct piece {
    int64_t offset, n;
    bool has_decay; /* of parameters */
    bool is_state;  /* blended, not stepped */
    float momentum; /* of states */
};

struct tdmi_update {
    const tdmi_graph *graph;
    const struct tdmi_backend *backend;
    tdmi_stream *stream;
    const struct tdmi_optimizer *optimizer;
    tdmi_pool *pool;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS];
    struct piece *pieces;
    int n_pieces;

    /* of the step at hand */
    const float *sums;
    float scale;
    struct tdmi_update_rates rates;
};

static int64_t count_pieces(int64_t values)
{
    return (values + piece_values - 1) / piece_values;
}

static void cut(tdmi_update *update, const struct tdmi_tensor *tensor, struct piece kind)
{
    for (int64_t begin = 0; begin < tensor->n; begin += piece_values) {
        kind.offset = tensor->offset + begin;
        kind.n = tensor->n - begin < piece_values ? tensor->n - begin : piece_values;
        update->pieces[update->n_pieces++] = kind;
    }
}

static void cut_all(tdmi_update *update, int first_node)
{
    const tdmi_graph *graph = update->graph;
    for (int i = first_node; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        for (int j = 0; j < node->n_params; j++) {
            const struct tdmi_tensor *param = &graph->params[node->first_param + j];
            cut(update, param, (struct piece){.has_decay = param->spec.has_decay});
        }
    }
    for (int i = first_node; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        for (int j = 0; j < node->n_states; j++)
            cut(update, &graph->states[node->first_state + j],
                (struct piece){.is_state = true, .momentum = (float)node->attrs.momentum});
    }
}

tdm_status tdmi_update_open(const tdmi_graph *graph, int first_node,
                            const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_optimizer *optimizer, tdmi_pool *pool, float *params,
                            float *states, float *const *slots, tdmi_update **update,
                            tdm_error *err)
{
    int64_t n_pieces = 0;
    for (int i = 0; i < graph->n_params; i++)
        n_pieces += count_pieces(graph->params[i].n);
    for (int i = 0; i < graph->n_states; i++)
        n_pieces += count_pieces(graph->states[i].n);
    tdmi_update *made = tdmi_alloc(1, sizeof *made);
    if (made)
        made->pieces = tdmi_alloc((size_t)n_pieces, sizeof *made->pieces);
    if (!made || !made->pieces) {
        tdmi_update_close(made);
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing optimizer steps: out of memory");
    }
    made->graph = graph;
    made->backend = backend;
    made->optimizer = optimizer;
    made->pool = pool;
    made->params = params;
    made->states = states;
    for (int i = 0; i < optimizer->n_slots; i++)
        made->slots[i] = slots[i];
    cut_all(made, first_node);
    tdm_status status = backend->stream.open(device, &made->stream, err);
    if (status != TDM_OK) {
        tdmi_update_close(made);
        return status;
    }
    *update = made;
    return TDM_OK;
}

void tdmi_update_close(tdmi_update *update)
{
    if (!update)
        return;
    if (update->stream)
        update->backend->stream.close(update->stream);
    tdmi_free(update->pieces);
    tdmi_free(update);
}

static tdm_status piece_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_update *update = self;
    const struct piece *piece = &update->pieces[index];
    (void)worker;
    (void)err;
    if (piece->is_state) {
        update->backend->update.blend(update->stream, update->states + piece->offset,
                                      update->sums + tdmi_graph_state_sums_at(update->graph) +
                                          piece->offset,
                                      piece->n, update->scale, piece->momentum);
        return TDM_OK;
    }
    struct tdmi_update_call call = {
        .params = update->params + piece->offset,
        .gradient_sums = update->sums + piece->offset,
        .n = piece->n,
        .gradient_scale = update->scale,
        .learning_rate = update->rates.learning_rate,
        .momentum = update->rates.momentum,
        .weight_decay = piece->has_decay ? update->rates.weight_decay : 0.0f,
        .is_nesterov = update->rates.momentum > 0.0f,
    };
    for (int i = 0; i < update->optimizer->n_slots; i++)
        call.slots[i] = update->slots[i] + piece->offset;
    update->optimizer->step(update->backend, update->stream, &call);
    return TDM_OK;
}

static tdm_status all_pieces(void *self, int index, int worker, tdm_error *err)
{
    const tdmi_update *update = self;
    for (int i = index; i < update->n_pieces; i++)
        TDM_TRY(piece_task(self, i, worker, err), err, "updating parameters");
    return TDM_OK;
}

tdm_status tdmi_update_run(tdmi_update *update, const float *sums, float n,
                           struct tdmi_update_rates rates, tdm_error *err)
{
    update->sums = sums;
    update->scale = 1.0f / n;
    update->rates = rates;
    if (update->graph->param_values + update->graph->state_values <= few_values)
        return tdmi_pool_run(update->pool, 1, all_pieces, update, err);
    return tdmi_pool_run(update->pool, update->n_pieces, piece_task, update, err);
}

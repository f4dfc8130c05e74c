/* Packing, one node a task. */
#include "graph/packed.h"
#include "base/memory.h"

struct tdmi_packed {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_stream *stream;
    char *memory;              /* plan->packed_bytes, on the device */
    struct tdmi_values values; /* of the fill at hand */
    int first_node;
};

tdm_status tdmi_packed_open(const tdmi_plan *plan, tdmi_device *device, tdmi_packed **packed,
                            tdm_error *err)
{
    TDMI_AT_END(tdmi_packed_close_at) tdmi_packed *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->plan = plan;
    made->device = device;
    TDMI_TRY(plan->backend->stream.open(device, &made->stream, err));
    if (plan->packed_bytes) {
        made->memory = plan->backend->memory.alloc(device, plan->packed_bytes);
        if (!made->memory)
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "reserving %zu MiB for packed weights: out of memory",
                            plan->packed_bytes >> 20);
    }
    *packed = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_packed_close(tdmi_packed *packed)
{
    if (!packed)
        return;
    if (packed->memory)
        packed->plan->backend->memory.free(packed->device, packed->memory);
    if (packed->stream)
        packed->plan->backend->stream.close(packed->stream);
    tdmi_free(packed);
}

const void *tdmi_packed_memory(const tdmi_packed *packed)
{
    return packed->memory;
}

static void pack(const tdmi_packed *packed, tdmi_stream *stream, struct tdmi_values values,
                 int index)
{
    const tdmi_graph *graph = packed->plan->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    const struct tdmi_node_plan *it = &packed->plan->nodes[index];
    if (it->packed_bytes == 0)
        return;
    struct tdmi_pack_call call = {.packed = packed->memory + it->packed_offset};
    for (int i = 0; i < node->n_params; i++)
        call.params[i] = values.params + graph->params[node->first_param + i].offset;
    if (it->desc.fusion.folds_norm) {
        const struct tdmi_node *norm = &graph->nodes[it->norm];
        for (int i = 0; i < 2; i++) {
            call.norm_params[i] = values.params + graph->params[norm->first_param + i].offset;
            call.norm_states[i] = values.states + graph->states[norm->first_state + i].offset;
        }
        call.norm_epsilon = norm->attrs.epsilon;
    }
    it->kernel->pack(stream, &it->desc, &call);
}

static tdm_status pack_task(void *self, int task, int worker TDMI_UNUSED,
                            tdm_error *err TDMI_UNUSED)
{
    const tdmi_packed *packed = self;
    pack(packed, packed->stream, packed->values, packed->first_node + task);
    return TDM_OK;
}

void tdmi_packed_queue(const tdmi_packed *packed, tdmi_stream *stream, struct tdmi_values values,
                       int first_node)
{
    for (int i = first_node; packed->memory && i < packed->plan->graph->n_nodes; i++)
        pack(packed, stream, values, i);
}

static tdm_status pack_all(void *self, int task, int worker, tdm_error *err)
{
    const tdmi_packed *packed = self;
    tdm_status status = TDM_OK;
    for (; status == TDM_OK && packed->first_node + task < packed->plan->graph->n_nodes; task++)
        status = pack_task(self, task, worker, err);
    return status; /* the caller says of what */
}

/* So few bytes are packed before a second thread wakes up. */
enum { few_bytes = 64 * 1024 };

tdm_status tdmi_packed_fill(tdmi_packed *packed, struct tdmi_values values, int first_node,
                            tdmi_pool *pool, tdm_error *err)
{
    if (!packed->memory)
        return TDM_OK;
    packed->values = values;
    packed->first_node = first_node;
    const bool is_one = packed->plan->packed_bytes <= few_bytes ||
                        !packed->plan->backend->device.is_host; /* one thread queues */
    tdm_status status = is_one ? tdmi_pool_run(pool, 1, pack_all, packed, err)
                               : tdmi_pool_run(pool, packed->plan->graph->n_nodes - first_node,
                                               pack_task, packed, err);
    TDM_TRY(status, err, "packing weights");
    return packed->plan->backend->stream.wait(packed->stream, err);
}

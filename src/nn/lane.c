/*
 * Binding a plan to memory and running it, node by node.
 */
#include "nn/lane.h"
#include "base/memory.h"

struct tdmi_lane {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_stream *stream;
    char *memory; /* plan->arena_bytes on the device */
    struct tdmi_shard shard;
};

tdm_status tdmi_lane_open(const tdmi_plan *plan, tdmi_device *device, tdmi_lane **lane,
                          tdm_error *err)
{
    tdmi_lane *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening a lane: out of memory");
    made->plan = plan;
    made->device = device;
    tdm_status status = plan->backend->stream.open(device, &made->stream, err);
    if (status == TDM_OK) {
        made->memory = plan->backend->memory.alloc(device, plan->arena_bytes);
        if (!made->memory)
            status = TDM_FAIL(err, TDM_E_MEMORY,
                              "reserving %zu MiB for %d images of activations: out of memory; a "
                              "smaller --shard or --size needs less",
                              plan->arena_bytes >> 20, plan->max_images);
    }
    if (status != TDM_OK) {
        tdmi_lane_close(made);
        return status;
    }
    *lane = made;
    return TDM_OK;
}

void tdmi_lane_close(tdmi_lane *lane)
{
    if (!lane)
        return;
    if (lane->memory)
        lane->plan->backend->memory.free(lane->device, lane->memory);
    if (lane->stream)
        lane->plan->backend->stream.close(lane->stream);
    tdmi_free(lane);
}

tdmi_stream *tdmi_lane_stream(const tdmi_lane *lane)
{
    return lane->stream;
}

static void *at(const tdmi_lane *lane, struct tdmi_buffer buffer)
{
    return buffer.bytes ? lane->memory + buffer.offset : NULL;
}

static struct tdmi_op_call call_of(const tdmi_lane *lane, struct tdmi_values values, int index,
                                   float *sums)
{
    const tdmi_graph *graph = lane->plan->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    const struct tdmi_node_plan *it = &lane->plan->nodes[index];
    struct tdmi_op_call call = {
        .n = lane->shard.n,
        .y = at(lane, it->y),
        .dy = at(lane, it->dy),
        .saved = at(lane, it->saved),
        .pixels = lane->shard.pixels,
        .labels = lane->shard.labels,
        .mixed = lane->shard.mixed,
        .judgements = lane->shard.judgements,
        .class_weights = lane->shard.class_weights,
        .draws = lane->shard.draws,
    };
    if (node->n_inputs) {
        call.x[0] = at(lane, lane->plan->nodes[node->inputs[0]].y);
        if (it->desc.wants_dx)
            call.dx = at(lane, lane->plan->nodes[node->inputs[0]].dy);
    }
    for (int i = 0; i < node->n_params; i++) {
        int64_t offset = graph->params[node->first_param + i].offset;
        call.params[i] = values.params + offset;
        call.dparams[i] = sums ? sums + offset : NULL;
    }
    for (int i = 0; i < node->n_states; i++) {
        int64_t offset = graph->states[node->first_state + i].offset;
        call.states[i] = values.states + offset;
        call.state_sums[i] = sums ? sums + tdmi_graph_state_sums_at(graph) + offset : NULL;
    }
    return call;
}

/* A mixed sample counts as the class that it is more of. */
static int heavier_label(const struct tdmi_shard *shard, int i)
{
    return shard->mixed && shard->mixed[i].weight < 0.5f ? shard->mixed[i].other : shard->labels[i];
}

/* What the shard says of itself, in the sums that travel. */
static void write_tail(const tdmi_lane *lane, float *tail)
{
    int correct = 0;
    double loss = 0.0;
    for (int i = 0; i < lane->shard.n; i++) {
        correct += lane->shard.judgements[i].predicted == heavier_label(&lane->shard, i);
        loss += (double)lane->shard.judgements[i].loss;
    }
    tail[TDMI_TAIL_SAMPLES] = (float)lane->shard.n;
    tail[TDMI_TAIL_CORRECT] = (float)correct;
    tail[TDMI_TAIL_LOSS] = (float)loss;
}

void tdmi_lane_forward(tdmi_lane *lane, struct tdmi_values values, const struct tdmi_shard *shard,
                       float *sums)
{
    const tdmi_plan *plan = lane->plan;
    lane->shard = *shard;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        struct tdmi_op_call call = call_of(lane, values, i, sums);
        call.workspace = at(lane, plan->nodes[i].forward_workspace);
        plan->nodes[i].kernel->forward(lane->stream, &plan->nodes[i].desc, &call);
    }
    if (plan->is_training)
        write_tail(lane, sums + tdmi_graph_tail_at(plan->graph));
}

void tdmi_lane_backward(tdmi_lane *lane, struct tdmi_values values, int segment, float *sums)
{
    const tdmi_plan *plan = lane->plan;
    const struct tdmi_segment *range = &plan->segments[segment];
    for (int i = range->first_node; i >= range->last_node; i--) {
        struct tdmi_op_call call = call_of(lane, values, i, sums);
        call.workspace = at(lane, plan->nodes[i].backward_workspace);
        plan->nodes[i].kernel->backward(lane->stream, &plan->nodes[i].desc, &call);
    }
}

const float *tdmi_lane_probabilities(const tdmi_lane *lane)
{
    return at(lane, lane->plan->nodes[lane->plan->graph->n_nodes - 1].y);
}

const float *tdmi_lane_logits(const tdmi_lane *lane)
{
    return at(lane, lane->plan->nodes[lane->plan->graph->n_nodes - 2].y);
}

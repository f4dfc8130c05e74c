/*
 * Steps whose batch norms share statistics over the batch (--bn batch): all groups go from one
 * batch norm to the next together, and each keeps its activations in an executor of its own.
 */
#include "base/scope.h"
#include "dist/tree.h"
#include "train/step/step_internal.h"

#include <string.h>

static void forward_part(tdmi_step *step, int s, const struct tdmi_member *member)
{
    if (step->first_node == 0) {
        if (tdmi_member_is_first(member))
            tdmi_step_give(step, s, s);
        tdmi_member_wait(member);
    }
    if (step->group_images[s] > 0)
        tdmi_executor_forward_part(step->executors[s], step->values, step->first_node,
                                   step->last_node, tdmi_sums_of(step->sums, s), member);
}

static void backward_part(tdmi_step *step, int s, const struct tdmi_member *member)
{
    if (step->group_images[s] > 0)
        tdmi_executor_backward_part(step->executors[s], step->values, step->first_node,
                                    step->last_node, tdmi_sums_of(step->sums, s), member);
}

static void run_part(tdmi_step *step, int s, const struct tdmi_member *member)
{
    if (step->is_backward)
        backward_part(step, s, member);
    else
        forward_part(step, s, member);
}

static tdm_status part_alone(void *self, int s, int worker TDMI_UNUSED, tdm_error *err)
{
    run_part(self, s, NULL);
    return tdmi_step_wait_for(self, s, err);
}

static tdm_status part_together(void *self, int thread, int worker TDMI_UNUSED, tdm_error *err)
{
    tdmi_step *step = self;
    struct tdmi_seat seat;
    tdmi_step_take_seat(step, thread, &seat);
    const struct tdmi_member *member = seat.or_alone;
    const int team = seat.team;
    tdm_status status = TDM_OK;
    for (int s = step->division.n_alone + team; s < step->n_groups; s += step->division.n_teams) {
        run_part(step, s, member);
        if (tdmi_member_is_first(member) && status == TDM_OK)
            status = tdmi_step_wait_for(step, s, err);
    }
    tdmi_team_leave(&seat.member);
    return status;
}

static tdm_status run_parts(tdmi_step *step, bool is_backward, tdm_error *err)
{
    step->is_backward = is_backward;
    TDM_TRY(tdmi_pool_run(step->pool, step->division.n_alone, part_alone, step, err), err,
            "running groups together");
    return TDM_WRAP(
        err, tdmi_pool_run_all(step->pool, tdmi_step_team_threads(step), part_together, step, err),
        "running groups together");
}

/* Adds the sums of one batch norm over all groups, in the tree, and copies the total to every
 * executor. A group without images adds zeros, so the tree is the same. */
static void exchange(tdmi_step *step, int node)
{
    size_t n = 2 * (size_t)step->plan->graph->nodes[node].out.c;
    memset(step->exchange, 0, (size_t)step->n_groups * n * sizeof *step->exchange);
    for (int s = 0; s < step->n_groups; s++)
        if (step->group_images[s] > 0)
            memcpy(step->exchange + (size_t)s * n,
                   tdmi_executor_norm_sums(step->executors[s], node), n * sizeof *step->exchange);
    tdmi_tree_sum_rows(step->exchange, step->n_groups, (int64_t)n);
    for (int s = 0; s < step->n_groups; s++)
        if (step->group_images[s] > 0)
            memcpy(tdmi_executor_norm_total(step->executors[s], node), step->exchange,
                   n * sizeof *step->exchange);
}

static tdm_status forward_together(tdmi_step *step, tdm_error *err)
{
    const int n_nodes = step->plan->graph->n_nodes;
    for (step->first_node = 0; step->first_node < n_nodes; step->first_node = step->last_node + 1) {
        if (step->first_node > 0)
            exchange(step, step->first_node);
        step->last_node = tdmi_executor_forward_end(step->plan, step->first_node);
        TDMI_TRY(run_parts(step, false, err));
    }
    return TDM_OK;
}

static tdm_status backward_together(tdmi_step *step, const struct tdmi_segment *range,
                                    tdm_error *err)
{
    for (step->first_node = range->first_node; step->first_node >= range->last_node;
         step->first_node = step->last_node - 1) {
        const struct tdmi_node *node = &step->plan->graph->nodes[step->first_node];
        if (node->kind == TDMI_OP_BATCH_NORM && step->plan->nodes[step->first_node].has_backward)
            exchange(step, step->first_node);
        step->last_node =
            tdmi_executor_backward_end(step->plan, step->first_node, range->last_node);
        TDMI_TRY(run_parts(step, true, err));
    }
    return TDM_OK;
}

tdm_status tdmi_step_run_together(tdmi_step *step, tdm_error *err)
{
    if (step->segment == 0)
        TDM_TRY(forward_together(step, err), err, "forward");
    return backward_together(step, &step->plan->segments[step->segment], err);
}

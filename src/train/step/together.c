/*
 * Steps whose batch norms share statistics over the batch (--bn batch): all groups go from one
 * batch norm to the next together, and each keeps its activations in an executor of its own.
 */
#include "base/scope.h"
#include "dist/cut.h"
#include "dist/tree.h"
#include "train/step/step_internal.h"

#include <string.h>

static void forward_part(tdmi_step *step, int s, int thread, const struct tdmi_member *member)
{
    if (step->first_node == 0) {
        if (tdmi_member_is_first(member)) {
            tdmi_step_trace(step, s, thread);
            tdmi_step_give(step, s, s);
        }
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

static void run_part(tdmi_step *step, int s, int thread, const struct tdmi_member *member)
{
    if (step->is_backward)
        backward_part(step, s, member);
    else
        forward_part(step, s, thread, member);
}

static tdm_status part_alone(void *self, int s, int worker, tdm_error *err)
{
    tdmi_step_trace(self, s, worker); /* each part may have another */
    run_part(self, s, worker, NULL);
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
        run_part(step, s, thread, member);
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

/* The rows of all ranks: each has those of its own groups. */
static tdm_status exchange_rows(tdmi_step *step, size_t row_bytes, tdm_error *err)
{
    const int world = tdmi_comm_world(step->comm);
    TDMI_AT_END(tdmi_free_at) int *groups = NULL;
    TDMI_AT_END(tdmi_free_at) size_t *firsts = NULL;
    TDMI_TRY(TDMI_NEW(groups, world + 1, err));
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    TDMI_TRY(tdmi_cut_make(step->groups.n_all, world, groups, err));
    for (int r = 0; r <= world; r++)
        firsts[r] = (size_t)groups[r] * row_bytes;
    return tdmi_comm_complete(step->comm, step->exchange, firsts, err);
}

tdm_status tdmi_step_count_images(tdmi_step *step, tdm_error *err)
{
    step->n_all_images = step->n_images;
    if (!step->comm)
        return TDM_OK;
    const int world = tdmi_comm_world(step->comm);
    TDMI_AT_END(tdmi_free_at) size_t *firsts = NULL;
    TDMI_TRY(TDMI_NEW(firsts, world + 1, err));
    for (int r = 0; r <= world; r++)
        firsts[r] = (size_t)r * sizeof *step->counts;
    step->counts[tdmi_comm_rank(step->comm)] = step->n_images;
    TDMI_TRY(tdmi_comm_complete(step->comm, step->counts, firsts, err));
    step->n_all_images = 0;
    for (int r = 0; r < world; r++)
        step->n_all_images += step->counts[r];
    return TDM_OK;
}

/* Adds the sums of one batch norm over all groups, in the tree, and copies the total to every
 * executor. A group without images adds zeros, so the tree is the same. */
static tdm_status exchange(tdmi_step *step, int node, tdm_error *err)
{
    const size_t n = 2 * (size_t)step->plan->graph->nodes[node].out.c;
    const size_t row_bytes = n * sizeof *step->exchange;
    const int n_all = step->groups.n_all;
    memset(step->exchange, 0, (size_t)n_all * row_bytes);
    for (int s = 0; s < step->n_groups; s++)
        if (step->group_images[s] > 0)
            memcpy(step->exchange + (size_t)(step->groups.first + s) * n,
                   tdmi_executor_norm_sums(step->executors[s], node), row_bytes);
    if (step->comm)
        TDM_TRY(exchange_rows(step, row_bytes, err), err, "statistics of the whole batch");
    tdmi_tree_sum_rows(step->exchange, n_all, (int64_t)n);
    for (int s = 0; s < step->n_groups; s++)
        if (step->group_images[s] > 0)
            memcpy(tdmi_executor_norm_total(step->executors[s], node), step->exchange, row_bytes);
    return TDM_OK;
}

static tdm_status forward_together(tdmi_step *step, tdm_error *err)
{
    const int n_nodes = step->plan->graph->n_nodes;
    for (step->first_node = 0; step->first_node < n_nodes; step->first_node = step->last_node + 1) {
        if (step->first_node > 0)
            TDMI_TRY(exchange(step, step->first_node, err));
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
            TDMI_TRY(exchange(step, step->first_node, err));
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

/*
 * Sums over ranks of the segments of a step, as soon as each segment has run: between arrays of the
 * host by the communicator, between those of devices by dist/device_sum.h.
 */
#include "base/scope.h"
#include "dist/tree.h"
#include "train/step/step_internal.h"

tdm_status tdmi_step_reserve_ranks(tdmi_step *step, const struct tdmi_step_options *options,
                                   int n_arrays, tdm_error *err)
{
    if (!step->comm || step->plan->backend->device.is_host)
        return TDM_OK;
    step->device_sum = (struct tdmi_device_sum){
        .backend = step->plan->backend,
        .device = step->device,
        .stream = tdmi_step_stream(step),
        .comm = step->comm,
        .peers = options->peers,
        .n_values = tdmi_graph_sums_values(step->plan->graph),
        .most_roots = n_arrays, /* each has one */
    };
    return tdmi_device_sum_init(&step->device_sum, err);
}

/* Gradients that go to the other ranks as bf16; statistics and counts, behind them, never do. */
static int64_t rounded_values(const tdmi_step *step, const struct tdmi_segment *range)
{
    const int64_t n = step->plan->graph->param_values - range->first_value;
    if (!step->rounds || n < 0)
        return 0;
    return n < range->n_values ? n : range->n_values;
}

/* Starts the sum of the segment's range over all ranks. The arrays of subtrees are known once all
 * groups have been taken. */
tdm_status tdmi_step_add_ranks(tdmi_step *step, tdm_error *err)
{
    const struct tdmi_segment *range = &step->plan->segments[step->segment];
    const struct tdmi_sums_groups *groups = &step->groups;
    int firsts[TDMI_TREE_ROOTS];
    float *roots[TDMI_TREE_ROOTS];
    if (!step->comm)
        return TDM_OK;
    const int n = tdmi_tree_roots(groups->first, groups->first + groups->n, groups->n_all, firsts);
    for (int i = 0; i < n; i++)
        roots[i] = tdmi_sums_of(step->sums, firsts[i] - groups->first);
    const int64_t n_rounded = rounded_values(step, range);
    const bool is_last = step->segment + 1 == step->plan->n_segments;
    float *total = tdmi_step_sums(step);
    if (step->device_sum.backend) {
        TDMI_TRY(tdmi_device_sum_start(&step->device_sum, roots, total, range->first_value,
                                       range->n_values, n_rounded, err));
        return is_last ? tdmi_device_sum_finish(&step->device_sum, total, range->first_value, err)
                       : TDM_OK;
    }
    TDMI_TRY(tdmi_comm_sum_rounded(step->comm, roots, total, range->first_value, n_rounded, err));
    TDMI_TRY(tdmi_comm_sum(step->comm, roots, total, range->first_value + n_rounded,
                           range->n_values - n_rounded, err));
    return is_last ? tdmi_comm_finish(step->comm, err) : TDM_OK;
}

/*
 * All threads run a group each, a few times over, on executors that time each node; the best time
 * of each node counts.
 */
#include "tune/bench_profile.h"
#include "base/scope.h"
#include "graph/packed.h"
#include "tune/bench_rate.h"

#include <stdio.h>

enum { profile_runs = 5 };

/* An executor and its clock for each thread. */
struct profiler {
    const struct tdmi_profiled *of;
    tdmi_executor **executors;
    float **sums;
    /* executors × (forward of all nodes, backward of all nodes): the run at hand, the best of all
     */
    double *seconds, *best;
    const uint8_t **pixels;
    tdmi_packed *packed;
};

static void keep_best(double *best, double *seconds, int n, bool is_first)
{
    for (int i = 0; i < n; i++) {
        if (is_first || seconds[i] < best[i])
            best[i] = seconds[i];
        seconds[i] = 0.0;
    }
}

static tdm_status profile_task(void *self, int index, int worker, tdm_error *err)
{
    struct profiler *profiler = self;
    const struct tdmi_profiled *it = profiler->of;
    tdmi_executor *executor = profiler->executors[index];
    int n_nodes = it->plan->graph->n_nodes, first = index * it->plan->max_images;
    int n =
        it->batch->n - first < it->plan->max_images ? it->batch->n - first : it->plan->max_images;
    double *seconds = profiler->seconds + (int64_t)index * 2 * n_nodes;
    double *best = profiler->best + (int64_t)index * 2 * n_nodes;
    struct tdmi_group group = {.n = n,
                               .pixels = profiler->pixels + first,
                               .is_on_device = it->batch->is_on_device,
                               .labels = it->plan->is_training ? it->batch->labels + first : NULL,
                               .judgements = it->plan->is_training ? it->judgements + first : NULL};
    (void)worker;
    tdmi_executor_profile(
        executor,
        &(struct tdmi_profile){seconds, seconds + n_nodes,
                               it->plan->backend->device.is_host ? 1 : TDMI_BENCH_IN_A_ROW});
    for (int r = -1; r < profile_runs; r++) { /* the first touches fresh memory */
        tdmi_executor_forward(executor, it->values, &group, profiler->sums[index]);
        for (int s = 0; s < it->plan->n_segments; s++)
            tdmi_executor_backward(executor, it->values, s, profiler->sums[index], NULL);
        keep_best(best, seconds, 2 * n_nodes, r <= 0);
    }
    return it->plan->backend->stream.wait(tdmi_executor_stream(executor), err);
}

static tdm_status run_profile(struct profiler *profiler, tdm_error *err)
{
    const struct tdmi_profiled *it = profiler->of;
    const int executors = it->n_executors, n_nodes = it->plan->graph->n_nodes;
    const size_t sums = sizeof(float) * (size_t)tdmi_graph_sums_values(it->plan->graph);
    const int64_t image = tdmi_shape_values(it->plan->graph->nodes[0].out);
    TDMI_TRY(TDMI_NEW(profiler->executors, executors, err));
    TDMI_TRY(TDMI_NEW(profiler->sums, executors, err));
    TDMI_TRY(TDMI_NEW(profiler->seconds, executors * 2 * n_nodes, err));
    TDMI_TRY(TDMI_NEW(profiler->best, executors * 2 * n_nodes, err));
    TDMI_TRY(TDMI_NEW(profiler->pixels, it->batch->n, err));
    for (int i = 0; i < it->batch->n; i++)
        profiler->pixels[i] = it->batch->pixels + i * image;
    TDMI_TRY(tdmi_packed_open(it->plan, it->device, &profiler->packed, err));
    TDMI_TRY(tdmi_packed_fill(profiler->packed, it->values, 0, it->pool, err));
    for (int i = 0; i < executors; i++) {
        TDMI_TRY(tdmi_executor_open(it->plan, it->device, &profiler->executors[i], err));
        tdmi_executor_use(profiler->executors[i], tdmi_packed_memory(profiler->packed));
        profiler->sums[i] = it->plan->backend->memory.alloc(it->device, sums);
        TDMI_CHECK_MEMORY(profiler->sums[i], err);
    }
    return tdmi_pool_run_all(it->pool, executors, profile_task, profiler, err);
}

static void profiler_release(struct profiler *profiler)
{
    const struct tdmi_profiled *it = profiler->of;
    for (int i = 0; i < it->n_executors; i++) {
        if (profiler->executors)
            tdmi_executor_close(profiler->executors[i]);
        if (profiler->sums && profiler->sums[i])
            it->plan->backend->memory.free(it->device, profiler->sums[i]);
    }
    tdmi_packed_close(profiler->packed);
    tdmi_free(profiler->executors);
    tdmi_free(profiler->sums);
    tdmi_free(profiler->seconds);
    tdmi_free(profiler->best);
    tdmi_free(profiler->pixels);
}

/* Values of one image that a batch norm with its own sums moves: forward it reads x twice and
 * writes y; backward it reads x and dy twice and writes dx. Behind an activation the host reads y
 * twice, too; a GPU does so only where a residual is added. A residual is read, and has a gradient
 * of its own behind an activation. */
static double values_of_norm(const struct tdmi_node_plan *it, bool is_host, double size)
{
    const bool has_act = it->desc.fusion.act != TDMI_ACT_NONE;
    const bool adds = it->desc.fusion.adds_residual;
    double tensors = 3.0 + adds;
    if (it->has_backward)
        tensors += 5.0 + 2.0 * (has_act && (is_host || adds)) + (adds && has_act);
    return tensors * size;
}

/* A chain counts as one node. */
double tdmi_profile_node_bytes(const tdmi_plan *plan, int index)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    const struct tdmi_node_plan *it = &plan->nodes[index];
    const double size = (double)tdmi_shape_values(node->out);
    int links[TDMI_CHAIN_LINKS];
    tdmi_chain_links(plan, index, links);
    double values = size;
    for (int i = 0; i < node->n_inputs; i++)
        values += (double)tdmi_shape_values(plan->graph->nodes[links[0]].in[i]);
    values *= it->has_backward ? 3.0 : 1.0;
    if (node->kind == TDMI_OP_BATCH_NORM && it->desc.is_training && !it->is_virtual &&
        !it->desc.keeps_statistics)
        values = values_of_norm(it, plan->backend->device.is_host, size);
    return (double)tdmi_dtype_bytes(plan->storage) * values;
}

static void fill_rates(const struct tdmi_profiled *it, int index, struct tdm_bench_node *row)
{
    int links[TDMI_CHAIN_LINKS], n_links = tdmi_chain_links(it->plan, index, links);
    const double seconds = row->forward_seconds + row->backward_seconds;
    double operations = 0.0;
    for (int i = 0; i < n_links; i++)
        operations += tdmi_plan_node_operations(it->plan, links[i]);
    row->operations_per_s = operations * it->batch->n / seconds;
    row->bytes_per_s = tdmi_profile_node_bytes(it->plan, index) * it->batch->n / seconds;
}

static struct tdm_bench_way algorithm_of(const struct tdmi_kernel_algorithm *algorithm)
{
    struct tdm_bench_way to = {.workspace_bytes = (int64_t)algorithm->workspace_bytes};
    snprintf(to.by, sizeof to.by, "%s", algorithm->by);
    return to;
}

static void fill_algorithms(const struct tdmi_node_plan *node, struct tdm_bench_node *row)
{
    struct tdmi_kernel_algorithms found = {{{0}, 0}, {{0}, 0}, {{0}, 0}};
    if (node->kernel->describe)
        node->kernel->describe(&node->desc, &found);
    row->forward_way = algorithm_of(&found.forward);
    row->input_gradient_way = algorithm_of(&found.of_input);
    row->weight_gradient_way = algorithm_of(&found.of_weights);
}

static void fill_nodes(struct profiler *profiler, struct tdm_bench_compute *result)
{
    const struct tdmi_profiled *it = profiler->of;
    int n_nodes = it->plan->graph->n_nodes;
    double all = 0.0, batch_seconds = 1e-3 * result->milliseconds;
    /* of what the executors ran, as much as a batch has for each thread */
    int images = it->n_executors * it->plan->max_images < it->batch->n
                     ? it->n_executors * it->plan->max_images
                     : it->batch->n;
    /* Teams of threads compute what an executor did alone. */
    const int threads = it->plan->backend->device.is_host ? tdmi_pool_threads(it->pool) : 1;
    double scale = (double)it->batch->n / images / threads;
    for (int i = 0; i < n_nodes; i++) {
        struct tdm_bench_node *row = &result->nodes[result->n_nodes];
        *row = (struct tdm_bench_node){0};
        for (int executor = 0; executor < it->n_executors; executor++) {
            const double *seconds = profiler->best + (int64_t)executor * 2 * n_nodes;
            row->forward_seconds += seconds[i] * scale;
            row->backward_seconds += seconds[n_nodes + i] * scale;
        }
        if (tdmi_plan_is_silent(it->plan, i) || it->plan->nodes[i].chained_by >= 0)
            continue;
        snprintf(row->name, sizeof row->name, "%s", it->plan->graph->nodes[i].name);
        snprintf(row->op, sizeof row->op, "%s", tdmi_op_name(it->plan->graph->nodes[i].kind));
        fill_rates(it, i, row);
        fill_algorithms(&it->plan->nodes[i], row);
        all += row->forward_seconds + row->backward_seconds;
        result->n_nodes++;
    }
    result->other_seconds = batch_seconds > all ? batch_seconds - all : 0.0;
    for (int i = 0; i < result->n_nodes; i++) {
        struct tdm_bench_node *row = &result->nodes[i];
        row->share = (row->forward_seconds + row->backward_seconds) / (all + result->other_seconds);
    }
}

tdm_status tdmi_profile_nodes(const struct tdmi_profiled *profiled,
                              struct tdm_bench_compute *result, tdm_error *err)
{
    TDMI_AT_END(profiler_release) struct profiler profiler = {.of = profiled};
    TDM_TRY(TDMI_NEW(result->nodes, profiled->plan->graph->n_nodes, err), err,
            "measuring node by node");
    TDM_TRY(run_profile(&profiler, err), err, "measuring node by node");
    fill_nodes(&profiler, result);
    return TDM_OK;
}

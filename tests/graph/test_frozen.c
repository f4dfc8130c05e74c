/*
 * Training from some node on: what lies before the border runs as without training and gets no
 * gradient, wherever the border lies; what lies behind it gets the one of differences.
 */
#include "graph/fusing.h"
#include "models/known_network.h"
#include "unit.h"

static double loss_of(const tdmi_plan *plan, struct values values)
{
    struct outcome outcome = run(plan, values);
    double loss = (double)outcome.sums[tdmi_graph_tail_at(plan->graph) + TDMI_TAIL_LOSS];
    free(outcome.sums);
    return loss;
}

/* The last node with weights: training can begin there. */
static int last_trainable(const tdmi_graph *graph)
{
    int node = graph->n_nodes - 1;
    while (graph->nodes[node].n_params == 0)
        node--;
    return node;
}

static int first_param_from(const tdmi_graph *graph, int node)
{
    while (graph->nodes[node].n_params == 0)
        node++;
    return graph->nodes[node].first_param;
}

static int64_t states_before(const tdmi_graph *graph, int node)
{
    while (node < graph->n_nodes && graph->nodes[node].n_states == 0)
        node++;
    return node < graph->n_nodes ? graph->states[graph->nodes[node].first_state].offset
                                 : graph->state_values;
}

/* keeps: batch norms that are trained keep their statistics. */
static tdmi_plan *plan_from(const tdmi_graph *graph, const struct tdmi_backend *backend,
                            int first_node, bool keeps)
{
    const struct tdmi_plan_options request = {.max_images = most_images,
                                              .is_training = true,
                                              .first_trained = first_node,
                                              .keeps_statistics = keeps};
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_make(graph, backend, &request, &plan, NULL), TDM_OK);
    return plan;
}

/* Gradients of the parameters from first_node on; those before it get none. */
static void gradients_are_those_of_differences(const tdmi_graph *graph, struct values values,
                                               const struct tdmi_backend *backend, int first_node,
                                               bool keeps)
{
    tdmi_plan *plan = plan_from(graph, backend, first_node, keeps);
    struct outcome outcome = run(plan, values);
    int first = first_param_from(graph, first_node);
    for (int64_t i = 0; first > 0 && i < graph->params[first - 1].offset; i++)
        assert_true(outcome.sums[i] == 0.0f); /* as it was before the run */
    for (int t = first; t < graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &graph->params[t];
        int64_t at = tensor->offset + tensor->n / 2;
        const float step = 1.0f / 2048, kept = values.params[at];
        values.params[at] = kept + step;
        double above = loss_of(plan, values);
        values.params[at] = kept - step;
        double below = loss_of(plan, values);
        values.params[at] = kept;
        double wanted = (above - below) / (2.0 * (double)step), got = (double)outcome.sums[at];
        if (!(fabs(wanted - got) <= 0.02 * fabs(wanted) + 0.005))
            fail_msg("from node %d on: the gradient of %s is %g, by differences %g", first_node,
                     tensor->name, got, wanted);
    }
    free(outcome.sums);
    tdmi_plan_free(plan);
}

TEST(gradients_through_branches_are_those_of_differences)
{
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
    for (int first = 0; first < last_trainable(graph); first += 5)
        gradients_are_those_of_differences(graph, values, &tdmi_backend_ref, first, false);
    gradients_are_those_of_differences(graph, values, &tdmi_backend_ref, last_trainable(graph),
                                       false);
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

/* On every backend: with statistics that stay, none of a gradient goes through them. */
TEST(gradients_through_kept_statistics_are_those_of_differences)
{
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
    for (int i = 0; tdmi_backend_at(i); i++) {
        if (!tdmi_backend_at(i)->device.is_host)
            continue;
        const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
        for (int first = 0; first < last_trainable(graph); first += 9)
            gradients_are_those_of_differences(graph, values, &backend, first, true);
    }
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

static void same_behind_the_border(const tdmi_graph *graph, const struct tdmi_backend *backend,
                                   bool is_apart, int first_node, bool keeps, struct values values,
                                   const struct outcome *wanted)
{
    const struct tdmi_plan_options request = {.max_images = most_images,
                                              .is_training = true,
                                              .is_apart = is_apart,
                                              .first_trained = first_node,
                                              .keeps_statistics = keeps};
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_make(graph, backend, &request, &plan, NULL), TDM_OK);
    struct outcome got = run(plan, values);
    for (int i = 0; i < first_node; i++) {
        assert_false(plan->nodes[i].has_backward);
        assert_int_equal(plan->nodes[i].dy.bytes, 0);
    }
    memset(got.sums + tdmi_graph_state_sums_at(graph), 0, /* which mean nothing there */
           sizeof(float) * (size_t)states_before(graph, first_node));
    same_outcome(graph, &got, wanted);
    free(got.sums);
    tdmi_plan_free(plan);
}

/* On every backend and whatever its kernels refuse. */
static void same_everywhere(const tdmi_graph *graph, struct fusing *fusing, int first, bool keeps,
                            struct values values)
{
    tdmi_plan *plan = plan_from(graph, &tdmi_backend_ref, first, keeps);
    struct outcome wanted = run(plan, values);
    memset(wanted.sums + tdmi_graph_state_sums_at(graph), 0,
           sizeof(float) * (size_t)states_before(graph, first));
    tdmi_plan_free(plan);
    for (size_t r = 0; r < sizeof refusals / sizeof refusals[0]; r++) {
        refuse(r);
        same_behind_the_border(graph, &fusing->backend, false, first, keeps, values, &wanted);
    }
    same_behind_the_border(graph, &fusing->backend, true, first, keeps, values, &wanted);
    for (int i = 0; tdmi_backend_at(i); i++) {
        if (!tdmi_backend_at(i)->device.is_host)
            continue;
        const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
        same_behind_the_border(graph, &backend, false, first, keeps, values, &wanted);
    }
    free(wanted.sums);
}

/* Wherever the border lies; with statistics of batch norms that are taken and that stay. */
TEST(what_is_frozen_runs_as_without_training)
{
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
    struct fusing fusing;
    fusing_init(&fusing);
    for (int first = 1; first <= last_trainable(graph); first++) {
        same_everywhere(graph, &fusing, first, false, values);
        same_everywhere(graph, &fusing, first, true, values);
    }
    same_everywhere(graph, &fusing, 0, true, values);
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

/* Training with kept statistics computes what evaluation does: no batch statistics are used. */
TEST(kept_statistics_give_what_inference_gives)
{
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
    tdmi_plan *evaluator;
    for (int i = 0; tdmi_backend_at(i); i++) {
        const struct tdmi_backend *backend = tdmi_backend_at(i);
        if (!backend->device.is_host)
            continue;
        assert_int_equal(tdmi_plan_new(graph, backend, most_images, false, &evaluator, NULL),
                         TDM_OK);
        tdmi_plan *train = plan_from(graph, backend, 0, true);
        struct outcome wanted = run(evaluator, values), got = run(train, values);
        compare(got.probabilities, wanted.probabilities, (most_images - 1) * n_classes,
                backend->name);
        const int64_t at = tdmi_graph_state_sums_at(graph);
        for (int t = 0; t < graph->n_states; t++)
            for (int64_t v = 0; v < graph->states[t].n; v++)
                assert_true(got.sums[at + graph->states[t].offset + v] == 0.0f);
        free(wanted.sums);
        free(got.sums);
        tdmi_plan_free(evaluator);
        tdmi_plan_free(train);
    }
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

/* Nothing is passed over more often than where statistics are taken. */
TEST(kept_statistics_cost_no_fusion)
{
    tdmi_graph *graph = network_new("mobilenetv2", 64, n_classes);
    for (int i = 0; tdmi_backend_at(i); i++) {
        int n_virtual[2] = {0, 0};
        for (int keeps = 0; keeps < 2; keeps++) {
            tdmi_plan *plan = plan_from(graph, tdmi_backend_at(i), 0, keeps);
            for (int n = 0; n < graph->n_nodes; n++) {
                n_virtual[keeps] += plan->nodes[n].is_virtual;
                assert_false(keeps && plan->nodes[n].desc.fusion.gives_sums);
            }
            tdmi_plan_free(plan);
        }
        assert_int_equal(n_virtual[0], n_virtual[1]);
    }
    tdmi_graph_free(graph);
}

TEST(frozen_as_far_as_that_nothing_is_left)
{
    tdmi_graph *graph = branches();
    struct tdmi_plan_options request = {
        .max_images = 1, .is_training = true, .first_trained = last_trainable(graph) + 1};
    tdmi_plan *plan = NULL;
    tdm_error err;
    assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_ref, &request, &plan, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "nothing with weights is left to train"));
    assert_null(plan);
    tdmi_graph_free(graph);
}

TEST_MAIN(NULL, NULL)

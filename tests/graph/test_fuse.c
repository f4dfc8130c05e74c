/*
 * Fusion and several readers: a backend whose kernels take every form (graph/fusing.h) must give
 * what the reference gives alone; so must every plan that it gets when some of its kernels refuse.
 */
#include "graph/fusing.h"
#include "unit.h"

static int count_virtual(const tdmi_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++)
        n += plan->nodes[i].is_virtual;
    return n;
}

TEST(whatever_kernels_carry_the_numbers_are_the_same)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = branches();
    TDMI_AT_END(values_release) struct values values = values_of(graph);
    struct fusing fusing;
    fusing_init(&fusing);
    for (int training = 0; training < 2; training++) {
        tdmi_plan *plan;
        assert_int_equal(
            tdmi_plan_new(graph, &tdmi_backend_ref, most_images, training, &plan, NULL), TDM_OK);
        assert_int_equal(count_virtual(plan), 0);
        struct outcome wanted = run(plan, values);
        tdmi_plan_free(plan);
        refused.kind = TDMI_OP_KINDS;
        const struct tdmi_plan_options alone = {
            .max_images = most_images, .is_training = training, .is_apart = true};
        assert_int_equal(tdmi_plan_make(graph, &fusing.backend, &alone, &plan, NULL), TDM_OK);
        assert_int_equal(count_virtual(plan), 0);
        struct outcome apart = run(plan, values);
        same_outcome(graph, &apart, &wanted);
        free(apart.sums);
        tdmi_plan_free(plan);
        for (size_t r = 0; r < sizeof refusals / sizeof refusals[0]; r++) {
            refuse(r);
            assert_int_equal(
                tdmi_plan_new(graph, &fusing.backend, most_images, training, &plan, NULL), TDM_OK);
            struct outcome got = run(plan, values);
            same_outcome(graph, &got, &wanted);
            int n = training ? refusals[r].n_training : refusals[r].n_inference;
            if (count_virtual(plan) != n)
                fail_msg("refusal %zu, training %d: %d nodes are virtual, %d are expected", r,
                         training, count_virtual(plan), n);
            free(got.sums);
            tdmi_plan_free(plan);
        }
        free(wanted.sums);
    }
}

/* ---- the backends of this build ------------------------------------------------------------ */

TEST(every_backend_gives_the_numbers_of_the_reference)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = branches();
    TDMI_AT_END(values_release) struct values values = values_of(graph);
    for (int training = 0; training < 2; training++) {
        tdmi_plan *plan;
        assert_int_equal(
            tdmi_plan_new(graph, &tdmi_backend_ref, most_images, training, &plan, NULL), TDM_OK);
        struct outcome wanted = run(plan, values);
        tdmi_plan_free(plan);
        for (int i = 0; tdmi_backend_at(i); i++) {
            if (!tdmi_backend_at(i)->device.is_host)
                continue; /* this test hands out host memory; selftest has the others */
            const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
            assert_int_equal(tdmi_plan_new(graph, &backend, most_images, training, &plan, NULL),
                             TDM_OK);
            struct outcome got = run(plan, values);
            same_outcome(graph, &got, &wanted);
            free(got.sums);
            tdmi_plan_free(plan);
        }
        free(wanted.sums);
    }
}

/* ---- batch norms that are not virtual and take an add and an activation behind them ------------
 * The add's other operand may share the norm's own gradient. Memory is poisoned, so a read of what
 * is no longer there gives a NaN. */

/* Members of groups; how many residuals share their gradient with the norm that adds them. */
static void count_groups(const tdmi_plan *plan, int *members, int *residuals, int *shared)
{
    *members = *residuals = *shared = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct tdmi_node_plan *it = &plan->nodes[i];
        const bool is_led =
            it->computed_by >= 0 && plan->graph->nodes[it->computed_by].kind == TDMI_OP_BATCH_NORM;
        *members += is_led;
        if (plan->graph->nodes[i].kind != TDMI_OP_BATCH_NORM || it->residual < 0)
            continue;
        ++*residuals;
        *shared += plan->nodes[it->residual].dy_of == it->dy_of;
    }
}

TEST(groups_of_norms_give_the_numbers_of_ops_alone)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = branches();
    TDMI_AT_END(values_release) struct values values = values_of(graph);
    struct fusing fusing;
    fusing_init(&fusing);
    norms_take_groups = true;
    for (int way = 0; way < 6; way++) {
        const bool is_training = way < 5;
        const struct tdmi_plan_options request = {.max_images = most_images,
                                                  .is_training = is_training,
                                                  .first_trained = way == 3 ? 9 : 0,
                                                  .keeps_statistics = way == 4};
        tdmi_plan *plan;
        int members, residuals, shared;
        assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_ref, &request, &plan, NULL), TDM_OK);
        struct outcome wanted = run(plan, values);
        tdmi_plan_free(plan);
        refused.kind = way == 1 ? TDMI_OP_MAX_POOL : way == 2 ? TDMI_OP_ADD : TDMI_OP_KINDS;
        refused.forms = true;
        if (!is_training) { /* or convs fold them */
            refused.kind = TDMI_OP_CONV;
            refused.folding = true;
        }
        assert_int_equal(tdmi_plan_make(graph, &fusing.backend, &request, &plan, NULL), TDM_OK);
        struct outcome got = run(plan, values);
        same_outcome(graph, &got, &wanted);
        count_groups(plan, &members, &residuals, &shared);
        if (way < 3 || way == 4) { /* relu0, relu1, add1, relu3, add2, add6 */
            assert_int_equal(members, 6);
            assert_int_equal(residuals, 3);
            assert_true(shared >= 1);
        }
        assert_true(members > 2 && residuals > 0);
        free(got.sums);
        free(wanted.sums);
        tdmi_plan_free(plan);
    }
    norms_take_groups = false;
}

TEST_MAIN(NULL, NULL)

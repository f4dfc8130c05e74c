/*
 * Batch norms that are not virtual and take what follows them (graph/fusing.h): an add, whose other
 * operand may be given the norm's own gradient, and an activation. Memory is poisoned, so whoever
 * reads what is not there any more gives a NaN.
 */
#include "graph/fusing.h"
#include "unit.h"

/* Members of groups; how many residuals share their gradient with the norm that adds them. */
static void count(const tdmi_plan *plan, int *members, int *residuals, int *shared)
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
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
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
        count(plan, &members, &residuals, &shared);
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
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

TEST_MAIN(NULL, NULL)

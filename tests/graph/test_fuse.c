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
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
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
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

/* ---- the backends of this build ------------------------------------------------------------ */

TEST(every_backend_gives_the_numbers_of_the_reference)
{
    tdmi_graph *graph = branches();
    struct values values = values_of(graph);
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
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

TEST_MAIN(NULL, NULL)

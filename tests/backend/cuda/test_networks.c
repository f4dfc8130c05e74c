/*
 * Steps of known networks on a GPU's kernels beside ref's: all ops that they are made of, in the
 * order and shapes that they have them. Small ones here; others by name and size as arguments
 * (`cuda_test_networks xception 64`), which the shim takes minutes over.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "models/known_network.h"
#include "train/selftest/checks.h"
#include "train/trainings.h"

#include <math.h>
#include <stdio.h>

enum { n_images = most_batch, n_steps = 2 };

static double length_of(const float *values, const float *less, int64_t n)
{
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double value = (double)values[i] - (less ? (double)less[i] : 0.0);
        squares += value * value;
    }
    return sqrt(squares);
}

/* Compare a step's sums of gradients, tensor by tensor, and its tail: distance by length. A
 * gradient that is 0 but for rounding (of a bias before another batch norm) has none of its own. */
static void expect_close(const char *name, const struct training *got,
                         const struct training *wanted, int step, double limit)
{
    const tdmi_graph *graph = got->of->graph;
    const int64_t tail = tdmi_graph_tail_at(graph);
    const double of_all = length_of(wanted->sums, NULL, graph->param_values);
    /* Differences after the first step grow, so only the losses and counts of the second are
     * compared. */
    for (int t = step == 0 ? 0 : graph->n_params; t <= graph->n_params; t++) {
        const bool is_tail = t == graph->n_params;
        const int64_t first = is_tail ? tail : graph->params[t].offset;
        const int64_t n = is_tail ? TDMI_TAIL_VALUES : graph->params[t].n;
        const double length = length_of(wanted->sums + first, NULL, n);
        const double apart = length_of(got->sums + first, wanted->sums + first, n);
        if (!(apart <= limit * length + 1e-5 * of_all))
            fail_msg("step %d of %s, %s: %.3g apart, of %.3g", step + 1, name,
                     is_tail ? "the tail" : graph->params[t].name, apart, length);
    }
}

/* A value that rounding moves across the kink of a ReLU moves all gradients below it: limit, more
 * of it in deep networks. */
static void train(const char *name, int side, double limit)
{
    struct bench of;
    const struct tdmi_augment none = {0};
    open_bench_of(&of, network_new(name, side, classes));
    struct training host = begin(&of, &tdmi_backend_ref,
                                 (struct way){.shard = n_images, .threads = 1, .optimizer = "sgd"});
    struct training gpu = begin(&of, &tdmi_backend_shim,
                                (struct way){.shard = n_images, .threads = 1, .optimizer = "sgd"});
    const struct tdmi_batch batch = first_of(&of, n_images);
    for (int s = 0; s < n_steps; s++) {
        const struct tdmi_mixing mixing = {&none, 5, (uint32_t)s};
        run(&host, &batch, &mixing, false, 0.0);
        tdmi_shim_use((struct tdmi_shim_order){0});
        run(&gpu, &batch, &mixing, false, 0.0);
        assert_true(tdmi_shim_facts().launches > of.graph->n_nodes);
        expect_close(name, &gpu, &host, s, s == 0 ? limit : 0.05);
    }
    end(&host);
    end(&gpu);
    close_bench(&of);
}

static void lenet5(void **state)
{
    (void)state;
    train("lenet5", 28, 1e-4);
}

static void convnet7(void **state)
{
    (void)state;
    train("convnet7", 12, 5e-3);
}

static void a_small_residual_network(void **state)
{
    (void)state;
    train("resnet8-cifar", 8, 5e-3);
}

static void a_narrow_mobilenet(void **state)
{
    (void)state;
    train("mobilenetv2-0.35", 32, 5e-3);
}

static void networks_named_as_arguments(void **state)
{
    char **names = *state;
    for (int i = 0; names[i] && names[i + 1]; i += 2) {
        printf("%s at %s\n", names[i], names[i + 1]);
        train(names[i], atoi(names[i + 1]), 0.03);
    }
}

int main(int n_arguments, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet5),
        cmocka_unit_test(convnet7),
        cmocka_unit_test(a_small_residual_network),
        cmocka_unit_test(a_narrow_mobilenet),
    };
    const struct CMUnitTest named[] = {
        cmocka_unit_test_prestate(networks_named_as_arguments, arguments + 1),
    };
    return n_arguments > 1 ? cmocka_run_group_tests(named, NULL, NULL)
                           : cmocka_run_group_tests(tests, NULL, NULL);
}

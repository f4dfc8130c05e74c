/*
 * bench compute through the library: what it reports hangs together, wrong options are refused by
 * name, and no allocation is taken for granted.
 */
#include "tandem/bench.h"

#include <math.h>

#include "base/each_allocation.h"
#include "unit.h"

static struct tdm_bench_compute_options small(enum tdm_bench_mode mode)
{
    struct tdm_bench_compute_options options = tdm_bench_compute_options_default();
    options.model = "convnet7";
    options.mode = mode;
    options.batch = 5;
    options.image = 16;
    options.classes = 3;
    options.shard = 2;
    options.threads = 2;
    options.seconds = 0.5;
    options.device = "ref";
    return options;
}

static void check_result(const struct tdm_bench_compute *result, bool is_training)
{
    assert_true(result->steps >= 3);
    assert_true(result->rate.low > 0.0 && result->rate.low <= result->rate.median &&
                result->rate.median <= result->rate.high);
    assert_true(fabs(result->milliseconds - 5e3 / result->rate.median) < 1e-9);
    assert_true(result->ceiling > 0.0 && result->start_milliseconds > 0.0);
    assert_int_equal(result->shard, 2);
    assert_int_equal(result->threads, 2);
    assert_int_equal(result->image, 16);
    assert_string_equal(result->model, "convnet7");
    assert_string_equal(result->backend, "ref");
    /* parameters, momentum, and gradients of three groups; running statistics not counted */
    int64_t arrays = is_training ? 5 : 1;
    assert_true(result->planned_bytes > arrays * 4 * result->parameters);
    assert_true(result->peak_bytes > 0);
}

TEST(training_is_measured_with_its_ceiling)
{
    struct tdm_bench_compute_options options = small(TDM_BENCH_TRAIN);
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    assert_int_equal(tdm_bench_compute(&options, &result, NULL), TDM_OK);
    check_result(&result, true);
    assert_null(result.nodes);
    tdm_bench_compute_release(&result);
}

TEST(features_are_measured_without_a_backward_pass)
{
    struct tdm_bench_compute_options options = small(TDM_BENCH_FEATURES);
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    options.has_profile = true;
    assert_int_equal(tdm_bench_compute(&options, &result, NULL), TDM_OK);
    check_result(&result, false);
    for (int i = 0; i < result.n_nodes; i++)
        assert_true(result.nodes[i].backward_seconds <= 0.0);
    assert_true(result.update_seconds <= 0.0);
    tdm_bench_compute_release(&result);
}

TEST(a_profile_names_the_nodes_and_shares_the_time)
{
    struct tdm_bench_compute_options options = small(TDM_BENCH_TRAIN);
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    double shares = 0.0, seconds = 0.0;
    bool has_conv = false;
    options.has_profile = true;
    assert_int_equal(tdm_bench_compute(&options, &result, NULL), TDM_OK);
    assert_true(result.n_nodes > 5);
    for (int i = 0; i < result.n_nodes; i++) {
        const struct tdm_bench_node *node = &result.nodes[i];
        shares += node->share;
        seconds += node->forward_seconds + node->backward_seconds;
        if (strcmp(node->name, "conv2") != 0)
            continue;
        has_conv = true;
        assert_string_equal(node->op, "conv");
        assert_true(node->forward_seconds > 0.0 && node->backward_seconds > 0.0);
        assert_true(node->operations_per_s > 0.0 && node->bytes_per_s > 0.0);
    }
    assert_true(has_conv);
    assert_true(result.update_seconds > 0.0 &&
                result.update_seconds < seconds + result.other_seconds);
    assert_true(result.update_bytes_per_s > 1e6);
    assert_true(fabs(shares * (seconds + result.other_seconds) - seconds) < 1e-9);
    tdm_bench_compute_release(&result);
    assert_null(result.nodes);
}

static void refused(struct tdm_bench_compute_options options, const char *words)
{
    tdm_error err = {0};
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    assert_int_equal(tdm_bench_compute(&options, &result, &err), TDM_E_USAGE);
    if (!strstr(tdm_error_sentence(&err, 0), words))
        fail_msg("'%s' does not say '%s'", tdm_error_sentence(&err, 0), words);
    tdm_bench_compute_release(&result);
}

TEST(what_cannot_be_measured_is_refused_by_name)
{
    struct tdm_bench_compute_options options = small(TDM_BENCH_TRAIN);
    options.precision = "bf16";
    refused(options, "bf16");
    options = small(TDM_BENCH_TRAIN);
    options.model = "lenet6";
    refused(options, "lenet6");
    options = small(TDM_BENCH_TRAIN);
    options.device = "abacus";
    refused(options, "abacus");
    options = small(TDM_BENCH_TRAIN);
    options.batch = 0;
    refused(options, "batches of 1 to 65536");
    options = small(TDM_BENCH_TRAIN);
    options.classes = 1;
    refused(options, "2 to 100000 classes");
}

static tdm_status scene(tdm_error *err)
{
    struct tdm_bench_compute_options options = small(TDM_BENCH_TRAIN);
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    options.model = "lenet5";
    options.image = 0;
    options.threads = 1;
    options.has_profile = true;
    tdm_status status = tdm_bench_compute(&options, &result, err);
    tdm_bench_compute_release(&result);
    return status;
}

TEST(any_allocation_may_fail)
{
    assert_true(fail_each_allocation(scene) > 20);
}

TEST_MAIN(NULL, NULL)

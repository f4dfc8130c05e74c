/*
 * Whole training steps with GPU kernels, in memory that only kernels and copies may touch: they
 * agree with ref, and twice they give the same bits, whatever runs first.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "models/known_network.h"
#include "train/selftest/checks.h"
#include "train/trainings.h"

#include <math.h>

#include "base/folder.h"

/* Batch norms that carry what follows them: an activation; a residual that one before the norm
 * gives; both. Two readers of one tensor, one of them through an activation. */
static tdmi_graph *small_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 5, 3, 2, 1, true));
    const int y =
        tdmi_add_batch_norm(graph, "bn", tdmi_add_conv(graph, "conv2", x, 5, 3, 1, 1, false));
    x = tdmi_add_relu(graph, "relu5", tdmi_add_sum(graph, "sum1", x, y));
    const int w = tdmi_add_relu(
        graph, "relu0",
        tdmi_add_batch_norm(graph, "bn1", tdmi_add_conv(graph, "conv3", x, 5, 1, 1, 0, false)));
    x = tdmi_add_sum(
        graph, "sum3", w,
        tdmi_add_batch_norm(graph, "bn2", tdmi_add_conv(graph, "conv4", w, 5, 3, 1, 1, false)));
    x = tdmi_add_relu6(graph, "relu4", x);
    /* one reads the sum through an activation, one as it is: the second gradient is added */
    const struct tdmi_build what = {.padding = TDMI_PADDING_SYMMETRIC};
    const int z = tdmi_add_depthwise(graph, &what, "depthwise1", x, 3, 1);
    x = tdmi_add_depthwise(graph, &what, "depthwise2", tdmi_add_relu(graph, "relu2", x), 3, 1);
    x = tdmi_add_batch_norm(graph, "bn3", x);
    x = tdmi_add_max_pool(graph, "pool", tdmi_add_sum(graph, "sum2", x, z), 2, 1);
    x = tdmi_add_relu(graph, "relu3", tdmi_add_dense(graph, "dense1", x, 20));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense2", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

/* The distance of two tensors, by the length of the second. */
static void expect_close(const char *name, const float *got, const float *wanted, int64_t n,
                         double limit)
{
    double apart = 0.0, length = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double difference = (double)got[i] - (double)wanted[i];
        apart += difference * difference;
        length += (double)wanted[i] * (double)wanted[i];
    }
    if (!(sqrt(apart) <= limit * sqrt(length) + 1e-9))
        fail_msg("%s: %.3g apart, of %.3g (%g of it is accepted)", name, sqrt(apart), sqrt(length),
                 limit);
}

static void expect_same(const struct training *got, const struct training *wanted, double limit)
{
    const tdmi_graph *graph = got->of->graph;
    const int64_t tail = tdmi_graph_tail_at(graph);
    float *params[2];
    for (int k = 0; k < 2; k++) {
        params[k] = calloc((size_t)graph->param_values, sizeof(float));
        assert_non_null(params[k]);
        fetch(k ? wanted : got, params[k], k ? wanted->params : got->params, graph->param_values);
    }
    for (int t = 0; t < graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &graph->params[t];
        expect_close(tensor->name, params[0] + tensor->offset, params[1] + tensor->offset,
                     tensor->n, limit);
    }
    expect_close("the tail", got->sums + tail, wanted->sums + tail, TDMI_TAIL_VALUES, limit);
    for (int k = 0; k < 2; k++)
        free(params[k]);
}

enum { n_steps = 6 };

/* Batches of 17, 17, 1, 17, 12, 17 images, of the last of which some are skipped. */
static struct tdmi_batch batch_at(const struct bench *of, int step, int32_t *labels)
{
    static const int sizes[n_steps] = {most_batch, most_batch, 1, most_batch, 12, most_batch};
    struct tdmi_batch batch = first_of(of, sizes[step]);
    for (int i = 0; i < batch.n; i++)
        labels[i] = step > 3 && i % 5 == 2 ? -1 : of->labels[i];
    batch.labels = labels;
    return batch;
}

/* Compare logits without training: batch norms folded, ops in groups. */
static void compare_evaluation(const struct training *got, const struct training *wanted)
{
    const struct training *both[2] = {got, wanted};
    static float logits[2][most_batch * classes];
    struct tdmi_judgement judgements[most_batch];
    const struct tdmi_batch batch = first_of(got->of, most_batch - 3);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(tdmi_evaluator_take(both[k]->evaluator,
                                             (struct tdmi_values){both[k]->params, both[k]->states},
                                             NULL),
                         TDM_OK);
        assert_int_equal(
            tdmi_evaluator_batch(both[k]->evaluator, &batch, judgements, NULL, logits[k], NULL),
            TDM_OK);
    }
    expect_close("logits", logits[0], logits[1], (int64_t)batch.n * classes,
                 n_steps * 10 * TDMI_TOLERANCE_F32);
}

static void compare(const struct bench *of, struct way way)
{
    struct training host = begin(of, &tdmi_backend_ref, way);
    struct training gpu = begin(of, &tdmi_backend_shim, way);
    struct training again = begin(of, &tdmi_backend_shim, way);
    const struct tdmi_augment none = {0};
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        const struct tdmi_batch batch = batch_at(of, s, labels);
        const struct tdmi_mixing mixing = {&none, 5, (uint32_t)s};
        const double clip_norm = s == 3 ? 0.1 : 0.0;
        run(&host, &batch, &mixing, false, clip_norm);
        tdmi_shim_use((struct tdmi_shim_order){0});
        run(&gpu, &batch, &mixing, false, clip_norm);
        tdmi_shim_use((struct tdmi_shim_order){.is_reversed = true});
        run(&again, &batch, &mixing, true, clip_norm);
        expect_same(&gpu, &host, (s + 1) * 10 * TDMI_TOLERANCE_F32);
        expect_same(&again, &gpu, 0.0);
        assert_memory_equal(gpu.sums, again.sums,
                            sizeof *gpu.sums * (size_t)of->graph->param_values);
    }
    compare_evaluation(&gpu, &host);
    end(&host);
    end(&gpu);
    end(&again);
}

TEST(a_small_network_trains_as_on_the_host)
{
    struct bench of;
    fake_runtime_guard(true);
    open_bench_of(&of, small_graph());
    compare(&of, (struct way){
                     .shard = most_batch, .threads = 2, .optimizer = "sgd", .has_weights = true});
    compare(&of, (struct way){.shard = 5, .threads = 1, .optimizer = "adamw"});
    close_bench(&of);
}

/* ---- in fewer bits ------------------------------------------------------------------------- */

static double loss_of(const struct training *it)
{
    const float *tail = it->sums + tdmi_graph_tail_at(it->of->graph);
    return (double)tail[TDMI_TAIL_LOSS] / (double)tail[TDMI_TAIL_SAMPLES];
}

static struct tdmi_loss_scale scale_of(const struct training *it)
{
    struct tdmi_loss_scale scale;
    assert_int_equal(
        it->backend->memory.download(it->stream, &scale, it->loss_scale, sizeof scale, NULL),
        TDM_OK);
    return scale;
}

/* Activations are rounded to 8 or 11 bits, and so are their gradients: the loss falls all the same,
 * as far as that of f32. */
TEST(a_small_network_trains_in_half_precision)
{
    static const struct {
        enum tdmi_dtype storage;
        float loss_scale;
        double limit; /* of the losses' distance: 0.048 and 0.027 were seen */
    } ways[] = {{TDMI_DTYPE_BF16, 0.0f, 0.1}, {TDMI_DTYPE_F16, 1024.0f, 0.06}};
    enum { n_taken = 12 };
    struct bench of;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    open_bench_of(&of, small_graph());
    const struct tdmi_batch batch = first_of(&of, most_batch);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        struct training host =
            begin(&of, &tdmi_backend_ref,
                  (struct way){.shard = most_batch, .threads = 1, .optimizer = "sgd"});
        struct training gpu = begin(&of, &tdmi_backend_shim,
                                    (struct way){.shard = most_batch,
                                                 .threads = 1,
                                                 .optimizer = "sgd",
                                                 .storage = ways[k].storage,
                                                 .loss_scale = ways[k].loss_scale});
        double first = 0.0;
        assert_true(gpu.plan->arena_bytes < host.plan->arena_bytes);
        for (int s = 0; s < n_taken; s++) {
            run(&host, &batch, NULL, false, 0.0);
            run(&gpu, &batch, NULL, false, 0.0);
            if (!(fabs(loss_of(&gpu) - loss_of(&host)) <= ways[k].limit * loss_of(&host)))
                fail_msg("%s, step %d: the loss is %.5f, that of f32 %.5f",
                         tdmi_dtype_name(ways[k].storage), s + 1, loss_of(&gpu), loss_of(&host));
            if (s == 0)
                first = loss_of(&gpu);
        }
        assert_true(loss_of(&gpu) < 0.9 * first);
        if (gpu.loss_scale) {
            assert_int_equal(scale_of(&gpu).n_good, n_taken);
            assert_true(scale_of(&gpu).scale == ways[k].loss_scale);
        }
        end(&host);
        end(&gpu);
    }
    close_bench(&of);
}

/* 2^24 is more than any gradient of f16 bears: steps change nothing until it is halved enough. */
TEST(a_step_that_overflows_is_left_out_and_the_scale_halves)
{
    struct bench of;
    open_bench_of(&of, small_graph());
    const struct tdmi_batch batch = first_of(&of, most_batch);
    const int64_t n = of.graph->param_values;
    struct training gpu = begin(&of, &tdmi_backend_shim,
                                (struct way){.shard = most_batch,
                                             .threads = 1,
                                             .optimizer = "adamw",
                                             .storage = TDMI_DTYPE_F16,
                                             .loss_scale = 16777216.0f});
    float *before = calloc((size_t)n, sizeof *before), *after = calloc((size_t)n, sizeof *after);
    float scale = 16777216.0f;
    int n_left_out = 0;
    assert_true(before && after);
    for (int s = 0; s < 14; s++) {
        fetch(&gpu, before, gpu.params, n);
        run(&gpu, &batch, NULL, false, 0.0);
        fetch(&gpu, after, gpu.params, n);
        const struct tdmi_loss_scale now = scale_of(&gpu);
        assert_true(isfinite(loss_of(&gpu)));
        const bool is_left_out = now.scale < scale;
        assert_int_equal(memcmp(before, after, sizeof *before * (size_t)n) == 0, is_left_out);
        assert_true(is_left_out ? now.scale == 0.5f * scale : now.scale == scale);
        n_left_out += is_left_out;
        assert_int_equal(now.n_left_out, n_left_out);
        scale = now.scale;
    }
    assert_true(n_left_out > 2 && n_left_out < 14);
    free(before);
    free(after);
    end(&gpu);
    close_bench(&of);
}

/* Once more with the stand-ins for cuDNN and cuBLASLt, which compute outside of the shim. */
TEST(it_trains_by_libraries_too)
{
    struct bench of;
    TDMI_AT_END(folder_remove) struct folder home = folder_new();
    fake_runtime_guard(false);
    tdmi_shim_libraries(FAKE_CUDNN, FAKE_CUBLASLT, home.path);
    open_bench_of(&of, small_graph());
    compare(&of, (struct way){
                     .shard = most_batch, .threads = 2, .optimizer = "sgd", .has_weights = true});
    close_bench(&of);
    tdmi_shim_libraries(NULL, NULL, NULL);
}

static int set_pace(void **state)
{
    (void)state;
    fake_runtime_pace(FAKE_LATE);
    return 0;
}

TEST_MAIN(set_pace, NULL)

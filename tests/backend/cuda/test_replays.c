/*
 * Steps with frozen layers that are recorded and replayed; layers that unfreeze are recorded anew.
 * Steps of the stand-ins for cuDNN and cuBLASLt are recorded, too.
 */
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/recorded.h"
#include "backend/cuda/shim/shim_run.h"

#include <dlfcn.h>

#include "base/folder.h"

/* Nothing moves. */
static const struct tdmi_update_rates at_rest = {.learning_rate = 0.0f, .step = 1};

/* ---- unfreezing ------------------------------------------------------------------------------ */

static tdmi_graph *graph_that_unfreezes(int *freeze_point)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, false);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_batch_norm(graph, "bn1", x));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_conv(graph, "conv2", x, 9, 3, 1, 1, true));
    x = tdmi_add_global_pool(graph, "pool", x);
    x = tdmi_add_dropout(graph, "dropout", x, 0.2, 1);
    *freeze_point = tdmi_add_dense(graph, "dense", x, classes);
    tdmi_add_softmax(graph, *freeze_point);
    assert_int_equal(tdmi_graph_finish(graph, "unfreezes", NULL), TDM_OK);
    return graph;
}

/* Frozen layers are packed, a batch norm folded in, by the first group of the first step that has
 * images; here the first group may have none. */
TEST(a_queued_step_has_the_sums_of_one_in_parts)
{
    static const int groups[] = {most_batch, 6};
    const struct tdmi_augment none = {0};
    struct bench of;
    int freeze_point;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    tdmi_graph *graph = graph_that_unfreezes(&freeze_point);
    open_bench_of(&of, graph);
    for (int k = 0; k < 2; k++) {
        const struct way way = {
            .shard = groups[k], .threads = 1, .optimizer = "sgd", .first_trained = freeze_point};
        struct training queued = begin(&of, &tdmi_backend_shim, way);
        struct training parts = begin(&of, &tdmi_backend_shim, way);
        tdmi_update_use_stream(queued.update, tdmi_step_stream(queued.step));
        for (int s = 0; s < 3; s++) {
            float tail[TDMI_TAIL_VALUES];
            int32_t labels[most_batch];
            struct tdmi_batch batch = first_of(&of, most_batch);
            const struct tdmi_mixing mixing = {&none, 2, (uint32_t)s};
            for (int i = 0; i < most_batch; i++)
                labels[i] = i < 6 ? -1 : of.labels[i];
            batch.labels = labels;
            step(&queued, &batch, &mixing, at_rest, tail);
            tdmi_step_begin(parts.step, (struct tdmi_values){parts.params, parts.states}, &batch,
                            &mixing);
            assert_int_equal(tdmi_step_run(parts.step, 0, parts.plan->n_segments - 1, NULL),
                             TDM_OK);
            fetch(&parts, parts.sums, tdmi_step_sums(parts.step), tdmi_graph_sums_values(graph));
            same_values(&queued, &parts, s);
        }
        assert_true(tdmi_step_replays(queued.step) >= 2);
        end(&queued);
        end(&parts);
    }
    close_bench(&of);
}

/* A whole epoch and a ragged batch, a rate that falls, an average. */
static void run_phase(struct training *plain, struct training *recorded, int from)
{
    static const int sizes[] = {17, 17, 9, 17, 9, 17, 9};
    const struct tdmi_augment none = {0};
    tdmi_update_use_stream(plain->update, tdmi_step_stream(plain->step));
    tdmi_update_use_stream(recorded->update, tdmi_step_stream(recorded->step));
    for (int s = 0; s < 7; s++) {
        float tails[2][TDMI_TAIL_VALUES];
        const struct tdmi_batch batch = first_of(plain->of, sizes[s]);
        const struct tdmi_mixing mixing = {&none, 2, (uint32_t)(from + s)};
        const struct tdmi_update_rates rates = {.learning_rate = 0.1f / (float)(1 + from + s),
                                                .momentum = 0.9f,
                                                .weight_decay = 1e-3f,
                                                .step = s + 1,
                                                .clip_norm = 0.5,
                                                .average = 0.9};
        step(plain, &batch, &mixing, rates, tails[0]);
        step(recorded, &batch, &mixing, rates, tails[1]);
        same_values(plain, recorded, from + s);
        assert_memory_equal(tails[0], tails[1], sizeof tails[0]);
    }
    assert_int_equal(tdmi_step_replays(recorded->step), 5);
}

/* Frozen weights are packed once, and read by a recording; unfrozen ones change, and are packed in
 * each replay of another. */
static void compare_unfreezing(const struct bench *of, int freeze_point, struct way way)
{
    const struct tdmi_backend plain_shim = plain_backend();
    const int64_t frozen = of->graph->params[of->graph->nodes[freeze_point].first_param].offset;
    const int64_t n[2] = {of->graph->param_values, of->graph->state_values};
    float *before = calloc((size_t)n[0], sizeof *before),
          *after = calloc((size_t)n[0], sizeof *after);
    float *means[4];
    assert_true(frozen > 0 && before && after);
    way.first_trained = freeze_point;
    struct training both[2] = {begin(of, &plain_shim, way), begin(of, &tdmi_backend_shim, way)};
    for (int k = 0; k < 4; k++)
        means[k] = placed_floats(&both[0], k % 2 ? of->states : of->params, n[k % 2]);
    fetch(&both[1], before, both[1].params, n[0]);
    for (int phase = 0; phase < 2; phase++) {
        for (int k = 0; k < 2; k++)
            tdmi_update_average(both[k].update, means[2 * k], means[2 * k + 1]);
        run_phase(&both[0], &both[1], 7 * phase);
        fetch(&both[1], after, both[1].params, n[0]);
        assert_int_equal(memcmp(before, after, sizeof *before * (size_t)frozen) == 0, phase == 0);
        assert_true(
            memcmp(before + frozen, after + frozen, sizeof *before * (size_t)(n[0] - frozen)) != 0);
        way.first_trained = 0;
        for (int k = 0; k < 2 && phase == 0; k++) {
            close_freeze_point(&both[k]);
            open_freeze_point(&both[k], way);
        }
    }
    fetch(&both[0], before, means[0], n[0]);
    fetch(&both[1], after, means[2], n[0]);
    assert_memory_equal(before, after, sizeof *before * (size_t)n[0]);
    for (int k = 0; k < 4; k++)
        tdmi_backend_shim.memory.free(both[0].device, means[k]);
    for (int k = 0; k < 2; k++)
        end(&both[k]);
    free(before);
    free(after);
}

TEST(layers_that_unfreeze_are_recorded_anew)
{
    struct bench of;
    int freeze_point;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    tdmi_graph *graph = graph_that_unfreezes(&freeze_point);
    open_bench_of(&of, graph);
    compare_unfreezing(&of, freeze_point,
                       (struct way){.shard = most_batch, .threads = 1, .optimizer = "adamw"});
    compare_unfreezing(&of, freeze_point,
                       (struct way){.shard = most_batch,
                                    .threads = 1,
                                    .optimizer = "sgd",
                                    .has_weights = true,
                                    .storage = TDMI_DTYPE_F16,
                                    .loss_scale = 1024.0f});
    close_bench(&of);
}

/* ---- libraries ------------------------------------------------------------------------------ */

/* A bias behind a convolution, a product, and a sum whose gradients meet at one. */
static tdmi_graph *graph_of_products(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, true));
    const int y =
        tdmi_add_batch_norm(graph, "bn", tdmi_add_conv(graph, "conv2", x, 6, 1, 1, 0, false));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_sum(graph, "sum", x, y));
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_conv(graph, "conv3", x, 8, 1, 1, 0, true));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

static int runs_of(const int *runs, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += runs[i];
    return sum;
}

/* Batches of 17 and 12 are queued once, recorded once and then replayed, which calls no library. */
TEST(replayed_steps_of_libraries_have_the_bits_of_queued_ones)
{
    static const int sizes[] = {17, 17, 12, 17, 17, 12, 17, 17, 12};
    void *of_convs = dlopen(FAKE_CUDNN, RTLD_NOW), *of_products = dlopen(FAKE_CUBLASLT, RTLD_NOW);
    struct fake_cudnn *convs = of_convs ? dlsym(of_convs, "fake_cudnn") : NULL;
    struct fake_cublaslt *products = of_products ? dlsym(of_products, "fake_cublaslt") : NULL;
    const struct tdmi_backend plain_shim = plain_backend();
    struct bench of;
    assert_true(convs && products);
    fake_runtime_guard(true);
    open_bench_of(&of, graph_of_products());
    for (int k = 0; k < 4; k++) { /* 1x1 convolutions by one library, then by the other */
        const struct way way = {.shard = most_batch,
                                .threads = 1,
                                .optimizer = "sgd",
                                .storage = k & 2 ? TDMI_DTYPE_BF16 : TDMI_DTYPE_F32};
        struct folder choices = folder_new();
        convs->every_ns = k & 1 ? 0 : 1000000;
        products->every_ns = k & 1 ? 1000000 : 0;
        tdmi_shim_libraries(FAKE_CUDNN, FAKE_CUBLASLT, choices.path);
        struct training plain = begin(&of, &plain_shim, way);
        struct training recorded = begin(&of, &tdmi_backend_shim, way);
        convs->every_ns = products->every_ns = 0;
        tdmi_update_use_stream(plain.update, tdmi_step_stream(plain.step));
        tdmi_update_use_stream(recorded.update, tdmi_step_stream(recorded.step));
        for (int s = 0; s < 9; s++) {
            const struct tdmi_batch batch = first_of(&of, sizes[s]);
            const struct tdmi_update_rates rates = {
                .learning_rate = 0.01f, .momentum = 0.9f, .step = s + 1};
            float tails[2][TDMI_TAIL_VALUES];
            step(&plain, &batch, NULL, rates, tails[0]);
            const int before =
                runs_of(convs->runs, FAKE_ENGINES) + runs_of(products->runs, FAKE_ALGORITHMS);
            step(&recorded, &batch, NULL, rates, tails[1]);
            const int after =
                runs_of(convs->runs, FAKE_ENGINES) + runs_of(products->runs, FAKE_ALGORITHMS);
            assert_int_equal(after > before, s < 3 || s == 5);
            same_values(&plain, &recorded, s);
            assert_memory_equal(tails[0], tails[1], sizeof tails[0]);
        }
        end(&plain);
        end(&recorded);
        assert_int_equal(convs->alive + convs->handles + products->alive, 0);
        folder_remove(&choices);
    }
    tdmi_shim_libraries(NULL, NULL, NULL);
    close_bench(&of);
}

static int set_pace(void **state)
{
    (void)state;
    fake_runtime_pace(FAKE_BY_CHANCE);
    return 0;
}

TEST_MAIN(set_pace, NULL)

/*
 * Images on their way to a GPU, as a training brings them: out of the loader's pinned slots
 * while the step before computes, and changed there. With copies as late as a GPU may make them,
 * and with steps as slow, the bits are those of images that the host changes, brought in their
 * turn.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "data/virtual_loader.h"
#include "models/known_network.h"
#include "train/step/feed.h"
#include "train/trainings.h"

#include "backend/cuda/shim/shim_run.h"
#include "unit.h"

enum { n_epochs = 3 };

static tdmi_graph *colour_graph(int channels)
{
    const struct tdmi_preprocess how = {.width = SIDE,
                                        .height = SIDE,
                                        .channels = channels,
                                        .crop_fraction = 1.0,
                                        .scale = TDMI_SCALE_TORCH};
    tdmi_graph *graph = tdmi_graph_new();
    assert_non_null(graph);
    int x = tdmi_add_conv(graph, "conv", tdmi_add_input(graph, &how), 4, 3, 1, 1, true);
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_relu(graph, "relu", x));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

/* A GPU that leaves everything to the host. */
static struct tdmi_backend plain_backend(void)
{
    struct tdmi_backend plain = tdmi_backend_shim;
    plain.changes = NULL;
    plain.memory.alloc_pinned = NULL;
    plain.memory.free_pinned = NULL;
    plain.stream.event_open = NULL;
    plain.stream.capture_begin = NULL;
    return plain;
}

static void *take_pinned(void *self, size_t bytes)
{
    return tdmi_backend_shim.memory.alloc_pinned(self, bytes);
}

static void give_pinned(void *self, void *block)
{
    tdmi_backend_shim.memory.free_pinned(self, block);
}

struct feeding {
    const char *spec;
    int channels, depth, shard;
    uint32_t views;
};

/* Its slots are pinned by the GPU; NULL: the host changes images. */
static tdmi_feed *open_feed(const struct virtual_source *virtual, const struct feeding *how,
                            tdmi_device *gpu)
{
    static const int label_map[] = {0, 1, 2, 0, 2, 1, 1};
    struct tdmi_loader_options options = options_of(virtual, &shuffled);
    tdmi_feed *feed;
    assert_int_equal(tdmi_augment_read(how->spec, &options.augment, NULL), TDM_OK);
    options.label_map = label_map;
    options.augment_seed = 11;
    options.views.n = how->views;
    options.depth = how->depth;
    if (gpu) {
        options.leaves_rest = true;
        options.allocator = (struct tdmi_loader_allocator){take_pinned, give_pinned, gpu};
    }
    assert_int_equal(tdmi_feed_open_pictures(open_loader(&options), &feed, NULL), TDM_OK);
    return feed;
}

/* As the session does it (train.c). */
static void train_epoch(struct training *it, tdmi_feed *feed, const struct tdmi_augment *augment,
                        uint32_t epoch, bool is_fed, float *tails)
{
    const struct tdmi_mixing mixing = {augment, 11, epoch};
    const struct tdmi_batch *batch;
    assert_int_equal(tdmi_feed_seek(feed, epoch, 0, NULL), TDM_OK);
    for (int s = 0;; s++, tails += TDMI_TAIL_VALUES) {
        assert_int_equal(tdmi_feed_next(feed, &batch, NULL), TDM_OK);
        if (!batch)
            break;
        tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, &mixing);
        const struct tdmi_update_rates rates = {
            .learning_rate = 0.05f, .momentum = 0.9f, .step = s + 1};
        assert_int_equal(
            tdmi_update_begin(it->update, (float)tdmi_step_images(it->step), rates, NULL), TDM_OK);
        const struct tdmi_step_next next = tdmi_update_next(it->update);
        assert_int_equal(tdmi_step_queue(it->step, &next, NULL), TDM_OK);
        if (is_fed && batch->first + batch->n < N)
            assert_int_equal(tdmi_step_look_ahead(it->step, feed, NULL), TDM_OK);
        assert_int_equal(tdmi_step_finish(it->step, tails, NULL), TDM_OK);
    }
    assert_int_equal(tdmi_step_await_prefetch(it->step, NULL), TDM_OK);
}

static void compare_at(const struct feeding *how, enum fake_pace pace)
{
    enum { most_steps = (N + 7) / 8 };
    const struct tdmi_backend plain = plain_backend();
    struct virtual_source virtual = source_of(how->channels, how->depth % 2);
    struct tdmi_augment augment;
    struct bench of;
    const struct way way = {.shard = how->shard, .threads = 1, .optimizer = "sgd"};
    virtual_open(&virtual);
    open_bench_of(&of, colour_graph(how->channels));
    assert_int_equal(tdmi_augment_read(how->spec, &augment, NULL), TDM_OK);
    struct training host = begin(&of, &plain, way), gpu = begin(&of, &tdmi_backend_shim, way);
    tdmi_update_use_stream(host.update, tdmi_step_stream(host.step));
    tdmi_update_use_stream(gpu.update, tdmi_step_stream(gpu.step));
    tdmi_feed *feeds[2] = {open_feed(&virtual, how, NULL), open_feed(&virtual, how, gpu.device)};
    const int64_t n = of.graph->param_values;
    float *params[2] = {calloc((size_t)n, sizeof(float)), calloc((size_t)n, sizeof(float))};
    for (uint32_t epoch = 0; epoch < n_epochs; epoch++) {
        float tails[2][most_steps * TDMI_TAIL_VALUES] = {{0}};
        fake_runtime_pace(FAKE_AT_ONCE);
        train_epoch(&host, feeds[0], &augment, epoch, false, tails[0]);
        fake_runtime_pace(pace);
        train_epoch(&gpu, feeds[1], &augment, epoch, true, tails[1]);
        if (memcmp(tails[0], tails[1], sizeof tails[0]) != 0)
            fail_msg("%s, epoch %u, pace %d: other losses", how->spec, epoch, (int)pace);
        fetch(&host, params[0], host.params, n);
        fetch(&gpu, params[1], gpu.params, n);
        if (memcmp(params[0], params[1], sizeof(float) * (size_t)n) != 0)
            fail_msg("%s, epoch %u, pace %d: other weights", how->spec, epoch, (int)pace);
    }
    assert_true(how->shard < 8 || tdmi_step_replays(gpu.step) > most_steps);
    for (int k = 0; k < 2; k++) {
        free(params[k]);
        tdmi_feed_close(feeds[k]);
    }
    end(&host);
    end(&gpu);
    close_bench(&of);
    tdmi_source_close(virtual.source);
    fake_runtime_pace(FAKE_AT_ONCE);
}

TEST(augmenting_on_the_gpu_trains_to_the_same_bits)
{
    static const struct feeding ways[] = {
        {"none", 3, 3, most_batch, 0},
        {"crop:2:7,flip", 3, 1, most_batch, 0},
        {"flip,jitter:0.4:0.6:0.4:0,cutout:3:9", 3, 2, most_batch, 0},
        {"flip,mixup:0.4", 1, 1, most_batch, 0},
        {"crop:1,flip,cutmix:1", 3, 2, most_batch, 2},
        {"rotate:20,jitter:0.3:0.3:0.3:0,cutout:2", 3, 1, most_batch, 3},
        {"resized-crop,flip,mixup:0.2,cutmix", 3, 3, most_batch, 0},
        {"crop:2,flip,mixup:0.4", 3, 1, 3, 0}, /* in groups, each brought while one computes */
    };
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        for (int pace = FAKE_AT_ONCE; pace < FAKE_PACES; pace++)
            compare_at(&ways[k], (enum fake_pace)pace);
}

/* ---- evaluation ---------------------------------------------------------------------------- */

static void evaluate_epoch(struct training *it, tdmi_feed *feed, bool is_fed,
                           struct tdmi_judgement *judgements, float *probabilities)
{
    const struct tdmi_batch *batch;
    assert_int_equal(tdmi_feed_seek(feed, 0, 0, NULL), TDM_OK);
    assert_int_equal(
        tdmi_evaluator_take(it->evaluator, (struct tdmi_values){it->params, it->states}, NULL),
        TDM_OK);
    for (;;) {
        assert_int_equal(tdmi_feed_next(feed, &batch, NULL), TDM_OK);
        if (!batch)
            break;
        const int64_t first = batch->first;
        assert_int_equal(is_fed
                             ? tdmi_evaluator_feed(it->evaluator, feed, batch, judgements + first,
                                                   probabilities + first * classes, NULL)
                             : tdmi_evaluator_batch(it->evaluator, batch, judgements + first,
                                                    probabilities + first * classes, NULL, NULL),
                         TDM_OK);
        assert_int_equal(batch->first, first);
    }
    assert_int_equal(tdmi_evaluator_settle(it->evaluator, NULL), TDM_OK);
}

/* Batches of one piece, and of three. */
TEST(validation_images_are_prefetched_too)
{
    const struct tdmi_backend plain = plain_backend();
    struct virtual_source virtual = source_of(3, false);
    struct bench of;
    virtual_open(&virtual);
    open_bench_of(&of, colour_graph(3));
    for (int shard = 3; shard <= 8; shard += 5)
        for (int pace = FAKE_AT_ONCE; pace < FAKE_PACES; pace++) {
            static struct tdmi_judgement judgements[2][N];
            static float probabilities[2][N * classes];
            const struct feeding how = {"none", 3, 1, shard, 0};
            const struct way way = {.shard = shard, .threads = 2, .optimizer = "sgd"};
            struct training host = begin(&of, &plain, way),
                            gpu = begin(&of, &tdmi_backend_shim, way);
            tdmi_feed *feeds[2] = {open_feed(&virtual, &how, NULL),
                                   open_feed(&virtual, &how, gpu.device)};
            memset(judgements, 0, sizeof judgements);
            fake_runtime_pace(FAKE_AT_ONCE);
            evaluate_epoch(&host, feeds[0], false, judgements[0], probabilities[0]);
            fake_runtime_pace((enum fake_pace)pace);
            evaluate_epoch(&gpu, feeds[1], true, judgements[1], probabilities[1]);
            assert_memory_equal(judgements[0], judgements[1], sizeof judgements[0]);
            assert_memory_equal(probabilities[0], probabilities[1], sizeof probabilities[0]);
            tdmi_feed_close(feeds[0]);
            tdmi_feed_close(feeds[1]);
            end(&host);
            end(&gpu);
            fake_runtime_pace(FAKE_AT_ONCE);
        }
    close_bench(&of);
    tdmi_source_close(virtual.source);
}

/* ---- what is forgotten --------------------------------------------------------------------- */

/* The same memory holds other images when their batch is begun. */
TEST(unused_prefetched_images_are_discarded)
{
    struct bench of;
    open_bench_of(&of, colour_graph(3));
    const struct way way = {.shard = most_batch, .threads = 1, .optimizer = "sgd"};
    struct training host = begin(&of, &tdmi_backend_shim, way),
                    gpu = begin(&of, &tdmi_backend_shim, way);
    const struct tdmi_batch batch = first_of(&of, most_batch);
    assert_int_equal(tdmi_step_prefetch(gpu.step, &batch, NULL), TDM_OK);
    assert_int_equal(tdmi_step_await_prefetch(gpu.step, NULL), TDM_OK);
    for (int64_t i = 0; i < most_batch * of.image; i++)
        of.pixels[i] ^= 0x5a;
    run(&host, &batch, NULL, false, 0.0);
    run(&gpu, &batch, NULL, false, 0.0);
    assert_memory_equal(host.sums, gpu.sums,
                        sizeof *host.sums * (size_t)tdmi_graph_sums_values(of.graph));
    end(&host);
    end(&gpu);
    close_bench(&of);
}

/* As after a failure: nobody waits for the step, whose copies read pinned memory. */
TEST(an_abandoned_step_is_waited_for)
{
    struct bench of;
    open_bench_of(&of, colour_graph(3));
    const struct way way = {.shard = most_batch, .threads = 1, .optimizer = "sgd"};
    struct training it = begin(&of, &tdmi_backend_shim, way);
    const struct tdmi_batch batch = first_of(&of, most_batch);
    const struct tdmi_update_rates rates = {.learning_rate = 0.05f, .momentum = 0.9f, .step = 1};
    tdmi_update_use_stream(it.update, tdmi_step_stream(it.step));
    fake_runtime_pace(FAKE_LATE);
    tdmi_step_begin(it.step, (struct tdmi_values){it.params, it.states}, &batch, NULL);
    assert_int_equal(tdmi_update_begin(it.update, (float)batch.n, rates, NULL), TDM_OK);
    const struct tdmi_step_next next = tdmi_update_next(it.update);
    assert_int_equal(tdmi_step_queue(it.step, &next, NULL), TDM_OK);
    tdmi_step_close(it.step); /* or cudaFreeHost is complained of */
    it.step = NULL;
    end(&it);
    fake_runtime_pace(FAKE_AT_ONCE);
    close_bench(&of);
}

/* ---- with changes and without, by turns ---------------------------------------------------- */

static void step_queued(struct training *it, const struct tdmi_batch *batch,
                        const struct tdmi_mixing *mixing)
{
    float tail[TDMI_TAIL_VALUES];
    const struct tdmi_update_rates rates = {.learning_rate = 0.05f, .momentum = 0.9f, .step = 1};
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, mixing);
    assert_int_equal(tdmi_update_begin(it->update, (float)batch->n, rates, NULL), TDM_OK);
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    assert_int_equal(tdmi_step_run_queued(it->step, &next, tail, NULL), TDM_OK);
    fetch(it, it->sums, tdmi_step_sums(it->step), tdmi_graph_sums_values(it->of->graph));
}

TEST(batches_with_and_without_augmentation_are_recorded_apart)
{
    const struct tdmi_augment_shape shape = {SIDE, SIDE, 3};
    const struct way way = {.shard = most_batch, .threads = 1, .optimizer = "sgd"};
    const struct tdmi_backend plain = plain_backend();
    struct tdmi_augment augment;
    struct bench of;
    open_bench_of(&of, colour_graph(3));
    assert_int_equal(tdmi_augment_read("crop:2:7,flip,jitter:0.4:0.4:0.4:0", &augment, NULL),
                     TDM_OK);
    struct training host = begin(&of, &plain, way), gpu = begin(&of, &tdmi_backend_shim, way);
    tdmi_update_use_stream(host.update, tdmi_step_stream(host.step));
    tdmi_update_use_stream(gpu.update, tdmi_step_stream(gpu.step));
    uint8_t *changed = malloc((size_t)(most_batch * of.image)), spare[SIDE * SIDE * 3];
    assert_non_null(changed);
    for (uint32_t s = 0; s < 10; s++) {
        struct tdmi_batch here = first_of(&of, most_batch), there = here;
        const struct tdmi_mixing mixing = {&augment, 5, s};
        struct tdmi_augment_key keys[most_batch];
        memcpy(changed, of.pixels, (size_t)(most_batch * of.image));
        for (int i = 0; i < most_batch; i++) {
            keys[i] = (struct tdmi_augment_key){.seed = 9, .epoch = s, .sample = i};
            if (s % 2)
                tdmi_augment_picture(&augment, keys[i], shape, changed + i * of.image, spare);
        }
        here.pixels = changed;
        there.keys = s % 2 ? keys : NULL;
        step_queued(&host, &here, &mixing);
        step_queued(&gpu, &there, &mixing);
        assert_memory_equal(host.sums, gpu.sums,
                            sizeof *host.sums * (size_t)tdmi_graph_sums_values(of.graph));
    }
    assert_true(tdmi_step_replays(gpu.step) >= 6);
    free(changed);
    end(&host);
    end(&gpu);
    close_bench(&of);
}

TEST_MAIN(NULL, NULL)

/*
 * What a replay must find anew in memory: whose draws dropout and mixing make, changes of pictures,
 * labels and samples, while nothing else of the step changes; and where layers thaw, another step.
 */
#include "backend/cuda/recorded.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/input.h"
#include "backend/cuda/shim/shim_run.h"
#include "image/augment/augment.h"

static tdmi_graph *graph_with_dropout(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, true));
    x = tdmi_add_dropout(graph, "dropout1", x, 0.3, 1);
    x = tdmi_add_relu(graph, "relu2", tdmi_add_dense(graph, "dense1", x, 20));
    x = tdmi_add_dropout(graph, "dropout2", x, 0.5, 2);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense2", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "drops", NULL), TDM_OK);
    return graph;
}

/* Nothing moves, so that steps differ by their draws alone. */
static const struct tdmi_update_rates at_rest = {.learning_rate = 0.0f, .step = 1};

/* The same steps, recorded and not; and the sums of one of them, to compare others with. */
struct drawn {
    const struct bench *of;
    struct training recorded, plain;
    struct tdmi_batch batch;
    float *kept;
};

static void open_drawn(struct drawn *it, const struct bench *of, struct way way)
{
    static struct tdmi_backend plain; /* outlives the training */
    plain = plain_backend();
    it->of = of;
    it->plain = begin(of, &plain, way);
    it->recorded = begin(of, &tdmi_backend_shim, way);
    tdmi_update_use_stream(it->plain.update, tdmi_step_stream(it->plain.step));
    tdmi_update_use_stream(it->recorded.update, tdmi_step_stream(it->recorded.step));
    it->batch = first_of(of, most_batch);
    it->kept = calloc((size_t)tdmi_graph_sums_values(of->graph), sizeof *it->kept);
    assert_non_null(it->kept);
}

static void close_drawn(struct drawn *it)
{
    free(it->kept);
    end(&it->recorded);
    end(&it->plain);
}

/* With the bits of the step that was queued. */
static void draw(struct drawn *it, const struct tdmi_mixing *mixing)
{
    float tails[2][TDMI_TAIL_VALUES];
    step(&it->plain, &it->batch, mixing, at_rest, tails[0]);
    step(&it->recorded, &it->batch, mixing, at_rest, tails[1]);
    same_values(&it->plain, &it->recorded, (int)mixing->epoch);
    assert_memory_equal(tails[0], tails[1], sizeof tails[0]);
}

static size_t sums_bytes(const struct drawn *it)
{
    return sizeof(float) * (size_t)tdmi_graph_sums_values(it->of->graph);
}

static void keep(struct drawn *it)
{
    memcpy(it->kept, it->recorded.sums, sums_bytes(it));
}

static bool is_as_kept(const struct drawn *it)
{
    return memcmp(it->kept, it->recorded.sums, sums_bytes(it)) == 0;
}

/* Each of these replays, and differs from the step that was kept by one thing. */
static void expect_new_draws(struct drawn *it, struct tdmi_mixing mixing)
{
    const struct tdmi_mixing first = mixing;
    int64_t items[most_batch];
    for (int i = 0; i < most_batch; i++)
        items[i] = it->of->items[i] + 100;
    draw(it, &first); /* queued */
    draw(it, &first); /* recorded */
    const int64_t n = tdmi_step_replays(it->recorded.step);
    assert_true(n > 0);
    keep(it);
    mixing.epoch++;
    draw(it, &mixing);
    assert_false(is_as_kept(it));
    draw(it, &first);
    assert_true(is_as_kept(it));
    mixing = first;
    mixing.seed++;
    draw(it, &mixing);
    assert_false(is_as_kept(it));
    it->batch.items = items;
    draw(it, &first);
    assert_false(is_as_kept(it));
    it->batch.items = it->of->items;
    draw(it, &first);
    assert_true(is_as_kept(it));
    assert_true(tdmi_step_replays(it->recorded.step) >= n + 5);
}

static void dropout_draws_anew_in_each_replay(void **state)
{
    static const int shards[] = {most_batch, 6};
    const struct tdmi_augment none = {0};
    struct bench of;
    (void)state;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
    open_bench_of(&of, graph_with_dropout());
    for (int k = 0; k < 2; k++) {
        struct drawn it;
        open_drawn(&it, &of, (struct way){.shard = shards[k], .threads = 1, .optimizer = "sgd"});
        expect_new_draws(&it, (struct tdmi_mixing){&none, 7, 3});
        close_drawn(&it);
    }
    close_bench(&of);
}

/* Without dropout: what differs is who is mixed with whom, and how much. */
static void mixing_draws_anew_in_each_replay(void **state)
{
    static const char *const specs[] = {"mixup:0.4", "cutmix:1"};
    struct bench of;
    int x;
    (void)state;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, true));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "mixes", NULL), TDM_OK);
    open_bench_of(&of, graph);
    for (int k = 0; k < 2; k++) {
        struct tdmi_augment mixes;
        struct drawn it;
        assert_int_equal(tdmi_augment_read(specs[k], &mixes, NULL), TDM_OK);
        open_drawn(&it, &of, (struct way){.shard = most_batch, .threads = 1, .optimizer = "sgd"});
        expect_new_draws(&it, (struct tdmi_mixing){&mixes, 7, 3});
        close_drawn(&it);
    }
    close_bench(&of);
}

/* ---- changes of pictures on the card -------------------------------------------------------- */

enum { n_pictures = 3, high = 7, wide = 9, picture_values = high * wide * 3 };

struct pictures {
    struct tdmi_cuda_input input;
    uint8_t bytes[n_pictures * picture_values];
    const uint8_t *pixels[n_pictures];
    struct tdmi_cuda_change changes[n_pictures];
    int32_t means[n_pictures];
    float y[n_pictures * picture_values];
};

static void fill(struct pictures *it, uint32_t epoch)
{
    struct tdmi_augment augment, first, rest;
    struct tdmi_mix mixes[n_pictures];
    struct tdmi_augment_key keys[n_pictures];
    static const int32_t labels[n_pictures] = {0, 1, 2};
    const struct tdmi_augment_shape shape = {high, wide, 3};
    tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, 1, epoch);
    assert_int_equal(
        tdmi_augment_read("crop:2,flip,jitter:0.4:0.4:0.4:0.1,cutout:4,mixup:0.4", &augment, NULL),
        TDM_OK);
    assert_true(tdmi_augment_divide(&augment, &first, &rest));
    for (size_t i = 0; i < sizeof it->bytes; i++)
        it->bytes[i] = (uint8_t)tdmi_rng_below(&rng, 256);
    for (int i = 0; i < n_pictures; i++)
        keys[i] = (struct tdmi_augment_key){.seed = 3, .epoch = epoch, .sample = i};
    tdmi_augment_pair(&augment, keys, labels, n_pictures, shape, mixes);
    for (int i = 0; i < n_pictures; i++) {
        struct tdmi_augment_change change;
        tdmi_augment_draw(&rest, keys[i], shape, &change);
        it->changes[i] = tdmi_cuda_change_of(&change, &mixes[i], i);
        it->pixels[i] = it->bytes + (n_pictures - 1 - i) * picture_values;
    }
}

/* stream NULL: at once. */
static void queue_changed(struct pictures *it, const tdmi_stream *stream)
{
    struct CUstream_st *queue = stream ? tdmi_cuda_queue(stream) : NULL;
    assert_int_equal(tdmi_cuda_input_means(queue, &it->input, it->pixels, it->changes, it->means),
                     0);
    assert_int_equal(
        tdmi_cuda_input_changed(queue, &it->input, it->pixels, it->changes, it->means, it->y), 0);
}

static void pictures_are_changed_anew_in_each_replay(void **state)
{
    const struct tdmi_preprocess raw = {
        .width = wide, .height = high, .channels = 3, .scale = TDMI_SCALE_RAW};
    static struct pictures recorded, queued;
    float before[n_pictures * picture_values] = {0};
    const struct tdmi_stream_table *table = &tdmi_backend_shim.stream;
    tdmi_device *device;
    tdmi_stream *stream;
    tdmi_recording *recording;
    (void)state;
    tdmi_shim_use((struct tdmi_shim_way){0});
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(table->open(device, &stream, NULL), TDM_OK);
    recorded.input = (struct tdmi_cuda_input){
        .type = TDMI_DTYPE_F32, .n = n_pictures, .h = high, .w = wide, .channels = 3};
    for (int c = 0; c < 3; c++)
        recorded.input.normal[c] = tdmi_preprocess_normal(&raw, c);
    queued.input = recorded.input;
    fill(&recorded, 0);
    assert_int_equal(table->capture_begin(stream, NULL), TDM_OK);
    queue_changed(&recorded, stream);
    assert_int_equal(table->capture_end(stream, &recording, NULL), TDM_OK);
    for (uint32_t epoch = 1; epoch < 6; epoch++) {
        fill(&recorded, epoch);
        fill(&queued, epoch);
        assert_int_equal(table->replay(stream, recording, NULL), TDM_OK);
        assert_int_equal(table->wait(stream, NULL), TDM_OK);
        queue_changed(&queued, NULL);
        assert_memory_equal(recorded.y, queued.y, sizeof queued.y);
        assert_memory_not_equal(recorded.y, before, sizeof before);
        memcpy(before, queued.y, sizeof before);
    }
    table->recording_close(recording);
    table->close(stream);
    tdmi_backend_shim.device.close(device);
}

/* ---- thawing -------------------------------------------------------------------------------- */

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
    assert_int_equal(tdmi_graph_finish(graph, "thaws", NULL), TDM_OK);
    return graph;
}

/* Frozen layers are packed, a batch norm folded in, by the first shard of the first step that has
 * pictures; here the first shard may have none. */
static void a_queued_step_has_the_sums_of_one_in_parts(void **state)
{
    static const int shards[] = {most_batch, 6};
    const struct tdmi_augment none = {0};
    struct bench of;
    int freeze_point;
    (void)state;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
    tdmi_graph *graph = graph_that_unfreezes(&freeze_point);
    open_bench_of(&of, graph);
    for (int k = 0; k < 2; k++) {
        const struct way way = {
            .shard = shards[k], .threads = 1, .optimizer = "sgd", .first_trained = freeze_point};
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

/* Frozen weights are packed once, and read by a recording; thawed ones move, and are packed in each
 * replay of another. */
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

static void layers_that_thaw_are_recorded_anew(void **state)
{
    struct bench of;
    int freeze_point;
    (void)state;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_draws_anew_in_each_replay),
        cmocka_unit_test(mixing_draws_anew_in_each_replay),
        cmocka_unit_test(pictures_are_changed_anew_in_each_replay),
        cmocka_unit_test(a_queued_step_has_the_sums_of_one_in_parts),
        cmocka_unit_test(layers_that_thaw_are_recorded_anew),
    };
    fake_runtime_pace(FAKE_BY_CHANCE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Steps that are recorded and replayed (train/step/recorder.h), with their update, against the same
 * steps queued one by one: other rates, samples, seeds and epochs, ragged batches, mixed labels,
 * dropout, clipping from some step on, averages begun late; in memory that only kernels and copies
 * may touch. A value that is part of a recording and should lie in memory gives other bits here.
 */
#include "backend/cuda/recorded.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/shim/shim_run.h"
#include "train/step/recorder.h"

#include <math.h>

static tdmi_graph *small_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, false);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_batch_norm(graph, "bn1", x));
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_conv(graph, "conv2", x, 9, 3, 1, 1, true));
    x = tdmi_add_dropout(graph, "dropout", x, 0.25, 1);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

static struct tdmi_update_rates rates_at(int s)
{
    return (struct tdmi_update_rates){.learning_rate = 0.01f * (float)(1 + s % 5),
                                      .momentum = 0.9f - 0.05f * (float)s,
                                      .weight_decay = 1e-3f,
                                      .step = s + 1,
                                      .clip_norm = s >= 7 ? 0.05 * s : 0.0,
                                      .average = 0.5 + 0.02 * s};
}

static const int sizes[] = {17, 17, 12, 17, 12, 12, 17, 17, 17, 4, 12, 0, 17, 12, 12, 17};
enum { n_steps = sizeof sizes / sizeof *sizes };

static int64_t compare(const struct bench *of, const struct tdmi_backend *backend, struct way way)
{
    const struct tdmi_backend plain_shim = plain_backend();
    struct training plain = begin(of, &plain_shim, way);
    struct training recorded = begin(of, backend, way);
    struct tdmi_augment mixes[2], none = {0};
    float *means[4];
    assert_int_equal(tdmi_augment_read("mixup:0.4", &mixes[0], NULL), TDM_OK);
    assert_int_equal(tdmi_augment_read("cutmix:1", &mixes[1], NULL), TDM_OK);
    for (int k = 0; k < 4; k++)
        means[k] =
            placed_floats(&plain, NULL, k % 2 ? of->graph->state_values : of->graph->param_values);
    tdmi_update_use_stream(plain.update, tdmi_step_stream(plain.step));
    tdmi_update_use_stream(recorded.update, tdmi_step_stream(recorded.step));
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        struct tdmi_batch batch = first_of(of, sizes[s] > 0 ? sizes[s] : 3);
        const struct tdmi_mixing mixing = {s % 3 == 2 ? &mixes[s % 2] : &none, 5 + (uint32_t)s / 7,
                                           (uint32_t)s};
        int64_t items[most_batch];
        float tails[2][TDMI_TAIL_VALUES];
        for (int i = 0; i < batch.n; i++)
            labels[i] =
                sizes[s] == 0 || (s == 5 && i % 3 == 0) ? -1 : (of->labels[i] + s) % classes;
        for (int i = 0; i < batch.n; i++)
            items[i] = of->items[i] + 100 * (s % 4);
        batch.labels = labels;
        batch.items = items;
        if (s == 10) {
            tdmi_update_average(plain.update, means[0], means[1]);
            tdmi_update_average(recorded.update, means[2], means[3]);
        }
        step(&plain, &batch, &mixing, rates_at(s), tails[0]);
        step(&recorded, &batch, &mixing, rates_at(s), tails[1]);
        same_values(&plain, &recorded, s);
        assert_memory_equal(tails[0], tails[1], sizeof tails[0]);
    }
    const int64_t n = tdmi_step_replays(recorded.step);
    assert_int_equal(tdmi_step_replays(plain.step), 0);
    for (int k = 0; k < 4; k++)
        tdmi_backend_shim.memory.free(plain.device, means[k]);
    end(&plain);
    end(&recorded);
    return n;
}

TEST(replayed_steps_have_the_bits_of_queued_ones)
{
    struct bench of;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    open_bench_of(&of, small_graph());
    const struct way way = {.shard = most_batch, .threads = 2, .optimizer = "sgd"};
    assert_true(compare(&of, &tdmi_backend_shim, way) >= 4);
    const struct way in_f16 = {.shard = most_batch,
                               .threads = 1,
                               .optimizer = "lamb",
                               .has_weights = true,
                               .storage = TDMI_DTYPE_F16,
                               .loss_scale = 16777216.0f};
    assert_true(compare(&of, &tdmi_backend_shim, in_f16) >= 4);
    close_bench(&of);
}

/* Each is brought in its turn and replayed; a step of 17 images is groups of 5, 5, 5 and 2, and
 * has three arrays to write to. Where some are left out, groups are ragged, or there is nothing in
 * one. */
TEST(groups_of_a_step_are_replayed_one_by_one)
{
    struct bench of;
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_order){0});
    open_bench_of(&of, small_graph());
    const struct way ways[] = {
        {.shard = 12, .threads = 1, .optimizer = "sgd"},
        {.shard = 5, .threads = 2, .optimizer = "adamw", .has_weights = true},
        {.shard = 3, .threads = 1, .optimizer = "sgd"},
        {.shard = 1, .threads = 1, .optimizer = "sgd"},
        {.shard = 5,
         .threads = 1,
         .optimizer = "adam",
         .storage = TDMI_DTYPE_F16,
         .loss_scale = 16777216.0f},
    };
    const int64_t least[] = {6, 20, 40, 130, 20};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        const int64_t n = compare(&of, &tdmi_backend_shim, ways[k]);
        if (n < least[k])
            fail_msg("groups of %d: %lld replays", ways[k].shard, (long long)n);
    }
    close_bench(&of);
}

/* ---- devices that refuse to record ---------------------------------------------------------- */

static tdm_status refuse_to_begin(tdmi_stream *stream, tdm_error *err)
{
    (void)stream;
    return TDM_FAIL(err, TDM_E_SYSTEM, "planted: no beginning");
}

/* All of the step has been queued into it when it fails. */
static tdm_status refuse_at_the_end(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    tdmi_recording *made = NULL;
    const tdm_status status = tdmi_backend_shim.stream.capture_end(stream, &made, err);
    (void)recording;
    tdmi_backend_shim.stream.recording_close(made);
    return status != TDM_OK ? status : TDM_FAIL(err, TDM_E_SYSTEM, "planted: no end");
}

/* Something in the step cannot be recorded, such as waiting for it. */
static tdm_status begin_and_spoil(tdmi_stream *stream, tdm_error *err)
{
    TDM_TRY(tdmi_backend_shim.stream.capture_begin(stream, err), err, "planted");
    assert_int_not_equal(tdmi_backend_shim.stream.wait(stream, NULL), TDM_OK);
    return TDM_OK;
}

struct refusal {
    const struct bench *of;
    struct tdmi_backend backend;
    struct way way;
    int64_t replays;
};

static void compare_refusing(void *self)
{
    struct refusal *it = self;
    it->replays = compare(it->of, &it->backend, it->way);
}

/* Steps have the bits of queued ones all the same, and that is said once. */
static int64_t expect_warning(struct refusal *it, const char *because)
{
    assert_int_equal(lines_with("queued one by one", because, compare_refusing, it), 1);
    return it->replays;
}

TEST(steps_that_cannot_be_recorded_are_queued_with_one_warning)
{
    struct bench of;
    open_bench_of(&of, small_graph());
    const struct refusal usual = {
        &of, tdmi_backend_shim, {.shard = most_batch, .threads = 1, .optimizer = "adam"}, 0};
    struct refusal at_first = usual, at_last = usual, spoiled = usual;
    at_first.backend.stream.capture_begin = refuse_to_begin;
    at_last.backend.stream.capture_end = refuse_at_the_end;
    spoiled.backend.stream.capture_begin = begin_and_spoil;
    assert_int_equal(expect_warning(&at_first, "planted: no beginning"), 0);
    assert_int_equal(expect_warning(&at_last, "planted: no end"), 0);
    assert_int_equal(expect_warning(&spoiled, "an earlier failure ended the capture"), 0);
    close_bench(&of);
}

/* ---- devices that record, and fail to replay ------------------------------------------------ */

static int replays_asked, first_failing, last_failing; /* counted from 1 */
static int n_open;                                     /* recordings */

static tdm_status replay_or_fail(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    replays_asked++;
    return replays_asked >= first_failing && replays_asked <= last_failing
               ? TDM_FAIL(err, TDM_E_MEMORY, "planted: no room to replay")
               : tdmi_backend_shim.stream.replay(stream, recording, err);
}

static tdm_status end_and_count(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    const tdm_status status = tdmi_backend_shim.stream.capture_end(stream, recording, err);
    n_open += status == TDM_OK;
    return status;
}

static void close_and_count(tdmi_recording *recording)
{
    n_open--;
    tdmi_backend_shim.stream.recording_close(recording);
}

static struct refusal failing(const struct bench *of, int shard, int first, int last)
{
    struct refusal it = {
        of, tdmi_backend_shim, {.shard = shard, .threads = 1, .optimizer = "adam"}, 0};
    it.backend.stream.replay = replay_or_fail;
    it.backend.stream.capture_end = end_and_count;
    it.backend.stream.recording_close = close_and_count;
    replays_asked = 0;
    first_failing = first;
    last_failing = last;
    return it;
}

/* A recording has not run when its first replay fails: the same step queues its work. */
TEST(a_step_is_queued_when_its_first_replay_fails)
{
    struct bench of;
    struct refusal it;
    fake_runtime_guard(true);
    open_bench_of(&of, small_graph());
    it = failing(&of, most_batch, 1, 1000);
    assert_int_equal(expect_warning(&it, "planted: no room to replay"), 0);
    assert_true(replays_asked >= 3); /* once for each that would have been */
    it = failing(&of, 5, 1, 1000);
    assert_int_equal(expect_warning(&it, "planted: no room to replay"), 0);
    /* The others of the same step are replayed: the third group is the first to be recorded. */
    it = failing(&of, 5, 1, 1);
    assert_true(expect_warning(&it, "planted: no room to replay") > 10);
    assert_int_equal(n_open, 0);
    close_bench(&of);
}

/* It has run before: so it is the device that fails, and no step may be taken for done. */
TEST(a_failure_of_a_later_replay_ends_training)
{
    struct bench of;
    float tail[TDMI_TAIL_VALUES];
    tdm_error err = {0};
    open_bench_of(&of, small_graph());
    const struct refusal it = failing(&of, most_batch, 2, 2);
    struct training training = begin(&of, &it.backend, it.way);
    const struct tdmi_batch batch = first_of(&of, most_batch);
    tdmi_update_use_stream(training.update, tdmi_step_stream(training.step));
    for (int s = 0; s < 2; s++)
        step(&training, &batch, NULL, rates_at(s), tail);
    assert_int_equal(tdmi_step_replays(training.step), 1);
    assert_int_equal(try_step_of(&training, &batch, batch.n, NULL, rates_at(2), tail, &err),
                     TDM_E_MEMORY);
    assert_says(&err, "replaying");
    assert_says(&err, "planted: no room to replay");
    end(&training);
    assert_int_equal(n_open, 0);
    close_bench(&of);
}

/* ---- images on the GPU ----------------------------------------------------------------------- */

static size_t uploaded_bytes;

static tdm_status count_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                               tdm_error *err)
{
    uploaded_bytes += bytes;
    return tdmi_backend_shim.memory.upload(stream, to, from, bytes, err);
}

/* Two groups, so that the second would be prefetched. */
TEST(images_on_the_gpu_are_not_uploaded_again)
{
    struct tdmi_backend counting = tdmi_backend_shim;
    struct bench of;
    counting.memory.upload = count_upload;
    fake_runtime_guard(true);
    open_bench_of(&of, small_graph());
    const struct way way = {.shard = (most_batch + 1) / 2, .threads = 1, .optimizer = "sgd"};
    struct training host = begin(&of, &counting, way), gpu = begin(&of, &counting, way);
    struct tdmi_batch batch = first_of(&of, most_batch), there = batch;
    const size_t bytes = most_batch * tdmi_plan_sample_bytes(gpu.plan);
    void *pixels = placed(&gpu, batch.pixels, bytes);
    float *logits[2], tail[TDMI_TAIL_VALUES];
    size_t uploaded[2];
    there.pixels = pixels;
    there.is_on_device = true;
    tdmi_update_use_stream(host.update, tdmi_step_stream(host.step));
    tdmi_update_use_stream(gpu.update, tdmi_step_stream(gpu.step));
    for (int s = 0; s < 4; s++) {
        uploaded_bytes = 0;
        step(&host, &batch, NULL, rates_at(s), tail);
        uploaded[0] = uploaded_bytes;
        step(&gpu, &there, NULL, rates_at(s), tail);
        uploaded[1] = uploaded_bytes - uploaded[0];
        assert_int_equal(uploaded[0] - uploaded[1], bytes);
        same_values(&host, &gpu, s);
    }
    for (int k = 0; k < 2; k++) {
        const struct training *it = k ? &gpu : &host;
        logits[k] = calloc(most_batch * classes, sizeof(float));
        assert_int_equal(
            tdmi_evaluator_take(it->evaluator, (struct tdmi_values){it->params, it->states}, NULL),
            TDM_OK);
        uploaded_bytes = 0;
        assert_int_equal(
            tdmi_evaluator_batch(it->evaluator, k ? &there : &batch, NULL, NULL, logits[k], NULL),
            TDM_OK);
        uploaded[k] = uploaded_bytes;
    }
    assert_int_equal(uploaded[0] - uploaded[1], bytes);
    assert_memory_equal(logits[0], logits[1], sizeof(float) * most_batch * classes);
    free(logits[0]);
    free(logits[1]);
    tdmi_backend_shim.memory.free(gpu.device, pixels);
    end(&host);
    end(&gpu);
    close_bench(&of);
}

/* ---- the recorder alone ---------------------------------------------------------------------- */

static void count_call(void *self)
{
    ++*(int *)self;
}

/* A part of a step, an array of sums, what follows: each is work of its own, and there is room for
 * so much of it. */
TEST(other_work_is_another_recording)
{
    static const float sums[2];
    const struct tdmi_recorder_key usual = {.n = 3, .params = sums, .sums = sums};
    enum { n_keys = 8, most = 6 };
    struct tdmi_recorder_key keys[n_keys];
    tdmi_recorder *recorder;
    tdmi_stream *stream;
    tdmi_device *device;
    for (int k = 0; k < n_keys; k++)
        keys[k] = usual;
    keys[1].n = 4;
    keys[2].is_mixed = true;
    keys[3].params = &sums[1];
    keys[4].sums = &sums[1];
    keys[5].part = 1;
    keys[6].next = 1; /* no room is left for these */
    keys[7].next = 2;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    assert_int_equal(tdmi_recorder_open(&tdmi_backend_shim, device, stream, most, &recorder, NULL),
                     TDM_OK);
    for (int times = 1; times <= 4; times++)
        for (int k = 0; k < n_keys; k++) {
            int n = 0;
            assert_int_equal(tdmi_recorder_run(recorder, keys[k], count_call, &n, NULL), TDM_OK);
            assert_int_equal(n, times < 3 || k >= most); /* queued, recorded, then replayed */
            assert_int_equal(tdmi_recorder_replays(recorder),
                             times < 2 ? 0 : (times - 2) * most + (k < most ? k + 1 : most));
        }
    tdmi_recorder_close(recorder);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

/* ---- memory of the GPU that recordings take --------------------------------------------------
 */

static int64_t free_now, taken_by_next;
static bool says_what_is_free, fails_to_end;

static bool report_free(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    (void)device;
    *free_bytes = free_now;
    *total_bytes = 1 << 20;
    return says_what_is_free;
}

static tdm_status take_and_end(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    free_now -= taken_by_next;
    return fails_to_end ? refuse_at_the_end(stream, recording, err)
                        : tdmi_backend_shim.stream.capture_end(stream, recording, err);
}

/* The memory of each new recording is counted, that of replays is not. */
TEST(the_memory_of_recordings_is_measured)
{
    static const struct {
        int64_t taken, seen; /* of this one; of all */
        bool says, fails;
    } recordings[] = {{4096, 4096, true, false}, {0, 4096, true, false},  {-500, 4096, true, false},
                      {700, 4096, false, false}, {300, 4096, true, true}, {100, 4196, true, false}};
    struct tdmi_backend backend = tdmi_backend_shim;
    tdmi_recorder *recorder;
    tdmi_stream *stream;
    tdmi_device *device;
    backend.device.memory = report_free;
    backend.stream.capture_end = take_and_end;
    free_now = 1 << 19;
    assert_int_equal(backend.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(backend.stream.open(device, &stream, NULL), TDM_OK);
    assert_int_equal(tdmi_recorder_open(&backend, device, stream, 6, &recorder, NULL), TDM_OK);
    for (int k = 0; k < 6; k++) {
        const struct tdmi_recorder_key key = {.n = 1 + k};
        taken_by_next = recordings[k].taken;
        says_what_is_free = recordings[k].says;
        for (int times = 0; times < 4; times++) {
            int n = 0;
            fails_to_end = recordings[k].fails;
            assert_int_equal(tdmi_recorder_run(recorder, key, count_call, &n, NULL), TDM_OK);
            assert_int_equal(tdmi_recorder_bytes(recorder), times > 0 ? recordings[k].seen
                                                            : k > 0   ? recordings[k - 1].seen
                                                                      : 0);
            free_now -= 9; /* of others, between two */
        }
    }
    tdmi_recorder_close(recorder);
    backend.stream.close(stream);
    backend.device.close(device);
}

/* Or it would be taken for the recording's, and lost. */
TEST(a_failure_before_a_recording_is_reported_by_the_next_wait)
{
    tdmi_stream *stream;
    tdmi_device *device;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    tdmi_cuda_note(stream, 700, "a kernel");
    assert_int_not_equal(tdmi_backend_shim.stream.capture_begin(stream, NULL), TDM_OK);
    assert_int_equal(fake_runtime_left().captures, 0);
    assert_int_not_equal(tdmi_backend_shim.stream.wait(stream, NULL), TDM_OK);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

/* Work that cannot be recorded fails, and the recording with it. */
TEST(a_copy_inside_a_recording_is_refused)
{
    tdmi_stream *stream;
    tdmi_device *device;
    tdmi_recording *recording = NULL;
    float value = 3.0f;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    float *there = tdmi_backend_shim.memory.alloc(device, sizeof value);
    assert_int_equal(tdmi_backend_shim.stream.capture_begin(stream, NULL), TDM_OK);
    assert_int_not_equal(tdmi_backend_shim.memory.upload(stream, there, &value, sizeof value, NULL),
                         TDM_OK);
    assert_int_not_equal(tdmi_backend_shim.stream.capture_end(stream, &recording, NULL), TDM_OK);
    assert_null(recording);
    tdmi_backend_shim.memory.free(device, there);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

static int set_pace(void **state)
{
    (void)state;
    fake_runtime_pace(FAKE_SLOW_KERNELS);
    return 0;
}

TEST_MAIN(set_pace, NULL)

/*
 * Steps that are recorded and replayed (train/recorder.h), update and all, against the same steps
 * queued one by one: other rates, ragged batches, mixed labels, clipping from some step on,
 * averages begun late; in memory that nobody but kernels and copies may touch. What is baked into a
 * recording and should lie in memory gives other bits here.
 */
#include "shim_backend.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/shim_run.h"
#include "nn/known_network.h"
#include "train/trainings.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static tdmi_graph *small_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv1", x, 6, 3, 2, 1, false);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_batch_norm(graph, "bn1", x));
    x = tdmi_add_global_pool(graph, "pool", tdmi_add_conv(graph, "conv2", x, 9, 3, 1, 1, true));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

/* A training as the session runs one. */
static void queue_update(void *self, const float *sums)
{
    struct training *it = self;
    tdmi_update_queue(it->update, sums);
}

static void step(struct training *it, const struct tdmi_batch *batch,
                 const struct tdmi_mixing *mixing, struct tdmi_update_rates rates, float *tail)
{
    struct tdmi_step_next next = {queue_update, it, 0};
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, mixing);
    const int n = tdmi_step_images(it->step);
    if (n > 0)
        assert_int_equal(tdmi_update_tell(it->update, (float)n, rates, NULL), TDM_OK);
    next.key = tdmi_update_key(it->update);
    assert_int_equal(tdmi_step_run_queued(it->step, n > 0 ? &next : NULL, tail, NULL), TDM_OK);
    fetch(it, it->sums, tdmi_step_sums(it->step), tdmi_graph_sums_values(it->of->graph));
}

static void same_values(const struct training *a, const struct training *b, int s)
{
    const tdmi_graph *graph = a->of->graph;
    const int64_t n = graph->param_values + graph->state_values;
    float *of_a = calloc((size_t)n, sizeof *of_a), *of_b = calloc((size_t)n, sizeof *of_b);
    fetch(a, of_a, a->params, graph->param_values);
    fetch(b, of_b, b->params, graph->param_values);
    fetch(a, of_a + graph->param_values, a->states, graph->state_values);
    fetch(b, of_b + graph->param_values, b->states, graph->state_values);
    if (memcmp(of_a, of_b, sizeof *of_a * (size_t)n) != 0 ||
        memcmp(a->sums, b->sums, sizeof *a->sums * (size_t)tdmi_graph_sums_values(graph)) != 0)
        fail_msg("step %d: other bits", s);
    free(of_a);
    free(of_b);
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

/* Of the shim, but without a way to record. */
static struct tdmi_backend plain_backend(void)
{
    struct tdmi_backend plain = tdmi_backend_shim;
    plain.stream.capture_begin = NULL;
    plain.stream.capture_end = NULL;
    plain.stream.replay = NULL;
    plain.stream.recording_close = NULL;
    return plain;
}

static int64_t compare(const struct bench *of, const struct tdmi_backend *backend, struct way way)
{
    const struct tdmi_backend plain_shim = plain_backend();
    struct training plain = begin(of, &plain_shim, way);
    struct training recorded = begin(of, backend, way);
    struct tdmi_augment mixes, none = {0};
    float *means[4];
    assert_int_equal(tdmi_augment_read("mixup:0.4", &mixes, NULL), TDM_OK);
    for (int k = 0; k < 4; k++)
        means[k] = placed(&tdmi_backend_shim, NULL,
                          k % 2 ? of->graph->state_values : of->graph->param_values);
    tdmi_update_use_stream(plain.update, tdmi_step_stream(plain.step));
    tdmi_update_use_stream(recorded.update, tdmi_step_stream(recorded.step));
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        struct tdmi_batch batch = first_of(of, sizes[s] > 0 ? sizes[s] : 3);
        const struct tdmi_mixing mixing = {s % 3 == 2 ? &mixes : &none, 5, (uint32_t)s};
        float tails[2][TDMI_TAIL_VALUES];
        for (int i = 0; i < batch.n; i++)
            labels[i] =
                sizes[s] == 0 || (s == 5 && i % 3 == 0) ? -1 : (of->labels[i] + s) % classes;
        batch.labels = labels;
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
        tdmi_backend_shim.memory.free(NULL, means[k]);
    end(&plain);
    end(&recorded);
    return n;
}

static void replayed_steps_have_the_bits_of_queued_ones(void **state)
{
    struct bench of;
    (void)state;
    tdmi_shim_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
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
    /* shards are brought one after another: those are queued as they are */
    assert_true(compare(&of, &tdmi_backend_shim,
                        (struct way){.shard = 12, .threads = 1, .optimizer = "sgd"}) > 0);
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

/* Something in the step cannot be recorded, such as a copy. */
static tdm_status begin_and_spoil(tdmi_stream *stream, tdm_error *err)
{
    char byte = 0;
    TDM_TRY(tdmi_backend_shim.stream.capture_begin(stream, err), err, "planted");
    return tdmi_backend_shim.memory.upload(stream, &byte, &byte, 1, err);
}

/* How often the warning was written while the steps were compared. */
static int warnings(const struct bench *of, const struct tdmi_backend *backend, struct way way,
                    const char *because)
{
    char line[2000];
    int n = 0;
    FILE *log = tmpfile();
    const int kept = dup(STDERR_FILENO);
    assert_non_null(log);
    fflush(stderr);
    assert_true(kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    const int64_t replays = compare(of, backend, way);
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    assert_int_equal(replays, 0);
    rewind(log);
    while (fgets(line, sizeof line, log))
        if (strstr(line, "queued one by one") && strstr(line, because))
            n++;
    fclose(log);
    return n;
}

static void steps_that_cannot_be_recorded_are_queued_and_that_is_said_once(void **state)
{
    struct tdmi_backend at_first = tdmi_backend_shim, at_last = tdmi_backend_shim,
                        spoiled = tdmi_backend_shim;
    const struct way way = {.shard = most_batch, .threads = 1, .optimizer = "adam"};
    struct bench of;
    (void)state;
    at_first.stream.capture_begin = refuse_to_begin;
    at_last.stream.capture_end = refuse_at_the_end;
    spoiled.stream.capture_begin = begin_and_spoil;
    open_bench_of(&of, small_graph());
    assert_int_equal(warnings(&of, &at_first, way, "planted: no beginning"), 1);
    assert_int_equal(warnings(&of, &at_last, way, "planted: no end"), 1);
    assert_int_equal(warnings(&of, &spoiled, way, "a copy"), 1);
    close_bench(&of);
}

/* Or it would be taken for the recording's, and lost. */
static void what_failed_before_a_recording_is_told_by_the_wait_behind_it(void **state)
{
    tdmi_stream *stream;
    tdmi_device *device;
    (void)state;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    tdmi_cuda_note(stream, 700, "a kernel");
    assert_int_not_equal(tdmi_backend_shim.stream.capture_begin(stream, NULL), TDM_OK);
    assert_false(tdmi_shim_is_recording());
    assert_int_not_equal(tdmi_backend_shim.stream.wait(stream, NULL), TDM_OK);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

/* What cannot be recorded is no part of a recording, and whoever tries hears of it. */
static void a_copy_inside_a_recording_is_refused(void **state)
{
    tdmi_stream *stream;
    tdmi_device *device;
    tdmi_recording *recording = NULL;
    float value = 3.0f;
    (void)state;
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.stream.open(device, &stream, NULL), TDM_OK);
    float *there = tdmi_backend_shim.memory.alloc(device, sizeof value);
    assert_int_equal(tdmi_backend_shim.stream.capture_begin(stream, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.memory.upload(stream, there, &value, sizeof value, NULL),
                     TDM_OK);
    assert_int_not_equal(tdmi_backend_shim.stream.capture_end(stream, &recording, NULL), TDM_OK);
    assert_null(recording);
    tdmi_backend_shim.memory.free(device, there);
    tdmi_backend_shim.stream.close(stream);
    tdmi_backend_shim.device.close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed_steps_have_the_bits_of_queued_ones),
        cmocka_unit_test(steps_that_cannot_be_recorded_are_queued_and_that_is_said_once),
        cmocka_unit_test(what_failed_before_a_recording_is_told_by_the_wait_behind_it),
        cmocka_unit_test(a_copy_inside_a_recording_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

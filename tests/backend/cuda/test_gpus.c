/*
 * GPUs, memory, streams, events and recordings of backend cuda (runtime/backend.c, stream.c) on
 * the fake CUDA runtime: a failure is reported once and leaves nothing open, and late
 * work is waited for. The last cases check the fake itself.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/shim/shim_run.h"
#include "backend/cuda/fakes/include/cuda_runtime_api.h"
#include "unit.h"

#include <pthread.h>

static const struct tdmi_backend *const cuda = &tdmi_backend_shim;
static char message[fake_message_room];

/* ---- opening --------------------------------------------------------------------------------- */

static int nothing_is_left(void **state)
{
    const struct fake_left left = fake_runtime_left(), none = {0};
    (void)state;
    return memcmp(&left, &none, sizeof left);
}

static void expect_refused(int index, const char *first, const char *second)
{
    tdmi_device *device = NULL;
    tdm_error err = {0};
    assert_int_equal(cuda->device.open(index, &device, &err), TDM_E_ABSENT);
    assert_null(device);
    assert_says(&err, first);
    assert_says(&err, second);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

TEST_WITH(a_missing_gpu_is_refused_with_a_reason, NULL, nothing_is_left)
{
    struct fake_gpus gpus = fake_runtime_first_gpus();
    expect_refused(1, "opening GPU 1", "CUDA sees 1 of them");
    expect_refused(-1, "opening GPU -1", "CUDA says 101");

    gpus.driver = 0;
    gpus.count_code = cudaErrorInsufficientDriver;
    fake_runtime_gpus(gpus);
    assert_int_equal(cuda->device.count(), 0);
    expect_refused(0, "there is no NVIDIA driver", "a driver for CUDA 13.0");
    gpus.driver = 12020;
    fake_runtime_gpus(gpus);
    expect_refused(0, "which serves CUDA up to 12.2", "the driver is older");
    gpus.driver = 13000;
    gpus.count_code = cudaErrorNoDevice;
    fake_runtime_gpus(gpus);
    expect_refused(0, "gives no GPU to this process", "no GPU is detected");
    gpus.count_code = 0;
    gpus.n = 0;
    fake_runtime_gpus(gpus);
    expect_refused(0, "gives no GPU to this process", "it sees none");

    gpus = fake_runtime_first_gpus();
    gpus.major = 7;
    fake_runtime_gpus(gpus);
    expect_refused(0, "has compute capability 7.0", "8.0 or newer");
    gpus = fake_runtime_first_gpus();
    gpus.use_code = cudaErrorDevicesUnavailable;
    fake_runtime_gpus(gpus);
    expect_refused(0, "gives this process no room to compute", "46");
    gpus.facts_code = cudaErrorInitializationError;
    fake_runtime_gpus(gpus);
    expect_refused(0, "opening GPU 0: CUDA says 3", "initialization");
    fake_runtime_gpus(fake_runtime_first_gpus());
}

TEST_WITH(a_gpu_describes_itself, NULL, nothing_is_left)
{
    struct tdmi_backend_library library;
    int64_t free_bytes = 0, total_bytes = 0;
    char text[1000];
    tdmi_device *device;
    assert_int_equal(cuda->device.count(), 1);
    assert_int_equal(cuda->device.open(0, &device, NULL), TDM_OK);
    assert_string_equal(device->uuid, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
    cuda->device.describe(device, text, sizeof text);
    assert_non_null(strstr(text, "a fake GPU, compute 9.0, CUDA 13.0, driver for 13.0, no "
                                 "cuDNN ("));
    void *memory = cuda->memory.alloc(device, 1 << 20);
    assert_true(cuda->device.memory(device, &free_bytes, &total_bytes));
    assert_true(total_bytes == (int64_t)80 << 30 && free_bytes == total_bytes - (1 << 20));
    cuda->memory.free(device, memory);
    struct fake_gpus gpus = fake_runtime_first_gpus();
    gpus.memory_code = cudaErrorInitializationError;
    fake_runtime_gpus(gpus);
    assert_false(cuda->device.memory(device, &free_bytes, &total_bytes));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    fake_runtime_gpus(fake_runtime_first_gpus());
    assert_true(cuda->device.library(0, &library) && library.is_found);
    assert_string_equal(library.version, "13.0");
    assert_true(cuda->device.library(4, &library));
    assert_string_equal(library.name, "NCCL");
    assert_false(cuda->device.library(5, &library));
    cuda->device.close(device);
    cuda->device.close(NULL);
}

/* ---- all of it, once ------------------------------------------------------------------------- */

enum { n_values = 300, bytes = n_values * sizeof(float) };

/* A small model of a training: images come on a stream of their own, a step is
 * queued, recorded and replayed. */
struct course {
    tdmi_device *device;
    tdmi_stream *work, *copies;
    tdmi_event *is_there;
    tdmi_recording *recording;
    float *pinned, *x, *y;
    float here[n_values];
};

static void queue_step(struct course *it)
{
    TDMI_CUDA_LAUNCH(it->work, "relu", tdmi_cuda_act, TDMI_DTYPE_F32, TDMI_ACT_RELU, it->x, it->y,
                     n_values);
}

static tdm_status open_course(struct course *it, int index, tdm_error *err)
{
    TDM_TRY(cuda->device.open(index, &it->device, err), err, "a GPU");
    TDM_TRY(cuda->stream.open(it->device, &it->work, err), err, "a stream");
    TDM_TRY(cuda->stream.open(it->device, &it->copies, err), err, "a stream");
    TDM_TRY(cuda->stream.event_open(it->device, &it->is_there, err), err, "an event");
    it->pinned = cuda->memory.alloc_pinned(it->device, bytes);
    it->x = cuda->memory.alloc(it->device, bytes);
    it->y = cuda->memory.alloc(it->device, bytes);
    return it->pinned && it->x && it->y ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "no memory");
}

static void close_course(struct course *it)
{
    cuda->stream.recording_close(it->recording);
    cuda->stream.event_close(it->is_there);
    cuda->stream.close(it->copies);
    cuda->stream.close(it->work);
    if (it->x)
        cuda->memory.free(it->device, it->x);
    if (it->y)
        cuda->memory.free(it->device, it->y);
    if (it->pinned)
        cuda->memory.free_pinned(it->device, it->pinned);
    cuda->device.close(it->device);
}

static tdm_status bring(struct course *it, float first, tdm_error *err)
{
    for (int i = 0; i < n_values; i++)
        it->pinned[i] = first + (float)(i - n_values / 2);
    TDM_TRY(cuda->memory.upload(it->copies, it->x, it->pinned, bytes, err), err, "pictures");
    TDM_TRY(cuda->stream.event_record(it->copies, it->is_there, err), err, "an event");
    return TDM_WRAP(err, cuda->stream.event_wait(it->work, it->is_there, err), "an event");
}

static tdm_status fetch(struct course *it, tdm_error *err)
{
    memset(it->here, 0x55, bytes);
    TDM_TRY(cuda->memory.download(it->work, it->here, it->y, bytes, err), err, "fetching");
    TDM_TRY(cuda->stream.wait(it->work, err), err, "a step");
    return TDM_WRAP(err, cuda->stream.wait(it->copies, err), "copies");
}

/* The first value of y. */
static int fetch_first(struct course *it)
{
    assert_int_equal(cuda->memory.download(it->work, it->here, it->y, sizeof(float), NULL), TDM_OK);
    assert_int_equal(cuda->stream.wait(it->work, NULL), TDM_OK);
    return (int)it->here[0];
}

static bool is_right(const struct course *it, float first)
{
    bool is = true;
    for (int i = 0; i < n_values; i++) {
        const float x = first + (float)(i - n_values / 2);
        is = is && it->here[i] == (x > 0.0f ? x : 0.0f);
    }
    return is;
}

static tdm_status run_course(struct course *it, tdm_error *err)
{
    for (int step = 0; step < 4; step++) {
        const float first = (float)(3 * step);
        cuda->memory.clear(it->work, it->y, bytes);
        TDM_TRY(bring(it, first, err), err, "bringing");
        if (step == 1) {
            TDM_TRY(cuda->stream.capture_begin(it->work, err), err, "recording");
            queue_step(it);
            TDM_TRY(cuda->stream.capture_end(it->work, &it->recording, err), err, "recording");
        }
        if (step == 0)
            queue_step(it);
        else
            TDM_TRY(cuda->stream.replay(it->work, it->recording, err), err, "replaying");
        TDM_TRY(fetch(it, err), err, "fetching");
        if (!is_right(it, first))
            return TDM_FAIL(err, TDM_E_FAILED, "step %d: other values", step);
    }
    return TDM_OK;
}

static void expect_whole_course(void)
{
    struct course it = {.device = NULL};
    tdm_error err = {0};
    assert_ok(open_course(&it, 0, &err), &err);
    assert_ok(run_course(&it, &err), &err);
    close_course(&it);
}

TEST_WITH(a_training_is_right_at_every_pace, NULL, nothing_is_left)
{
    for (int guarded = 0; guarded < 2; guarded++)
        for (int pace = 0; pace < FAKE_PACES; pace++) {
            fake_runtime_guard(guarded);
            fake_runtime_pace((enum fake_pace)pace);
            expect_whole_course();
        }
    fake_runtime_guard(false);
    fake_runtime_pace(FAKE_AT_ONCE);
}

/* ---- several GPUs, several threads ---------------------------------------------------------- */

static void *run_elsewhere(void *self)
{
    struct course *it = self;
    return run_course(it, NULL) == TDM_OK ? it : NULL;
}

/* A thread that uses one has it as its own GPU, whichever it had before. */
TEST_WITH(any_thread_may_use_any_gpu, NULL, nothing_is_left)
{
    struct fake_gpus gpus = fake_runtime_first_gpus();
    struct course both[2] = {{.device = NULL}, {.device = NULL}};
    pthread_t threads[2];
    gpus.n = 2;
    fake_runtime_gpus(gpus);
    fake_runtime_guard(true); /* a GPU's kernels reach no other GPU's memory */
    fake_runtime_pace(FAKE_LATE);
    for (int k = 0; k < 2; k++)
        assert_int_equal(open_course(&both[k], k, NULL), TDM_OK);
    assert_string_not_equal(both[0].device->uuid, both[1].device->uuid);
    for (int k = 0; k < 2; k++)
        assert_int_equal(bring(&both[k], 5.0f, NULL), TDM_OK);
    for (int k = 0; k < 2; k++)
        queue_step(&both[k]);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(fetch(&both[k], NULL), TDM_OK);
        assert_true(is_right(&both[k], 5.0f));
    }
    tdmi_event *event; /* of the first GPU, by a thread that had the second */
    assert_int_equal(cuda->stream.event_open(both[0].device, &event, NULL), TDM_OK);
    assert_int_equal(cuda->stream.event_record(both[0].work, event, NULL), TDM_OK);
    cuda->stream.event_close(event);
    for (int k = 0; k < 2; k++) /* both new threads begin with GPU 0 */
        assert_int_equal(pthread_create(&threads[k], NULL, run_elsewhere, &both[k]), 0);
    for (int k = 0; k < 2; k++) {
        void *result;
        assert_int_equal(pthread_join(threads[k], &result), 0);
        assert_ptr_equal(result, &both[k]);
    }
    for (int k = 0; k < 2; k++)
        close_course(&both[k]);
    fake_runtime_pace(FAKE_AT_ONCE);
    fake_runtime_guard(false);
    fake_runtime_gpus(fake_runtime_first_gpus());
}

/* ---- one by one ------------------------------------------------------------------------------ */

/* Also for a stream that waits for nobody, and where the clearing is late. */
TEST_WITH(new_memory_is_zero, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    const float zeros[n_values] = {0};
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    assert_int_equal(fetch(&it, NULL), TDM_OK);
    assert_memory_equal(it.here, zeros, bytes);
    close_course(&it);
    void *nothing = NULL;
    assert_int_equal(cuda->device.open(0, &it.device, NULL), TDM_OK);
    assert_non_null(nothing = cuda->memory.alloc(it.device, 0));
    cuda->memory.free(it.device, nothing);
    assert_null(cuda->memory.alloc(it.device, (size_t)81 << 30));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cuda->device.close(it.device);
    fake_runtime_pace(FAKE_AT_ONCE);
}

TEST_WITH(closing_a_queued_recording_waits_for_it, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    assert_int_equal(run_course(&it, NULL), TDM_OK);
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(bring(&it, 100.0f, NULL), TDM_OK);
    assert_int_equal(cuda->stream.replay(it.work, it.recording, NULL), TDM_OK);
    cuda->stream.recording_close(it.recording);
    it.recording = NULL;
    assert_int_equal(fetch(&it, NULL), TDM_OK);
    assert_true(is_right(&it, 100.0f));
    close_course(&it);
    fake_runtime_pace(FAKE_AT_ONCE);
}

TEST_WITH(a_recording_that_was_never_replayed_can_be_closed, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    assert_int_equal(cuda->stream.capture_begin(it.work, NULL), TDM_OK);
    queue_step(&it);
    assert_int_equal(cuda->stream.capture_end(it.work, &it.recording, NULL), TDM_OK);
    cuda->stream.recording_close(it.recording);
    it.recording = NULL;
    close_course(&it);
    fake_runtime_pace(FAKE_AT_ONCE);
}

static void *reserve_elsewhere(void *self)
{
    struct course *it = self;
    void *memory = cuda->memory.alloc(it->device, 1), *pinned = NULL;
    pinned = cuda->memory.alloc_pinned(it->device, 1);
    if (!memory || !pinned)
        return NULL;
    cuda->memory.free(it->device, memory);
    cuda->memory.free_pinned(it->device, pinned);
    return it;
}

TEST_WITH(other_threads_may_allocate_during_a_recording, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    pthread_t thread;
    void *result;
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    assert_int_equal(cuda->stream.capture_begin(it.work, NULL), TDM_OK);
    queue_step(&it);
    assert_int_equal(pthread_create(&thread, NULL, reserve_elsewhere, &it), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &it);
    assert_int_equal(cuda->stream.capture_end(it.work, &it.recording, NULL), TDM_OK);
    assert_int_equal(bring(&it, 1.0f, NULL), TDM_OK);
    assert_int_equal(cuda->stream.replay(it.work, it.recording, NULL), TDM_OK);
    assert_int_equal(fetch(&it, NULL), TDM_OK);
    assert_true(is_right(&it, 1.0f));
    close_course(&it);
}

/* The first failure of a queue is reported by its next wait, with what it was, and then forgotten.
 */
TEST_WITH(a_wait_reports_the_first_failure, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    tdm_error err = {0};
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    fake_runtime_hear(message);
    cuda->memory.clear(it.work, it.y + 1, bytes); /* one value too far */
    tdmi_cuda_note(it.work, cudaErrorMemoryAllocation, "another kernel");
    assert_int_not_equal(cuda->stream.capture_begin(it.work, &err), TDM_OK);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "clearing memory on GPU 0 (a fake GPU): "
                                                        "CUDA says 1, invalid argument"));
    tdm_error_clear(&err);
    assert_int_equal(cuda->stream.wait(it.work, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "clearing memory"));
    assert_int_equal(cuda->stream.wait(it.work, NULL), TDM_OK);
    tdmi_cuda_note(it.work, cudaErrorMemoryAllocation, "a kernel");
    assert_int_equal(cuda->stream.wait(it.work, NULL), TDM_E_MEMORY);
    assert_int_equal(run_course(&it, NULL), TDM_OK);
    fake_runtime_hear(NULL);
    close_course(&it);
}

static void meet_nobody(void *self)
{
    (void)self;
    if (threadIdx.x == 0)
        tdmi_shim_meet(2, 0, -1);
}

TEST_WITH(a_lost_gpu_fails_every_later_call, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    tdm_error err = {0};
    char nothing = 0;
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    fake_runtime_hear(message);
    fake_runtime_pace(FAKE_LATE);
    const struct tdmi_shim_launch launch = {
        tdmi_cuda_queue(it.work), {1, 1, 1}, {2, 1, 1}, meet_nobody, &nothing, 1, 0};
    tdmi_cuda_note(it.work, tdmi_shim_launch(&launch), "a kernel");
    for (int i = 0; i < 2; i++) {
        tdm_error_clear(&err);
        assert_int_equal(cuda->stream.wait(it.work, &err), TDM_E_SYSTEM);
        assert_non_null(strstr(tdm_error_sentence(&err, 0),
                               "running kernels on GPU 0 (a fake GPU): "
                               "CUDA says 719"));
    }
    assert_null(cuda->memory.alloc(it.device, 1));
    assert_int_not_equal(cuda->stream.capture_begin(it.work, NULL), TDM_OK);
    close_course(&it);
    fake_runtime_pace(FAKE_AT_ONCE);
    fake_runtime_gpus(fake_runtime_first_gpus());
    fake_runtime_hear(NULL);
}

/* ---- the fake itself ------------------------------------------------------------------------- */

/* A late copy reads pinned memory when it is made, and ordinary memory when it is queued. */
TEST_WITH(late_copies_are_made_when_they_are_waited_for, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    float ordinary = 7.0f;
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    fake_runtime_pace(FAKE_LATE);
    (void)fake_runtime_copied();
    it.pinned[0] = 5.0f;
    assert_int_equal(cuda->memory.upload(it.copies, it.y, it.pinned, sizeof(float), NULL), TDM_OK);
    assert_int_equal(cuda->stream.event_record(it.copies, it.is_there, NULL), TDM_OK);
    assert_int_equal(fetch_first(&it), 0); /* this stream did not wait for the event */
    it.pinned[0] = 6.0f;
    assert_int_equal(cuda->stream.event_wait(it.work, it.is_there, NULL), TDM_OK);
    assert_int_equal(fetch_first(&it), 6);
    assert_int_equal(cuda->memory.upload(it.work, it.y, &ordinary, sizeof(float), NULL), TDM_OK);
    ordinary = 8.0f;
    assert_int_equal(fetch_first(&it), 7);
    const struct fake_copied copied = fake_runtime_copied();
    assert_int_equal(copied.pinned_bytes, sizeof(float));
    assert_int_equal(copied.other_bytes, sizeof(float));
    fake_runtime_pace(FAKE_AT_ONCE);
    close_course(&it);
}

static void expect_message(const char *words)
{
    if (!strstr(message, words))
        fail_msg("the fake says '%s' and should say '%s'", message, words);
    message[0] = '\0';
}

TEST_WITH(broken_rules_of_cuda_are_reported, NULL, nothing_is_left)
{
    struct course it = {.device = NULL};
    cudaGraph_t graph;
    void *memory;
    assert_int_equal(open_course(&it, 0, NULL), TDM_OK);
    struct CUstream_st *queue = tdmi_cuda_queue(it.work);
    fake_runtime_hear(message);
    fake_runtime_pace(FAKE_LATE);
    /* a capture takes no allocation of its thread, no wait and no copy of ordinary memory */
    assert_int_equal(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
    expect_message("cudaMalloc by a thread that captures");
    assert_int_equal(cudaStreamSynchronize(queue), cudaErrorStreamCaptureUnsupported);
    expect_message("of a stream that is captured");
    assert_int_equal(cudaStreamEndCapture(queue, &graph), cudaErrorStreamCaptureInvalidated);
    assert_null(graph);
    /* memory and graphs outlive what is queued */
    assert_int_equal(run_course(&it, NULL), TDM_OK);
    assert_int_equal(cuda->memory.upload(it.work, it.x, it.pinned, bytes, NULL), TDM_OK);
    cuda->memory.free_pinned(it.device, it.pinned);
    it.pinned = NULL;
    expect_message("of memory that queued copies read or write");
    assert_int_equal(cudaMemcpyAsync(it.x, it.here, bytes + 1, cudaMemcpyHostToDevice, queue),
                     cudaErrorInvalidValue);
    expect_message("end outside the allocation");
    assert_int_equal(cudaFree(it.here), cudaErrorInvalidValue);
    expect_message("something that is no memory of a GPU");
    (void)cudaGetLastError();
    fake_runtime_hear(NULL);
    fake_runtime_pace(FAKE_AT_ONCE);
    close_course(&it);
}

TEST_MAIN(NULL, NULL)

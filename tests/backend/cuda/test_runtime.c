/*
 * What looks like CUDA's runtime keeps its rules: work is done late and in order, memory ends where
 * it was reserved, captures take what they may, and what a card would be free to do wrong is told.
 */
#include "backend/cuda/fakes/fake_runtime.h"
#include "backend/cuda/fakes/include/cuda_runtime_api.h"
#include "backend/cuda/shim/shim_run.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static char said[fake_said_room];

static void expect_said(const char *words)
{
    if (!strstr(said, words))
        fail_msg("it says '%s' and should say '%s'", said, words);
    said[0] = '\0';
}

static cudaStream_t stream_of(unsigned flags)
{
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
}

static cudaEvent_t event_of(void)
{
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

static void *memory_of(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

static int *pinned_of(int value)
{
    void *memory = NULL;
    assert_int_equal(cudaHostAlloc(&memory, sizeof value, cudaHostAllocDefault), cudaSuccess);
    return memcpy(memory, &value, sizeof value);
}

static int put(int *there, const int *from, cudaStream_t stream)
{
    return (int)cudaMemcpyAsync(there, from, sizeof *from, cudaMemcpyHostToDevice, stream);
}

/* As this stream finds it. */
static int seen(const int *there, cudaStream_t stream)
{
    int value = 0;
    assert_int_equal(cudaMemcpyAsync(&value, there, sizeof value, cudaMemcpyDeviceToHost, stream),
                     cudaSuccess);
    return value;
}

/* *there = *there · 10 + digit */
struct append {
    int *there;
    int digit;
};

static void append_digit(void *self)
{
    const struct append *it = self;
    *it->there = *it->there * 10 + it->digit;
}

static int append(int *there, int digit, cudaStream_t stream)
{
    struct append it = {there, digit};
    const struct tdmi_shim_launch launch = {stream,       {1, 1, 1}, {1, 1, 1},
                                            append_digit, &it,       sizeof it};
    const int code = tdmi_shim_launch(&launch);
    memset(&it, 0xee, sizeof it); /* arguments were copied */
    return code;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void late_work_is_done_when_it_is_waited_for(void **state)
{
    cudaStream_t stream = stream_of(cudaStreamNonBlocking);
    int *there = memory_of(sizeof *there), *pinned = pinned_of(1), ordinary = 5;
    (void)state;
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(put(there, pinned, stream), 0);
    *pinned = 2;
    assert_int_equal(append(there, 3, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(seen(there, stream), 23); /* read when its turn came */
    assert_int_equal(put(there, &ordinary, stream), 0);
    ordinary = 6;
    assert_int_equal(seen(there, stream), 5); /* read when it was queued */
    assert_int_equal(cudaMemsetAsync(there, 0, sizeof *there, stream), cudaSuccess);
    assert_int_equal(seen(there, stream), 0);

    fake_runtime_pace(FAKE_SLOW_KERNELS);
    assert_int_equal(put(there, pinned, stream), 0);
    *pinned = 7;
    assert_int_equal(append(there, 4, stream), 0);
    assert_int_equal(put(there, pinned, stream), 0);
    *pinned = 8;
    assert_int_equal(seen(there, stream), 8); /* behind a kernel that was slow */
    fake_runtime_pace(FAKE_AT_ONCE);
    assert_int_equal(put(there, pinned, stream), 0);
    *pinned = 9;
    assert_int_equal(seen(there, stream), 8);
    assert_int_equal(fake_runtime_copied().pinned_bytes, 4 * (int64_t)sizeof(int));
    assert_int_equal(cudaFree(there), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

/* In every pace; and who does not wait finds, in some, what was there before. */
static void streams_wait_for_events(void **state)
{
    bool has_come_early = false;
    (void)state;
    for (int pace = 0; pace < FAKE_PACES; pace++) {
        cudaStream_t first = stream_of(cudaStreamNonBlocking),
                     second = stream_of(cudaStreamNonBlocking);
        cudaEvent_t event = event_of();
        int *there = memory_of(sizeof *there), *pinned = pinned_of(0);
        fake_runtime_pace((enum fake_pace)pace);
        assert_int_equal(cudaStreamWaitEvent(second, event, 0), cudaSuccess); /* for nothing */
        assert_int_equal(put(there, pinned, first), 0);
        assert_int_equal(append(there, 1, first), 0);
        assert_int_equal(cudaEventRecord(event, first), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
        assert_int_equal(append(there, 2, second), 0);
        assert_int_equal(cudaEventRecord(event, second), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(first, event, 0), cudaSuccess);
        assert_int_equal(append(there, 3, first), 0);
        assert_int_equal(cudaEventDestroy(event), cudaSuccess); /* who waits goes on to */
        assert_int_equal(seen(there, first), 123);
        assert_int_equal(append(there, 4, first), 0);
        has_come_early = has_come_early || seen(there, second) == 123;
        assert_int_equal(seen(there, first), 1234);
        assert_int_equal(cudaStreamDestroy(first), cudaSuccess);
        assert_int_equal(cudaStreamDestroy(second), cudaSuccess);
        assert_int_equal(cudaFree(there), cudaSuccess);
        assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    }
    assert_true(has_come_early);
    fake_runtime_pace(FAKE_AT_ONCE);
}

static void the_legacy_stream_takes_turns_with_those_that_block_alone(void **state)
{
    cudaStream_t stream = stream_of(cudaStreamNonBlocking), blocking = stream_of(0);
    int *there = memory_of(sizeof *there);
    (void)state;
    assert_int_equal(seen(there, stream), -1); /* full of NaN, as a float */
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(cudaMemset(there, 0, sizeof *there), cudaSuccess);
    assert_int_equal(seen(there, stream), -1);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    assert_int_equal(seen(there, stream), 0);
    assert_int_equal(cudaMemset(there, 1, sizeof *there), cudaSuccess);
    assert_int_equal(seen(there, blocking), 0x01010101);
    assert_int_equal(append(there, 0, blocking), 0);
    assert_int_equal(cudaMemset(there, 0, sizeof *there), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    assert_int_equal(seen(there, stream), 0);
    assert_int_equal(append(there, 7, stream), 0);
    assert_int_equal(cudaFree(there), cudaSuccess);
    fake_runtime_pace(FAKE_AT_ONCE);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(blocking), cudaSuccess);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void copies_end_where_memory_does(void **state)
{
    cudaStream_t stream = stream_of(cudaStreamNonBlocking);
    char *there = memory_of(100), here[200] = {0};
    char *pinned = (char *)pinned_of(0);
    void *large;
    (void)state;
    fake_runtime_hear(said);
    assert_int_equal(cudaMemcpyAsync(there, here, 100, cudaMemcpyHostToDevice, stream), 0);
    assert_int_equal(cudaMemcpyAsync(there + 1, here, 100, cudaMemcpyHostToDevice, stream),
                     cudaErrorInvalidValue);
    expect_said("end outside of what was reserved");
    assert_int_equal(cudaMemcpyAsync(here, there, 101, cudaMemcpyDeviceToHost, stream),
                     cudaErrorInvalidValue);
    expect_said("end outside of what was reserved");
    assert_int_equal(cudaMemcpyAsync(there, pinned, 5, cudaMemcpyHostToDevice, stream),
                     cudaErrorInvalidValue);
    expect_said("end outside of what was pinned");
    assert_int_equal(cudaMemcpyAsync(here, there, 10, cudaMemcpyHostToDevice, stream),
                     cudaErrorInvalidValue);
    expect_said("is no memory of a card");
    assert_int_equal(cudaMemcpyAsync(there, there, 10, cudaMemcpyHostToDevice, stream),
                     cudaErrorInvalidValue);
    expect_said("not the host's");
    assert_int_equal(cudaMemsetAsync(there + 50, 0, 51, stream), cudaErrorInvalidValue);
    expect_said("end outside of what was reserved");
    assert_int_equal(cudaFree(there + 1), cudaErrorInvalidValue);
    expect_said("no memory of a card");
    assert_int_equal(cudaFree(pinned), cudaErrorInvalidValue);
    assert_int_equal(cudaFreeHost(there), cudaErrorInvalidValue);
    said[0] = '\0';

    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(cudaMemcpyAsync(there, pinned, 4, cudaMemcpyHostToDevice, stream), 0);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    expect_said("that queued copies read or write");
    fake_runtime_pace(FAKE_AT_ONCE);
    assert_int_equal(cudaFree(there), cudaSuccess);

    fake_runtime_limit(1000);
    assert_int_equal(cudaMalloc(&large, 1000), cudaErrorMemoryAllocation);
    fake_runtime_limit(0);
    struct fake_cards cards = fake_runtime_first_cards();
    cards.bytes = 1000;
    fake_runtime_cards(cards);
    size_t free_bytes, total_bytes;
    there = memory_of(600);
    assert_int_equal(cudaMalloc(&large, 401), cudaErrorMemoryAllocation);
    assert_int_equal(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    assert_int_equal(free_bytes, 400);
    assert_int_equal(total_bytes, 1000);
    assert_int_equal(cudaFree(there), cudaSuccess);
    fake_runtime_cards(fake_runtime_first_cards());
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    fake_runtime_hear(NULL);
}

/* ---- cards and errors ------------------------------------------------------------------------ */

static void work_belongs_to_one_card(void **state)
{
    struct fake_cards cards = fake_runtime_first_cards();
    (void)state;
    cards.n = 2;
    fake_runtime_cards(cards);
    fake_runtime_hear(said);
    cudaStream_t first = stream_of(cudaStreamNonBlocking);
    cudaEvent_t event = event_of();
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    cudaStream_t second = stream_of(cudaStreamNonBlocking);
    int *there = memory_of(sizeof *there);
    assert_int_equal(append(there, 1, first), cudaErrorInvalidResourceHandle);
    expect_said("a kernel on a stream of card 0 by a thread whose card is 1");
    assert_int_equal(cudaEventRecord(event, second), cudaErrorInvalidResourceHandle);
    expect_said("the event is of card 0, the stream of card 1");
    assert_int_equal(cudaEventRecord(event, first), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(append(there, 1, second), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaFree(there), cudaSuccess);
    assert_int_equal(cudaEventDestroy(event), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(first), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(second), cudaSuccess);
    said[0] = '\0';
    assert_int_equal(cudaStreamDestroy(second), cudaSuccess);
    expect_said("a stream that is not open");
    fake_runtime_hear(NULL);
    fake_runtime_cards(fake_runtime_first_cards());
}

static void fail_barrier(void *self)
{
    (void)self;
    if (threadIdx.x == 0)
        tdmi_shim_meet(2, 0, -1);
}

static void a_card_that_is_lost_stays_lost(void **state)
{
    cudaStream_t stream = stream_of(cudaStreamNonBlocking);
    char nothing = 0;
    void *memory;
    const struct tdmi_shim_launch launch = {stream,       {1, 1, 1}, {2, 1, 1},
                                            fail_barrier, &nothing,  1};
    (void)state;
    fake_runtime_hear(said);
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(tdmi_shim_launch(&launch), 0); /* nobody knows yet */
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
    expect_said("the card is lost");
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    assert_int_equal(tdmi_shim_launch(&launch), cudaErrorLaunchFailure);
    assert_int_equal(cudaStreamDestroy(stream), cudaErrorLaunchFailure);
    fake_runtime_pace(FAKE_AT_ONCE);
    fake_runtime_cards(fake_runtime_first_cards());
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    fake_runtime_hear(NULL);
}

static void calls_fail_where_a_test_wants_it(void **state)
{
    void *memory;
    (void)state;
    fake_runtime_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaFree(memory_of(1)), cudaSuccess);
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
    assert_int_equal(fake_runtime_calls(), 2);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    fake_runtime_fail(NULL, 0, 0);
}

/* ---- captures -------------------------------------------------------------------------------- */

struct capturing {
    cudaStream_t origin, other;
    cudaEvent_t fork, join;
    int *there, *pinned;
};

static struct capturing begin_capturing(void)
{
    struct capturing it = {.origin = stream_of(cudaStreamNonBlocking),
                           .other = stream_of(cudaStreamNonBlocking),
                           .fork = event_of(),
                           .join = event_of(),
                           .there = memory_of(2 * sizeof(int)),
                           .pinned = pinned_of(0)};
    fake_runtime_hear(said);
    assert_int_equal(cudaMemset(it.there, 0, 2 * sizeof(int)), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(it.origin, cudaStreamCaptureModeThreadLocal), 0);
    return it;
}

static void forget(struct capturing *it)
{
    assert_int_equal(fake_runtime_left().captures, 0);
    assert_int_equal(cudaStreamDestroy(it->origin), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(it->other), cudaSuccess);
    assert_int_equal(cudaEventDestroy(it->fork), cudaSuccess);
    assert_int_equal(cudaEventDestroy(it->join), cudaSuccess);
    assert_int_equal(cudaFree(it->there), cudaSuccess);
    assert_int_equal(cudaFreeHost(it->pinned), cudaSuccess);
    assert_int_equal(said[0], '\0');
    fake_runtime_hear(NULL);
}

static void end_with(struct capturing *it, cudaError_t code, const char *words)
{
    cudaGraph_t graph = NULL;
    if (words)
        expect_said(words);
    assert_int_equal(cudaStreamEndCapture(it->origin, &graph), code);
    assert_int_equal(graph != NULL, code == cudaSuccess);
    if (graph)
        assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    if (!words)
        said[0] = '\0';
    forget(it);
}

static cudaGraphExec_t exec_of(struct capturing *it)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    assert_int_equal(cudaStreamEndCapture(it->origin, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(cudaGraphUpload(exec, it->origin), cudaSuccess);
    return exec;
}

static void what_is_captured_runs_when_it_is_launched(void **state)
{
    struct capturing it = begin_capturing();
    (void)state;
    assert_int_equal(put(it.there, it.pinned, it.origin), 0);
    assert_int_equal(append(it.there, 1, it.origin), 0);
    assert_int_equal(cudaMemsetAsync(it.there + 1, 1, sizeof(int), it.origin), cudaSuccess);
    assert_int_equal(seen(it.there, it.other), 0); /* another stream is free */
    cudaGraphExec_t exec = exec_of(&it);
    assert_int_equal(seen(it.there, it.origin), 0);
    for (int pace = 0; pace < FAKE_PACES; pace++) {
        fake_runtime_pace((enum fake_pace)pace);
        *it.pinned = pace;
        assert_int_equal(cudaGraphLaunch(exec, it.origin), cudaSuccess);
        assert_int_equal(seen(it.there, it.origin), 10 * pace + 1);
        assert_int_equal(seen(it.there + 1, it.origin), 0x01010101);
    }
    fake_runtime_pace(FAKE_LATE);
    assert_int_equal(cudaGraphLaunch(exec, it.origin), cudaSuccess);
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    expect_said("while it is queued");
    fake_runtime_pace(FAKE_AT_ONCE);
    forget(&it);
}

/* Of two streams; where they do not wait for each other, what was captured last may go first. */
static void streams_fork_and_join_in_a_capture(void **state)
{
    bool has_gone_first = false;
    (void)state;
    for (int pace = 0; pace < FAKE_PACES; pace++) {
        struct capturing it = begin_capturing();
        assert_int_equal(append(it.there, 1, it.origin), 0);
        assert_int_equal(cudaEventRecord(it.fork, it.origin), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(it.other, it.fork, 0), cudaSuccess);
        assert_int_equal(append(it.there, 2, it.origin), 0);
        assert_int_equal(append(it.there, 3, it.other), 0);
        assert_int_equal(cudaEventRecord(it.join, it.other), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(it.origin, it.join, 0), cudaSuccess);
        assert_int_equal(append(it.there, 4, it.origin), 0);
        cudaGraphExec_t exec = exec_of(&it);
        fake_runtime_pace((enum fake_pace)pace);
        assert_int_equal(cudaGraphLaunch(exec, it.origin), cudaSuccess);
        const int value = seen(it.there, it.origin);
        assert_true(value == 1234 || value == 1324);
        has_gone_first = has_gone_first || value == 1324;
        fake_runtime_pace(FAKE_AT_ONCE);
        assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
        forget(&it);
    }
    assert_true(has_gone_first);
}

static void a_capture_forbids_what_a_thread_must_not_do(void **state)
{
    struct capturing it = begin_capturing();
    void *memory = NULL;
    const int ordinary = 1;
    (void)state;
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "cudaMalloc by a thread that captures");
    it = begin_capturing();
    assert_int_equal(cudaHostAlloc(&memory, 1, 0), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "cudaHostAlloc by a thread that captures");
    it = begin_capturing();
    assert_int_equal(cudaFree(it.there), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "cudaFree by a thread that captures");
    it = begin_capturing();
    assert_int_equal(cudaFreeHost(it.pinned), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "cudaFreeHost by a thread that captures");
    it = begin_capturing();
    assert_int_equal(cudaMemset(it.there, 0, 1), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "cudaMemset by a thread that captures");
    it = begin_capturing();
    assert_int_equal(cudaStreamSynchronize(it.origin), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "of a stream that is captured");
    it = begin_capturing();
    assert_int_equal(put(it.there, &ordinary, it.origin), cudaErrorStreamCaptureUnsupported);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "not pinned, inside a capture");
    it = begin_capturing();
    assert_int_equal(cudaStreamBeginCapture(it.origin, cudaStreamCaptureModeThreadLocal),
                     cudaErrorIllegalState);
    end_with(&it, cudaSuccess, NULL);
    assert_int_not_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal),
                         cudaSuccess);
}

static void dependencies_stay_inside_a_capture(void **state)
{
    struct capturing it = begin_capturing();
    cudaGraph_t graph;
    (void)state;
    assert_int_equal(cudaEventRecord(it.fork, it.origin), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(it.other, it.fork, 0), cudaSuccess);
    assert_int_equal(append(it.there, 1, it.other), 0);
    end_with(&it, cudaErrorStreamCaptureUnjoined, NULL);

    it = begin_capturing();
    assert_int_equal(cudaEventRecord(it.fork, it.other), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(it.origin, it.fork, 0), cudaErrorStreamCaptureIsolation);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "recorded outside");

    it = begin_capturing();
    assert_int_equal(cudaStreamBeginCapture(it.other, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_equal(cudaEventRecord(it.fork, it.other), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(it.origin, it.fork, 0), cudaErrorStreamCaptureMerge);
    assert_int_equal(cudaStreamEndCapture(it.other, &graph), cudaErrorStreamCaptureInvalidated);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "of another capture");

    it = begin_capturing();
    assert_int_equal(cudaEventRecord(it.fork, it.origin), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(it.other, it.fork, 0), cudaSuccess);
    assert_int_equal(cudaStreamEndCapture(it.other, &graph), cudaErrorStreamCaptureUnmatched);
    end_with(&it, cudaErrorStreamCaptureInvalidated, "of another stream than it was begun on");

    it = begin_capturing();
    cudaStream_t blocking = stream_of(0);
    assert_int_equal(cudaStreamEndCapture(it.origin, &graph), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_equal(append(it.there, 1, blocking), 0);
    assert_int_equal(cudaMemsetAsync(it.there, 0, 1, NULL), cudaErrorStreamCaptureImplicit);
    assert_int_equal(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
    assert_int_equal(cudaStreamDestroy(blocking), cudaSuccess);
    expect_said("while a stream that blocks is captured");
    forget(&it);
}

static void *end_elsewhere(void *self)
{
    cudaGraph_t graph;
    void *memory;
    struct capturing *it = self;
    assert_int_equal(cudaStreamEndCapture(it->origin, &graph), cudaErrorStreamCaptureWrongThread);
    assert_int_equal(cudaMalloc(&memory, 1), cudaSuccess); /* others are free to */
    assert_int_equal(cudaFree(memory), cudaSuccess);
    return NULL;
}

static void a_capture_is_its_threads(void **state)
{
    struct capturing it = begin_capturing();
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, &it), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_with(&it, cudaSuccess, "by another thread than began it");
}

static int nothing_is_left(void **state)
{
    const struct fake_left left = fake_runtime_left(), none = {0};
    (void)state;
    fake_runtime_pace(FAKE_AT_ONCE);
    return memcmp(&left, &none, sizeof left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(late_work_is_done_when_it_is_waited_for, nothing_is_left),
        cmocka_unit_test_teardown(streams_wait_for_events, nothing_is_left),
        cmocka_unit_test_teardown(the_legacy_stream_takes_turns_with_those_that_block_alone,
                                  nothing_is_left),
        cmocka_unit_test_teardown(copies_end_where_memory_does, nothing_is_left),
        cmocka_unit_test_teardown(work_belongs_to_one_card, nothing_is_left),
        cmocka_unit_test_teardown(a_card_that_is_lost_stays_lost, nothing_is_left),
        cmocka_unit_test_teardown(calls_fail_where_a_test_wants_it, nothing_is_left),
        cmocka_unit_test_teardown(what_is_captured_runs_when_it_is_launched, nothing_is_left),
        cmocka_unit_test_teardown(streams_fork_and_join_in_a_capture, nothing_is_left),
        cmocka_unit_test_teardown(a_capture_forbids_what_a_thread_must_not_do, nothing_is_left),
        cmocka_unit_test_teardown(dependencies_stay_inside_a_capture, nothing_is_left),
        cmocka_unit_test_teardown(a_capture_is_its_threads, nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

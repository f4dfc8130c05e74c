/* Streams, events and graphs of the fake CUDA runtime, and doing the work that was queued. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- doing it -------------------------------------------------------------------------------- */

void fake_forget(struct fake_work *work)
{
    if (work->event && --work->event->n_holders == 0)
        free(work->event);
    free(work->kept);
    free(work);
}

/* A failed kernel loses its GPU. */
static void compute(int device, const struct fake_work *work)
{
    enum { usual_ns = 1000 };
    int code = 0;
    fake_runtime.of[device].now_ns += usual_ns + work->launch.ns;
    if (work->kind == FAKE_COPY)
        memcpy(work->to, work->from, work->bytes);
    else if (work->kind == FAKE_CLEAR)
        memset(work->to, 0, work->bytes);
    else
        code = tdmi_shim_run(&work->launch);
    if (code == 0)
        return;
    fake_runtime.of[device].lost = (cudaError_t)code;
    (void)fake_refuse((cudaError_t)code, "a kernel failed, and the GPU is lost: %s",
                      tdmi_shim_facts().problem);
}

static void catch_up(cudaStream_t stream, cudaEvent_t event, int64_t number);

static void do_work(cudaStream_t stream, const struct fake_work *work)
{
    if (work->kind == FAKE_RECORD) {
        work->event->n_reached = work->number;
        work->event->reached_ns = fake_runtime.of[stream->device].now_ns;
        return;
    }
    if (work->kind == FAKE_WAIT) {
        if (work->event->n_reached < work->number)
            catch_up(work->event->of, work->event, work->number);
        return;
    }
    if (fake_runtime.is_guarding)
        fake_open_memory(stream->device);
    if (work->kind != FAKE_REPLAY)
        compute(stream->device, work);
    else
        for (const struct fake_work *at = work->exec->graph->first; at; at = at->next)
            compute(stream->device, at);
    if (fake_runtime.is_guarding)
        fake_open_memory(-1);
}

/* A lost GPU does nothing any more. */
static void do_first(cudaStream_t stream)
{
    struct fake_work *work = stream->first;
    const bool is_lost = fake_runtime.of[stream->device].lost != cudaSuccess;
    stream->is_at_work = true;
    if (!is_lost || work->kind == FAKE_RECORD)
        do_work(stream, work);
    stream->is_at_work = false;
    if (work->exec)
        work->exec->n_queued--;
    stream->first = work->next;
    if (!stream->first)
        stream->end = &stream->first;
    fake_forget(work);
}

/* Stop when the event's record of that number is reached; event NULL: do everything. */
static void catch_up(cudaStream_t stream, cudaEvent_t event, int64_t number)
{
    if (stream->is_at_work)
        return;
    while (stream->first && !(event && event->n_reached >= number))
        do_first(stream);
}

void fake_catch_up(cudaStream_t stream)
{
    catch_up(stream, NULL, 0);
}

void fake_catch_up_all(int device)
{
    for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
        if (device < 0 || at->device == device)
            fake_catch_up(at);
    for (int i = 0; i < fake_most_gpus; i++)
        if (device < 0 || i == device)
            fake_catch_up(&fake_runtime.of[i].legacy);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* Can the first work of the stream be done without that of another stream? */
static bool can_go(cudaStream_t stream)
{
    const struct fake_work *work = stream->first;
    return work && !(work->kind == FAKE_WAIT && work->event->n_reached < work->number);
}

static bool is_slow(const struct fake_work *work)
{
    return work->kind == FAKE_KERNEL || work->kind == FAKE_REPLAY;
}

/* Work of one stream may let another continue. */
static void do_quick_ones(void)
{
    bool is_done = false;
    while (!is_done) {
        is_done = true;
        for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
            while (can_go(at) && !is_slow(at->first)) {
                do_first(at);
                is_done = false;
            }
    }
}

static uint32_t draw(uint32_t below)
{
    fake_runtime.chance = fake_runtime.chance * 1664525u + 1013904223u;
    return (fake_runtime.chance >> 16) % below;
}

static void advance(cudaStream_t stream)
{
    if (fake_runtime.pace == FAKE_AT_ONCE)
        fake_catch_up(stream);
    if (fake_runtime.pace == FAKE_SLOW_KERNELS)
        do_quick_ones();
    if (fake_runtime.pace == FAKE_BY_CHANCE)
        for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
            for (uint32_t n = draw(4); n > 0 && can_go(at); n--)
                do_first(at);
}

/* ---- queueing it ----------------------------------------------------------------------------- */

cudaError_t fake_queue(cudaStream_t stream, const struct fake_work *work)
{
    cudaError_t code = cudaSuccess;
    struct fake_work *made = NULL;
    if (stream->capture && work->kind > FAKE_KERNEL) {
        stream->is_invalid = true;
        code = fake_refuse(cudaErrorStreamCaptureUnsupported,
                           "an event or a replay inside a capture, which is not known here");
    } else if (stream->capture && stream->is_invalid)
        code = cudaErrorStreamCaptureInvalidated;
    if (code == cudaSuccess && !(made = malloc(sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code != cudaSuccess) {
        free(work->kept);
        return code;
    }
    struct fake_work ***end = stream->capture ? &stream->capture->end : &stream->end;
    *made = *work;
    made->next = NULL;
    if (made->event)
        made->event->n_holders++;
    if (made->exec)
        made->exec->n_queued++;
    **end = made;
    *end = &made->next;
    if (!stream->capture)
        advance(stream);
    return cudaSuccess;
}

bool fake_is_queued(const struct fake_block *block)
{
    for (cudaStream_t stream = fake_runtime.streams; stream; stream = stream->next)
        for (const struct fake_work *work = stream->first; work; work = work->next)
            if (work->kind == FAKE_COPY &&
                (fake_block_of(work->to) == block || fake_block_of(work->from) == block))
                return true;
    return false;
}

/* Called by the shim for kernels that have a stream. */
int tdmi_shim_queue(const struct tdmi_shim_launch *launch)
{
    struct fake_work work = {.kind = FAKE_KERNEL, .launch = *launch};
    cudaError_t code = fake_begin();
    cudaStream_t stream = fake_stream(launch->queue);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && stream->device != fake_device())
        code = fake_refuse(cudaErrorInvalidResourceHandle,
                           "a kernel on a stream of GPU %d by a thread whose GPU is %d",
                           stream->device, fake_device());
    if (code == cudaSuccess) {
        work.kept = aligned_alloc(64, (launch->self_bytes + 64) / 64 * 64);
        if (!work.kept)
            code = cudaErrorMemoryAllocation;
    }
    if (code == cudaSuccess) {
        work.launch.self = memcpy(work.kept, launch->self, launch->self_bytes);
        code = fake_queue(stream, &work);
    }
    return (int)fake_end(code);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The link of the list of open objects that points to this one; NULL: none. */
#define PLACE_OF(type, list)                                           \
    static type *place_of_##list(type object)                          \
    {                                                                  \
        type *at = &fake_runtime.list;                                 \
        while (*at && *at != object)                                   \
            at = &(*at)->next;                                         \
        if (*at)                                                       \
            return at;                                                 \
        fake_complain("use of one of the " #list " that is not open"); \
        return NULL;                                                   \
    }
PLACE_OF(cudaStream_t, streams)
PLACE_OF(cudaEvent_t, events)
PLACE_OF(cudaGraph_t, graphs)
PLACE_OF(cudaGraphExec_t, execs)

cudaStream_t fake_stream(cudaStream_t stream)
{
    cudaStream_t legacy = &fake_runtime.of[fake_device()].legacy;
    if (!legacy->end)
        *legacy = (struct CUstream_st){.device = fake_device(), .end = &legacy->first};
    if (!stream)
        return legacy;
    return place_of_streams(stream) ? stream : NULL;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t code = fake_begin();
    cudaStream_t made = NULL;
    if (code == cudaSuccess && flags != cudaStreamNonBlocking)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->device = fake_device();
        made->end = &made->first;
        made->next = fake_runtime.streams;
        *stream = fake_runtime.streams = made;
    }
    return fake_end(code);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const cudaError_t code = fake_begin();
    cudaStream_t *at = place_of_streams(stream);
    if (at && stream->capture)
        fake_complain("%s of a stream that is captured", __func__);
    if (at) {
        fake_catch_up(stream);
        *at = stream->next;
        free(stream);
    }
    return fake_end(code);
}

/* Work that was not done is done by the next time. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t code = fake_begin();
    stream = fake_stream(stream);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && stream->first) {
        fake_catch_up(stream);
        code = cudaErrorNotReady;
    } else if (code == cudaSuccess)
        code = fake_runtime.of[stream->device].lost;
    return fake_end(code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = fake_begin();
    stream = fake_stream(stream);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && stream->capture) {
        stream->is_invalid = true;
        code = fake_refuse(cudaErrorStreamCaptureUnsupported, "%s of a stream that is captured",
                           __func__);
    }
    if (code == cudaSuccess) {
        fake_catch_up(stream);
        code = fake_runtime.of[stream->device].lost;
    }
    return fake_end(code);
}

/* ---- events ---------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t code = fake_begin();
    cudaEvent_t made = NULL;
    if (code == cudaSuccess && flags != cudaEventDefault && flags != cudaEventDisableTiming)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->device = fake_device();
        made->n_holders = 1;
        made->next = fake_runtime.events;
        *event = fake_runtime.events = made;
    }
    return fake_end(code);
}

/* Queued work may still wait for it. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t code = fake_begin();
    cudaEvent_t *at = place_of_events(event);
    if (at) {
        *at = event->next;
        if (--event->n_holders == 0)
            free(event);
    }
    return fake_end(code);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t code = fake_begin();
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!stream || !place_of_events(event)))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && event->device != stream->device)
        code = fake_refuse(cudaErrorInvalidResourceHandle,
                           "%s: the event is of GPU %d, the stream of GPU %d", __func__,
                           event->device, stream->device);
    if (code == cudaSuccess) {
        event->of = stream;
        event->n_recorded++;
        code = fake_queue(
            stream,
            &(struct fake_work){.kind = FAKE_RECORD, .event = event, .number = event->n_recorded});
    }
    return fake_end(code);
}

/* Waits for the last record so far, if any. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t code = fake_begin();
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!stream || !place_of_events(event)))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && flags != 0)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess && (stream->capture || event->n_recorded > event->n_reached))
        code = fake_queue(
            stream,
            &(struct fake_work){.kind = FAKE_WAIT, .event = event, .number = event->n_recorded});
    return fake_end(code);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess && (!place_of_events(first) || !place_of_events(last) ||
                                first->n_reached == 0 || last->n_reached == 0))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess)
        *milliseconds = (float)(1e-6 * (double)(last->reached_ns - first->reached_ns));
    return fake_end(code);
}

/* ---- captures: of one stream, as tandem has them --------------------------------------------- */

static void release(cudaGraph_t graph)
{
    if (--graph->n_holders > 0)
        return;
    while (graph->first) {
        struct fake_work *work = graph->first;
        graph->first = work->next;
        fake_forget(work);
    }
    free(graph);
}

cudaError_t fake_forbid(const char *function)
{
    for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
        if (at->capture && pthread_equal(at->thread, pthread_self())) {
            at->is_invalid = true;
            return fake_refuse(cudaErrorStreamCaptureUnsupported, "%s by a thread that captures",
                               function);
        }
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t code = fake_begin();
    cudaGraph_t made = NULL;
    if (code == cudaSuccess && (!stream || !fake_stream(stream)))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && mode != cudaStreamCaptureModeThreadLocal)
        code = fake_refuse(cudaErrorInvalidValue, "%s with mode %d", __func__, (int)mode);
    if (code == cudaSuccess && stream->capture)
        code = fake_refuse(cudaErrorIllegalState, "%s of a stream that is captured", __func__);
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->n_holders = 1;
        made->end = &made->first;
        stream->capture = made;
        stream->is_invalid = false;
        stream->thread = pthread_self();
    }
    return fake_end(code);
}

/* However it ends, the capture is over, unless another thread calls. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t code = fake_begin();
    stream = fake_stream(stream);
    *graph = NULL;
    if (code == cudaSuccess && (!stream || !stream->capture))
        return fake_end(cudaErrorIllegalState);
    if (code == cudaSuccess && !pthread_equal(stream->thread, pthread_self()))
        return fake_end(cudaErrorStreamCaptureWrongThread);
    if (code == cudaSuccess && stream->is_invalid)
        code = cudaErrorStreamCaptureInvalidated;
    cudaGraph_t made = stream ? stream->capture : NULL;
    if (made && code == cudaSuccess) {
        made->next = fake_runtime.graphs;
        *graph = fake_runtime.graphs = made;
    } else if (made)
        release(made);
    if (stream)
        stream->capture = NULL;
    return fake_end(code);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const cudaError_t code = fake_begin();
    cudaGraph_t *at = place_of_graphs(graph);
    if (at) {
        *at = graph->next;
        release(graph);
    }
    return fake_end(code);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaError_t code = fake_begin();
    cudaGraphExec_t made = NULL;
    if (code == cudaSuccess && (flags != 0 || !place_of_graphs(graph)))
        code = cudaErrorInvalidValue;
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->graph = graph;
        graph->n_holders++;
        made->next = fake_runtime.execs;
        *exec = fake_runtime.execs = made;
    }
    return fake_end(code);
}

static cudaError_t queue_exec(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!place_of_execs(exec) || !stream)
        return cudaErrorInvalidResourceHandle;
    return fake_queue(stream, &(struct fake_work){.kind = FAKE_REPLAY, .exec = exec});
}

/* Uploading changes nothing here. */
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess && (!place_of_execs(exec) || !fake_stream(stream)))
        code = cudaErrorInvalidResourceHandle;
    return fake_end(code);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const cudaError_t code = fake_begin();
    return fake_end(code == cudaSuccess ? queue_exec(exec, fake_stream(stream)) : code);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const cudaError_t code = fake_begin();
    cudaGraphExec_t *at = place_of_execs(exec);
    if (at && exec->n_queued > 0)
        fake_complain("%s while it is queued", __func__);
    if (at) {
        fake_catch_up_all(-1); /* after a complaint that a test heard */
        *at = exec->next;
        release(exec->graph);
        free(exec);
    }
    return fake_end(code);
}

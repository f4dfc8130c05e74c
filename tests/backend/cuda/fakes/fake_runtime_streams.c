/* Streams of the fake runtime, and doing what they were given. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- doing it -------------------------------------------------------------------------------- */

static void forget(struct fake_work *work)
{
    if (work->event)
        fake_let_go(work->event);
    free(work->kept);
    free(work);
}

void fake_do(int device, const struct fake_work *work)
{
    int code = 0;
    if (work->kind == FAKE_COPY)
        memcpy(work->to, work->from, work->bytes);
    else if (work->kind == FAKE_CLEAR)
        memset(work->to, work->value, work->bytes);
    else
        code = tdmi_shim_run(&work->launch);
    if (code == 0)
        return;
    fake_runtime.of[device].lost = (cudaError_t)code;
    (void)fake_refuse((cudaError_t)code, "a kernel failed, and the card is lost: %s",
                      tdmi_shim_facts().problem);
}

static void catch_up(cudaStream_t stream, cudaEvent_t event, int64_t number);

static void do_work(cudaStream_t stream, const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_RECORD:
        work->event->n_reached = work->number;
        return;
    case FAKE_UPLOAD:
        return;
    case FAKE_WAIT:
        if (work->event->n_reached < work->number)
            catch_up(work->event->of, work->event, work->number);
        return;
    default:
        break;
    }
    if (fake_runtime.is_guarding)
        fake_open_memory(stream->device);
    if (work->kind == FAKE_REPLAY)
        fake_replay(stream->device, work->exec);
    else
        fake_do(stream->device, work);
    if (fake_runtime.is_guarding)
        fake_close_memory();
}

/* Of a card that is lost nothing runs any more. */
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
    forget(work);
}

/* Until the event's record of that number, where event is not NULL. */
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
    for (int i = 0; i < fake_most_cards; i++)
        if (device < 0 || i == device)
            fake_catch_up(&fake_runtime.of[i].legacy);
}

/* ---- when ------------------------------------------------------------------------------------ */

/* May its first be done, without anything of another stream? */
static bool can_go(cudaStream_t stream)
{
    const struct fake_work *work = stream->first;
    return work && !(work->kind == FAKE_WAIT && work->event->n_reached < work->number);
}

static bool is_slow(const struct fake_work *work)
{
    return work->kind == FAKE_KERNEL || work->kind == FAKE_REPLAY;
}

/* What one stream does may let another go on. */
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

static void do_some(void)
{
    for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
        for (uint32_t n = draw(4); n > 0 && can_go(at); n--)
            do_first(at);
}

static void go_on(cudaStream_t stream)
{
    switch (fake_runtime.pace) {
    case FAKE_AT_ONCE:
        fake_catch_up(stream);
        break;
    case FAKE_SLOW_KERNELS:
        do_quick_ones();
        break;
    case FAKE_BY_CHANCE:
        do_some();
        break;
    default:
        break;
    }
}

/* ---- queueing it ----------------------------------------------------------------------------- */

/* Of a card, the legacy stream and those that block take turns. */
static void take_turns(cudaStream_t stream)
{
    cudaStream_t legacy = &fake_runtime.of[stream->device].legacy;
    if (stream->is_blocking && stream != legacy)
        fake_catch_up(legacy);
    for (cudaStream_t at = fake_runtime.streams; stream == legacy && at; at = at->next)
        if (at->is_blocking && at->device == stream->device)
            fake_catch_up(at);
}

/* Would the legacy stream join a capture? */
static cudaError_t check_legacy(cudaStream_t stream)
{
    if (stream != &fake_runtime.of[stream->device].legacy)
        return cudaSuccess;
    for (cudaStream_t at = fake_runtime.streams; at; at = at->next)
        if (at->capture && at->is_blocking && at->device == stream->device) {
            fake_invalidate(at->capture);
            return fake_refuse(cudaErrorStreamCaptureImplicit,
                               "work of the legacy stream, while a stream that blocks is captured");
        }
    return cudaSuccess;
}

cudaError_t fake_queue(cudaStream_t stream, const struct fake_work *work)
{
    if (stream->capture)
        return fake_capture_work(stream, work);
    const cudaError_t code = check_legacy(stream);
    struct fake_work *made = code == cudaSuccess ? malloc(sizeof *made) : NULL;
    if (!made) {
        free(work->kept);
        return code == cudaSuccess ? cudaErrorMemoryAllocation : code;
    }
    *made = *work;
    made->next = NULL;
    if (made->event)
        made->event->n_holders++;
    if (made->exec)
        made->exec->n_queued++;
    take_turns(stream);
    *stream->end = made;
    stream->end = &made->next;
    go_on(stream);
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

/* By the shim, whose kernels have a stream: with a copy of their arguments. */
int tdmi_shim_queue(const struct tdmi_shim_launch *launch)
{
    struct fake_work work = {.kind = FAKE_KERNEL, .launch = *launch};
    cudaError_t code = fake_begin("a launch");
    cudaStream_t stream = fake_stream(launch->queue);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && stream->device != fake_device())
        code = fake_refuse(cudaErrorInvalidResourceHandle,
                           "a kernel on a stream of card %d by a thread whose card is %d",
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

static cudaStream_t *place_of(cudaStream_t stream)
{
    cudaStream_t *at = &fake_runtime.streams;
    while (*at && *at != stream)
        at = &(*at)->next;
    return *at ? at : NULL;
}

cudaStream_t fake_stream(cudaStream_t stream)
{
    if (!stream) {
        cudaStream_t legacy = &fake_runtime.of[fake_device()].legacy;
        if (!legacy->end)
            *legacy = (struct CUstream_st){.device = fake_device(), .end = &legacy->first};
        return legacy;
    }
    if (place_of(stream))
        return stream;
    fake_complain("use of a stream that is not open");
    return NULL;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t code = fake_begin(__func__);
    cudaStream_t made = NULL;
    if (code == cudaSuccess && flags > cudaStreamNonBlocking)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->device = fake_device();
        made->is_blocking = flags != cudaStreamNonBlocking;
        made->end = &made->first;
        made->next = fake_runtime.streams;
        *stream = fake_runtime.streams = made;
    }
    return fake_end(code);
}

/* What it has is done all the same. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t code = fake_begin(__func__);
    cudaStream_t *at = place_of(stream);
    if (!at)
        fake_complain("%s of a stream that is not open", __func__);
    if (at && stream->capture)
        fake_complain("%s of a stream that is captured", __func__);
    if (at) {
        fake_catch_up(stream);
        *at = stream->next;
        free(stream);
    }
    return fake_end(code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && stream->capture) {
        fake_invalidate(stream->capture);
        code = fake_refuse(cudaErrorStreamCaptureUnsupported, "%s of a stream that is captured",
                           __func__);
    }
    if (code == cudaSuccess) {
        take_turns(stream);
        fake_catch_up(stream);
        code = fake_runtime.of[stream->device].lost;
    }
    return fake_end(code);
}

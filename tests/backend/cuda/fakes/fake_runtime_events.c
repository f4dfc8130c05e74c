/* Events of the fake runtime. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdlib.h>

void fake_let_go(cudaEvent_t event)
{
    if (--event->n_holders == 0)
        free(event);
}

static cudaEvent_t *place_of(const char *function, cudaEvent_t event)
{
    cudaEvent_t *at = &fake_runtime.events;
    while (*at && *at != event)
        at = &(*at)->next;
    if (!*at)
        fake_complain("%s of an event that is not open", function);
    return *at ? at : NULL;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t code = fake_begin(__func__);
    cudaEvent_t made = NULL;
    if (code == cudaSuccess && flags > cudaEventDisableTiming)
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

/* Work that waits for it goes on to. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t code = fake_begin(__func__);
    cudaEvent_t *at = place_of(__func__, event);
    if (at) {
        *at = event->next;
        fake_let_go(event);
    }
    return fake_end(code);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!stream || !place_of(__func__, event)))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && event->device != stream->device)
        code = fake_refuse(cudaErrorInvalidResourceHandle,
                           "%s: the event is of card %d, the stream of card %d", __func__,
                           event->device, stream->device);
    if (code == cudaSuccess) {
        event->capture = stream->capture;
        event->front = stream->front;
    }
    if (code == cudaSuccess && !stream->capture) {
        event->of = stream;
        event->n_recorded++;
        code = fake_queue(
            stream,
            &(struct fake_work){.kind = FAKE_RECORD, .event = event, .number = event->n_recorded});
    }
    return fake_end(code);
}

/* For what it was recorded behind by now, or for nothing. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!stream || !place_of(__func__, event)))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && flags != 0)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess && (stream->capture || event->capture))
        code = fake_capture_wait(stream, event);
    else if (code == cudaSuccess && event->n_recorded > event->n_reached)
        code = fake_queue(
            stream,
            &(struct fake_work){.kind = FAKE_WAIT, .event = event, .number = event->n_recorded});
    return fake_end(code);
}

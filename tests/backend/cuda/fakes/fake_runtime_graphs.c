/* Captures of the fake runtime, and the graphs that come of them. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdlib.h>

/* ---- nodes ----------------------------------------------------------------------------------- */

static void release(struct fake_nodes *nodes)
{
    if (--nodes->n_holders > 0)
        return;
    while (nodes->first) {
        struct fake_node *node = nodes->first;
        nodes->first = node->next;
        free(node->work.kept);
        free(node);
    }
    free(nodes);
}

static void add_to_front(struct fake_front *front, struct fake_node *node)
{
    for (int i = 0; i < front->n; i++)
        if (front->at[i] == node)
            return;
    if (front->n == fake_most_after)
        fake_complain("a capture with more joins than the fake runtime counts");
    else
        front->at[front->n++] = node;
}

cudaError_t fake_capture_work(cudaStream_t stream, const struct fake_work *work)
{
    struct fake_node *node = NULL;
    cudaError_t code = cudaSuccess;
    if (work->kind > FAKE_KERNEL) {
        fake_invalidate(stream->capture);
        code = fake_refuse(cudaErrorStreamCaptureUnsupported,
                           "a graph is brought or replayed inside a capture");
    } else if (stream->capture->is_invalid)
        code = cudaErrorStreamCaptureInvalidated;
    else if (!(node = calloc(1, sizeof *node)))
        code = cudaErrorMemoryAllocation;
    if (code != cudaSuccess) {
        free(work->kept);
        return code;
    }
    struct fake_nodes *nodes = stream->capture->nodes;
    node->work = *work;
    node->after = stream->front;
    *nodes->end = node;
    nodes->end = &node->next;
    stream->front = (struct fake_front){.n = 1, .at = {node}};
    return cudaSuccess;
}

/* ---- capturing ------------------------------------------------------------------------------- */

void fake_invalidate(struct fake_capture *capture)
{
    capture->is_invalid = true;
}

static struct fake_capture *of_this_thread(void)
{
    for (struct fake_capture *at = fake_runtime.captures; at; at = at->next)
        if (pthread_equal(at->thread, pthread_self()))
            return at;
    return NULL;
}

cudaError_t fake_forbid(const char *function)
{
    struct fake_capture *own = of_this_thread();
    if (!own)
        return cudaSuccess;
    fake_invalidate(own);
    return fake_refuse(cudaErrorStreamCaptureUnsupported, "%s by a thread that captures", function);
}

cudaError_t fake_capture_wait(cudaStream_t stream, cudaEvent_t event)
{
    struct fake_capture *of_event = event->capture;
    if (!of_event && event->n_recorded == 0)
        return cudaSuccess;
    if (!of_event) {
        fake_invalidate(stream->capture);
        return fake_refuse(cudaErrorStreamCaptureIsolation,
                           "a captured stream waits for an event that was recorded outside");
    }
    if (stream->capture && stream->capture != of_event) {
        fake_invalidate(stream->capture);
        fake_invalidate(of_event);
        return fake_refuse(cudaErrorStreamCaptureMerge,
                           "a captured stream waits for an event of another capture");
    }
    if (!stream->capture) {
        if (stream->first)
            fake_catch_up(stream); /* what it had before is no part of it */
        stream->capture = of_event;
        stream->front = (struct fake_front){0};
        of_event->nodes->n_streams++;
    }
    for (int i = 0; i < event->front.n; i++)
        add_to_front(&stream->front, event->front.at[i]);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t code = fake_begin(__func__);
    struct fake_capture *made = NULL;
    if (code == cudaSuccess && !stream)
        code = fake_refuse(cudaErrorStreamCaptureUnsupported, "%s of the legacy stream", __func__);
    else if (code == cudaSuccess && !fake_stream(stream))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && mode != cudaStreamCaptureModeThreadLocal)
        code = fake_refuse(cudaErrorInvalidValue, "%s with mode %d", __func__, (int)mode);
    if (code == cudaSuccess && stream->capture)
        code = fake_refuse(cudaErrorIllegalState, "%s of a stream that is captured", __func__);
    if (code == cudaSuccess &&
        (!(made = calloc(1, sizeof *made)) || !(made->nodes = calloc(1, sizeof *made->nodes)))) {
        free(made);
        code = cudaErrorMemoryAllocation;
    }
    if (code == cudaSuccess) {
        made->origin = stream;
        made->thread = pthread_self();
        made->nodes->n_holders = made->nodes->n_streams = 1;
        made->nodes->end = &made->nodes->first;
        made->next = fake_runtime.captures;
        fake_runtime.captures = made;
        stream->capture = made;
        stream->front = (struct fake_front){0};
    }
    return fake_end(code);
}

static void mark(struct fake_node *node)
{
    node->is_marked = true;
    for (int i = 0; i < node->after.n; i++)
        if (!node->after.at[i]->is_marked)
            mark(node->after.at[i]);
}

static void unmark(const struct fake_nodes *nodes)
{
    for (struct fake_node *node = nodes->first; node; node = node->next)
        node->is_marked = false;
}

/* Does the stream that began it wait for all of it? */
static bool is_joined(const struct fake_capture *capture)
{
    bool is = true;
    unmark(capture->nodes);
    for (int i = 0; i < capture->origin->front.n; i++)
        mark(capture->origin->front.at[i]);
    for (const struct fake_node *node = capture->nodes->first; node; node = node->next)
        is = is && node->is_marked;
    return is;
}

/* No stream and no event is in it any more. */
static void end(struct fake_capture *capture)
{
    struct fake_capture **at = &fake_runtime.captures;
    for (cudaStream_t stream = fake_runtime.streams; stream; stream = stream->next)
        if (stream->capture == capture)
            stream->capture = NULL;
    for (cudaEvent_t event = fake_runtime.events; event; event = event->next)
        if (event->capture == capture) {
            event->capture = NULL;
            event->n_recorded = event->n_reached; /* nothing is to be waited for */
        }
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    release(capture->nodes);
    free(capture);
}

static cudaError_t make_graph(const struct fake_capture *capture, cudaGraph_t *graph)
{
    cudaGraph_t made = calloc(1, sizeof *made);
    if (!made)
        return cudaErrorMemoryAllocation;
    made->nodes = capture->nodes;
    made->nodes->n_holders++;
    made->next = fake_runtime.graphs;
    *graph = fake_runtime.graphs = made;
    return cudaSuccess;
}

/* However it ends, but by another thread or on another stream, the capture is over. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    struct fake_capture *capture = stream ? stream->capture : NULL;
    *graph = NULL;
    if (!capture)
        return fake_end(code != cudaSuccess
                            ? code
                            : fake_refuse(cudaErrorIllegalState,
                                          "%s of a stream that is not captured", __func__));
    if (!pthread_equal(capture->thread, pthread_self()))
        return fake_end(fake_refuse(cudaErrorStreamCaptureWrongThread,
                                    "%s by another thread than began it", __func__));
    if (capture->origin != stream) {
        fake_invalidate(capture);
        return fake_end(fake_refuse(cudaErrorStreamCaptureUnmatched,
                                    "%s of another stream than it was begun on", __func__));
    }
    if (code == cudaSuccess && capture->is_invalid)
        code = cudaErrorStreamCaptureInvalidated;
    if (code == cudaSuccess && !is_joined(capture))
        code = fake_refuse(cudaErrorStreamCaptureUnjoined,
                           "%s: nobody waits for some of what was captured", __func__);
    if (code == cudaSuccess)
        code = make_graph(capture, graph);
    end(capture);
    return fake_end(code);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t code = fake_begin(__func__);
    cudaGraph_t *at = &fake_runtime.graphs;
    while (*at && *at != graph)
        at = &(*at)->next;
    if (!*at)
        fake_complain("%s of what is no graph", __func__);
    else {
        *at = graph->next;
        release(graph->nodes);
        free(graph);
    }
    return fake_end(code);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaError_t code = fake_begin(__func__);
    cudaGraphExec_t made = NULL;
    if (code == cudaSuccess && flags != 0)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %llu", __func__, flags);
    if (code == cudaSuccess && !(made = calloc(1, sizeof *made)))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess) {
        made->nodes = graph->nodes;
        made->nodes->n_holders++;
        made->next = fake_runtime.execs;
        *exec = fake_runtime.execs = made;
    }
    return fake_end(code);
}

static cudaGraphExec_t *place_of(const char *function, cudaGraphExec_t exec)
{
    cudaGraphExec_t *at = &fake_runtime.execs;
    while (*at && *at != exec)
        at = &(*at)->next;
    if (!*at)
        fake_complain("%s of what is no graph that can be launched", function);
    return *at ? at : NULL;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!place_of(__func__, exec) || !stream))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess)
        code = fake_queue(stream, &(struct fake_work){.kind = FAKE_UPLOAD, .exec = exec});
    return fake_end(code);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t code = fake_begin(__func__);
    stream = fake_stream(stream);
    if (code == cudaSuccess && (!place_of(__func__, exec) || !stream))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess)
        code = fake_queue(stream, &(struct fake_work){.kind = FAKE_REPLAY, .exec = exec});
    return fake_end(code);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t code = fake_begin(__func__);
    cudaGraphExec_t *at = place_of(__func__, exec);
    if (at && exec->n_queued > 0)
        fake_complain("%s while it is queued", __func__);
    if (at) {
        fake_catch_up_all(-1); /* for who hears the complaint */
        *at = exec->next;
        release(exec->nodes);
        free(exec);
    }
    return fake_end(code);
}

/* ---- replaying ------------------------------------------------------------------------------- */

static bool is_ready(const struct fake_node *node)
{
    bool is = !node->is_marked;
    for (int i = 0; i < node->after.n; i++)
        is = is && node->after.at[i]->is_marked;
    return is;
}

/* Of several streams: what was captured last goes first wherever it may. */
static void replay_backwards(int device, const struct fake_nodes *nodes)
{
    struct fake_node *next;
    unmark(nodes);
    do {
        next = NULL;
        for (struct fake_node *node = nodes->first; node; node = node->next)
            if (is_ready(node))
                next = node;
        if (next) {
            fake_do(device, &next->work);
            next->is_marked = true;
        }
    } while (next);
}

void fake_replay(int device, cudaGraphExec_t exec)
{
    if (fake_runtime.pace != FAKE_AT_ONCE && exec->nodes->n_streams > 1) {
        replay_backwards(device, exec->nodes);
        return;
    }
    for (const struct fake_node *node = exec->nodes->first; node; node = node->next)
        fake_do(device, &node->work);
}

/*
 * A list of what is to be done for each stream; all of them are known, to be told to catch up.
 * Threads may have streams of their own where work is done at once: then a list is touched by the
 * thread that adds to it alone, and what they share is locked.
 */
#include "shim_streams.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

enum kind { COPY, REPLAY, RECORD, WAIT };

struct work {
    struct work *next;
    enum kind kind;
    struct tdmi_shim_copy copy;
    void *kept; /* bytes of memory that is not pinned */
    tdmi_recording *recording;
    void (*run)(tdmi_stream *stream, tdmi_recording *recording);
    tdmi_event *event;
    int64_t number;  /* of the event's records */
    tdmi_stream *of; /* WAIT: that recorded it */
};

/* What a tdmi_stream's queue is here. */
struct CUstream_st {
    struct work *first, **end;
    bool has_replay;
    bool is_at_work; /* a stream that waits for one that waits for it has nothing to wait for */
};

struct tdmi_event {
    tdmi_stream *of;
    int64_t n_recorded, n_reached;
};

enum { most_streams = 64, most_pinned = 256 };

static struct {
    enum tdmi_shim_pace pace;
    pthread_mutex_t lock; /* of all that follows */
    tdmi_stream *streams[most_streams];
    struct {
        char *memory;
        size_t bytes;
    } pinned[most_pinned];
    struct tdmi_shim_copied copied;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_pinned(const void *at)
{
    bool is = false;
    for (int i = 0; i < most_pinned && !is; i++)
        is = all.pinned[i].memory && (const char *)at >= all.pinned[i].memory &&
             (const char *)at < all.pinned[i].memory + all.pinned[i].bytes;
    return is;
}

/* Is it read when it is made? */
static bool count_copy(const struct tdmi_shim_copy *copy)
{
    pthread_mutex_lock(&all.lock);
    const bool reads_later = !copy->from || is_pinned(copy->from);
    if (copy->from)
        *(reads_later ? &all.copied.pinned_bytes : &all.copied.other_bytes) += (int64_t)copy->bytes;
    pthread_mutex_unlock(&all.lock);
    return reads_later;
}

struct tdmi_shim_copied tdmi_shim_copied(void)
{
    pthread_mutex_lock(&all.lock);
    const struct tdmi_shim_copied copied = all.copied;
    all.copied = (struct tdmi_shim_copied){0};
    pthread_mutex_unlock(&all.lock);
    return copied;
}

/* ---- doing it ------------------------------------------------------------------------------ */

/* Until the event's record of that number, where it is not NULL. */
static void work_off(tdmi_stream *stream, const tdmi_event *event, int64_t number);

static void do_work(tdmi_stream *stream, const struct work *it)
{
    switch (it->kind) {
    case COPY:
        tdmi_shim_copy_now(&it->copy);
        break;
    case REPLAY:
        it->run(stream, it->recording);
        break;
    case RECORD:
        it->event->n_reached = it->number;
        break;
    case WAIT:
        if (it->event->n_reached < it->number)
            work_off(it->of, it->event, it->number);
        break;
    }
}

static void work_off(tdmi_stream *stream, const tdmi_event *event, int64_t number)
{
    struct CUstream_st *queue = stream->queue;
    if (!queue || queue->is_at_work) /* a test's own stream has none: its work is done at once */
        return;
    queue->is_at_work = true;
    while (queue->first && !(event && event->n_reached >= number)) {
        struct work *it = queue->first;
        do_work(stream, it);
        queue->first = it->next;
        if (!queue->first) {
            queue->end = &queue->first;
            queue->has_replay = false;
        }
        tdmi_free(it->kept);
        tdmi_free(it);
    }
    queue->is_at_work = false;
}

void tdmi_shim_catch_up(tdmi_stream *stream)
{
    if (stream) {
        work_off(stream, NULL, 0);
        return;
    }
    for (int i = 0; all.pace != TDMI_SHIM_AT_ONCE && i < most_streams; i++)
        if (all.streams[i])
            work_off(all.streams[i], NULL, 0);
}

void tdmi_shim_pace(enum tdmi_shim_pace pace)
{
    tdmi_shim_catch_up(NULL);
    all.pace = pace;
}

/* ---- queueing it --------------------------------------------------------------------------- */

/* Without memory for it nothing is queued, and all of it is done now. */
static void add(tdmi_stream *stream, const struct work *what)
{
    struct CUstream_st *queue = stream->queue;
    struct work *it = queue ? tdmi_alloc(1, sizeof *it) : NULL;
    if (!it) {
        work_off(stream, NULL, 0);
        do_work(stream, what);
        tdmi_free(what->kept);
        return;
    }
    *it = *what;
    it->next = NULL;
    *queue->end = it;
    queue->end = &it->next;
    queue->has_replay = queue->has_replay || it->kind == REPLAY;
    if (all.pace == TDMI_SHIM_AT_ONCE || (all.pace == TDMI_SHIM_SLOW_STEPS && !queue->has_replay))
        work_off(stream, NULL, 0);
}

void tdmi_shim_queue_copy(tdmi_stream *stream, struct tdmi_shim_copy copy)
{
    struct work it = {.kind = COPY, .copy = copy};
    const bool reads_later = count_copy(&copy);
    if (!reads_later && all.pace != TDMI_SHIM_AT_ONCE) {
        it.kept = tdmi_alloc(copy.bytes + 1, 1);
        if (!it.kept)
            tdmi_shim_catch_up(stream);
        else
            it.copy.from = memcpy(it.kept, copy.from, copy.bytes);
    }
    add(stream, &it);
}

void tdmi_shim_queue_replay(tdmi_stream *stream, tdmi_recording *recording,
                            void (*run)(tdmi_stream *stream, tdmi_recording *recording))
{
    add(stream, &(struct work){.kind = REPLAY, .recording = recording, .run = run});
}

bool tdmi_shim_stream_begin(tdmi_stream *stream)
{
    bool has_place = false;
    stream->queue = tdmi_alloc(1, sizeof *stream->queue);
    if (!stream->queue)
        return false;
    stream->queue->end = &stream->queue->first;
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < most_streams && !has_place; i++)
        if (!all.streams[i]) {
            all.streams[i] = stream;
            has_place = true;
        }
    pthread_mutex_unlock(&all.lock);
    if (!has_place)
        tdmi_free(stream->queue);
    return has_place;
}

void tdmi_shim_stream_end(tdmi_stream *stream)
{
    work_off(stream, NULL, 0);
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < most_streams; i++)
        if (all.streams[i] == stream)
            all.streams[i] = NULL;
    pthread_mutex_unlock(&all.lock);
    tdmi_free(stream->queue);
    stream->queue = NULL;
}

/* ---- events -------------------------------------------------------------------------------- */

tdm_status tdmi_shim_event_open(tdmi_device *device, tdmi_event **event, tdm_error *err)
{
    (void)device;
    *event = tdmi_alloc(1, sizeof **event);
    return *event ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "opening an event: out of memory");
}

void tdmi_shim_event_close(tdmi_event *event)
{
    tdmi_shim_catch_up(NULL);
    tdmi_free(event);
}

tdm_status tdmi_shim_event_record(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    (void)err;
    event->of = stream;
    event->n_recorded++;
    add(stream, &(struct work){.kind = RECORD, .event = event, .number = event->n_recorded});
    return TDM_OK;
}

/* For what it was recorded behind by now, or for nothing. */
tdm_status tdmi_shim_event_wait(tdmi_stream *stream, tdmi_event *event, tdm_error *err)
{
    (void)err;
    if (event->of)
        add(stream,
            &(struct work){
                .kind = WAIT, .event = event, .number = event->n_recorded, .of = event->of});
    return TDM_OK;
}

/* ---- pinned memory ------------------------------------------------------------------------- */

/* Full of what nobody put there. */
void *tdmi_shim_alloc_pinned(tdmi_device *device, size_t bytes)
{
    char *memory = tdmi_alloc_aligned(bytes + 1);
    bool has_place = false;
    (void)device;
    if (!memory)
        return NULL;
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < most_pinned && !has_place; i++)
        if (!all.pinned[i].memory) {
            all.pinned[i].memory = memset(memory, 0xa5, bytes + 1);
            all.pinned[i].bytes = bytes + 1;
            has_place = true;
        }
    pthread_mutex_unlock(&all.lock);
    if (has_place)
        return memory;
    tdmi_free(memory);
    return NULL;
}

void tdmi_shim_free_pinned(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_shim_catch_up(NULL); /* what reads it */
    pthread_mutex_lock(&all.lock);
    for (int i = 0; i < most_pinned; i++)
        if (all.pinned[i].memory == memory)
            all.pinned[i].memory = NULL;
    pthread_mutex_unlock(&all.lock);
    tdmi_free(memory);
}

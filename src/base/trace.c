/* Lanes of a trace: rings that are allocated when they are opened, and written by one thread each.
 */
#include "base/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct tdmi_lane {
    tdmi_trace *trace;
    struct tdmi_trace_event *events;
    int64_t most_events, n_added;
    char name[TDMI_LANE_NAME_BYTES];
    bool is_open; /* under the lock */
    tdmi_lane *next;
};

struct tdmi_trace {
    int64_t most_events;
    pthread_mutex_t lock;
    tdmi_lane *first, **end; /* in the order in which they were opened */
};

tdm_status tdmi_trace_new(int64_t most_events, tdmi_trace **trace, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(*trace, 1, err));
    (*trace)->most_events = most_events;
    (*trace)->end = &(*trace)->first;
    pthread_mutex_init(&(*trace)->lock, NULL); /* with default attributes it cannot fail */
    return TDM_OK;
}

static void free_lane(tdmi_lane *lane)
{
    if (lane)
        tdmi_free(lane->events);
    tdmi_free(lane);
}
TDMI_POINTER_RELEASE(tdmi_lane, free_lane)

void tdmi_trace_free(tdmi_trace *trace)
{
    if (!trace)
        return;
    for (tdmi_lane *lane = trace->first, *next; lane; lane = next) {
        next = lane->next;
        free_lane(lane);
    }
    pthread_mutex_destroy(&trace->lock);
    tdmi_free(trace);
}

/* A closed lane of that name. */
static tdmi_lane *reopen(tdmi_trace *trace, const char *name)
{
    tdmi_lane *found = NULL;
    pthread_mutex_lock(&trace->lock);
    for (tdmi_lane *lane = trace->first; lane && !found; lane = lane->next)
        if (!lane->is_open && strcmp(lane->name, name) == 0)
            found = lane;
    if (found)
        found->is_open = true;
    pthread_mutex_unlock(&trace->lock);
    return found;
}

tdm_status tdmi_lane_open(tdmi_trace *trace, const char *name, int number, tdmi_lane **lane,
                          tdm_error *err)
{
    char whole[TDMI_LANE_NAME_BYTES];
    TDMI_AT_END(free_lane_at) tdmi_lane *made = NULL;
    *lane = NULL;
    if (!trace)
        return TDM_OK;
    snprintf(whole, sizeof whole, "%s %d", name, number);
    *lane = reopen(trace, whole);
    if (*lane)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDM_TRY(TDMI_NEW(made->events, trace->most_events, err), err, "tracing the thread %s", whole);
    memcpy(made->name, whole, sizeof whole);
    made->trace = trace;
    made->most_events = trace->most_events;
    made->is_open = true;
    pthread_mutex_lock(&trace->lock);
    *trace->end = made;
    trace->end = &made->next;
    pthread_mutex_unlock(&trace->lock);
    *lane = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_lane_close(tdmi_lane *lane)
{
    if (!lane)
        return;
    pthread_mutex_lock(&lane->trace->lock);
    lane->is_open = false;
    pthread_mutex_unlock(&lane->trace->lock);
}

void tdmi_lane_add(tdmi_lane *lane, const struct tdmi_trace_event *event)
{
    lane->events[lane->n_added++ % lane->most_events] = *event;
}

/* ---- as bytes -------------------------------------------------------------------------------- */

static int64_t events_of(const tdmi_lane *lane)
{
    return lane->n_added < lane->most_events ? lane->n_added : lane->most_events;
}

static char *pack_lane(const tdmi_lane *lane, char *to)
{
    const int64_t n = events_of(lane), oldest = lane->n_added % lane->most_events;
    const int64_t n_first = n < lane->most_events ? n : n - oldest; /* up to the ring's end */
    struct tdmi_lane_head head = {.n_events = n, .n_dropped = lane->n_added - n};
    memcpy(head.name, lane->name, sizeof head.name);
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    memcpy(to, lane->events + (n < lane->most_events ? 0 : oldest),
           (size_t)n_first * sizeof *lane->events);
    to += (size_t)n_first * sizeof *lane->events;
    memcpy(to, lane->events, (size_t)(n - n_first) * sizeof *lane->events);
    return to + (size_t)(n - n_first) * sizeof *lane->events;
}

tdm_status tdmi_trace_pack(tdmi_trace *trace, void **bytes, size_t *n_bytes, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *made = NULL;
    *n_bytes = 0;
    for (const tdmi_lane *lane = trace->first; lane; lane = lane->next)
        *n_bytes += sizeof(struct tdmi_lane_head) + (size_t)events_of(lane) * sizeof *lane->events;
    TDMI_TRY(TDMI_NEW(made, *n_bytes + 1, err));
    char *to = made;
    for (const tdmi_lane *lane = trace->first; lane; lane = lane->next)
        to = pack_lane(lane, to);
    *bytes = tdmi_take(&made);
    return TDM_OK;
}

bool tdmi_trace_next(const void *bytes, size_t n_bytes, size_t *at, struct tdmi_lane_head *head,
                     const struct tdmi_trace_event **events)
{
    const char *from = (const char *)bytes + *at;
    const size_t left = n_bytes - *at;
    if (left < sizeof *head)
        return false;
    memcpy(head, from, sizeof *head);
    head->name[sizeof head->name - 1] = '\0';
    if (head->n_events < 0 ||
        (uint64_t)head->n_events > (left - sizeof *head) / sizeof(struct tdmi_trace_event))
        return false;
    *events = (const void *)(from + sizeof *head);
    *at += sizeof *head + (size_t)head->n_events * sizeof **events;
    return true;
}

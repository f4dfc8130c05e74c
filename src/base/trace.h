/*
 * A trace: which thread did what, from when to when. Each thread records into a lane of its own, a
 * ring of events of one size, so no thread waits for another, and a lane that is full overwrites
 * its oldest events. A lane NULL records nothing, at the cost of one load and one branch:
 *
 *     const int64_t begin = tdmi_lane_begin(lane);
 *     …
 *     tdmi_lane_end(lane, TDMI_TRACE_UPDATE, 0, begin);
 */
#pragma once

#include "base/clock.h"
#include "base/scope.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_trace tdmi_trace;
typedef struct tdmi_lane tdmi_lane;

enum tdmi_trace_kind {
#define X(kind, category, name, number, first, second) TDMI_TRACE_##kind,
#include "base/trace.def"
#undef X
    TDMI_TRACE_KINDS
};

struct tdmi_trace_event {
    int64_t begin_ns, end_ns; /* tdmi_clock_ns */
    int64_t values[2];
    int32_t kind, number;
};

enum {
    TDMI_TRACE_EVENTS =
        64 * 1024, /* events a lane keeps: 2.5 MiB, some 150 groups of a large network */
    TDMI_LANE_NAME_BYTES = 24
};

/* most_events: of a lane. */
tdm_status tdmi_trace_new(int64_t most_events, tdmi_trace **trace, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. Frees the lanes too. */
void tdmi_trace_free(tdmi_trace *trace);
TDMI_POINTER_RELEASE(tdmi_trace, tdmi_trace_free)

/* A lane called "name number", for one thread at a time; any thread may call it. A closed lane of
 * that name is continued. trace NULL: *lane is NULL. */
tdm_status tdmi_lane_open(tdmi_trace *trace, const char *name, int number, tdmi_lane **lane,
                          tdm_error *err) TDM_MUST_USE;
/* When its thread has ended: its events stay. Accepts NULL. */
void tdmi_lane_close(tdmi_lane *lane);

void tdmi_lane_add(tdmi_lane *lane, const struct tdmi_trace_event *event);

static inline int64_t tdmi_lane_begin(const tdmi_lane *lane)
{
    return lane ? tdmi_clock_ns() : 0;
}

static inline void tdmi_lane_end(tdmi_lane *lane, enum tdmi_trace_kind kind, int64_t number,
                                 int64_t begin_ns)
{
    if (lane)
        tdmi_lane_add(lane, &(struct tdmi_trace_event){.begin_ns = begin_ns,
                                                       .end_ns = tdmi_clock_ns(),
                                                       .kind = (int32_t)kind,
                                                       .number = (int32_t)number});
}

/* ---- as bytes ----------------------------------------------------------------------------------
 *
 * All lanes, one after the other: a head, then its events, the oldest first. For a process of the
 * same version on a machine of the same kind.
 */

struct tdmi_lane_head {
    char name[TDMI_LANE_NAME_BYTES];
    int64_t n_events, n_dropped; /* dropped: overwritten, older than all that are left */
};

/* While no thread records. *bytes: tdmi_free. */
tdm_status tdmi_trace_pack(tdmi_trace *trace, void **bytes, size_t *n_bytes,
                           tdm_error *err) TDM_MUST_USE;
/* The lane at *at, which moves on to the next; false: none is left, or what is left is no lane. */
bool tdmi_trace_next(const void *bytes, size_t n_bytes, size_t *at, struct tdmi_lane_head *head,
                     const struct tdmi_trace_event **events);

/*
 * A communicator in a trace (base/trace.h). A sum is shown with its two parts:
 *
 *     [sum                                    ]
 *     [wait for rank 1   ][wire               ]
 *                        the first part of every rank has come
 */
#include "base/scope.h"
#include "dist/comm_internal.h"

void tdmi_comm_trace(tdmi_comm *comm, tdmi_lane *lane, tdmi_lane *caller_lane)
{
    pthread_mutex_lock(&comm->lock);
    comm->lane = lane;
    comm->caller_lane = caller_lane;
    comm->open_peer = comm->late_peer = -1;
    pthread_mutex_unlock(&comm->lock);
}

void tdmi_comm_trace_first(tdmi_comm *comm)
{
    comm->late_peer = comm->open_peer;
    comm->heard_ns = tdmi_clock_ns();
}

static void add_sum(const tdmi_comm *comm, const struct tdmi_comm_job *job,
                    struct tdmi_trace_event event)
{
    struct tdmi_trace_event late = event, wire = event;
    event.kind = TDMI_TRACE_SUM;
    event.number = (int32_t)job->sum.range.first;
    event.values[0] = wire.values[0] = job->sum.range.n * (int64_t)sizeof(float);
    event.values[1] = event.begin_ns - job->queued_ns;
    late.kind = TDMI_TRACE_WAIT_RANK;
    late.number = comm->late_peer;
    late.end_ns = wire.begin_ns = comm->heard_ns;
    wire.kind = TDMI_TRACE_WIRE;
    tdmi_lane_add(comm->lane, &event); /* first: of equal begins the first is the outer one */
    if (comm->late_peer >= 0)
        tdmi_lane_add(comm->lane, &late);
    if (comm->heard_ns > 0)
        tdmi_lane_add(comm->lane, &wire);
}

void tdmi_comm_trace_job(tdmi_comm *comm, const struct tdmi_comm_job *job, int64_t begin_ns)
{
    const struct tdmi_trace_event event = {.begin_ns = begin_ns,
                                           .end_ns = tdmi_clock_ns(),
                                           .values = {(int64_t)job->n_bytes},
                                           .kind = TDMI_TRACE_MESSAGE};
    if (job->sum.range.n > 0)
        add_sum(comm, job, event);
    else
        tdmi_lane_add(comm->lane, &event);
    comm->open_peer = comm->late_peer = -1;
    comm->heard_ns = 0;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

enum { round_trips = 16 };

static tdm_status pass(tdmi_comm *comm, bool is_sent, int peer, int64_t *clock_ns, tdm_error *err)
{
    struct tdmi_message *message = comm->messages;
    const int n = 1;
    *message = (struct tdmi_message){
        .peer = peer, .channel = TDMI_BYTES, .bytes = clock_ns, .n = sizeof *clock_ns};
    TDMI_TRY(is_sent ? comm->table->send(comm->transport, message, err)
                     : comm->table->receive(comm->transport, message, err));
    return tdmi_comm_wait(comm, &message, &n, 1, "the clocks of all ranks", err);
}

void tdmi_clock_take_trip(struct tdmi_clock_trip *best, int64_t began_ns, int64_t theirs_ns,
                          int64_t ended_ns)
{
    const int64_t trip_ns = ended_ns - began_ns;
    if (best->has_any && trip_ns >= best->trip_ns)
        return;
    best->has_any = true;
    best->trip_ns = trip_ns;
    best->ahead_ns = theirs_ns - (began_ns + trip_ns / 2);
}

int64_t tdmi_clock_ahead(const struct tdmi_clock_trip *best)
{
    const int64_t size_ns = best->ahead_ns < 0 ? -best->ahead_ns : best->ahead_ns;
    return 2 * size_ns <= best->trip_ns ? 0 : best->ahead_ns;
}

static tdm_status compare_with(tdmi_comm *comm, int peer, int64_t *ahead_ns, tdm_error *err)
{
    struct tdmi_clock_trip best = {0};
    for (int i = 0; i < round_trips; i++) {
        int64_t theirs_ns = 0;
        const int64_t began_ns = tdmi_clock_ns();
        TDMI_TRY(pass(comm, true, peer, &theirs_ns, err));
        TDMI_TRY(pass(comm, false, peer, &theirs_ns, err));
        tdmi_clock_take_trip(&best, began_ns, theirs_ns, tdmi_clock_ns());
    }
    *ahead_ns = tdmi_clock_ahead(&best);
    return TDM_OK;
}

static tdm_status compare_clocks(tdmi_comm *comm, const struct tdmi_comm_job *job, tdm_error *err)
{
    int64_t *ahead_ns = job->bytes, mine_ns = 0;
    for (int r = 1; r < comm->launch.world && comm->launch.rank == 0; r++)
        TDMI_TRY(compare_with(comm, r, &ahead_ns[r], err));
    for (int i = 0; i < round_trips && comm->launch.rank > 0; i++) {
        TDMI_TRY(pass(comm, false, 0, &mine_ns, err));
        mine_ns = tdmi_clock_ns();
        TDMI_TRY(pass(comm, true, 0, &mine_ns, err));
    }
    return TDM_OK;
}

tdm_status tdmi_comm_compare_clocks(tdmi_comm *comm, int64_t *ahead_ns, tdm_error *err)
{
    if (comm->launch.rank == 0)
        ahead_ns[0] = 0;
    if (!comm->table)
        return TDM_OK;
    return TDM_WRAP(
        err,
        tdmi_comm_run(comm, &(struct tdmi_comm_job){.run = compare_clocks, .bytes = ahead_ns}, err),
        "comparing clocks");
}

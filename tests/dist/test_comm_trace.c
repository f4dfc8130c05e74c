/* A communicator in a trace: sums with their waits, messages, and clocks that are compared. */
#include "base/clock.h"
#include "dist/comm_internal.h"
#include "dist/ranks.h"

static const char *const transports[] = {"thread", "tcp"};
enum { n_transports = sizeof transports / sizeof transports[0], n_values = 300000, world = 3 };
enum { late_ns = 300 * 1000000 };

struct traced {
    bool is_right;
    tdmi_trace *trace;
    int64_t ahead_ns[world];
};

static void sleep_ns(int64_t ns)
{
    const struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

/* Two sums, for the first of which rank 2 is late, then a message. */
static void sum_and_tell(tdmi_comm *comm, void *self)
{
    struct traced *it = self;
    tdmi_lane *messages = NULL, *caller = NULL;
    float *values = calloc(n_values, sizeof *values);
    bool is_right = tdmi_trace_new(100, &it->trace, NULL) == TDM_OK &&
                    tdmi_lane_open(it->trace, "messages", 0, &messages, NULL) == TDM_OK &&
                    tdmi_lane_open(it->trace, "compute", 0, &caller, NULL) == TDM_OK;
    is_right = is_right && tdmi_comm_divide(comm, world, NULL) == TDM_OK;
    is_right = is_right && tdmi_comm_broadcast(comm, values, 64, NULL) == TDM_OK; /* all are here */
    tdmi_comm_trace(comm, messages, caller);
    if (tdmi_comm_rank(comm) == 2)
        sleep_ns(late_ns);
    for (int half = 0; half < 2; half++)
        is_right = is_right && tdmi_comm_sum(comm, &values, values, half * (n_values / 2),
                                             n_values / 2, NULL) == TDM_OK;
    is_right = is_right && tdmi_comm_finish(comm, NULL) == TDM_OK;
    is_right = is_right && tdmi_comm_broadcast(comm, values, 64, NULL) == TDM_OK;
    tdmi_comm_trace(comm, NULL, NULL);
    is_right = is_right && tdmi_comm_broadcast(comm, values, 64, NULL) == TDM_OK;
    it->is_right = is_right && tdmi_comm_compare_clocks(comm, it->ahead_ns, NULL) == TDM_OK;
    free(values);
}

/* The nth event of the kind; NULL: there are fewer. */
static const struct tdmi_trace_event *find(const void *bytes, size_t n_bytes, int kind, int nth)
{
    const struct tdmi_trace_event *events;
    struct tdmi_lane_head head;
    size_t at = 0;
    while (tdmi_trace_next(bytes, n_bytes, &at, &head, &events))
        for (int64_t i = 0; i < head.n_events; i++)
            if (events[i].kind == kind && nth-- == 0)
                return &events[i];
    return NULL;
}

static void expect_trace(const struct traced *it, int rank)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n;
    assert_int_equal(tdmi_trace_pack(it->trace, &bytes, &n, NULL), TDM_OK);
    const struct tdmi_trace_event *sum = find(bytes, n, TDMI_TRACE_SUM, 0),
                                  *next = find(bytes, n, TDMI_TRACE_SUM, 1),
                                  *wire = find(bytes, n, TDMI_TRACE_WIRE, 0),
                                  *late = find(bytes, n, TDMI_TRACE_WAIT_RANK, 0),
                                  *wait = find(bytes, n, TDMI_TRACE_WAIT_SUMS, 0);
    assert_true(sum && next && wire && wait && !find(bytes, n, TDMI_TRACE_SUM, 2));
    assert_int_equal(sum->values[0], n_values / 2 * sizeof(float));
    assert_int_equal(next->number, n_values / 2);
    assert_true(sum->end_ns <= next->begin_ns && next->values[1] > 0);
    assert_true(sum->begin_ns <= wire->begin_ns && wire->end_ns == sum->end_ns);
    assert_true(wait->end_ns >= next->end_ns);
    assert_non_null(find(bytes, n, TDMI_TRACE_MESSAGE, 0));
    assert_null(find(bytes, n, TDMI_TRACE_MESSAGE, 1)); /* nothing was traced any more */
    assert_non_null(find(bytes, n, TDMI_TRACE_WAIT_MESSAGES, 0));
    if (rank == 2) /* the others' parts were on their way before it began */
        return;
    assert_non_null(late);
    assert_int_equal(late->number, 2);
    assert_true(late->end_ns - late->begin_ns > late_ns / 2);
    assert_int_equal(late->end_ns, wire->begin_ns);
}

TEST(sums_show_which_rank_was_late)
{
    for (int t = 0; t < n_transports; t++) {
        struct traced ranks[world] = {0};
        run_ranks((struct job){transports[t], world, 20.0, false}, sum_and_tell, ranks,
                  sizeof ranks[0]);
        for (int r = 0; r < world; r++) {
            assert_true(ranks[r].is_right);
            expect_trace(&ranks[r], r);
            tdmi_trace_free(ranks[r].trace);
        }
    }
}

TEST(clocks_of_one_machine_are_the_same)
{
    for (int t = 0; t < n_transports; t++) {
        struct traced ranks[world] = {0};
        for (int r = 0; r < world; r++)
            for (int i = 0; i < world; i++)
                ranks[r].ahead_ns[i] = 99;
        run_ranks((struct job){transports[t], world, 20.0, false}, sum_and_tell, ranks,
                  sizeof ranks[0]);
        for (int r = 0; r < world; r++) {
            assert_int_equal(ranks[0].ahead_ns[r], 0);
            assert_int_equal(ranks[1].ahead_ns[r], 99); /* only rank 0 learns it */
            tdmi_trace_free(ranks[r].trace);
        }
    }
}

/* Trips of 40, 10 and 30 units to a clock that is ahead by `ahead`; none is read quite half-way. */
static int64_t estimate(int64_t ahead)
{
    struct tdmi_clock_trip best = {0};
    tdmi_clock_take_trip(&best, 100, 100 + 35 + ahead, 140);
    tdmi_clock_take_trip(&best, 200, 200 + 6 + ahead, 210);
    tdmi_clock_take_trip(&best, 300, 300 + 1 + ahead, 330);
    return tdmi_clock_ahead(&best);
}

TEST(the_shortest_trip_tells_the_clocks_apart)
{
    assert_int_equal(estimate(1000000), 1000001);
    assert_int_equal(estimate(-1000000), -999999);
    assert_int_equal(estimate(7), 8);
    assert_int_equal(estimate(0), 0); /* within half a trip */
    assert_int_equal(estimate(4), 0);
    assert_int_equal(estimate(-6), 0);
    assert_int_equal(estimate(-7), -6);
}

TEST_MAIN(NULL, NULL)

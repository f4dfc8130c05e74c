/* Lanes keep the newest events in order, are continued under their name, and cost no memory when
 * nothing is traced. */
#include "base/trace.h"
#include "unit.h"

enum { most = 8 };

static tdmi_trace *new_trace(void)
{
    tdmi_trace *trace = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_trace_new(most, &trace, &err), &err);
    return trace;
}

static tdmi_lane *open_lane(tdmi_trace *trace, const char *name, int number)
{
    tdmi_lane *lane = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_lane_open(trace, name, number, &lane, &err), &err);
    return lane;
}

static void add(tdmi_lane *lane, int n)
{
    tdmi_lane_add(
        lane, &(struct tdmi_trace_event){.begin_ns = 10 * n, .end_ns = 10 * n + 5, .number = n});
}

/* The only lane of a trace has these events. */
static void expect_events(tdmi_trace *trace, int first, int n, int n_dropped)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    const struct tdmi_trace_event *events;
    struct tdmi_lane_head head;
    size_t n_bytes, at = 0;
    assert_int_equal(tdmi_trace_pack(trace, &bytes, &n_bytes, NULL), TDM_OK);
    assert_true(tdmi_trace_next(bytes, n_bytes, &at, &head, &events));
    assert_int_equal(head.n_events, n);
    assert_int_equal(head.n_dropped, n_dropped);
    for (int i = 0; i < n; i++)
        assert_int_equal(events[i].number, first + i);
    assert_int_equal(at, n_bytes);
    assert_false(tdmi_trace_next(bytes, n_bytes, &at, &head, &events));
}

TEST(a_full_lane_keeps_the_newest_events_in_order)
{
    static const int counts[] = {0, 1, most - 1, most, most + 1, 2 * most - 1, 2 * most, 5 * most};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        TDMI_AT_END(tdmi_trace_free_at) tdmi_trace *trace = new_trace();
        tdmi_lane *lane = open_lane(trace, "compute", 0);
        const int n = counts[i], kept = n < most ? n : most;
        for (int e = 0; e < n; e++)
            add(lane, e);
        expect_events(trace, n - kept, kept, n - kept);
    }
}

TEST(a_closed_lane_is_continued_under_its_name_and_an_open_one_is_not)
{
    TDMI_AT_END(tdmi_trace_free_at) tdmi_trace *trace = new_trace();
    tdmi_lane *first = open_lane(trace, "images", 1);
    assert_ptr_not_equal(first, open_lane(trace, "images", 1));
    assert_ptr_not_equal(first, open_lane(trace, "images", 2));
    tdmi_lane_close(first);
    assert_ptr_equal(first, open_lane(trace, "images", 1));
}

TEST(without_a_trace_there_is_no_lane_and_nothing_is_recorded)
{
    tdmi_lane *lane = open_lane(NULL, "images", 0);
    assert_null(lane);
    assert_int_equal(tdmi_lane_begin(lane), 0);
    tdmi_lane_end(lane, TDMI_TRACE_STEP, 1, 0);
    tdmi_lane_close(lane);
    tdmi_trace_free(NULL);
}

TEST(an_event_lasts_from_begin_to_end)
{
    TDMI_AT_END(tdmi_trace_free_at) tdmi_trace *trace = new_trace();
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    tdmi_lane *lane = open_lane(trace, "compute", 0);
    const struct tdmi_trace_event *events;
    struct tdmi_lane_head head;
    size_t n_bytes, at = 0;
    const int64_t before = tdmi_clock_ns(), begin = tdmi_lane_begin(lane);
    tdmi_lane_end(lane, TDMI_TRACE_FORWARD, 7, begin);
    const int64_t after = tdmi_clock_ns();
    assert_int_equal(tdmi_trace_pack(trace, &bytes, &n_bytes, NULL), TDM_OK);
    assert_true(tdmi_trace_next(bytes, n_bytes, &at, &head, &events));
    assert_string_equal(head.name, "compute 0");
    assert_int_equal(events[0].kind, TDMI_TRACE_FORWARD);
    assert_int_equal(events[0].number, 7);
    assert_int_equal(events[0].begin_ns, begin);
    assert_true(before <= begin && begin <= events[0].end_ns && events[0].end_ns <= after);
}

TEST(bytes_that_end_within_a_lane_are_no_lane)
{
    TDMI_AT_END(tdmi_trace_free_at) tdmi_trace *trace = new_trace();
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    const struct tdmi_trace_event *events;
    struct tdmi_lane_head head;
    size_t n_bytes;
    add(open_lane(trace, "compute", 0), 1);
    assert_int_equal(tdmi_trace_pack(trace, &bytes, &n_bytes, NULL), TDM_OK);
    for (size_t n = 0; n < n_bytes; n++) {
        size_t at = 0;
        assert_false(tdmi_trace_next(bytes, n, &at, &head, &events));
        assert_int_equal(at, 0);
    }
}

TEST_MAIN(NULL, NULL)

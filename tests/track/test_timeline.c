/* Traces of several ranks become one file on one clock, which is read back and adds up; where lanes
 * were full it begins with a step that all of them hold whole. */
#include "base/file/file.h"
#include "base/text/json.h"
#include "tandem/trace.h"
#include "track/folder.h"
#include "track/timeline.h"

enum { ms = 1000000 };

/* ---- traces of ranks ------------------------------------------------------------------------- */

struct rank {
    tdmi_trace *trace;
    tdmi_lane *compute, *messages;
    void *bytes;
    size_t n_bytes;
};

static struct rank new_rank(int most_events)
{
    struct rank rank = {0};
    assert_int_equal(tdmi_trace_new(most_events, &rank.trace, NULL), TDM_OK);
    assert_int_equal(tdmi_lane_open(rank.trace, "compute", 0, &rank.compute, NULL), TDM_OK);
    assert_int_equal(tdmi_lane_open(rank.trace, "messages", 0, &rank.messages, NULL), TDM_OK);
    return rank;
}

static void free_rank(struct rank *rank)
{
    tdmi_free(rank->bytes);
    tdmi_trace_free(rank->trace);
}

static void add(tdmi_lane *lane, enum tdmi_trace_kind kind, int number, int64_t begin_ns,
                int64_t end_ns)
{
    tdmi_lane_add(lane,
                  &(struct tdmi_trace_event){
                      .begin_ns = begin_ns, .end_ns = end_ns, .kind = kind, .number = number});
}

/* Step n of 100 ms from at_ns on: 10 for images, 70 of layers, 20 waiting for a sum that began 30
 * earlier, 15 of these for rank `late`. */
static void add_step(struct rank *rank, int n, int64_t at_ns, int late)
{
    add(rank->compute, TDMI_TRACE_WAIT_IMAGES, n, at_ns, at_ns + 10 * ms);
    add(rank->compute, TDMI_TRACE_FORWARD, 0, at_ns + 11 * ms, at_ns + 40 * ms);
    add(rank->compute, TDMI_TRACE_BACKWARD, 1, at_ns + 40 * ms, at_ns + 80 * ms);
    add(rank->messages, TDMI_TRACE_SUM, 0, at_ns + 50 * ms, at_ns + 99 * ms);
    add(rank->messages, TDMI_TRACE_WAIT_RANK, late, at_ns + 50 * ms, at_ns + 95 * ms);
    add(rank->compute, TDMI_TRACE_WAIT_SUMS, 0, at_ns + 80 * ms, at_ns + 100 * ms);
    add(rank->compute, TDMI_TRACE_STEP, n, at_ns + 10 * ms, at_ns + 100 * ms);
}

static tdm_status write_ranks(struct rank *ranks, int n, const int64_t *ahead_ns, const char *path,
                              struct tdmi_timeline_facts *facts, tdm_error *err)
{
    static const char *const layers[] = {"conv \"1\"", "dense\n"};
    struct tdmi_timeline_rank parts[4];
    for (int r = 0; r < n; r++) {
        if (!ranks[r].bytes)
            assert_int_equal(
                tdmi_trace_pack(ranks[r].trace, &ranks[r].bytes, &ranks[r].n_bytes, NULL), TDM_OK);
        parts[r] = (struct tdmi_timeline_rank){ranks[r].bytes, ranks[r].n_bytes, ahead_ns[r]};
    }
    const struct tdmi_timeline timeline = {parts, n, layers, 2};
    return tdmi_timeline_write(&timeline, path, facts, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static tdm_json_document *read_json(const char *path)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    size_t n;
    assert_ok(tdmi_file_read(path, 1 << 20, &bytes, &n, &err), &err);
    assert_ok(tdm_json_read(bytes, n, path, &document, &err), &err);
    return document;
}

/* The begin of the first event of that name of a rank; -1: there is none. */
static double begin_of(const tdm_json_document *document, int rank, const char *name)
{
    const tdm_json_value *events = tdm_json_member(tdm_json_root(document), "traceEvents");
    for (size_t i = 0; i < tdm_json_count(events); i++) {
        const tdm_json_value *event = tdm_json_at(events, i);
        if (tdm_json_as_integer(tdm_json_member(event, "pid"), -1) == rank &&
            strcmp(tdm_json_as_string(tdm_json_member(event, "name"), ""), name) == 0)
            return tdm_json_as_number(tdm_json_member(event, "ts"), -1.0);
    }
    return -1.0;
}

TEST_WITH(ranks_are_on_the_clock_of_rank_0_and_names_are_quoted, make_folder, remove_folder)
{
    struct rank ranks[2] = {new_rank(100), new_rank(100)};
    struct tdmi_timeline_facts facts;
    char path[1024];
    tdm_error err = {0};
    in_folder(state, "trace.json", path);
    add_step(&ranks[0], 1, 1000 * (int64_t)ms, 1);
    add_step(&ranks[1], 1, 5002 * (int64_t)ms, 0); /* two ms later, its clock 4 s ahead */
    assert_ok(write_ranks(ranks, 2, (int64_t[]){0, 4000 * (int64_t)ms}, path, &facts, &err), &err);
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = read_json(path);
    assert_true(begin_of(document, 0, "wait for images") == 0.0);
    assert_true(begin_of(document, 1, "wait for images") == 2000.0);
    assert_true(begin_of(document, 1, "forward conv \"1\"") == 13000.0);
    assert_true(begin_of(document, 0, "backward dense\n") == 40000.0);
    assert_int_equal(facts.first_step, 1);
    assert_int_equal(facts.n_dropped, 0);
    assert_int_equal(facts.n_events, 14);
    free_rank(&ranks[0]);
    free_rank(&ranks[1]);
}

/* The lane of computing is full, that of messages is not. */
TEST_WITH(a_full_lane_cuts_all_lanes_at_one_step, make_folder, remove_folder)
{
    enum { n_steps = 20, n_kept = 3 };
    struct rank ranks[2] = {new_rank(5 * n_kept + 2), new_rank(1000)};
    struct tdmi_timeline_facts facts;
    char path[1024];
    tdm_error err = {0};
    tdm_trace *trace = NULL;
    in_folder(state, "trace.json", path);
    for (int n = 1; n <= n_steps; n++)
        for (int r = 0; r < 2; r++)
            add_step(&ranks[r], n, (1000 + 100 * n) * (int64_t)ms, 1 - r);
    assert_ok(write_ranks(ranks, 2, (int64_t[]){0, 0}, path, &facts, &err), &err);
    assert_int_equal(facts.first_step, n_steps - n_kept + 1);
    assert_int_equal(facts.last_step, n_steps);
    assert_int_equal(facts.n_events + facts.n_dropped, 2 * 7 * n_steps);
    assert_ok(tdm_trace_read(path, 0, 0, &trace, &err), &err);
    const struct tdm_trace_sums *sums = tdm_trace_sums_of(trace);
    assert_int_equal(sums->first_step, n_steps - n_kept + 1);
    assert_int_equal(sums->n_dropped, facts.n_dropped);
    for (int r = 0; r < 2; r++)
        assert_int_equal(sums->ranks[r].steps, n_kept);
    tdm_trace_close(trace);
    free_rank(&ranks[0]);
    free_rank(&ranks[1]);
}

TEST_WITH(bytes_that_are_no_trace_are_refused_and_leave_the_old_file, make_folder, remove_folder)
{
    struct rank rank = new_rank(100);
    struct tdmi_timeline_facts facts;
    char path[1024];
    tdm_error err = {0};
    in_folder(state, "trace.json", path);
    assert_int_equal(tdmi_file_write(path, "old", 3, NULL), TDM_OK);
    add(rank.compute, TDMI_TRACE_KINDS, 0, 0, 1);
    assert_int_equal(write_ranks(&rank, 1, (int64_t[]){0}, path, &facts, &err), TDM_E_BUG);
    assert_says(&err, "event 0 of lane compute 0 of rank 0");
    rank.n_bytes--;
    assert_int_equal(write_ranks(&rank, 1, (int64_t[]){0}, path, &facts, NULL), TDM_E_BUG);
    assert_int_equal(tdmi_file_bytes(path), 3);
    free_rank(&rank);
}

/* ---- adding up ------------------------------------------------------------------------------- */

static void expect_about(double value, double wanted)
{
    if (!(value > wanted - 1e-9 && value < wanted + 1e-9))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

TEST_WITH(sums_are_worked_by_hand, make_folder, remove_folder)
{
    struct rank ranks[3] = {new_rank(100), new_rank(100), new_rank(100)};
    struct tdmi_timeline_facts facts;
    char path[1024];
    tdm_error err = {0};
    tdm_trace *trace = NULL;
    in_folder(state, "trace.json", path);
    for (int n = 1; n <= 4; n++) /* 20 ms between steps, of which 5 wait for a message */
        for (int r = 0; r < 3; r++) {
            add_step(&ranks[r], n, 120 * n * (int64_t)ms, r == 2 ? 0 : 2);
            add(ranks[r].compute, TDMI_TRACE_WAIT_MESSAGES, 0, (120 * n + 105) * (int64_t)ms,
                (120 * n + 110) * (int64_t)ms);
        }
    assert_ok(write_ranks(ranks, 3, (int64_t[]){0, 0, 0}, path, &facts, &err), &err);
    assert_ok(tdm_trace_read(path, 0, 0, &trace, &err), &err);
    const struct tdm_trace_sums *sums = tdm_trace_sums_of(trace);
    assert_int_equal(sums->n_ranks, 3);
    for (int r = 0; r < 3; r++) {
        const struct tdm_trace_rank *rank = &sums->ranks[r];
        assert_int_equal(rank->steps, 4);
        expect_about(rank->seconds, 0.460); /* from the first images to the end of step 4 */
        expect_about(rank->computing, 4 * 0.070);
        expect_about(rank->images, 4 * 0.010);
        expect_about(rank->sums, 4 * 0.020);
        expect_about(rank->messages, 3 * 0.005);
        expect_about(rank->other, 3 * 0.015);
        expect_about(rank->communication, 4 * 0.049);
        assert_int_equal(rank->waited_for, r == 2 ? 0 : 2);
        expect_about(rank->waited, 4 * 0.015);
    }
    expect_about(sums->hidden, 1.0 - 20.0 / 49.0);
    assert_int_equal(sums->straggler, 2);
    expect_about(sums->straggler_seconds, 2 * 4 * 0.015);
    tdm_trace_close(trace);

    assert_ok(tdm_trace_read(path, 2, 3, &trace, &err), &err);
    expect_about(tdm_trace_sums_of(trace)->ranks[0].seconds, 0.240);
    expect_about(tdm_trace_sums_of(trace)->ranks[0].computing, 0.140);
    assert_int_equal(tdm_trace_sums_of(trace)->ranks[0].steps, 2);
    tdm_trace_close(trace);
    assert_int_equal(tdm_trace_read(path, 5, 9, &trace, &err), TDM_E_INPUT);
    assert_says(&err, "it holds 1 to 4");
    for (int r = 0; r < 3; r++)
        free_rank(&ranks[r]);
}

TEST_WITH(files_that_hold_no_steps_get_a_sentence, make_folder, remove_folder)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "it is empty"},
        {"{", "trace.json"},
        {"hello", "trace.json"},
        {"7", "no array \"traceEvents\""},
        {"{\"traceEvents\":7}", "no array \"traceEvents\""},
        {"[]", "none of its 0 events"},
        {"{\"traceEvents\":[1,null,{},[]]}", "none of its 4 events"},
        {"[{\"ph\":\"X\",\"cat\":\"step\",\"pid\":0,\"ts\":1,\"dur\":2}]", "none of its 1 events"},
        {"[{\"ph\":\"X\",\"cat\":\"step\",\"pid\":-1,\"ts\":1,\"dur\":2,\"args\":{\"step\":1}}]",
         "none of its 1 events"},
        {"[{\"ph\":\"X\",\"cat\":\"step\",\"pid\":0,\"ts\":1e300,\"dur\":2,\"args\":{\"step\":1}}]",
         "none of its 1 events"},
    };
    char path[1024];
    in_folder(state, "trace.json", path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_error err = {0};
        tdm_trace *trace = NULL;
        assert_int_equal(tdmi_file_write(path, cases[i].text, strlen(cases[i].text), NULL), TDM_OK);
        assert_int_equal(tdm_trace_read(path, 0, 0, &trace, &err), TDM_E_INPUT);
        assert_says(&err, cases[i].word);
        assert_null(trace);
    }
}

/* Ranks of any number, waits for ranks that are not there, events in any order. */
TEST_WITH(a_file_of_another_hand_is_added_up, make_folder, remove_folder)
{
    static const char text[] =
        "[{\"ph\":\"X\",\"cat\":\"wait-rank\",\"pid\":9,\"ts\":4,\"dur\":2,\"args\":{\"rank\":77}},"
        "{\"ph\":\"X\",\"cat\":\"wait-sums\",\"pid\":9,\"ts\":4,\"dur\":3},"
        "{\"ph\":\"X\",\"cat\":\"step\",\"pid\":9,\"ts\":1,\"dur\":6,\"args\":{\"step\":3}}]";
    char path[1024];
    tdm_error err = {0};
    tdm_trace *trace = NULL;
    in_folder(state, "trace.json", path);
    assert_int_equal(tdmi_file_write(path, text, sizeof text - 1, NULL), TDM_OK);
    assert_ok(tdm_trace_read(path, 0, 0, &trace, &err), &err);
    const struct tdm_trace_sums *sums = tdm_trace_sums_of(trace);
    assert_int_equal(sums->n_ranks, 1);
    assert_int_equal(sums->ranks[0].rank, 9);
    expect_about(sums->ranks[0].computing, 3e-6);
    expect_about(sums->ranks[0].sums, 3e-6);
    assert_int_equal(sums->straggler, -1);
    tdm_trace_close(trace);
}

TEST_MAIN(NULL, NULL)

/* The end of a job, from what its ranks reported. */
#include "base/text/rank_line.h"
#include "launch/ends.h"
#include "unit.h"

#include <stdio.h>

/* Lines of a job of three ranks, NULL at the end. */
static struct tdmi_job_end conclude(bool was_stopped, const char *const *lines)
{
    TDMI_AT_END(tdmi_ends_release) struct tdmi_ends ends = {0};
    struct tdmi_job_end end = {0};
    assert_int_equal(tdmi_ends_begin(&ends, 3, NULL), TDM_OK);
    for (; *lines; lines++) {
        char line[100];
        snprintf(line, sizeof line, "%s", *lines);
        assert_true(tdmi_ends_take(&ends, line));
    }
    tdmi_ends_conclude(&ends, was_stopped, &end);
    return end;
}

static void expect(struct tdmi_job_end end, int exit_status, int lost_rank)
{
    assert_int_equal(end.exit_status, exit_status);
    assert_int_equal(end.lost_rank, lost_rank);
}

#define BEGIN "tandem: rank 0 begins", "tandem: rank 1 begins", "tandem: rank 2 begins"
#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(lines_of_ranks_are_found)
{
    struct tdmi_rank_line report;
    assert_true(tdmi_rank_line_read("tandem: rank 12 begins", &report));
    assert_int_equal(report.rank, 12);
    assert_int_equal(report.status, -1);
    assert_true(tdmi_rank_line_read("half a line tandem: rank 0 ends with status 3", &report));
    assert_int_equal(report.status, 3);
    assert_int_equal(report.before_bytes, strlen("half a line "));
    assert_false(tdmi_rank_line_read("tandem: rank 1 of 2 was lost", &report));
    assert_false(tdmi_rank_line_read("tandem: rank 1 begins to", &report));
    assert_false(tdmi_rank_line_read("tandem: rank -1 begins", &report));
    assert_false(tdmi_rank_line_read("tandem: rank 1 ends with status ", &report));
    assert_false(tdmi_rank_line_read("tandem: rank 99999999999999999999 begins", &report));
}

TEST(a_result_is_what_rank_0_reports)
{
    const char *const *all =
        LINES(BEGIN, "tandem: rank 1 ends with status 0", "tandem: rank 2 ends with status 0",
              "tandem: rank 0 ends with status 0");
    expect(conclude(false, all), 0, -1);
    /* srun returns 0 after a node has failed. */
    expect(conclude(false, LINES(BEGIN)), 5, -1);
    expect(conclude(false, LINES("tandem: rank 0 begins", "tandem: rank 1 begins",
                                 "tandem: rank 1 ends with status 0")),
           5, 0);
}

TEST(statuses_that_launchers_lose)
{
    const char *const *wrong = LINES(BEGIN, "tandem: rank 1 ends with status 3");
    expect(conclude(false, wrong), 3, -1);
}

TEST(the_rank_without_an_end_is_the_lost_one)
{
    expect(conclude(false, LINES(BEGIN, "tandem: rank 0 ends with status 5",
                                 "tandem: rank 2 ends with status 5")),
           5, 1);
    /* Survivors that were stopped by the launcher's SIGTERM. */
    expect(conclude(false, LINES(BEGIN, "tandem: rank 0 ends with status 1",
                                 "tandem: rank 2 ends with status 1")),
           5, 1);
    expect(conclude(false, LINES(BEGIN)), 5, -1);
}

TEST(a_stop_on_request_loses_nobody)
{
    expect(conclude(true, LINES(BEGIN, "tandem: rank 0 ends with status 1")), 1, -1);
    expect(conclude(false, LINES(BEGIN, "tandem: rank 0 ends with status 1",
                                 "tandem: rank 1 ends with status 1",
                                 "tandem: rank 2 ends with status 1")),
           1, -1);
}

TEST(a_launcher_without_ranks)
{
    expect(conclude(false, (const char *const[]){NULL}), 4, -1);
    assert_true(conclude(false, (const char *const[]){NULL}).is_unbegun);
    assert_false(conclude(false, LINES(BEGIN)).is_unbegun);
}

TEST_MAIN(NULL, NULL)

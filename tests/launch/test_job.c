/* Ranks that are small shell scripts: who is killed after a failure, and who is waited for. */
#include "launch/job.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct tdmi_job_end run_two(const char *script)
{
    const char *const arguments[] = {"-c", script};
    const struct tdmi_job_options options = {.program = "/bin/sh",
                                             .arguments = arguments,
                                             .n_arguments = 2,
                                             .ranks = 2,
                                             .deadline = 60.0};
    struct tdmi_job_end end;
    tdm_error err = {0};
    assert_ok(tdmi_job_run(&options, &end, &err), &err);
    return end;
}

/* Both have lost a peer (exit status 5), and rank 0 needs a second longer. */
TEST(rank_0_has_time_to_save_the_run)
{
    char path[] = "/tmp/tandem-job-XXXXXX", script[200];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    snprintf(script, sizeof script, "[ $TANDEM_RANK = 1 ] || { sleep 1; echo saved >%s; }; exit 5",
             path);
    const struct tdmi_job_end end = run_two(script);
    char text[8] = "";
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    unlink(path);
    assert_int_equal(n, 6);
    assert_string_equal(text, "saved\n");
    assert_int_equal(end.exit_status, 5);
    assert_int_equal(end.lost_rank, -1);
}

TEST(the_last_rank_is_killed_where_it_will_not_end)
{
    const struct tdmi_job_end stopped = run_two("[ $TANDEM_RANK = 1 ] || kill -STOP $$; exit 5");
    assert_int_equal(stopped.lost_rank, 0);
    const struct tdmi_job_end hung = run_two("[ $TANDEM_RANK = 0 ] || exec sleep 100; exit 5");
    assert_int_equal(hung.lost_rank, 1);
    assert_int_equal(hung.exit_status, 5);
}

TEST_MAIN(NULL, NULL)

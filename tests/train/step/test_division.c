/* Groups among threads: each group once, no thread idle while another has several, and teams that
 * are not too large. */
#include "train/step/division.h"
#include "unit.h"

static void check(int n_groups, int n_threads, int largest, bool has_wave)
{
    const struct tdmi_division of =
        tdmi_division_of(n_groups, n_threads, largest, TDMI_DIVISION_LOSS, has_wave);
    assert_int_equal(of.n_alone + of.n_by_teams + of.n_last, n_groups);
    assert_true(of.n_alone % n_threads == 0 && of.n_threads <= n_threads);
    assert_true(of.n_last <= of.n_teams && (of.n_last == 0 || has_wave));
    assert_true(of.n_teams > 0 || of.n_by_teams + of.n_last == 0);
    int at = 0;
    for (int team = 0; team < of.n_teams; team++) {
        const int first = tdmi_division_first(&of, team), end = tdmi_division_first(&of, team + 1);
        assert_int_equal(first, at);
        assert_in_range(end - first, 1, largest);
        for (int thread = first; thread < end; thread++)
            assert_int_equal(tdmi_division_team_of(&of, thread), team);
        at = end;
    }
    if (of.n_teams > 0)
        assert_int_equal(at, of.n_threads);
}

TEST(every_group_is_computed_by_someone)
{
    static const int largest[] = {1, 2, 7, 16};
    for (int n_threads = 1; n_threads <= 64; n_threads++)
        for (int n_groups = 1; n_groups <= 70; n_groups++)
            for (int i = 0; i < 8; i++)
                check(n_groups, n_threads, largest[i / 2], i % 2);
}

/* Speed-up, if a team of k were k threads fast. */
static double speed_of(int n_groups, int n_threads)
{
    const struct tdmi_division of =
        tdmi_division_of(n_groups, n_threads, 16, TDMI_DIVISION_LOSS, false);
    double time = (double)of.n_alone / n_threads;
    if (of.n_teams > 0)
        time +=
            (double)((of.n_by_teams + of.n_teams - 1) / of.n_teams) / (of.n_threads / of.n_teams);
    return n_groups / time;
}

TEST(four_groups_keep_up_to_64_threads_busy)
{
    static const int threads[] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                  11, 12, 13, 14, 15, 16, 24, 32, 64};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        if (speed_of(4, threads[i]) < 0.85 * threads[i])
            fail_msg("%d threads are as fast as %g", threads[i], speed_of(4, threads[i]));
    for (int n_groups = 1; n_groups <= 3; n_groups++) /* as far as the largest team reaches */
        assert_true(speed_of(n_groups, 16) >= 0.9 * 15);
}

TEST(groups_that_fill_the_threads_are_computed_alone)
{
    const struct tdmi_division of = tdmi_division_of(8, 4, 16, TDMI_DIVISION_LOSS, false);
    assert_true(of.n_alone == 8 && of.n_teams == 0);
    const struct tdmi_division rest = tdmi_division_of(6, 4, 16, TDMI_DIVISION_LOSS, false);
    assert_true(rest.n_alone == 4 && rest.n_by_teams == 2 && rest.n_teams == 2);
}

TEST_MAIN(NULL, NULL)

/* Teams: shares that cover everything once, waits that keep regions apart, and measured teams. */
#include "base/team.h"
#include "base/thread.h"
#include "unit.h"

#include <stdatomic.h>

enum { most_members = 16, n_regions = 200 };

static tdmi_pool *new_pool(int n_threads)
{
    tdmi_pool *pool = NULL;
    assert_int_equal(tdmi_pool_new(n_threads, NULL, &pool, NULL), TDM_OK);
    return pool;
}

TEST(shares_cover_everything_once_and_are_equal_but_for_one)
{
    tdmi_team *team = NULL;
    assert_int_equal(tdmi_team_new(&team, NULL), TDM_OK);
    for (int size = 1; size <= most_members; size++)
        for (int64_t n = 0; n < 70; n++) {
            int64_t at = 0;
            for (int i = 0; i < size; i++) {
                const struct tdmi_member member = {team, i, size};
                const struct tdmi_share mine = tdmi_member_share(&member, n);
                assert_int_equal(mine.first, at);
                assert_in_range(mine.end - mine.first, n / size, (n + size - 1) / size);
                at = mine.end;
            }
            assert_int_equal(at, n);
        }
    tdmi_team_free(team);
    const struct tdmi_share all = tdmi_member_share(NULL, 7);
    assert_true(all.first == 0 && all.end == 7);
    tdmi_member_wait(NULL);
}

struct rounds {
    tdmi_team *team;
    int size;
    atomic_int n_arrived; /* in all regions so far */
    atomic_int n_early;   /* members that went on before all had arrived */
};

static tdm_status go_round(void *self, int index, int worker, tdm_error *err)
{
    (void)err;
    struct rounds *it = self;
    const struct tdmi_member member = tdmi_team_join(it->team, index);
    assert_int_equal(worker, index);
    for (int region = 1; region <= n_regions; region++) {
        atomic_fetch_add(&it->n_arrived, 1);
        tdmi_member_wait(&member);
        if (atomic_load(&it->n_arrived) < region * it->size)
            atomic_fetch_add(&it->n_early, 1);
    }
    tdmi_team_leave(&member);
    return TDM_OK;
}

static void check_rounds(int size, bool may_spin, struct tdmi_team_log *log)
{
    struct rounds it = {.size = size};
    tdmi_pool *pool = new_pool(size);
    assert_int_equal(tdmi_team_new(&it.team, NULL), TDM_OK);
    tdmi_team_form(it.team, size, may_spin, log);
    for (int run = 0; run < 2; run++) { /* a team is used again */
        atomic_store(&it.n_arrived, 0);
        assert_int_equal(tdmi_pool_run_all(pool, size, go_round, &it, NULL), TDM_OK);
        assert_int_equal(it.n_arrived, n_regions * size);
        assert_int_equal(it.n_early, 0);
    }
    tdmi_team_free(it.team);
    tdmi_pool_free(pool);
}

TEST(no_member_goes_on_before_all_have_come)
{
    for (int size = 1; size <= most_members; size += size < 4 ? 1 : 6) {
        check_rounds(size, false, NULL);
        check_rounds(size, true, NULL);
    }
}

TEST(a_measured_team_counts_its_regions)
{
    for (int size = 1; size <= 5; size++) {
        struct tdmi_team_log log = {0};
        check_rounds(size, false, &log);
        assert_int_equal(log.n_regions, 2 * (n_regions + 1)); /* the last ends with leaving */
        assert_true(log.longest <= log.seconds && log.predicted <= log.seconds + 1e-9);
    }
}

/* The second member does two thirds of the work, and has two thirds of the share. */
static tdm_status work_unevenly(void *self, int index, int worker, tdm_error *err)
{
    (void)worker;
    (void)err;
    const struct tdmi_member member = tdmi_team_join(self, index);
    volatile double sum = 0.0;
    (void)tdmi_member_share(&member, 3); /* shares of 1 and 2 of 3 units */
    for (int i = 0; i < 2000000 * (1 + index); i++)
        sum = sum + i;
    tdmi_team_leave(&member);
    return TDM_OK;
}

TEST(the_prediction_takes_the_largest_share)
{
    struct tdmi_team_log log = {0};
    tdmi_team *team = NULL;
    tdmi_pool *pool = new_pool(2);
    assert_int_equal(tdmi_team_new(&team, NULL), TDM_OK);
    tdmi_team_form(team, 2, false, &log);
    assert_int_equal(tdmi_pool_run_all(pool, 2, work_unevenly, team, NULL), TDM_OK);
    assert_int_equal(log.n_regions, 1);
    assert_true(log.predicted > 0.66 * log.seconds && log.predicted < 0.67 * log.seconds);
    assert_true(log.longest > 0.55 * log.seconds && log.longest < 0.8 * log.seconds);
    tdmi_team_free(team);
    tdmi_pool_free(pool);
}

TEST_MAIN(NULL, NULL)

/* Schedules: values worked by hand, the warm-up, and what comes after the end. */
#include "optim/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void factors_are_those_worked_by_hand(void **state)
{
    static const struct {
        const char *name;
        double done, total, warmup, factor;
    } cases[] = {
        {"constant", 0.0, 10, 0, 1.0},
        {"constant", 9.9, 10, 0, 1.0},
        {"constant", 400, 0, 0, 1.0}, /* no known end */
        {"constant", 0.5, 0, 2, 0.25},
        {"constant", 2.0, 0, 2, 1.0},
        {"cosine", 0.0, 10, 0, 1.0},
        {"cosine", 5.0, 10, 0, 0.5},
        {"cosine", 10.0 / 3, 10, 0, 0.75}, /* cos 60° = 1/2 */
        {"cosine", 10.0, 10, 0, 0.0},
        {"cosine", 12.0, 10, 0, 0.0},    /* past the end the rate stays where it ended */
        {"cosine", 0.25, 10, 1, 0.25},   /* warm-up: a straight line from 0 … */
        {"cosine", 0.999, 10, 1, 0.999}, /* … to the full rate */
        {"cosine", 1.0, 10, 1, 1.0},
        {"cosine", 5.5, 10, 1, 0.5}, /* the middle of what follows it */
        {"cosine", 1.5, 1, 2, 0.75}, /* a warm-up longer than the training */
        {"cosine", 2.5, 1, 2, 1.0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdmi_schedule *schedule = NULL;
        assert_int_equal(tdmi_schedule_find(cases[i].name, &schedule, NULL), TDM_OK);
        double factor = tdmi_schedule_factor(
            schedule, (struct tdmi_schedule_at){cases[i].done, cases[i].total, cases[i].warmup});
        if (!(fabs(factor - cases[i].factor) < 1e-12))
            fail_msg("%s at %g of %g, warm-up %g: %.15g, wanted %g", cases[i].name, cases[i].done,
                     cases[i].total, cases[i].warmup, factor, cases[i].factor);
    }
}

static void only_cosine_must_know_the_end(void **state)
{
    const struct tdmi_schedule *schedule = NULL;
    (void)state;
    assert_int_equal(tdmi_schedule_find("constant", &schedule, NULL), TDM_OK);
    assert_false(schedule->needs_total);
    assert_int_equal(tdmi_schedule_find("cosine", &schedule, NULL), TDM_OK);
    assert_true(schedule->needs_total);
    assert_string_equal(schedule->name, "cosine");
    assert_true(strlen(schedule->summary) > 10);
}

static void a_rate_never_rises_after_the_warm_up(void **state)
{
    static const char *const names[] = {"constant", "cosine"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct tdmi_schedule *schedule = NULL;
        double before = 2.0;
        assert_int_equal(tdmi_schedule_find(names[i], &schedule, NULL), TDM_OK);
        for (double done = 1.0; done < 12.0; done += 0.01) {
            double factor =
                tdmi_schedule_factor(schedule, (struct tdmi_schedule_at){done, 10.0, 1.0});
            assert_true(factor >= 0.0 && factor <= before);
            before = factor;
        }
    }
}

static void an_unknown_schedule_lists_the_known_ones(void **state)
{
    const struct tdmi_schedule *schedule = NULL;
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_schedule_find("cosin", &schedule, &err), TDM_E_USAGE);
    assert_non_null(strstr(err.frames[0].text, "'cosin'"));
    assert_non_null(strstr(err.frames[0].text, "constant, cosine"));
    assert_null(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_those_worked_by_hand),
        cmocka_unit_test(only_cosine_must_know_the_end),
        cmocka_unit_test(a_rate_never_rises_after_the_warm_up),
        cmocka_unit_test(an_unknown_schedule_lists_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

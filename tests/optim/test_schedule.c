/* Schedules: values worked by hand, the warm-up, what comes after the end, and the factors of other
 * programs (tests/fixtures/optim/schedules.txt, made by
 * bench/peers/fixtures/make_optimizer_fixtures.py). */
#include "optim/schedule.h"
#include "graph/fixture.h"
#include "unit.h"

#include <math.h>

static struct tdmi_schedule_choice schedule_of(const char *text)
{
    struct tdmi_schedule_choice choice;
    assert_int_equal(tdmi_schedule_read(text, &choice, NULL), TDM_OK);
    return choice;
}

TEST(factors_are_those_worked_by_hand)
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
        {"cosine:floor=0.5", 5.0, 10, 0, 0.75},
        {"step:every=2,factor=0.5", 3.9, 0, 0, 0.5},
        {"step:every=2,factor=0.5", 4.9, 0, 1, 0.5}, /* counted from the end of the warm-up */
        {"exponential:decay=0.25", 0.5, 0, 0, 0.5},
        {"exponential:decay=0.25,stairs=1", 1.5, 0, 0, 0.25},
        {"one-cycle:start=0.5,floor=0", 0.0, 10, 0, 0.5},
        {"one-cycle:start=0.5,floor=0", 1.5, 10, 0, 0.75},
        {"one-cycle:start=0.5,floor=0", 3.0, 10, 0, 1.0},
        {"one-cycle:start=0.5,floor=0", 6.5, 10, 0, 0.5},
        {"one-cycle:start=0.5,floor=0", 11.0, 10, 0, 0.0},
        {"ramp:start=0.2,ramp=2,stairs=0", 1.0, 0, 0, 0.6},
        {"ramp:start=0.2,ramp=2,stairs=1", 1.9, 0, 0, 0.6},
        {"ramp:ramp=0,hold=2,floor=0,decay=0.5", 1.9, 0, 0, 1.0},
        {"ramp:ramp=0,hold=2,floor=0,decay=0.5", 3.9, 0, 0, 0.5},
        {"plateau", 7.0, 0, 0, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdmi_schedule_choice choice = schedule_of(cases[i].name);
        double factor = tdmi_schedule_factor(
            &choice, (struct tdmi_schedule_at){cases[i].done, cases[i].total, cases[i].warmup, 0});
        if (!(fabs(factor - cases[i].factor) < 1e-12))
            fail_msg("%s at %g of %g, warm-up %g: %.15g, wanted %g", cases[i].name, cases[i].done,
                     cases[i].total, cases[i].warmup, factor, cases[i].factor);
    }
}

TEST(those_that_aim_at_the_end_must_know_it)
{
    const struct tdmi_schedule *it;
    for (int i = 0; (it = tdmi_schedule_at(i)) != NULL; i++) {
        const bool aims = strcmp(it->name, "cosine") == 0 || strcmp(it->name, "one-cycle") == 0;
        assert_int_equal(it->needs_total, aims);
        assert_true(strlen(it->summary) > 10);
        for (int k = 0; it->parameters[k].name; k++) {
            const struct tdmi_parameter *parameter = &it->parameters[k];
            assert_true(k < TDMI_PARAMETERS && strlen(parameter->meaning) > 5);
            assert_true(parameter->low <= parameter->usual && parameter->usual <= parameter->high);
        }
    }
    assert_null(tdmi_schedule_at(-1));
}

TEST(a_rate_never_rises_after_the_warm_up)
{
    static const char *const names[] = {
        "constant", "step", "exponential", "cosine", "plateau", "one-cycle:start=1", "ramp:ramp=0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct tdmi_schedule_choice choice = schedule_of(names[i]);
        double before = 2.0;
        for (double done = 1.0; done < 12.0; done += 0.01) {
            double factor =
                tdmi_schedule_factor(&choice, (struct tdmi_schedule_at){done, 10.0, 1.0, 0});
            assert_true(factor >= 0.0 && factor <= before);
            before = factor;
        }
    }
}

TEST(an_unknown_schedule_lists_the_known_ones)
{
    struct tdmi_schedule_choice choice;
    tdm_error err = {0};
    assert_int_equal(tdmi_schedule_read("cosin", &choice, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "'cosin'"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "constant, step, exponential, cosine"));
    tdm_error_clear(&err);
    assert_int_equal(tdmi_schedule_read("step:every=0", &choice, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "every is '0'"));
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "step takes every=10 (0.001 to 1000000), factor=0.1"));
    tdm_error_clear(&err);
    assert_int_equal(tdmi_schedule_read("constant:rate=1", &choice, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "constant takes no parameters"));
}

TEST(factors_are_those_of_other_programs)
{
    struct fixture *fixture = fixture_open("optim/schedules.txt");
    const int n_cases = (int)fixture_number(fixture, "cases");
    const int positions = (int)fixture_number(fixture, "positions");
    double *wanted = calloc((size_t)positions, sizeof *wanted);
    assert_non_null(wanted);
    assert_true(n_cases >= 6 && positions > 10);
    for (int c = 0; c < n_cases; c++) {
        char option[64];
        double epochs[2];
        fixture_word(fixture, "option", option, sizeof option);
        fixture_numbers(fixture, "epochs", epochs, 2);
        fixture_numbers(fixture, "factors", wanted, positions);
        const struct tdmi_schedule_choice choice = schedule_of(option);
        for (int p = 0; p < positions; p++) {
            const double factor = tdmi_schedule_factor(
                &choice, (struct tdmi_schedule_at){p / epochs[0], epochs[1], 0.0, 0});
            if (!(fabs(factor - wanted[p]) < 1e-7)) /* Keras counts in f32 */
                fail_msg("%s at position %d: %.12g, wanted %.12g", option, p, factor, wanted[p]);
        }
    }
    free(wanted);
    fixture_close(fixture);
}

TEST(plateau_reduces_when_pytorch_does)
{
    struct fixture *fixture = fixture_open("optim/schedules.txt");
    char word[64], option[64];
    int positions = 0, n_plateaus = 0;
    while (n_plateaus == 0) { /* past the other schedules */
        assert_int_equal(fscanf(fixture->file, "%63s", word), 1);
        if (strcmp(word, "positions") == 0)
            assert_int_equal(fscanf(fixture->file, "%d.0", &positions), 1);
        if (strcmp(word, "plateaus") == 0)
            assert_int_equal(fscanf(fixture->file, "%d.0", &n_plateaus), 1);
    }
    double *losses = calloc(2 * (size_t)positions, sizeof *losses), *wanted = losses + positions;
    assert_non_null(losses);
    fixture_numbers(fixture, "losses", losses, positions);
    for (int c = 0; c < n_plateaus; c++) {
        struct tdmi_plateau counted = {0};
        fixture_word(fixture, "option", option, sizeof option);
        fixture_numbers(fixture, "factors", wanted, positions);
        const struct tdmi_schedule_choice choice = schedule_of(option);
        assert_true(tdmi_schedule_follows_loss(&choice));
        for (int p = 0; p < positions; p++) {
            const double factor = tdmi_schedule_factor(
                &choice, (struct tdmi_schedule_at){p, 0.0, 0.0, counted.n_reductions});
            if (!(fabs(factor - wanted[p]) < 1e-12))
                fail_msg("%s after %d losses: %g, wanted %g", option, p, factor, wanted[p]);
            tdmi_plateau_take(&choice, losses[p], &counted);
        }
        assert_true(counted.n_reductions > 1);
    }
    const struct tdmi_schedule_choice step = schedule_of("step");
    assert_false(tdmi_schedule_follows_loss(&step));
    free(losses);
    fixture_close(fixture);
}

TEST_MAIN(NULL, NULL)

/* The list of optimisers, and that each step reaches the backend. */
#include "optim/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void sgd_keeps_one_slot_and_steps_on_the_backend(void **state)
{
    const struct tdmi_optimizer *sgd = NULL;
    float param = 1.0f, slot = 0.0f;
    const float sum = 4.0f;
    (void)state;
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_string_equal(sgd->name, "sgd");
    assert_int_equal(sgd->n_slots, 1);
    assert_string_equal(sgd->slot_names[0], "momentum");
    assert_true(strlen(sgd->summary) > 10);
    sgd->step(&tdmi_backend_ref, NULL,
              &(struct tdmi_update_call){.params = &param,
                                         .gradient_sums = &sum,
                                         .slots = {&slot},
                                         .n = 1,
                                         .gradient_scale = 0.5f,
                                         .learning_rate = 0.1f,
                                         .momentum = 0.9f,
                                         .is_nesterov = true});
    assert_true(slot == 2.0f);
    assert_true(fabs((double)param - (1.0 - 0.1 * (2.0 + 0.9 * 2.0))) < 1e-6);
}

static void an_unknown_optimizer_lists_the_known_ones(void **state)
{
    const struct tdmi_optimizer *optimizer = NULL;
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_optimizer_find("adam2000", &optimizer, &err), TDM_E_USAGE);
    assert_non_null(strstr(err.frames[0].text, "'adam2000'"));
    assert_non_null(strstr(err.frames[0].text, "sgd"));
    assert_null(optimizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_keeps_one_slot_and_steps_on_the_backend),
        cmocka_unit_test(an_unknown_optimizer_lists_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

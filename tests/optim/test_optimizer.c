/* The table of optimizers, and steps that reach the backend. */
#include "optim/optimizer.h"
#include "unit.h"

#include <math.h>

TEST(sgd_keeps_one_slot_and_steps_on_the_backend)
{
    const struct tdmi_optimizer *sgd = NULL;
    float param = 1.0f, slot = 0.0f;
    const float sum = 4.0f;
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_string_equal(sgd->name, "sgd");
    assert_int_equal(sgd->n_slots, 1);
    assert_string_equal(sgd->slot_names[0], "momentum");
    assert_true(strlen(sgd->summary) > 10);
    tdmi_optimizer_step(sgd, &tdmi_backend_ref, NULL,
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

TEST(an_unknown_optimizer_lists_the_known_ones)
{
    const struct tdmi_optimizer *optimizer = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_optimizer_find("adam2000", &optimizer, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "'adam2000'"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "sgd"));
    assert_null(optimizer);
}

TEST(parameters_change_what_is_usual)
{
    struct tdmi_optimizer_choice choice;
    assert_int_equal(tdmi_optimizer_read("adam", &choice, NULL), TDM_OK);
    assert_string_equal(choice.optimizer->name, "adam");
    assert_true(choice.values[0] == 0.9 && choice.values[1] == 0.999 && choice.values[2] == 1e-8);
    assert_int_equal(tdmi_optimizer_read("adam:epsilon=1e-7,beta2=0.99", &choice, NULL), TDM_OK);
    assert_true(choice.values[0] == 0.9 && choice.values[1] == 0.99 && choice.values[2] == 1e-7);
    assert_int_equal(tdmi_optimizer_read("sgd:nesterov=0", &choice, NULL), TDM_OK);
    assert_true(choice.values[0] == 0.0);
}

TEST(what_is_not_accepted_is_refused_with_what_is)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"adam:beta3=1", "it has no 'beta3'"},
        {"adam:beta2=1", "beta2 is '1'"},
        {"adam:beta2=nan", "beta2 is 'nan'"},
        {"adam:beta2=", "beta2 is ''"},
        {"adam:beta2", "'beta2' is no key=value"},
        {"adam:", "'' is no key=value"},
        {"adam:beta1=0.5,", "'' is no key=value"},
        {"adam:beta1=0.5,beta1=0.5", "beta1 is there twice"},
        {"adam:beta1=0.5x", "beta1 is '0.5x'"},
        {"sgd:nesterov=0.5", "nesterov is '0.5'"},
        {"sgd:nesterov=0000000000000000000000000000000000000000000000000000000000000000000000001",
         "nesterov is ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_optimizer_choice choice;
        tdm_error err = {0};
        const char *accepted = cases[i].text[0] == 'a'
                                   ? "adam takes beta1=0.9 (0 to 0.9999), beta2=0.999 (0 to "
                                     "0.999999), epsilon=1e-08 (1e-15 to 1)"
                                   : "sgd takes nesterov=1 (whole, 0 to 1)";
        if (tdmi_optimizer_read(cases[i].text, &choice, &err) != TDM_E_USAGE)
            fail_msg("%s: accepted", cases[i].text);
        if (!strstr(tdm_error_sentence(&err, 0), cases[i].says) ||
            !strstr(tdm_error_sentence(&err, 0), accepted))
            fail_msg("'%s' and '%s' are not in: %s", cases[i].says, accepted,
                     tdm_error_sentence(&err, 0));
    }
}

TEST(every_optimizer_says_what_it_is_and_takes)
{
    const struct tdmi_optimizer *it;
    for (int i = 0; (it = tdmi_optimizer_at(i)) != NULL; i++) {
        struct tdmi_optimizer_choice choice;
        assert_true(strlen(it->summary) > 10);
        assert_true(it->n_slots >= 1 && it->n_slots <= TDMI_OPTIMIZER_SLOTS);
        assert_true((it->measure != NULL) == (it->adapt != NULL));
        assert_int_equal(tdmi_optimizer_read(it->name, &choice, NULL), TDM_OK);
        for (int k = 0; it->parameters[k].name; k++) {
            const struct tdmi_parameter *parameter = &it->parameters[k];
            assert_true(k < TDMI_PARAMETERS && strlen(parameter->meaning) > 5);
            assert_true(parameter->low <= parameter->usual && parameter->usual <= parameter->high);
            assert_true(choice.values[k] == parameter->usual);
        }
    }
    assert_null(tdmi_optimizer_at(-1));
}

/* A run that resumes at step 50 has the coefficients of an uninterrupted one. */
TEST(nadam_makes_its_product_of_momenta_again)
{
    struct tdmi_optimizer_choice nadam;
    struct tdmi_momenta all = {0, 0.0}, none = {0, 0.0};
    struct tdmi_update_call walked = {0}, jumped = {0};
    assert_int_equal(tdmi_optimizer_read("nadam", &nadam, NULL), TDM_OK);
    for (int step = 1; step <= 50; step++)
        nadam.optimizer->prepare(nadam.values, step, &all, &walked);
    nadam.optimizer->prepare(nadam.values, 50, &none, &jumped);
    assert_memory_equal(&walked.moments, &jumped.moments, sizeof walked.moments);
    nadam.optimizer->prepare(nadam.values, 7, &all, &walked); /* and back */
    none = (struct tdmi_momenta){0, 0.0};
    nadam.optimizer->prepare(nadam.values, 7, &none, &jumped);
    assert_memory_equal(&walked.moments, &jumped.moments, sizeof walked.moments);
}

TEST(rates_follow_the_batch_by_a_rule)
{
    enum tdmi_scaling scaling = TDMI_SCALING_NONE;
    tdm_error err = {0};
    assert_int_equal(tdmi_scaling_find("linear", &scaling, NULL), TDM_OK);
    assert_true(tdmi_scaling_factor(scaling, 128, 32) == 4.0);
    assert_int_equal(tdmi_scaling_find("sqrt", &scaling, NULL), TDM_OK);
    assert_true(tdmi_scaling_factor(scaling, 128, 32) == 2.0);
    assert_true(tdmi_scaling_factor(scaling, 8, 32) == 0.5);
    assert_int_equal(tdmi_scaling_find("none", &scaling, NULL), TDM_OK);
    assert_true(tdmi_scaling_factor(scaling, 128, 32) == 1.0);
    assert_string_equal(tdmi_scaling_word(TDMI_SCALING_SQRT), "sqrt");
    assert_null(tdmi_scaling_word(3));
    assert_int_equal(tdmi_scaling_find("cubic", &scaling, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "none, linear, sqrt"));
}

TEST_MAIN(NULL, NULL)

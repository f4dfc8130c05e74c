/* Optimizer, learning rate and schedule that options resolve to. */
#include "train/config/rates.h"
#include "unit.h"

#include <math.h>

static struct tdmi_rates settled(const struct tdm_train_options *options, double network,
                                 double part)
{
    struct tdmi_rates rates;
    assert_int_equal(tdmi_rates_read(options, &rates, NULL), TDM_OK);
    tdmi_rates_settle(&rates, options, 1000, network, part);
    return rates;
}

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-12))
        fail_msg("%.15g, wanted %.15g", got, wanted);
}

TEST(the_usual_values_are_the_optimizers_own)
{
    struct tdm_train_options options = tdm_train_options_default();
    struct tdmi_rates rates = settled(&options, 0.025, 1.0);
    near(rates.learning_rate, 0.025);
    near(rates.momentum, 0.9);
    near(rates.weight_decay, 5e-4);
    near(rates.warmup_epochs, 1.0);
    options.optimizer = "adamw";
    options.schedule = "one-cycle";
    rates = settled(&options, 0.025, 0.1);
    near(rates.learning_rate, 1e-4);
    near(rates.momentum, 0.0);
    near(rates.weight_decay, 0.01);
    near(rates.warmup_epochs, 0.0);
    options.weight_decay = 0.0;
    options.warmup_epochs = 2.0;
    rates = settled(&options, 0.025, 0.1);
    near(rates.weight_decay, 0.0);
    near(rates.warmup_epochs, 2.0);
}

TEST(rates_are_scaled_as_their_owner_says)
{
    static const struct {
        const char *optimizer, *scaling;
        double rate;
        int batch, reference;
        double wanted;
        const char *says;
    } cases[] = {
        {"sgd", NULL, 0, 128, 32, 0.1, "sgd, learning rate 0.1 (0.025 at batch 32, times 4 by"},
        {"sgd", "sqrt", 0, 128, 32, 0.05, "(0.025 at batch 32, times 2 by rule sqrt)"},
        {"sgd", "none", 0, 128, 32, 0.025, "sgd, learning rate 0.025"},
        {"sgd", NULL, 0.5, 128, 32, 0.5, "sgd, learning rate 0.5"},
        {"sgd", "linear", 0.5, 128, 256, 0.25, "(0.5 at batch 256, times 0.5 by rule linear)"},
        {"adam", NULL, 0, 128, 32, 0.002, "adam, learning rate 0.002 (0.001 at batch 32, times 2"},
        {"adam", "linear", 0, 64, 16, 0.004, "times 4 by rule linear"},
        {"adam", NULL, 0, 32, 32, 0.001, "adam, learning rate 0.001"},
        {"lamb", NULL, 0, 8, 32, 0.001, "times 0.5 by rule sqrt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_train_options options = tdm_train_options_default();
        char text[200];
        options.optimizer = cases[i].optimizer;
        options.lr_scaling = cases[i].scaling;
        options.learning_rate = cases[i].rate;
        options.batch = cases[i].batch;
        options.reference_batch = cases[i].reference;
        const struct tdmi_rates rates = settled(&options, 0.025, 1.0);
        near(rates.learning_rate, cases[i].wanted);
        tdmi_rates_describe(&rates, &options, text, sizeof text);
        if (!strstr(text, cases[i].says) ||
            (rates.scaling == TDMI_SCALING_NONE && strchr(text, '(')))
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].says, text);
    }
}

/* Steps times rate are the same for any batch, and no step is over more than all pictures. */
TEST(a_batch_above_all_pictures_counts_as_many_as_there_are)
{
    struct tdm_train_options options = tdm_train_options_default();
    struct tdmi_rates rates;
    char text[200];
    options.batch = 2048;
    assert_int_equal(tdmi_rates_read(&options, &rates, NULL), TDM_OK);
    tdmi_rates_settle(&rates, &options, 256, 0.008, 1.0);
    near(rates.learning_rate, 0.064);
    tdmi_rates_describe(&rates, &options, text, sizeof text);
    assert_string_equal(text,
                        "sgd, learning rate 0.064 (0.008 at batch 32, times 8 by rule linear)");
    tdmi_rates_settle(&rates, &options, 2048, 0.008, 1.0);
    near(rates.learning_rate, 0.512);
    options.learning_rate = 0.5; /* who says a rate and a rule says the batch, too */
    options.lr_scaling = "linear";
    assert_int_equal(tdmi_rates_read(&options, &rates, NULL), TDM_OK);
    tdmi_rates_settle(&rates, &options, 256, 0.008, 1.0);
    near(rates.learning_rate, 32.0);
}

TEST(few_pictures_want_a_high_rate)
{
    near(tdmi_rates_of_head(0), 0.01);
    near(tdmi_rates_of_head(200), 0.01);
    near(tdmi_rates_of_head(800), 0.0025);
    near(tdmi_rates_of_head(2000), 0.001);
    near(tdmi_rates_of_head(45000), 0.001);
    near(tdmi_rates_of_head(INT64_MAX), 0.001);
}

TEST(a_step_has_the_rate_of_its_place)
{
    struct tdm_train_options options = tdm_train_options_default();
    struct tdmi_plateau plateau = {0};
    options.learning_rate = 1.0;
    options.epochs = 10;
    options.warmup_epochs = 0.0;
    struct tdmi_rates rates = settled(&options, 1.0, 1.0);
    near(tdmi_rates_at(&rates, &options, 0, 5, &plateau), 0.5 + 0.5 * cos(acos(-1.0) * 0.01));
    options.steps = 25; /* ends first */
    near(tdmi_rates_at(&rates, &options, 24, 5, &plateau), 0.5 + 0.5 * cos(acos(-1.0) * 0.98));
    options.schedule = "plateau:factor=0.5";
    rates = settled(&options, 1.0, 1.0);
    plateau.n_reductions = 3;
    near(tdmi_rates_at(&rates, &options, 7, 5, &plateau), 0.125);
    options.warmup_epochs = 1.0;
    rates = settled(&options, 1.0, 1.0);
    near(tdmi_rates_at(&rates, &options, 2, 5, &plateau), 0.5);
}

TEST(averages_keep_little_at_first)
{
    near(tdmi_rates_average(0.999, 0), 0.1);
    near(tdmi_rates_average(0.999, 90), 0.91);
    near(tdmi_rates_average(0.999, 100000), 0.999);
    near(tdmi_rates_average(0.05, 0), 0.05);
    near(tdmi_rates_average(0.0, 5), 0.0);
}

TEST_MAIN(NULL, NULL)

/* Training options: ranges, the record, and what may change when a run is resumed. */
#include "train/config/options.h"
#include "train/pictures.h"
#include "unit.h"

#include <math.h>

static struct tdm_train_options usual(void)
{
    struct tdm_train_options options = tdm_train_options_default();
    options.source = "pictures";
    options.model = "convnet7";
    return options;
}

typedef void change(struct tdm_train_options *options);

#define CHANGE(name, statement)                         \
    static void name(struct tdm_train_options *options) \
    {                                                   \
        options->statement;                             \
    }

/* ---- ranges -------------------------------------------------------------------------------- */

CHANGE(no_source, source = NULL)
CHANGE(empty_source, source = "")
CHANGE(empty_model, model = "")
CHANGE(no_optimizer, optimizer = NULL)
CHANGE(negative_size, size = -1)
CHANGE(large_size, size = 4097)
CHANGE(negative_epochs, epochs = -1)
CHANGE(no_end, epochs = 0)
CHANGE(negative_steps, steps = -5)
CHANGE(endless_minutes, minutes = NAN)
CHANGE(no_eval, eval_every = 0)
CHANGE(no_train_part, train_fraction = 0.0)
CHANGE(no_val_part, val_fraction = 0.0)
CHANGE(more_than_all, val_fraction = 0.2)
CHANGE(no_fraction, fraction = 0.0)
CHANGE(large_fraction, fraction = 1.01)
CHANGE(nan_fraction, fraction = NAN)
CHANGE(negative_per_class, per_class = -1)
CHANGE(no_batch, batch = -1)
CHANGE(large_batch, batch = 65537)
CHANGE(negative_shard, shard = -1)
CHANGE(negative_rate, learning_rate = -0.1)
CHANGE(infinite_rate, learning_rate = INFINITY)
CHANGE(full_momentum, momentum = 1.0)
CHANGE(negative_decay, weight_decay = -1e-9)
CHANGE(negative_warmup, warmup_epochs = -2.0)
CHANGE(unknown_optimizer, optimizer = "adma")
CHANGE(unknown_parameter, optimizer = "adam:beta3=1")
CHANGE(unknown_schedule, schedule = "step:each=3")
CHANGE(unknown_scaling, lr_scaling = "cubic")
CHANGE(no_reference, reference_batch = 0)
CHANGE(negative_clip, clip_norm = -1.0)
CHANGE(full_ema, ema = 1.0)

/* Each is fine alone. */
static void adam_with_momentum(struct tdm_train_options *options)
{
    options->optimizer = "adam";
    options->momentum = 0.9;
}

static void own_rate_with_reference(struct tdm_train_options *options)
{
    options->learning_rate = 0.1;
    options->reference_batch = 256;
}

/* The rate would be meant for another batch than is chosen. */
static void own_rate_with_any_batch(struct tdm_train_options *options)
{
    options->learning_rate = 0.1;
    options->batch = 0;
}

CHANGE(negative_patience, patience = -2)
CHANGE(unknown_monitor, monitor = "top5")
CHANGE(negative_delta, min_delta = -0.1)
CHANGE(split_of_more, test_fraction = 0.1)
CHANGE(negative_threads, threads = -1)
CHANGE(many_threads, threads = 5000)
CHANGE(negative_checkpoint, checkpoint_every = -1)

TEST(values_out_of_range_are_refused_by_name)
{
    static const struct {
        change *make;
        const char *names, *says;
    } cases[] = {
        {no_source, "source", "no source"},
        {empty_source, "source", "no source"},
        {empty_model, "--model", "empty"},
        {no_optimizer, "--optimizer", "empty"},
        {negative_size, "--size", "1 to 4096"},
        {large_size, "--size", "1 to 4096"},
        {negative_epochs, "--epochs", "-1"},
        {no_end, "--epochs", "nothing ends it"},
        {negative_steps, "--steps", "-5"},
        {endless_minutes, "--minutes", "nan"},
        {no_eval, "--eval-every", "1 to"},
        {no_train_part, "--split", "above 0"},
        {no_val_part, "--split", "above 0"},
        {more_than_all, "--split", "0.9,0.2"},
        {no_fraction, "--fraction", "1e-06 to 1"},
        {large_fraction, "--fraction", "1e-06 to 1"},
        {nan_fraction, "--fraction", "nan"},
        {negative_per_class, "--per-class", "-1"},
        {no_batch, "--batch", "1 to 65536"},
        {large_batch, "--batch", "1 to 65536"},
        {negative_shard, "--shard", "0 to"},
        {negative_rate, "--lr", "1e-09 to 1000"},
        {infinite_rate, "--lr", "inf"},
        {full_momentum, "--momentum", "0.9999"},
        {negative_decay, "--weight-decay", "0 to 1"},
        {negative_warmup, "--warmup", "-2"},
        {unknown_optimizer, "'adma'", "sgd, rmsprop, adam, adamw, nadam, lars, lamb"},
        {unknown_parameter, "'adam:beta3=1'", "adam takes beta1=0.9"},
        {unknown_schedule, "'step:each=3'", "step takes every=10"},
        {unknown_scaling, "'cubic'", "none, linear, sqrt"},
        {no_reference, "--reference-batch", "1 to 65536"},
        {negative_clip, "--clip-norm", "-1"},
        {full_ema, "--ema", "0 to 0.999999"},
        {adam_with_momentum, "--momentum is 0.9", "it is of sgd, rmsprop, lars"},
        {own_rate_with_reference, "--reference-batch is 256", "--lr-scaling linear or sqrt"},
        {own_rate_with_any_batch, "--batch auto", "--lr-scaling linear, sqrt or none"},
        {negative_patience, "--patience", "-2"},
        {unknown_monitor, "--monitor", "accuracy or loss is accepted"},
        {negative_delta, "--min-delta", "-0.1"},
        {split_of_more, "--split", "0.9,0.1,0.1"},
        {negative_threads, "--threads", "-1"},
        {many_threads, "--threads", "0 to 4096"},
        {negative_checkpoint, "--checkpoint-every", "-1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_train_options options = usual();
        tdm_error err = {0};
        cases[i].make(&options);
        if (tdmi_options_check(&options, &err) != TDM_E_USAGE)
            fail_msg("%s: accepted", cases[i].names);
        if (!strstr(tdm_error_sentence(&err, 0), cases[i].names) ||
            !strstr(tdm_error_sentence(&err, 0), cases[i].says))
            fail_msg("'%s' and '%s' are not in: %s", cases[i].names, cases[i].says,
                     tdm_error_sentence(&err, 0));
    }
}

TEST(the_default_and_the_edges_are_accepted)
{
    struct tdm_train_options options = usual();
    assert_int_equal(tdmi_options_check(&options, NULL), TDM_OK);
    options.epochs = 0;
    options.steps = 1;
    options.batch = 65536;
    assert_int_equal(tdmi_options_check(&options, NULL), TDM_OK);
    options.batch = 0;
    options.size = 4096;
    options.momentum = 0.0;
    options.train_fraction = options.val_fraction = 0.5;
    options.seed = UINT64_MAX;
    assert_int_equal(tdmi_options_check(&options, NULL), TDM_OK);
    options.steps = 0;
    options.minutes = 0.01;
    assert_int_equal(tdmi_options_check(&options, NULL), TDM_OK);
}

/* ---- the record ---------------------------------------------------------------------------- */

static tdm_json_document *recorded(const struct tdm_train_options *options)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_document *document = NULL;
    const char *text;
    tdm_json_object_begin(writer, NULL);
    tdmi_options_to_json(options, writer, "options");
    tdm_json_object_end(writer);
    assert_int_equal(tdm_json_finish(writer, &text, NULL, NULL), TDM_OK);
    assert_int_equal(tdm_json_read(text, strlen(text), "record", &document, NULL), TDM_OK);
    tdm_json_writer_free(writer);
    return document;
}

static tdm_status match(const struct tdm_train_options *now, const struct tdm_train_options *before,
                        tdm_error *err)
{
    tdm_json_document *document = recorded(before);
    tdm_status status =
        tdmi_options_match(now, tdm_json_member(tdm_json_root(document), "options"), err);
    tdm_json_document_free(document);
    return status;
}

TEST(options_match_their_own_record)
{
    static const uint64_t seeds[] = {0,         42,         1ull << 53, (1ull << 53) + 1,
                                     INT64_MAX, 1ull << 63, UINT64_MAX};
    struct tdm_train_options options = usual();
    options.weight_decay = 1.0 / 3.0;
    options.warmup_epochs = 0.1;
    options.minutes = 1e-3;
    options.steps = 123456789012;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        options.seed = seeds[i];
        tdm_error err = {0};
        if (match(&options, &options, &err) != TDM_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seeds[i], tdm_error_sentence(&err, 0));
    }
}

CHANGE(other_model, model = "lenet5")
CHANGE(other_size, size = 32)
CHANGE(other_eval, eval_every = 2)
CHANGE(other_train, train_fraction = 0.8)
CHANGE(other_val, val_fraction = 0.05)
CHANGE(other_fraction, fraction = 0.5)
CHANGE(other_per_class, per_class = 10)
CHANGE(other_batch, batch = 16)
CHANGE(any_batch, batch = 0)
CHANGE(other_shard, shard = 4)
CHANGE(other_rate, learning_rate = 0.01)
CHANGE(other_momentum, momentum = 0.8)
CHANGE(other_decay, weight_decay = 1e-4)
CHANGE(other_optimizer, optimizer = "adam:beta1=0.8")
CHANGE(other_scaling, lr_scaling = "none")
CHANGE(new_clip, clip_norm = 2.0)
CHANGE(new_ema, ema = 0.99)
CHANGE(other_schedule, schedule = "constant")
CHANGE(other_warmup, warmup_epochs = 0.0)
CHANGE(other_patience, patience = 3)
CHANGE(other_monitor, monitor = "loss")
CHANGE(other_delta, min_delta = 0.01)
CHANGE(other_test, test_fraction = 0.05)
CHANGE(other_seed, seed = 43)
CHANGE(fewer_epochs, epochs = 19)
CHANGE(new_augment, augment = "flip")
CHANGE(new_step_limit, steps = 10)
CHANGE(new_time_limit, minutes = 1.0)

TEST(changes_of_bits_are_refused_with_both_values)
{
    static const struct {
        change *make;
        const char *names, *now, *before;
    } cases[] = {
        {other_model, "--model", "'lenet5'", "'convnet7'"},
        {other_size, "--size", "32", "with the network's own"},
        {other_eval, "--eval-every", "2", "1"},
        {other_train, "--split-train", "0.8", "0.9"},
        {other_val, "--split-val", "0.05", "0.1"},
        {other_fraction, "--fraction", "0.5", "1"},
        {other_per_class, "--per-class", "10", "with all"},
        {other_batch, "--batch", "16", "32"},
        {any_batch, "--batch", "is auto", "32"},
        {other_shard, "--shard", "4", "with the network's own"},
        {other_rate, "--lr", "0.01", "with the optimizer's own"},
        {other_momentum, "--momentum", "0.8", "with the optimizer's own"},
        {other_decay, "--weight-decay", "0.0001", "with the optimizer's own"},
        {other_optimizer, "--optimizer", "'adam:beta1=0.8'", "'sgd'"},
        {other_scaling, "--lr-scaling", "'none'", "started without it"},
        {new_clip, "--clip-norm", "2", "with no limit"},
        {new_ema, "--ema", "0.99", "with no average"},
        {other_schedule, "--schedule", "'constant'", "'cosine'"},
        {other_warmup, "--warmup", "is 0,", "with the schedule's own"},
        {new_augment, "--augment", "'flip'", "started with 'auto'"},
        {other_patience, "--patience", "3", "with a quarter of the epochs, at least 10"},
        {other_monitor, "--monitor", "'loss'", "'accuracy'"},
        {other_delta, "--min-delta", "0.01", "with 0"},
        {other_test, "--split-test", "0.05", "with none"},
        {other_seed, "--seed", "43", "42"},
        {fewer_epochs, "--epochs", "19", "20"},
        {new_step_limit, "--steps", "10", "with no limit"},
        {new_time_limit, "--minutes", "1", "with no limit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_train_options before = usual(), now = usual();
        tdm_error err = {0};
        cases[i].make(&now);
        if (match(&now, &before, &err) != TDM_E_USAGE)
            fail_msg("%s: accepted", cases[i].names);
        const char *text = tdm_error_sentence(&err, 0);
        if (!strstr(text, cases[i].names) || !strstr(text, cases[i].now) ||
            !strstr(text, cases[i].before))
            fail_msg("%s, %s and %s are not in: %s", cases[i].names, cases[i].now, cases[i].before,
                     text);
        if (!strstr(text, "; leave it out, or give another -o") &&
            !strstr(text, "; as much or more is accepted"))
            fail_msg("what is accepted is not in: %s", text);
    }
}

CHANGE(more_epochs, epochs = 40)
CHANGE(no_epochs, epochs = 0)
CHANGE(other_threads, threads = 7)
CHANGE(other_checkpoint, checkpoint_every = 5)
CHANGE(other_place, source = "elsewhere")
CHANGE(other_run, run = "elsewhere")
CHANGE(resumed, resume = true)

TEST(limits_may_grow_and_options_without_effect_on_bits_may_change)
{
    static change *const changes[] = {more_epochs, no_epochs, other_threads, other_checkpoint,
                                      other_place, other_run, resumed};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct tdm_train_options before = usual(), now = usual();
        tdm_error err = {0};
        changes[i](&now);
        if (match(&now, &before, &err) != TDM_OK)
            fail_msg("change %zu: %s", i, tdm_error_sentence(&err, 0));
    }
    /* A limit there was may go or grow, and come back only where it was. */
    struct tdm_train_options before = usual(), now = usual();
    before.steps = 100;
    now.steps = 0;
    assert_int_equal(match(&now, &before, NULL), TDM_OK);
    now.steps = 101;
    assert_int_equal(match(&now, &before, NULL), TDM_OK);
    now.steps = 99;
    assert_int_equal(match(&now, &before, NULL), TDM_E_USAGE);
}

TEST(an_empty_record_matches_nothing)
{
    struct tdm_train_options options = usual();
    assert_int_equal(tdmi_options_match(&options, NULL, NULL), TDM_E_USAGE);
}

TEST(the_record_is_accepted_as_options)
{
    struct tdm_train_options before = usual(), again = tdm_train_options_default();
    tdm_error err = {0};
    before.seed = UINT64_MAX;
    before.balance = true;
    before.steps = 123456789012;
    before.momentum = 0.5;
    before.augment = "flip";
    again.momentum = 0.1;
    again.resample = "area";
    tdm_json_document *document = recorded(&before);
    const tdm_json_value *options = tdm_json_member(tdm_json_root(document), "options");
    if (tdmi_options_from_json(options, &again, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_null(again.weights);
    assert_null(again.resample);
    assert_true(again.balance && !again.strict);
    if (tdmi_options_match(&again, options, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    tdm_json_document_free(document);
}

/* A recorded value that no option accepts means a damaged file. */
TEST(a_record_with_values_that_cannot_be_is_bad_input)
{
    static const struct {
        const char *options, *words;
    } cases[] = {
        {"{\"batch\":1e12}", "--batch is 1e+12; 1 to 65536 is accepted"},
        {"{\"batch\":-3}", "--batch is -3;"},
        {"{\"dropout\":7}", "--dropout is 7; 0 to 0.99 is accepted"},
        {"{\"epochs\":2.5}", "a whole number is accepted"},
        {"{\"epochs\":\"many\"}", "--epochs is a string; a number is accepted"},
        {"{\"monitor\":3}", "--monitor is a number; a string is accepted"},
        {"{\"bn\":\"none\"}", "--bn is 'none', which this build lacks"},
    };
    struct tree tree = quick_tree_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_train_options options = usual();
        tdm_json_document *words = NULL;
        tdm_error err = {0};
        char record[400], text[3000];
        snprintf(record, sizeof record,
                 "{\"format_version\":1,\"status\":\"stopped\",\"options\":%s}", cases[i].options);
        tree_text(&tree, "run/run.json", record);
        if (tdm_train_options_recorded(below(&tree, "run"), &options, &words, &err) != TDM_E_INPUT)
            fail_msg("%s: accepted, or another status", cases[i].options);
        tdm_error_format(&err, text, sizeof text);
        if (!strstr(text, cases[i].words))
            fail_msg("'%s' is not in: %s", cases[i].words, text);
        assert_null(words);
        assert_int_equal(options.batch, usual().batch);
    }
    tree_free(&tree);
}

TEST(null_leaves_an_option_unset)
{
    static const char text[] =
        "{\"momentum\":null,\"weight-decay\":null,\"warmup\":null,\"lr\":null,"
        "\"size\":null,\"steps\":null,\"model\":null,\"augment\":null}";
    struct tdm_train_options options = usual();
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    options.momentum = options.weight_decay = options.warmup_epochs = options.learning_rate = 0.5;
    options.size = 32;
    options.steps = 7;
    options.augment = "flip";
    assert_int_equal(tdm_json_read(text, strlen(text), "options", &document, NULL), TDM_OK);
    if (tdmi_options_from_json(tdm_json_root(document), &options, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_true(options.momentum < 0.0 && options.weight_decay < 0.0 &&
                options.warmup_epochs < 0.0);
    assert_true(options.learning_rate == 0.0 && options.size == 0 && options.steps == 0);
    assert_null(options.model);
    assert_null(options.augment);
    tdm_json_document_free(document);
}

/* Runs of before an option was there were begun with its default. */
TEST(an_older_record_lacks_options_and_matches)
{
    static const char text[] =
        "{\"model\":\"convnet7\",\"epochs\":20,\"batch\":32,\"eval-every\":1,"
        "\"split-train\":0.9,\"split-val\":0.1,\"fraction\":1,\"seed\":42}";
    struct tdm_train_options options = usual();
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    options.augment = "none"; /* the default of that time */
    assert_int_equal(tdm_json_read(text, strlen(text), "record", &document, NULL), TDM_OK);
    if (tdmi_options_match(&options, tdm_json_root(document), &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    options.augment = "auto"; /* today's default is another one */
    assert_int_equal(tdmi_options_match(&options, tdm_json_root(document), &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0),
                           "option --augment is 'auto', but the run was started with 'none'"));
    options.augment = "none";
    options.clip_norm = 1.0;
    assert_int_equal(tdmi_options_match(&options, tdm_json_root(document), NULL), TDM_E_USAGE);
    tdm_json_document_free(document);
}

TEST_MAIN(NULL, NULL)

/* Each piece of advice: figures that give it, and figures that just do not. */
#include "train/advice.h"
#include "tandem/metrics.h"
#include "unit.h"

static tdm_score score(int64_t correct, int64_t n)
{
    const tdm_interval interval = tdm_wilson(correct, n);
    return (tdm_score){.n = n,
                       .correct = correct,
                       .n_distinct = n,
                       .correct_distinct = correct,
                       .accuracy = (double)correct / (double)n,
                       .low = interval.low,
                       .high = interval.high};
}

/* A head trained on cached features, stopped by patience: nothing to advise. */
static struct tdmi_advice_facts well(void)
{
    return (struct tdmi_advice_facts){
        .n_pictures = 10000,
        .network = "mobilenetv2",
        .is_head_alone = true,
        .n_train = 9000,
        .n_val = 1000,
        .epochs = 30,
        .eval_every = 1,
        .best_epoch = 20,
        .steps = 8460,
        .ended_by = "patience",
        .patience = 10,
        .after_best = {.epochs = 10, .seconds = 20.0},
        .train = score(8900, 9000),
        .val = score(985, 1000),
        .rise_epochs = 8,
        .before_rise = score(980, 1000),
        .seconds = 100.0,
        .training_seconds = 60.0,
        .fed_seconds = 60.0,
        .waited_seconds = 1.0,
    };
}

static void advises(const struct tdmi_advice_facts *facts, const char *step, const char *words)
{
    const struct tdm_next next = tdmi_advice(facts);
    if (strcmp(next.step, step) != 0 || !strstr(next.evidence, words))
        fail_msg("expected '%s' with '%s'; found %s; %s", step, words, next.step, next.evidence);
    assert_ptr_equal(next.step, tdmi_advice_step(step));
    assert_true(strlen(next.evidence) < sizeof next.evidence - 1); /* not cut */
}

TEST(a_good_run_gets_no_advice)
{
    const struct tdmi_advice_facts facts = well();
    advises(&facts, "none",
            "98.5 % (97.5 to 99.1) of 1000 validation images are right and up to 98.9 % of the "
            "training images; of 10000 images 0 are unusable, and training waited 2 % of its time");
    assert_null(tdmi_advice_step("hope"));
}

TEST(unusable_images_come_before_all)
{
    struct tdmi_advice_facts facts = well();
    facts.n_unusable = 150;
    facts.n_torn = 50;
    advises(&facts, "none", "200 are unusable"); /* two of a hundred, and no more */
    facts.n_torn = 51;
    facts.is_scratch = true;
    facts.at_hand = "some";
    facts.val = score(300, 1000);
    advises(&facts, "fix-data",
            "of 10000 images 150 could not be used and 51 are in more than one class, 2.0 % "
            "together; tandem audit");
}

TEST(a_run_from_scratch_is_advised_to_use_weights)
{
    struct tdmi_advice_facts facts = well();
    facts.is_scratch = true;
    facts.is_head_alone = false;
    facts.network = "lenet5";
    facts.val = score(700, 1000);
    facts.train = score(6400, 9000);
    advises(&facts, "none",
            "asks for a change, and the report shows which images are wrong: labels, or what "
            "another network might see");
    facts.to_fetch = "these";
    advises(&facts, "transfer",
            "a new run with --weights these --fetch in place of --model starts from");
    facts.is_by_default = true;
    advises(
        &facts, "transfer",
        "300 of the 1000 validation images are wrong (30.0 %); the same command with --fetch and "
        "another -o starts from");
    facts.is_by_default = false;
    facts.at_hand = "some";
    advises(&facts, "transfer",
            "lenet5 was trained from scratch on 9000 images, and 300 of the 1000 validation images "
            "are wrong (30.0 %); --weights some, which is installed, in place of --model starts "
            "from");
    facts.n_train = 20001; /* enough to train from scratch */
    advises(&facts, "none", "70.0 %");
}

TEST(frozen_layers_computed_in_every_epoch_are_to_be_cached)
{
    struct tdmi_advice_facts facts = well();
    facts.base = TDMI_BASE_IS_UNWANTED;
    advises(&facts, "cache",
            "in each of 30 epochs, 2.0 s of training per epoch; --features f32 in place of none "
            "computes them once");
    facts.base = TDMI_BASE_SEES_CHANGES;
    advises(&facts, "cache", "--views 8 in place of 0 computes them 8 times");
    facts.base = TDMI_BASE_HAS_NO_PLACE;
    advises(&facts, "cache", "TANDEM_HOME on a disk with room");
    facts.training_seconds = 10.3; /* of which one epoch stays: less than ten seconds */
    advises(&facts, "none", "");
    facts.training_seconds = 60.0;
    facts.is_head_alone = false; /* the trained layers cost as much */
    advises(&facts, "none", "");
}

TEST(a_run_that_waits_for_images_is_advised_to_prepare_them)
{
    struct tdmi_advice_facts facts = well();
    facts.waited_seconds = 12.0; /* a fifth, and no more */
    advises(&facts, "none", "waited 20 %");
    facts.waited_seconds = 30.0;
    advises(&facts, "stream",
            "waited 30.0 of 60.0 s (50 %) for images to be read and decoded; "
            "tandem prepare");
    facts.is_prepared = true;
    advises(&facts, "none", "waited 50 %");
}

TEST(a_run_that_ends_while_accuracy_rises_is_to_continue)
{
    struct tdmi_advice_facts facts = well();
    facts.ended_by = "epochs";
    facts.after_best = (struct tdm_after_best){.p = 1.0};
    facts.best_epoch = 30;
    advises(&facts, "none", "");
    facts.before_rise = score(960, 1000);
    advises(&facts, "resume",
            "epoch 30 was the last and the best, and within 8 epochs validation "
            "rose from 96.0 to 98.5 %, more than the 0.8 points that chance "
            "explains; --epochs 60 --resume");
    facts.ended_by = "steps";
    advises(&facts, "resume", "--steps 16920 --resume");
    facts.ended_by = "minutes";
    facts.minutes = 1.5;
    advises(&facts, "resume", "--minutes 3 --resume");
    facts.ended_by = "patience";
    advises(&facts, "none", "");
}

TEST(a_run_that_trains_too_long_learns_what_it_cost)
{
    struct tdmi_advice_facts facts = well();
    facts.ended_by = "epochs";
    facts.patience = 0;
    facts.epochs = 60;
    facts.after_best = (struct tdm_after_best){.epochs = 40, .seconds = 50.0};
    advises(&facts, "none", ""); /* a half, and no more */
    facts.after_best.seconds = 60.0;
    advises(&facts, "stop",
            "the 40 epochs after epoch 20, the best, took 60.0 of 100.0 s and did not improve on "
            "its 98.5 %; --patience 10 ends about 45.0 s");
    facts.patience = 10;
    advises(&facts, "none", "");
}

/* The patience that "stop" names ends the run earlier than it ended. */
TEST(stop_never_means_to_train_longer)
{
    int n_stops = 0;
    for (int patience = 0; patience <= 60; patience += 5)
        for (int epochs = 1; epochs <= 60; epochs++)
            for (int eval_every = 1; eval_every <= 7; eval_every += 3) {
                struct tdmi_advice_facts facts = well();
                facts.patience = patience;
                facts.eval_every = eval_every;
                facts.epochs = 60;
                facts.best_epoch = 60 - epochs;
                facts.after_best = (struct tdm_after_best){.epochs = epochs, .seconds = 90.0};
                const struct tdm_next next = tdmi_advice(&facts);
                if (strcmp(next.step, "stop") != 0)
                    continue;
                n_stops++;
                const char *named = strstr(next.evidence, "--patience ");
                assert_non_null(named);
                const int proposed = (int)strtol(named + strlen("--patience "), NULL, 10);
                assert_true(patience == 0 || proposed < patience);
                assert_true(facts.best_epoch + proposed * eval_every < facts.epochs);
            }
    assert_true(n_stops > 0);
}

TEST(overfitting_calls_for_more_images_or_for_augmentation_that_was_switched_off)
{
    struct tdmi_advice_facts facts = well();
    facts.val = score(900, 1000);
    advises(&facts, "data",
            "in the course of training up to 98.9 % of the 9000 training images were right, and "
            "90.0 % (88.0 to 91.7) of the validation images are: add images to the same folder");
    facts.is_head_alone = false;
    facts.is_unchanged = true;
    advises(&facts, "augment",
            "training images are learned by heart; --augment auto in place of none changes");
    facts.is_cut = true;
    advises(&facts, "data", "there are more, which --fraction or --per-class leaves out");
    facts.train = score(8200, 9000); /* intervals meet */
    facts.is_head_alone = false;
    advises(&facts, "none", "");
}

TEST(a_rare_class_that_is_never_right_is_named)
{
    struct tdmi_advice_facts facts = well();
    facts.validated_classes = 10;
    facts.commonest = "cat";
    facts.commonest_part = 0.9;
    advises(&facts, "none", "");
    facts.missed = "lynx";
    facts.n_missed = 7;
    facts.missed_classes = 1;
    advises(&facts, "data",
            "none of the 7 validation images of 'lynx' is right, and the answer 'cat' for every "
            "image would be right for 90.0 % of them: add images of rare classes, or in a new run "
            "--balance shows");
    facts.missed_classes = 3;
    facts.is_balanced = true;
    advises(&facts, "data", "is right, nor of 2 more rare classes, and");
    facts.val = score(10, 1000); /* much less right than so few classes explain */
    facts.is_scratch = true;
    facts.at_hand = "some";
    advises(&facts, "transfer", "");
}

TEST(a_frozen_base_that_fits_too_badly_is_to_be_trained)
{
    struct tdmi_advice_facts facts = well();
    facts.train = score(6300, 9000);
    facts.val = score(690, 1000);
    advises(&facts, "unfreeze",
            "no more than 70.0 % (69.0 to 70.9) of the training images are right, and 69.0 % of "
            "the validation images; in a new run --unfreeze 5 trains the base too");
    facts.has_norms = true;
    advises(&facts, "unfreeze", "in a new run --unfreeze 5 --bn frozen trains");
    facts.is_freeze_given = true;
    facts.epochs_limit = 5;
    facts.steps_limit = 100;
    facts.steps_an_epoch = 20;
    advises(&facts, "unfreeze",
            "--unfreeze 5 --bn frozen --freeze none --epochs 10 --steps 200 trains");
    facts.epochs_limit = 6;
    facts.steps_limit = 101;
    advises(&facts, "unfreeze", "--unfreeze 5 --bn frozen --freeze none trains");
    facts.is_scratch = true; /* frozen layers with random weights: nothing worth unfreezing */
    facts.to_fetch = "these";
    advises(&facts, "transfer",
            "from scratch, with random frozen layers, has no more than 70.0 % of the training "
            "images right, and 69.0 % of the validation images; a new run with --weights these "
            "--fetch in place of --model");
    facts.is_scratch = false;
    facts.is_head_alone = false;
    advises(&facts, "none", "");
}

TEST(a_network_that_learned_next_to_nothing_from_scratch_is_to_use_weights)
{
    struct tdmi_advice_facts facts = well();
    facts.is_scratch = true;
    facts.is_head_alone = false;
    facts.network = "lenet5";
    facts.to_fetch = "these";
    facts.n_train = 50000;
    facts.train = score(60, 9000);
    facts.val = score(5, 1000);
    advises(&facts, "transfer",
            "lenet5 from scratch has no more than 0.7 % of the training images right, and 0.5 % of "
            "the validation images; a new run with --weights these --fetch in place of --model");
    facts.val = facts.train = score(700, 1000);
    advises(&facts, "none", "70.0 %");
}

TEST(a_run_that_ended_too_early_is_to_continue)
{
    struct tdmi_advice_facts facts = well();
    facts.epochs = facts.best_epoch = facts.epochs_limit = 2;
    facts.ended_by = "epochs";
    facts.after_best = (struct tdm_after_best){.p = 1.0};
    facts.train = score(3000, 9000);
    facts.val = score(450, 1000);
    facts.before_rise = score(300, 1000);
    facts.steps = 564;
    advises(&facts, "resume",
            "45.0 % of 1000 validation images are right after 564 steps, 2 whole epochs, and the "
            "last was the best: too early to see where it leads; --epochs 10 --resume continues");
    struct tdmi_advice_facts one_step = facts;
    one_step.epochs = one_step.best_epoch = one_step.epochs_limit = 1;
    one_step.steps = 1;
    advises(&one_step, "resume", "images are right after 1 step, 1 whole epoch, and the last");
    facts.unnamed = "runs/some";
    advises(&facts, "resume", "--epochs 10 -o runs/some --resume continues");
    facts.ended_by = "steps";
    facts.steps_an_epoch = 282;
    advises(&facts, "resume", "--steps 2820 -o runs/some --resume continues");
    facts.epochs = 5; /* enough to see that the frozen base fits too badly */
    facts.before_rise = facts.val;
    advises(&facts, "unfreeze", "");
    facts.epochs = 2;
    facts.after_best.epochs = 1; /* it did not rise */
    advises(&facts, "unfreeze", "");
}

TEST(a_run_that_diverged_is_to_use_a_smaller_rate)
{
    struct tdmi_advice_facts facts = well();
    facts.guess_loss = 2.302585;
    facts.rate = 1000.0;
    facts.epochs = 1;
    facts.last_loss = 23.0; /* not ten times as much */
    advises(&facts, "none", "");
    facts.last_loss = 123456.0;
    advises(&facts, "rate",
            "training diverged: after 1 epoch the loss is 1.235e+05, and guessing has 2.30; in a "
            "new run use --lr 0.01 in place of 1e+03");
    facts.rate = 0.02;
    advises(&facts, "rate", "--lr 0.002 in place of 0.02");
    facts.epochs = 0;
    advises(&facts, "none", "");
}

/* A small training part is something to change, however well its model does. */
TEST(fewer_training_images_than_validation_images_are_never_left_as_they_are)
{
    struct tdmi_advice_facts facts = well();
    facts.n_pictures = 456;
    facts.n_train = 48;
    facts.n_val = 408;
    facts.train = score(48, 48);
    facts.val = score(379, 408);
    advises(&facts, "data",
            "only 48 images train and 408 validate, of which 92.9 % are right: in a new run "
            "--split 0.8,0.2 trains on most of them");
    facts.test_fraction = 0.1;
    advises(&facts, "data", "--split 0.7,0.2,0.1 trains");
    facts.is_split_given = true;
    advises(&facts, "data", "the source gives this split; move images to its training part");
    facts.val = score(408, 408);
    advises(&facts, "data", "of which 100.0 % are right");
    facts.after_best = (struct tdm_after_best){.epochs = 25, .seconds = 90.0};
    facts.patience = 25;
    advises(&facts, "data", "only 48 images train"); /* not "stop" */
    facts.n_train = facts.n_val;
    advises(&facts, "stop", "");
    facts.after_best = well().after_best;
    facts.n_train = facts.n_val;
    advises(&facts, "none", "");
}

TEST(too_few_validation_images_are_reported_with_their_interval)
{
    struct tdmi_advice_facts facts = well();
    facts.n_pictures = 1800;
    facts.n_train = 1620;
    facts.n_val = 180;
    facts.train = score(1200, 1620);
    facts.val = score(132, 180);
    facts.is_head_alone = false;
    advises(&facts, "data",
            "with 180 validation images the 73.3 % that are right mean 66.4 to 79.3 %; in a new "
            "run --split 0.8,0.2 narrows that to about \xc2\xb1"
            "4.6 points");
    facts.test_fraction = 0.1;
    advises(&facts, "data", "--split 0.7,0.2,0.1 narrows");
    facts.is_split_given = true;
    advises(&facts, "data", "add images to the source's validation part");
    facts.is_split_given = false;
    facts.val = score(73, 100); /* a third are validation images already */
    facts.n_train = 200;
    facts.n_val = 100;
    advises(&facts, "data",
            "differences below 8.6 points cannot be seen; add images to the same folder");
}

TEST(the_largest_part_wins)
{
    struct tdmi_advice_facts facts = well();
    facts.waited_seconds = 30.0;  /* 30 of 100 s */
    facts.val = score(800, 1000); /* 19 points below the training images */
    advises(&facts, "stream", "");
    facts.val = score(600, 1000); /* 39 points */
    advises(&facts, "data", "");
    facts.base = TDMI_BASE_IS_UNWANTED; /* 58 of 100 s */
    advises(&facts, "cache", "");
}

TEST_MAIN(NULL, NULL)

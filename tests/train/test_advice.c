/* Which step is advised: by figures that ask for it, and by figures that just do not. */
#include "train/advice.h"
#include "tandem/metrics.h"
#include "unit.h"

static tdm_score score(int64_t correct, int64_t n)
{
    const tdm_interval interval = tdm_wilson(correct, n);
    return (tdm_score){.n = n,
                       .correct = correct,
                       .accuracy = (double)correct / (double)n,
                       .low = interval.low,
                       .high = interval.high};
}

/* A head on features that are kept; it stopped by itself, and all is well. */
static struct tdmi_advice_facts well(void)
{
    return (struct tdmi_advice_facts){
        .n_pictures = 10000,
        .network = "mobilenetv2",
        .is_head_alone = true,
        .n_train = 9000,
        .n_val = 1000,
        .crop_pixels = 28,
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
        fail_msg("'%s' with '%s' is wanted; found %s; %s", step, words, next.step, next.evidence);
    assert_ptr_equal(next.step, tdmi_advice_step(step));
    assert_true(strlen(next.evidence) < sizeof next.evidence - 1); /* not cut */
}

TEST(what_is_well_is_left_alone)
{
    const struct tdmi_advice_facts facts = well();
    advises(&facts, "none",
            "98.5 % (97.5 to 99.1) of 1000 pictures that judge are right and up to 98.9 % of those "
            "that "
            "train; of 10000 pictures 0 are no good, and training waited 2 % of its time");
    assert_null(tdmi_advice_step("hope"));
}

TEST(pictures_that_are_no_good_come_before_all)
{
    struct tdmi_advice_facts facts = well();
    facts.n_unusable = 150;
    facts.n_torn = 50;
    advises(&facts, "none", "200 are no good"); /* two of a hundred, and no more */
    facts.n_torn = 51;
    facts.is_scratch = true;
    facts.at_hand = "some";
    facts.val = score(300, 1000);
    advises(&facts, "fix-data",
            "of 10000 pictures 150 could not be used and 51 stand under more than one class, 2.0 % "
            "together; tandem audit");
}

TEST(weights_are_wanted_by_who_began_without)
{
    struct tdmi_advice_facts facts = well();
    facts.is_scratch = true;
    facts.is_head_alone = false;
    facts.network = "lenet5";
    facts.val = score(700, 1000);
    facts.train = score(6400, 9000);
    facts.to_fetch = "these";
    advises(&facts, "none", "70.0 %"); /* a network given by hand, and no weights */
    facts.is_by_default = true;
    advises(&facts, "transfer",
            "300 of the 1000 that judge are wrong (30.0 %); after tandem "
            "weights fetch these");
    facts.is_by_default = false;
    facts.at_hand = "some";
    advises(&facts, "transfer",
            "lenet5 learnt from scratch what 9000 pictures show, and 300 of the 1000 that judge "
            "are wrong (30.0 %); --weights some, which is at hand, in place of --model begins");
    facts.n_train = 20001; /* many enough to learn from */
    advises(&facts, "none", "70.0 %");
}

TEST(a_base_that_is_computed_in_every_epoch_is_kept)
{
    struct tdmi_advice_facts facts = well();
    facts.base = TDMI_BASE_IS_UNWANTED;
    advises(&facts, "cache",
            "in each of 30 epochs, 2.0 s of training an epoch; --features f32 in "
            "place of none computes it once");
    facts.base = TDMI_BASE_SEES_CHANGES;
    advises(&facts, "cache", "--views 8 in place of 0 computes it 8 times");
    facts.base = TDMI_BASE_HAS_NO_PLACE;
    advises(&facts, "cache", "TANDEM_HOME on a disk with room");
    facts.training_seconds = 10.3; /* of which one epoch stays: less than ten seconds */
    advises(&facts, "none", "");
    facts.training_seconds = 60.0;
    facts.is_head_alone = false; /* what is trained costs as much */
    advises(&facts, "none", "");
}

TEST(who_waits_for_pictures_prepares_them)
{
    struct tdmi_advice_facts facts = well();
    facts.waited_seconds = 12.0; /* a fifth, and no more */
    advises(&facts, "none", "waited 20 %");
    facts.waited_seconds = 30.0;
    advises(&facts, "stream",
            "waited 30.0 of 60.0 s (50 %) for pictures to be read and decoded; "
            "tandem prepare");
    facts.is_prepared = true;
    advises(&facts, "none", "waited 50 %");
}

TEST(who_ends_while_it_rises_goes_on)
{
    struct tdmi_advice_facts facts = well();
    facts.ended_by = "epochs";
    facts.after_best = (struct tdm_after_best){.p = 1.0};
    facts.best_epoch = 30;
    advises(&facts, "none", "");
    facts.before_rise = score(960, 1000);
    advises(&facts, "stop",
            "epoch 30 was the last and the best, and within 8 epochs validation "
            "rose from 96.0 to 98.5 %, more than the 0.8 points that chance "
            "explains; --epochs 60 --resume");
    facts.ended_by = "steps";
    advises(&facts, "stop", "--steps 16920 --resume");
    facts.ended_by = "minutes";
    facts.minutes = 1.5;
    advises(&facts, "stop", "--minutes 3 --resume");
    facts.ended_by = "patience";
    advises(&facts, "none", "");
}

TEST(who_goes_on_too_long_is_told_what_it_cost)
{
    struct tdmi_advice_facts facts = well();
    facts.ended_by = "epochs";
    facts.patience = 0;
    facts.epochs = 60;
    facts.after_best = (struct tdm_after_best){.epochs = 40, .seconds = 50.0};
    advises(&facts, "none", ""); /* a half, and no more */
    facts.after_best.seconds = 60.0;
    advises(&facts, "stop",
            "the 40 epochs after epoch 20, the best, took 60.0 of 100.0 s and left "
            "validation 98.5 % right at its best; --patience 10 ends about 45.0 s");
    facts.patience = 10;
    advises(&facts, "none", "");
}

TEST(what_is_learnt_by_heart_is_changed_or_joined_by_more)
{
    struct tdmi_advice_facts facts = well();
    facts.val = score(900, 1000);
    advises(&facts, "augment",
            "up to 98.9 % right on the 9000 pictures that train and 90.0 % (88.0 to "
            "91.7) on those that judge: much is learnt by heart; --augment "
            "flip,crop:28");
    facts.is_changed = true;
    advises(&facts, "data", "more pictures in the same folder are wanted");
    facts.is_cut = true;
    facts.is_changed = false;
    advises(&facts, "data", "more are there that --fraction or --per-class leaves out");
    facts.train = score(8200, 9000); /* intervals meet */
    facts.is_head_alone = false;
    advises(&facts, "none", "");
}

TEST(a_base_that_knows_too_little_is_trained)
{
    struct tdmi_advice_facts facts = well();
    facts.train = score(6300, 9000);
    facts.val = score(690, 1000);
    advises(&facts, "unfreeze",
            "no more than 70.0 % (69.0 to 70.9) of the pictures that train are right, "
            "and 69.0 % of those that judge; in a new run --unfreeze 5 trains the base too");
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
    facts.is_scratch = true; /* what chance drew, frozen: there is nothing to thaw */
    facts.to_fetch = "these";
    advises(&facts, "transfer",
            "from scratch, its base frozen as drawn, has no more than 70.0 % of the pictures that "
            "train right, and 69.0 % of those that judge; after tandem weights fetch these a new "
            "run with --weights these in place of --model");
    facts.is_scratch = false;
    facts.is_head_alone = false;
    advises(&facts, "none", "");
}

TEST(who_learnt_next_to_nothing_from_scratch_is_told_of_weights)
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
            "lenet5 from scratch has no more than 0.7 % of the pictures that train right, and "
            "0.5 % of those that judge; after tandem weights fetch these");
    facts.val = facts.train = score(700, 1000);
    advises(&facts, "none", "70.0 %");
}

TEST(a_training_that_has_just_begun_goes_on)
{
    struct tdmi_advice_facts facts = well();
    facts.epochs = facts.best_epoch = facts.epochs_limit = 2;
    facts.ended_by = "epochs";
    facts.after_best = (struct tdm_after_best){.p = 1.0};
    facts.train = score(3000, 9000);
    facts.val = score(450, 1000);
    facts.before_rise = score(300, 1000);
    facts.steps = 564;
    advises(&facts, "stop",
            "45.0 % of 1000 pictures that judge are right after 564 steps, 2 whole epochs, and the "
            "last was the best: too early to see where it leads; --epochs 10 --resume goes on");
    facts.unnamed = "runs/some";
    advises(&facts, "stop", "--epochs 10 -o runs/some --resume goes on");
    facts.ended_by = "steps";
    facts.steps_an_epoch = 282;
    advises(&facts, "stop", "--steps 2820 -o runs/some --resume goes on");
    facts.epochs = 5; /* enough to see that the base knows too little */
    facts.before_rise = facts.val;
    advises(&facts, "unfreeze", "");
    facts.epochs = 2;
    facts.after_best.epochs = 1; /* it did not rise */
    advises(&facts, "unfreeze", "");
}

TEST(who_diverged_goes_in_smaller_steps)
{
    struct tdmi_advice_facts facts = well();
    facts.guess_loss = 2.302585;
    facts.rate = 1000.0;
    facts.epochs = 1;
    facts.last_loss = 23.0; /* not ten times as much */
    advises(&facts, "none", "");
    facts.last_loss = 123456.0;
    advises(&facts, "rate",
            "training diverged: after 1 epoch the loss is 1.235e+05, and who guesses has 2.30; in "
            "a new run --lr 0.01, in place of 1e+03, goes in smaller steps");
    facts.rate = 0.02;
    advises(&facts, "rate", "--lr 0.002, in place of 0.02");
    facts.epochs = 0;
    advises(&facts, "none", "");
}

TEST(too_few_that_judge_are_told_with_their_interval)
{
    struct tdmi_advice_facts facts = well();
    facts.n_pictures = 1800;
    facts.n_train = 1620;
    facts.n_val = 180;
    facts.train = score(1200, 1620);
    facts.val = score(132, 180);
    facts.is_head_alone = false;
    advises(&facts, "data",
            "180 pictures judge, so the 73.3 % that are right mean 66.4 to 79.3 %; in a new run "
            "--split 0.8,0.2 narrows that to about \xc2\xb1"
            "4.6 points");
    facts.test_fraction = 0.1;
    advises(&facts, "data", "--split 0.7,0.2,0.1 narrows");
    facts.is_split_given = true;
    advises(&facts, "data", "more pictures in the source's validation are wanted");
    facts.is_split_given = false;
    facts.val = score(73, 100); /* a third judges already */
    facts.n_train = 200;
    facts.n_val = 100;
    advises(&facts, "data",
            "differences below 8.6 points cannot be seen; more pictures in the same "
            "folder");
}

TEST(the_largest_part_wins)
{
    struct tdmi_advice_facts facts = well();
    facts.waited_seconds = 30.0;  /* 30 of 100 s */
    facts.val = score(800, 1000); /* 19 points below what it trained on */
    advises(&facts, "stream", "");
    facts.val = score(600, 1000); /* 39 points */
    advises(&facts, "augment", "");
    facts.base = TDMI_BASE_IS_UNWANTED; /* 58 of 100 s */
    advises(&facts, "cache", "");
}

TEST_MAIN(NULL, NULL)

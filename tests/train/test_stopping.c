/*
 * When a training ends, which weights it keeps, what it reports about the epochs after them, and
 * the test at the end.
 */
#include "train/stopping.h"
#include "tandem/model.h"
#include "tandem/event.h"
#include "train/pictures.h"
#include "unit.h"

#include <math.h>

static const tdm_sink nobody = {NULL, NULL};

/* ---- rules ------------------------------------------------------------------------------------
 */

static tdm_score score(int64_t correct, double loss)
{
    return (tdm_score){.n = 100, .correct = correct, .loss = loss};
}

/* How long the scores were waited for, after the last of them. */
static int waited(const struct tdm_train_options *options, const tdm_score *scores, size_t n)
{
    struct tdmi_progress progress = {0};
    for (size_t i = 0; i < n; i++) {
        tdmi_stopping_take(options, &scores[i], &progress);
        if (progress.best_epoch == 0 ||
            tdmi_stopping_is_better(options, &scores[i], &progress.best_val)) {
            progress.best_epoch = (int)i + 1;
            progress.best_val = scores[i];
        }
    }
    return progress.epochs_since_best;
}

TEST(an_improvement_is_more_than_the_delta_since_the_last_one)
{
    const tdm_score slow[] = {score(50, 1.0), score(51, 0.9), score(52, 0.8), score(53, 0.7)};
    const tdm_score equal[] = {score(50, 1.0), score(50, 0.5), score(50, 0.1)};
    struct tdm_train_options options = tdm_train_options_default();
    assert_int_equal(waited(&options, slow, 4), 0);
    options.min_delta = 0.02; /* three pictures are needed: 53 against 50 */
    assert_int_equal(waited(&options, slow, 3), 2);
    assert_int_equal(waited(&options, slow, 4), 0);
    options.min_delta = 0.03;
    assert_int_equal(waited(&options, slow, 4), 3);
    options.min_delta = 0.0;
    assert_int_equal(waited(&options, equal, 3), 2); /* surer of the same pictures is no reason */
    options.monitor = "loss";
    assert_int_equal(waited(&options, equal, 3), 0);
    options.min_delta = 0.45;
    assert_int_equal(waited(&options, equal, 3), 1);
}

TEST(the_monitor_says_which_score_is_better)
{
    struct tdm_train_options options = tdm_train_options_default();
    const tdm_score right = score(60, 0.9), sure = score(55, 0.4), surer = score(60, 0.8);
    assert_true(tdmi_stopping_is_better(&options, &right, &sure));
    assert_false(tdmi_stopping_is_better(&options, &sure, &right));
    assert_true(tdmi_stopping_is_better(&options, &surer, &right));
    assert_false(tdmi_stopping_is_better(&options, &right, &right));
    options.monitor = "loss";
    assert_true(tdmi_stopping_is_better(&options, &sure, &right));
    assert_false(tdmi_stopping_is_better(&options, &right, &sure));
}

TEST(the_usual_patience_follows_the_planned_epochs)
{
    static const struct {
        int given, epochs, eval_every, patience;
    } cases[] = {
        {-1, 20, 1, 10}, {-1, 40, 1, 10}, {-1, 60, 1, 15}, {-1, 401, 1, 101}, {-1, 0, 1, 10},
        {-1, 20, 3, 4},  {-1, 20, 50, 2}, {0, 20, 1, 0},   {7, 20, 3, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdm_train_options options = tdm_train_options_default();
        options.patience = cases[i].given;
        options.epochs = cases[i].epochs;
        options.eval_every = cases[i].eval_every;
        assert_int_equal(tdmi_stopping_patience(&options), cases[i].patience);
    }
}

/* ---- trainings --------------------------------------------------------------------------------
 */

/* Nothing is learnt but the running statistics. */
static struct tdm_train_options standing_still(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, run);
    options.learning_rate = 1e-9;
    options.patience = -1;
    return options;
}

TEST_WITH(training_stops_by_itself_and_zero_never_does, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = standing_still(tree, "stops");
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.epochs = 30;
    must_train(&options, nobody, &result);
    assert_int_equal(result.epochs, 11);
    assert_string_equal(result.ended_by, "patience");
    options.patience = 0;
    options.run = below(tree, "goes-on");
    must_train(&options, nobody, &result);
    assert_int_equal(result.epochs, 30);
    assert_string_equal(result.ended_by, "epochs");
    assert_true(result.after_best.epochs == 30 - result.best_epoch);
}

/* The score that evaluate counts with the kept weights. */
static tdm_score evaluated(const struct tdm_train_options *options, enum tdm_part part)
{
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    tdm_model *model = NULL;
    tdm_error err = {0};
    if (tdm_model_open(options->run, &(struct tdm_model_options){.threads = 1}, &model, &err) !=
            TDM_OK ||
        tdm_model_evaluate(
            model,
            &(struct tdm_evaluate_options){.source = options->source, .part = part, .batch = 32},
            nobody, &evaluation, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    const tdm_score score = evaluation.metrics.score;
    assert_int_equal(evaluation.trained_on, 0);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
    return score;
}

/* A rate that undoes what was learnt: the best epoch lies before the last. */
TEST_WITH(the_best_weights_are_given_back_whichever_limit_is_reached, begin_with_sixty,
          end_with_tree)
{
    static const char *const limits[] = {"epochs", "steps", "minutes", "patience"};
    const struct tree *tree = *state;
    int n_before_last = 0;
    for (int i = 0; i < 4; i++) {
        struct tdm_train_options options = small_training(tree);
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        options.run = below(tree, limits[i]);
        options.train_fraction = 0.6;
        options.val_fraction = 0.4;
        options.schedule = "constant";
        options.learning_rate = 0.4;
        options.epochs = i == 0 ? 9 : i == 3 ? 500 : 0;
        options.steps = i == 1 ? 43 : 0;
        options.minutes = i == 2 ? 0.4 / 60.0 : 0.0;
        options.patience = i == 3 ? 4 : 0;
        must_train(&options, nobody, &result);
        assert_string_equal(result.ended_by, limits[i]);
        const tdm_score score = evaluated(&options, TDM_PART_VAL);
        assert_int_equal(score.correct, result.val.correct);
        assert_true(fabs(score.loss - result.val.loss) < 1e-12);
        n_before_last += result.after_best.epochs > 0;
        if (result.after_best.epochs > 0) {
            assert_int_equal(result.after_best.n, 24);
            assert_true(result.after_best.only_best >= result.after_best.only_last);
            assert_true(result.after_best.seconds > 0.0);
            assert_true(result.after_best.p > 0.0 && result.after_best.p <= 1.0);
        }
    }
    assert_true(n_before_last > 0);
}

TEST_WITH(a_finished_run_answers_what_it_answered, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = standing_still(tree, "run");
    struct tdm_train_result first = {.struct_bytes = sizeof first},
                            again = {.struct_bytes = sizeof again};
    options.epochs = 30;
    options.train_fraction = 0.6;
    options.val_fraction = 0.2;
    options.test_fraction = 0.2;
    must_train(&options, nobody, &first);
    options.resume = true;
    must_train(&options, nobody, &again);
    assert_memory_equal(&first.after_best, &again.after_best, sizeof first.after_best);
    assert_memory_equal(&first.test, &again.test, sizeof first.test);
    assert_true(first.seconds >= again.seconds && first.seconds <= again.seconds);
    assert_string_equal(first.ended_by, again.ended_by);
    assert_string_equal(first.next.step, again.next.step);
    assert_string_equal(first.next.evidence, again.next.evidence);
    options.epochs = 60; /* a longer plan goes on, and is more patient from there */
    must_train(&options, nobody, &again);
    assert_int_equal(again.epochs, 26);
    assert_int_equal(again.patience, 15);
    assert_int_equal(again.test.n, 12);
}

/* ---- the third part ---------------------------------------------------------------------------
 */

static struct tdm_train_options with_test(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, run);
    options.train_fraction = 0.6;
    options.val_fraction = 0.2;
    options.test_fraction = 0.2;
    options.schedule = "constant";
    options.learning_rate = 0.3;
    options.epochs = 6;
    return options;
}

TEST_WITH(a_test_uses_the_best_weights_and_is_found_again, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_test(tree, "one");
    struct tdm_train_result one = {.struct_bytes = sizeof one},
                            other = {.struct_bytes = sizeof other};
    must_train(&options, nobody, &one);
    assert_int_equal(one.train.n, 36);
    assert_int_equal(one.val.n, 12);
    assert_int_equal(one.test.n, 12);
    const tdm_score score = evaluated(&options, TDM_PART_TEST);
    assert_int_equal(score.n, 12);
    assert_int_equal(score.correct, one.test.correct);
    assert_true(fabs(score.loss - one.test.loss) < 1e-12);
    options.run = below(tree, "two");
    options.threads = 2;
    must_train(&options, nobody, &other);
    same_runs(tree, "one", "two");
    assert_memory_equal(&one.test, &other.test, sizeof one.test);
    /* Without it the training and validation images are the same, and the test's are not used. */
    options.run = below(tree, "without");
    options.test_fraction = 0.0;
    must_train(&options, nobody, &other);
    assert_memory_equal(&one.val, &other.val, sizeof one.val);
    assert_int_equal(other.test.n, 0);
}

struct stopper {
    const char *phase;
    bool is_there;
    int n_seen;
};

/* A stop is asked for as soon as the phase begins. */
static void stop_in_phase(void *self, const tdm_event *event)
{
    struct stopper *stopper = self;
    if (event->kind != TDM_EVENT_PHASE_BEGIN || strcmp(event->text, stopper->phase) != 0)
        return;
    stopper->n_seen++;
    if (stopper->is_there)
        tdm_stop_request();
}

TEST_WITH(a_stop_inside_the_test_is_made_good_by_the_next_sitting, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_test(tree, "whole");
    struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                            result = {.struct_bytes = sizeof result};
    struct stopper stopper = {"testing", true, 0};
    must_train(&options, nobody, &whole);
    options.run = below(tree, "stopped");
    assert_int_equal(tdm_train(&options, (tdm_sink){&stopper, stop_in_phase}, &result, NULL),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    options.resume = true;
    stopper.is_there = false;
    must_train(&options, (tdm_sink){&stopper, stop_in_phase}, &result);
    assert_int_equal(stopper.n_seen, 2);
    assert_memory_equal(&whole.test, &result.test, sizeof whole.test);
    same_runs(tree, "whole", "stopped");
    must_train(&options, (tdm_sink){&stopper, stop_in_phase}, &result);
    assert_int_equal(stopper.n_seen, 2); /* the test does not run a second time */
}

/* The rate is higher again, so patience does not count the epochs before. */
TEST_WITH(patience_begins_again_where_the_epochs_are_raised, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = standing_still(tree, "run");
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct stopper stopper = {"training epoch 5", true, 0};
    options.patience = 4;
    must_train(&options, nobody, &result);
    assert_int_equal(result.epochs, 3);
    options.resume = true;
    options.epochs = 30;
    assert_int_equal(tdm_train(&options, (tdm_sink){&stopper, stop_in_phase}, &result, NULL),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    must_train(&options, nobody, &result); /* the record has the epoch */
    assert_int_equal(result.epochs, 7);
    assert_string_equal(result.ended_by, "patience");
    must_train(&options, nobody, &result);
    assert_int_equal(result.epochs, 7);
}

TEST_WITH(earlier_counts_of_a_test_stay_beside_the_new_one, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_test(tree, "run");
    struct tdm_train_result first = {.struct_bytes = sizeof first},
                            second = {.struct_bytes = sizeof second},
                            again = {.struct_bytes = sizeof again};
    options.learning_rate = 0.02;
    options.epochs = 1;
    must_train(&options, nobody, &first);
    assert_int_equal(first.n_tests_before, 0);
    options.resume = true;
    options.epochs = 30;
    must_train(&options, nobody, &second);
    assert_true(second.best_epoch > 1);
    assert_int_equal(second.n_tests_before, 1);
    assert_int_equal(second.tests_before[0].epoch, 1);
    assert_int_equal(second.tests_before[0].score.correct, first.test.correct);
    assert_true(fabs(second.tests_before[0].score.loss - first.test.loss) < 1e-12);
    assert_true(second.test.loss < first.test.loss);
    must_train(&options, nobody, &again); /* nothing is evaluated, and nothing forgotten */
    assert_int_equal(again.n_tests_before, 1);
    assert_int_equal(again.tests_before[0].score.correct, first.test.correct);
    assert_memory_equal(&second.test, &again.test, sizeof again.test);
}

TEST_WITH(features_of_the_test_are_kept_too, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree), head = with_test(tree, "head");
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "base");
    must_train(&options, nobody, &result);
    head.weights = options.run;
    head.model = NULL;
    head.hidden = 7; /* a new head */
    head.learning_rate = 0.05;
    must_train(&head, nobody, &result);
    assert_int_equal(result.features.rows, 60);
    const tdm_score score = evaluated(&head, TDM_PART_TEST);
    assert_int_equal(score.correct, result.test.correct);
    assert_true(fabs(score.loss - result.test.loss) < 1e-12);
    head.run = below(tree, "again");
    head.seed++;
    must_train(&head, nobody, &result);
    assert_int_equal(result.features.reused, 60);
}

TEST_WITH(a_test_without_pictures_is_refused, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_test(tree, "run");
    options.train_fraction = 0.9;
    options.val_fraction = 0.09;
    options.test_fraction = 0.01;
    fails_with(&options, TDM_E_INPUT, "left for the test: a class of 16 distinct ones has one");
}

TEST_MAIN(NULL, NULL)

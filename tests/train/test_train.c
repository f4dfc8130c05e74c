/* Training from a folder to a run folder: equal bits, honest counts, sentences for what is wrong.
 */
#include "train/model/model_file.h"
#include "train/pictures.h"
#include "tandem/model.h"
#include "tandem/event.h"
#include "unit.h"

#include <math.h>

static const tdm_sink nobody = {NULL, NULL};

TEST_WITH(the_same_seed_gives_the_same_files_on_any_number_of_threads, begin_with_sixty,
          end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_norm_training(tree);
    struct tdm_train_result one = {.struct_bytes = sizeof one},
                            other = {.struct_bytes = sizeof other};
    options.run = below(tree, "one");
    must_train(&options, nobody, &one);
    for (int threads = 2; threads <= 3; threads++) {
        char run[20];
        snprintf(run, sizeof run, "on-%d", threads);
        options.run = below(tree, run);
        options.threads = threads;
        options.checkpoint_every = threads; /* how often it is saved changes nothing either */
        must_train(&options, nobody, &other);
        same_runs(tree, "one", run);
        assert_memory_equal(&one.val, &other.val, sizeof one.val);
        assert_memory_equal(&one.train, &other.train, sizeof one.train);
        assert_int_equal(one.steps, other.steps);
    }
    options.seed++;
    options.run = below(tree, "seed");
    must_train(&options, nobody, &other);
    assert_true(fabs(other.val.loss - one.val.loss) > 0.0);
}

TEST_WITH(a_result_counts_what_was_done, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "run");
    options.epochs = 25;
    must_train(&options, nobody, &result);
    assert_string_equal(result.run, options.run);
    assert_int_equal(result.epochs, 25);
    assert_int_equal(result.steps, 25 * 7);
    assert_int_equal(result.train.n, 54);
    assert_int_equal(result.val.n, 6);
    assert_int_equal(result.skipped, 0);
    assert_int_equal(result.world, 1);
    assert_false(result.cached);
    assert_true(result.best_epoch >= 1 && result.best_epoch <= 25);
    assert_true(result.seconds > 0.0 && result.images_per_second > 0.0);
    assert_true(result.val.low <= result.val.accuracy && result.val.accuracy <= result.val.high);
    assert_int_equal(result.val.correct, 6); /* it has learnt */
}

/* A member of a stage of the loader in the record of the run "run". */
static double recorded(const struct tree *tree, const char *stage, const char *member)
{
    void *text;
    size_t n_bytes;
    tdm_json_document *json;
    assert_int_equal(tdmi_file_read(below(tree, "run/run.json"), 1 << 28, &text, &n_bytes, NULL),
                     TDM_OK);
    assert_int_equal(tdm_json_read(text, n_bytes, "run.json", &json, NULL), TDM_OK);
    const tdm_json_value *at = tdm_json_member(tdm_json_root(json), "loader");
    if (stage)
        at = tdm_json_member(at, stage);
    const double number = tdm_json_as_number(tdm_json_member(at, member), -1.0);
    tdm_json_document_free(json);
    tdmi_free(text);
    return number;
}

/* Four of seven epochs in the first session and three in the second, 54 images each. */
TEST_WITH(the_rates_of_the_loader_are_recorded, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "run");
    options.cache = "none";
    options.epochs = 4;
    must_train(&options, nobody, &result);
    assert_true(recorded(tree, NULL, "images") == 4 * 54.0);
    assert_true(recorded(tree, "read", "images") == 4 * 54.0);
    assert_true(recorded(tree, "decode", "images") == 4 * 54.0);
    assert_true(recorded(tree, "augment", "images") == 0.0);
    const double seconds = recorded(tree, "decode", "thread_seconds");
    assert_true(seconds > 0.0);
    assert_true(fabs(recorded(tree, "decode", "images_per_second") * seconds / (4 * 54) - 1.0) <
                1e-6);
    assert_true(recorded(tree, NULL, "images_per_second") > 0.0);
    assert_true(recorded(tree, NULL, "threads") >= 1.0);
    options.epochs = 7;
    options.resume = true;
    must_train(&options, nobody, &result);
    assert_true(recorded(tree, NULL, "images") == 3 * 54.0);
}

struct heard {
    int epochs, checkpoints, notes, best;
    int64_t last_step;
    double last_loss;
};

/* All optimizers learn images as simple as these. */
TEST_WITH(every_optimizer_trains, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    const char *name;
    for (int i = 0; (name = tdm_optimizer_name(i)) != NULL; i++) {
        struct tdm_train_options options = small_training(tree);
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        options.optimizer = name;
        options.learning_rate = 0.0;
        options.epochs = 8;
        options.run = below(tree, name);
        must_train(&options, nobody, &result);
        if (result.val.correct * 10 < result.val.n * 8)
            fail_msg("%s: %d of %d", name, (int)result.val.correct, (int)result.val.n);
    }
}

static void average_of(const float *from, const float *by, int64_t n, double *squares)
{
    *squares = 0.0;
    for (int64_t i = 0; i < n; i++)
        *squares += ((double)from[i] - (double)by[i]) * ((double)from[i] - (double)by[i]);
}

/* Averages are validated and kept; the checkpoint has the trained values beside them, bit-identical
 * to those of a training without averages. */
TEST_WITH(averages_are_validated_and_kept, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_norm_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result},
                            plain = {.struct_bytes = sizeof plain};
    struct tdmi_model_file with, without, best;
    double squares;
    options.epochs = 2;
    options.run = below(tree, "plain");
    must_train(&options, nobody, &plain);
    options.ema = 0.9;
    options.run = below(tree, "averaged");
    must_train(&options, nobody, &result);
    assert_int_equal(tdmi_model_file_load(below(tree, "plain/last.safetensors"), &without, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_model_file_load(below(tree, "averaged/last.safetensors"), &with, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_model_file_load(below(tree, "averaged/best.safetensors"), &best, NULL),
                     TDM_OK);
    const int64_t n_params = with.graph->param_values, n_states = with.graph->state_values;
    assert_true(n_states > 0 && with.raw_params && !best.raw_params && !without.raw_params);
    assert_memory_equal(with.raw_params, without.params, sizeof(float) * (size_t)n_params);
    assert_memory_equal(with.raw_states, without.states, sizeof(float) * (size_t)n_states);
    average_of(with.params, with.raw_params, n_params, &squares);
    assert_true(squares > 0.0);
    average_of(with.states, with.raw_states, n_states, &squares);
    assert_true(squares > 0.0);
    if (result.best_epoch == 2)
        assert_memory_equal(with.params, best.params, sizeof(float) * (size_t)n_params);
    assert_true(fabs(result.val.loss - plain.val.loss) > 0.0);
    tdmi_model_file_release(&with);
    tdmi_model_file_release(&without);
    tdmi_model_file_release(&best);
}

static void listen(void *self, const tdm_event *event)
{
    struct heard *heard = self;
    heard->epochs += event->kind == TDM_EVENT_EPOCH;
    heard->checkpoints += event->kind == TDM_EVENT_CHECKPOINT;
    heard->notes += event->kind == TDM_EVENT_NOTE;
    if (event->kind == TDM_EVENT_EPOCH) {
        assert_int_equal(event->epoch, heard->epochs);
        assert_int_equal(event->train.n, 54);
        heard->best += event->is_best;
    }
    if (event->kind == TDM_EVENT_PROGRESS && event->total == 54) {
        assert_true(event->step == heard->last_step + 1);
        assert_true(event->done > 0 && event->done <= 54);
        heard->last_step = event->step;
        heard->last_loss = event->loss;
    }
}

TEST_WITH(every_step_and_epoch_is_reported, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {0};
    options.run = below(tree, "run");
    options.eval_every = 2;
    options.epochs = 5;
    options.checkpoint_every = 3;
    must_train(&options, (tdm_sink){&heard, listen}, &result);
    assert_int_equal(heard.epochs, 5);
    assert_int_equal(heard.last_step, 35);
    assert_true(heard.best >= 1 && heard.best <= 3); /* validated after 2, 4 and at the end */
    /* Every 3 steps, and the end; of the other ends of epochs those that a second lies before. */
    assert_in_range(heard.checkpoints, 12, 12 + (int)result.seconds);
    assert_true(heard.notes >= 2);
    assert_true(isfinite(heard.last_loss));
}

struct told {
    char text[4000];
};

static void keep_note(void *self, const tdm_event *event)
{
    struct told *told = self;
    const size_t n = strlen(told->text);
    if (event->kind == TDM_EVENT_NOTE)
        snprintf(told->text + n, sizeof told->text - n, "%s\n", event->text);
}

TEST_WITH(options_without_effect_are_reported, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct told plain = {""}, late = {""}, idle = {""};
    options.run = below(tree, "plain");
    options.schedule = "step:every=1";
    must_train(&options, (tdm_sink){&plain, keep_note}, NULL);
    assert_null(strstr(plain.text, "changes nothing"));
    assert_null(strstr(plain.text, "is more than the"));
    /* Its first reduction would come after the third epoch beside the one of warm-up. */
    options.run = below(tree, "late");
    options.schedule = "step:every=3";
    options.warmup_epochs = 1.0;
    must_train(&options, (tdm_sink){&late, keep_note}, NULL);
    assert_non_null(strstr(late.text, "--schedule step:every=3 has no effect within 3 epochs"));
    options.run = below(tree, "idle");
    options.schedule = "step:every=50";
    options.batch = 500;
    must_train(&options, (tdm_sink){&idle, keep_note}, NULL);
    assert_non_null(strstr(idle.text, "--schedule step:every=50 has no effect within 3 epochs"));
    assert_non_null(strstr(idle.text, "--batch 500 is more than the 54 training images"));
}

TEST_WITH(evaluate_counts_what_training_counted, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    tdm_model *model;
    options.run = below(tree, "run");
    options.epochs = 1; /* far from perfect: the counts say something */
    options.val_fraction = 0.4;
    options.train_fraction = 0.6;
    must_train(&options, nobody, &result);
    assert_int_equal(result.val.n, 24);
    assert_int_equal(
        tdm_model_open(options.run, &(struct tdm_model_options){.threads = 2}, &model, NULL),
        TDM_OK);
    for (int batch = 1; batch <= 256; batch += 85) {
        assert_int_equal(tdm_model_evaluate(model,
                                            &(struct tdm_evaluate_options){.source = options.source,
                                                                           .part = TDM_PART_VAL,
                                                                           .batch = batch},
                                            nobody, &evaluation, NULL),
                         TDM_OK);
        assert_int_equal(evaluation.metrics.score.n, result.val.n);
        assert_int_equal(evaluation.metrics.score.correct, result.val.correct);
        assert_true(fabs(evaluation.metrics.score.loss - result.val.loss) < 1e-12);
        assert_int_equal(evaluation.trained_on, 0);
        assert_null(evaluation.unseen); /* the validation images chose the epoch */
        assert_int_equal(evaluation.validation->score.correct, result.val.correct);
        int64_t n = 0, correct = 0;
        for (int c = 0; c < evaluation.metrics.n_classes; c++) {
            n += evaluation.metrics.per_class[c].n;
            correct += evaluation.metrics.per_class[c].correct;
        }
        assert_int_equal(n, evaluation.metrics.score.n);
        assert_int_equal(correct, evaluation.metrics.score.correct);
        tdm_evaluation_release(&evaluation);
    }
    assert_int_equal(tdm_model_evaluate(model,
                                        &(struct tdm_evaluate_options){.source = options.source,
                                                                       .part = TDM_PART_TRAIN,
                                                                       .batch = 32},
                                        nobody, &evaluation, NULL),
                     TDM_OK);
    assert_int_equal(evaluation.metrics.score.n, 36);
    assert_int_equal(evaluation.trained_on, 36);
    assert_true(!evaluation.unseen && !evaluation.validation);
    tdm_evaluation_release(&evaluation);
    assert_int_equal(tdm_model_evaluate(model,
                                        &(struct tdm_evaluate_options){.source = options.source,
                                                                       .part = TDM_PART_ALL,
                                                                       .batch = 32},
                                        nobody, &evaluation, NULL),
                     TDM_OK);
    assert_int_equal(evaluation.metrics.score.n, 60);
    assert_int_equal(evaluation.trained_on, 36);
    assert_int_equal(evaluation.validation->score.n, result.val.n);
    assert_true(!evaluation.unseen || evaluation.unseen->score.n == 24 - result.val.n);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
}

TEST_WITH(patience_ends_a_training_that_stands_still, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "run");
    options.epochs = 200;
    options.patience = 2;
    options.learning_rate = 1e-9; /* nothing is learnt but the running statistics */
    must_train(&options, nobody, &result);
    assert_true(result.epochs < 200);
    assert_int_equal(result.epochs, 3); /* two validations without one more that is right */
    assert_int_equal(result.patience, 2);
}

TEST_WITH(steps_and_minutes_end_a_training_inside_an_epoch, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "steps");
    options.steps = 10;
    must_train(&options, nobody, &result);
    assert_int_equal(result.steps, 10);
    assert_int_equal(result.epochs, 1);
    assert_int_equal(result.val.n, 6);
    options.run = below(tree, "minutes");
    options.steps = 0;
    options.epochs = 0;
    options.schedule = "constant";
    options.minutes = 0.3 / 60.0;
    must_train(&options, nobody, &result);
    assert_true(result.seconds >= 0.3 && result.seconds < 60.0);
    assert_int_equal(result.val.n, 6);
}

/* ---- pictures that are missing or broken ---------------------------------------------------- */

TEST_WITH(pictures_that_cannot_be_read_are_skipped_and_counted, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result},
                            again = {.struct_bytes = sizeof again};
    for (int i = 0; i < 12; i++) { /* so many that some fall to validation */
        char name[40], text[40];
        snprintf(name, sizeof name, "pictures/b/%03d-broken.ppm", i);
        snprintf(text, sizeof text, "P6\n9 9\n255\nnumber %d ends too early", i);
        tree_text(tree, name, text);
    }
    options.run = below(tree, "one");
    options.val_fraction = 0.3;
    options.train_fraction = 0.7;
    must_train(&options, nobody, &result);
    assert_int_equal(result.skipped, 12);
    assert_int_equal(result.train.n + result.val.n, 60);
    options.run = below(tree, "two");
    options.threads = 2;
    must_train(&options, nobody, &again);
    assert_int_equal(again.skipped, 12);
    same_runs(tree, "one", "two");
    options.resume = true; /* a finished run says the same again */
    must_train(&options, nobody, &again);
    assert_int_equal(again.skipped, 12);
}

TEST_WITH(what_cannot_be_trained_on_is_said_in_a_sentence, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");

    options.source = below(tree, "nowhere");
    fails_with(&options, TDM_E_INPUT, "nowhere");

    paint_picture(tree, "single/only/1.ppm", 0, 1);
    paint_picture(tree, "single/only/2.ppm", 0, 2);
    options.source = below(tree, "single");
    fails_with(&options, TDM_E_INPUT, "class");

    paint_picture(tree, "pairs/a/1.ppm", 0, 1);
    paint_picture(tree, "pairs/b/1.ppm", 1, 2);
    options.source = below(tree, "pairs");
    fails_with(&options, TDM_E_INPUT, "validation");

    for (int i = 0; i < 8; i++) {
        char name[40], text[40];
        snprintf(name, sizeof name, "broken/%c/%d.ppm", 'a' + i % 2, i);
        snprintf(text, sizeof text, "P6\n9 9\n255\nnumber %d ends too early", i);
        tree_text(tree, name, text);
    }
    options.source = below(tree, "broken");
    fails_with(&options, TDM_E_INPUT, "can be read");
}

TEST_WITH(an_empty_class_is_no_hindrance_or_a_sentence, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    tree_folder(tree, "pictures/empty");
    options.run = below(tree, "run");
    options.epochs = 1;
    tdm_status status = tdm_train(&options, nobody, &result, &err);
    if (status == TDM_OK)
        assert_int_equal(result.train.n + result.val.n, 60);
    else {
        char text[3000];
        assert_int_equal(status, TDM_E_INPUT);
        tdm_error_format(&err, text, sizeof text);
        assert_non_null(strstr(text, "empty"));
    }
}

TEST_WITH(options_that_do_not_fit_are_refused_before_anything_is_written, begin_with_sixty,
          end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree), good = options;
    good.run = options.run = below(tree, "run");
    options.model = "resnet5000";
    fails_with(&options, TDM_E_USAGE, "resnet5000");
    options = good;
    options.device = "tpu";
    fails_with(&options, TDM_E_USAGE, "tpu");
    options = good;
    options.schedule = "cosin";
    fails_with(&options, TDM_E_USAGE, "cosin");
    options = good;
    options.epochs = 0;
    options.minutes = 1.0;
    fails_with(&options, TDM_E_USAGE, "must know where training ends");
    options = good;
    options.batch = 0;
    fails_with(&options, TDM_E_USAGE, "--batch");
    options = good;
    options.source = NULL;
    fails_with(&options, TDM_E_USAGE, "no source");
    assert_int_equal(tdmi_file_kind_of(good.run), TDMI_FILE_MISSING);
    options = good;
    options.size = 4;
    fails_with(&options, TDM_E_INPUT, "larger --size");
    /* and the folder is not spoilt for a good try */
    must_train(&good, nobody, NULL);
}

TEST_WITH(a_rate_that_is_too_large_is_reported, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");
    options.learning_rate = 1000.0;
    options.momentum = 0.99;
    options.epochs = 50;
    options.warmup_epochs = 0.0;
    fails_with(&options, TDM_E_FAILED, "a smaller --lr");
}

TEST_MAIN(NULL, NULL)

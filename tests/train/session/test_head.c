/*
 * The head of a network and its loss: hidden layer, dropout, one logit for two classes, smoothed
 * labels, class weights.
 */
#include "train/pictures.h"
#include "tandem/model.h"
#include "unit.h"

#include <math.h>

enum { per_class = 20 };

static struct tree open_tree(int classes)
{
    struct tree tree = quick_tree_new();
    setenv("TANDEM_HOME", below(&tree, "home"), 1);
    paint_classes(&tree, classes, per_class);
    return tree;
}

/* Validation counts the same as evaluating the model file on the same images. */
static void evaluated_as(const struct tree *tree, const struct tdm_train_options *options,
                         const struct tdm_train_result *result, int classes)
{
    tdm_model *model = NULL;
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    const struct tdm_evaluate_options how = {
        .source = options->source, .part = TDM_PART_VAL, .batch = 3};
    assert_int_equal(tdm_model_open(below(tree, "run"), NULL, &model, NULL), TDM_OK);
    assert_int_equal(tdm_model_classes(model), classes);
    assert_int_equal(tdm_model_evaluate(model, &how, (tdm_sink){0}, &evaluation, NULL), TDM_OK);
    assert_int_equal(evaluation.metrics.score.correct, result->val.correct);
    assert_true(evaluation.metrics.score.loss == result->val.loss);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
}

TEST(two_classes_need_one_logit)
{
    struct tree tree = open_tree(2);
    struct tdm_train_options options = small_training(&tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(&tree, "run");
    options.loss = "binary";
    options.hidden = 24;
    options.dropout = 0.25;
    options.epochs = 12;
    options.learning_rate = 0.02;
    must_train(&options, (tdm_sink){0}, &result);
    assert_true(result.val.accuracy > 0.9);
    evaluated_as(&tree, &options, &result, 2);
    tree_free(&tree);
}

TEST(more_classes_get_a_yes_or_no_each)
{
    struct tree tree = open_tree(3);
    struct tdm_train_options options = small_training(&tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(&tree, "run");
    options.loss = "binary";
    options.epochs = 12;
    options.learning_rate = 0.02;
    must_train(&options, (tdm_sink){0}, &result);
    assert_true(result.val.accuracy > 0.8);
    evaluated_as(&tree, &options, &result, 3);
    tree_free(&tree);
}

/* Training steps differ; validation with the same weights does not. */
TEST(labels_are_smoothed_in_training_alone)
{
    struct tree tree = open_tree(3);
    struct tdm_train_options options = small_training(&tree);
    struct tdm_train_result plain = {.struct_bytes = sizeof plain},
                            smooth = {.struct_bytes = sizeof smooth};
    options.run = below(&tree, "plain");
    options.epochs = 1;
    options.learning_rate = 1e-9; /* nothing is learnt: both evaluate the same weights */
    must_train(&options, (tdm_sink){0}, &plain);
    options.run = below(&tree, "run");
    options.label_smoothing = 0.3;
    must_train(&options, (tdm_sink){0}, &smooth);
    assert_true(smooth.train.loss != plain.train.loss);
    assert_true(fabs(smooth.val.loss - plain.val.loss) < 1e-6);
    evaluated_as(&tree, &options, &smooth, 3);
    tree_free(&tree);
}

TEST(classes_of_one_size_weigh_nothing_more)
{
    struct tree tree = open_tree(3);
    struct tdm_train_options options = small_training(&tree);
    struct tdm_train_result plain = {.struct_bytes = sizeof plain},
                            balanced = {.struct_bytes = sizeof balanced};
    options.run = below(&tree, "plain");
    must_train(&options, (tdm_sink){0}, &plain);
    options.run = below(&tree, "balanced");
    options.class_weights = "balanced";
    must_train(&options, (tdm_sink){0}, &balanced);
    same_runs(&tree, "plain", "balanced");
    tree_free(&tree);
}

/* Correct predictions for images of the second class. */
static int64_t right_of_second(const struct tree *tree, const char *weights)
{
    struct tdm_train_options options = small_training(tree);
    const struct tdm_evaluate_options how = {.source = options.source, .batch = 8};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    tdm_model *model = NULL;
    options.run = below(tree, weights);
    options.class_weights = weights;
    options.epochs = 12;
    options.learning_rate = 0.005;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(tdm_model_open(options.run, NULL, &model, NULL), TDM_OK);
    assert_int_equal(tdm_model_evaluate(model, &how, (tdm_sink){0}, &evaluation, NULL), TDM_OK);
    assert_int_equal(evaluation.metrics.per_class[1].n, 4);
    const int64_t correct = evaluation.metrics.per_class[1].correct;
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
    return correct;
}

/* 4 images of one class and 40 of the other: without weights all are predicted as the large one. */
TEST(class_weights_help_small_classes)
{
    struct tree tree = quick_tree_new();
    setenv("TANDEM_HOME", below(&tree, "home"), 1);
    for (int i = 0; i < 44; i++) {
        char name[40];
        snprintf(name, sizeof name, "pictures/%c/%03d.ppm", i < 40 ? 'a' : 'b', i);
        paint_picture(&tree, name, i < 40 ? 0 : 1, i);
    }
    assert_int_equal(right_of_second(&tree, "none"), 0);
    assert_int_equal(right_of_second(&tree, "balanced"), 4);
    tree_free(&tree);
}

TEST(words_that_are_none_are_refused)
{
    struct tree tree = open_tree(2);
    struct tdm_train_options options = small_training(&tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    char text[2000];
    options.run = below(&tree, "run");
    options.loss = "hinge";
    assert_int_equal(tdm_train(&options, (tdm_sink){0}, &result, &err), TDM_E_USAGE);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "option --loss is 'hinge'; softmax or binary is accepted"));
    options.loss = "softmax";
    options.features = "f64";
    assert_int_equal(tdm_train(&options, (tdm_sink){0}, &result, &err), TDM_E_USAGE);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "option --features is 'f64'; f32, f16 or none is accepted"));
    options.features = "f32";
    options.balance = true;
    options.class_weights = "balanced";
    assert_int_equal(tdm_train(&options, (tdm_sink){0}, &result, &err), TDM_E_USAGE);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "one of them is accepted"));
    tree_free(&tree);
}

TEST_MAIN(NULL, NULL)

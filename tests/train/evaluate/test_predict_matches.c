/*
 * The prediction for an image is bit-identical to that of the validation, for every validation
 * image: whatever the batches and groups, the norms, the head, and whether frozen layers were
 * computed or their features came from the store.
 */
#include "train/pictures.h"
#include "data/audit/contents.h"
#include "tandem/model.h"
#include "train/evaluate/outcomes.h"
#include "unit.h"

enum { most_classes = 4 };

/* 26 training and 13 validation images of three classes; "base" is a model of four others. */
static int set_up(void **state)
{
    struct tree *tree = begin_with_classes(state, most_classes, 5);
    struct tdm_train_options options = small_norm_training(tree);
    options.epochs = 1;
    options.run = below(tree, "base");
    must_train(&options, (tdm_sink){0}, NULL);
    assert_int_equal(rename(below(tree, "pictures"), below(tree, "others")), 0);
    paint_classes(tree, 3, 13);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct comparison {
    const struct tree *tree;
    const tdmi_outcomes *outcomes;
    int n_compared;
};

static uint64_t content_of(const struct tree *tree, const char *path)
{
    char name[400];
    void *bytes;
    size_t n_bytes;
    snprintf(name, sizeof name, "%s/pictures/%s", tree->root, path); /* below() keeps only 100 */
    assert_int_equal(tdmi_file_read(name, 1 << 20, &bytes, &n_bytes, NULL), TDM_OK);
    const uint64_t content = tdmi_contents_hash(bytes, n_bytes);
    tdmi_free(bytes);
    return content;
}

static float probability_of(const struct tdm_prediction *prediction, int label)
{
    for (int i = 0; i < prediction->n_guesses; i++)
        if (prediction->guesses[i].index == label)
            return prediction->guesses[i].probability;
    fail_msg("class %d is not among the guesses", label);
    return 0.0f;
}

/* Bits, not values: -0 and 0 are two. */
static void same_bits(float a, float b, const char *path)
{
    if (memcmp(&a, &b, sizeof a) != 0)
        fail_msg("%s: predict says %.9g and validation said %.9g", path, (double)a, (double)b);
}

static tdm_status compare(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct comparison *comparison = self;
    const tdmi_outcomes *outcomes = comparison->outcomes;
    const uint64_t content = content_of(comparison->tree, prediction->path);
    (void)err;
    assert_null(prediction->problem);
    for (int64_t i = 0; i < outcomes->n; i++) {
        if (outcomes->contents[i] != content)
            continue;
        assert_int_equal(prediction->guesses[0].index, outcomes->predicted[i]);
        same_bits(prediction->guesses[0].probability, outcomes->confidences[i], prediction->path);
        same_bits(probability_of(prediction, outcomes->labels[i]), outcomes->probabilities[i],
                  prediction->path);
        comparison->n_compared++;
    }
    return TDM_OK;
}

/* Trains, and asks the model on other threads, in pieces of other sizes, about all pictures. */
static void predicts_what_was_validated(const struct tree *tree, struct tdm_train_options options)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdmi_outcomes outcomes = {0};
    tdm_error err = {0};
    const char *const folder = below(tree, "pictures");
    options.run = below(tree, "run");
    must_train(&options, (tdm_sink){0}, &result);
    assert_ok(tdmi_outcomes_load(below(tree, "run/outcomes.safetensors"), &outcomes, &err), &err);
    assert_int_equal(outcomes.n, result.val.n);
    assert_true(outcomes.n >= 9);
    for (int threads = 1; threads <= 3; threads++) {
        struct comparison comparison = {.tree = tree, .outcomes = &outcomes};
        tdm_model *model = NULL;
        const struct tdm_model_options how = {.threads = threads};
        assert_ok(tdm_model_open(options.run, &how, &model, &err), &err);
        assert_ok(tdm_model_predict(model, &folder, 1, most_classes,
                                    (tdm_prediction_sink){&comparison, compare}, &err),
                  &err);
        assert_int_equal(comparison.n_compared, outcomes.n);
        tdm_model_close(model);
    }
    tdmi_outcomes_release(&outcomes);
    char kept[20];
    static int number;
    snprintf(kept, sizeof kept, "run-%d", number++);
    assert_int_equal(rename(options.run, below(tree, kept)), 0);
}

static struct tdm_train_options of_thirds(struct tdm_train_options options)
{
    options.train_fraction = 0.67;
    options.val_fraction = 0.33;
    options.epochs = 2;
    return options;
}

/* ---- the cases ------------------------------------------------------------------------------- */

TEST_WITH(batches_that_do_not_divide_into_groups, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = of_thirds(small_training(tree));
    const int sizes[][2] = {{8, 3}, {5, 5}, {7, 2}, {64, 64}, {1, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        options.batch = sizes[i][0];
        options.shard = sizes[i][1];
        predicts_what_was_validated(tree, options);
    }
}

TEST_WITH(norms_over_groups_and_batches, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = of_thirds(small_norm_training(tree));
    predicts_what_was_validated(tree, options);
    options.bn = "batch";
    predicts_what_was_validated(tree, options);
    options.ema = 0.8; /* averages are validated */
    predicts_what_was_validated(tree, options);
}

TEST_WITH(heads_of_every_kind, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = of_thirds(small_training(tree));
    options.hidden = 5;
    options.dropout = 0.5;
    predicts_what_was_validated(tree, options);
    options.loss = "binary";
    predicts_what_was_validated(tree, options);
    assert_int_equal(rename(below(tree, "pictures/c"), below(tree, "others/c-too")), 0);
    for (int i = 13; i < 19; i++) { /* two classes have one logit */
        char name[40];
        for (int label = 0; label < 2; label++) {
            snprintf(name, sizeof name, "pictures/%c/%03d.ppm", 'a' + label, i);
            paint_picture(tree, name, label, i);
        }
    }
    predicts_what_was_validated(tree, options);
}

TEST_WITH(frozen_bases_stored_or_computed, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    static const char *const ways[] = {"f32", "f32", "f16", "none"}; /* made, found, rounded */
    struct tdm_train_options options = of_thirds(small_training(tree));
    options.model = NULL;
    options.size = 0;
    options.weights = below(tree, "base");
    options.freeze = "base";
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        options.features = ways[i];
        options.hidden = i == 1 ? 6 : 0;
        options.dropout = i == 1 ? 0.3 : 0.0;
        options.loss = i == 3 ? "binary" : "softmax";
        predicts_what_was_validated(tree, options);
    }
    options.features = "f32";
    options.freeze = "3"; /* norms before the border are folded, those behind it are not */
    predicts_what_was_validated(tree, options);
}

TEST_MAIN(NULL, NULL)

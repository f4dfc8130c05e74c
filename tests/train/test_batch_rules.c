/* --batch auto: its rules, what it says, that it is the training of a batch that was asked for, and
 * that it is decided once. */
#include "train/batch_rules.h"
#include "train/pictures.h"
#include "track/run.h"
#include "unit.h"

/* ---- rules ---------------------------------------------------------------------------------- */

TEST(an_epoch_keeps_a_hundred_steps)
{
    assert_int_equal(tdmi_batch_most(1), 32);
    assert_int_equal(tdmi_batch_most(6399), 32);
    assert_int_equal(tdmi_batch_most(6400), 64);
    assert_int_equal(tdmi_batch_most(50000), 256);
    assert_int_equal(tdmi_batch_most(1281167), 8192);
    assert_int_equal(tdmi_batch_most(INT64_MAX), 8192);
}

TEST(the_smallest_batch_at_which_doubling_brings_little_is_taken)
{
    static const double grows[] = {100.0, 200.0, 390.0}, ends[] = {100.0, 150.0, 160.0, 161.0},
                        falls[] = {100.0, 70.0};
    assert_int_equal(tdmi_batch_best(grows, 1), 0);
    assert_int_equal(tdmi_batch_best(grows, 3), 2);
    assert_false(tdmi_batch_is_flat(grows, 1));
    assert_false(tdmi_batch_is_flat(grows, 3));
    assert_int_equal(tdmi_batch_best(ends, 4), 1);
    assert_false(tdmi_batch_is_flat(ends, 2));
    assert_true(tdmi_batch_is_flat(ends, 3));
    assert_int_equal(tdmi_batch_best(falls, 2), 0);
}

/* ---- trainings ------------------------------------------------------------------------------ */

static int few(void **state)
{
    (void)begin_with_classes(state, 3, 12);
    return 0;
}

static struct tdm_train_options auto_training(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = small_training(tree);
    options.batch = 0;
    options.learning_rate = 0.0;
    options.run = below(tree, run);
    return options;
}

TEST_WITH(few_pictures_get_the_usual_batch, few, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = auto_training(tree, "auto");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.batch, 32);
    assert_non_null(strstr(result.batch_reason, "fewer than 100 steps an epoch"));
    options.run = below(tree, "asked");
    options.batch = 32;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.batch, 32);
    assert_string_equal(result.batch_reason, "");
    same_runs(tree, "auto", "asked");
}

/* 8 x 8 pictures in an IDX file, of two classes, so many that more than the usual batch may be
 * taken. */
static int many(void **state)
{
    enum { n = 7400, side = 8, bytes = side * side };
    struct tree *tree = begin_with_classes(state, 1, 1);
    uint8_t *pictures = calloc(16 + (size_t)n * bytes, 1), *labels = calloc(8 + n, 1);
    assert_non_null(pictures);
    assert_non_null(labels);
    memcpy(pictures, (uint8_t[]){0, 0, 8, 3, 0, 0, n >> 8, n & 255, 0, 0, 0, side, 0, 0, 0, side},
           16);
    memcpy(labels, (uint8_t[]){0, 0, 8, 1, 0, 0, n >> 8, n & 255}, 8);
    for (int i = 0; i < n; i++) {
        tdmi_rng rng = tdmi_rng_at(6, TDMI_RNG_TEST, 0, (uint64_t)i);
        labels[8 + i] = (uint8_t)(i % 2);
        for (int p = 0; p < bytes; p++)
            pictures[16 + i * bytes + p] =
                (uint8_t)(tdmi_rng_below(&rng, 120) + ((p < bytes / 2) == (i % 2) ? 100 : 0));
    }
    tree_file(tree, "digits/train-images-idx3-ubyte", pictures, 16 + (size_t)n * bytes);
    tree_file(tree, "digits/train-labels-idx1-ubyte", labels, 8 + n);
    free(pictures);
    free(labels);
    return 0;
}

/* The batch in the run's record. */
static int64_t recorded_batch(const struct tree *tree, const char *run)
{
    tdm_json_document *document = NULL;
    assert_int_equal(tdmi_run_read(below(tree, run), NULL, &document, NULL), TDM_OK);
    const tdm_json_value *data = tdm_json_member(tdm_json_root(document), "data");
    const int64_t batch = tdm_json_as_integer(tdm_json_member(data, "batch"), -1);
    tdm_json_document_free(document);
    return batch;
}

static void put_batch(const struct tree *tree, const char *run, int from, int to)
{
    char name[100], before[40], after[40];
    void *bytes;
    size_t n;
    snprintf(name, sizeof name, "%s/run.json", run);
    snprintf(before, sizeof before, "\"batch\": %d,", from);
    snprintf(after, sizeof after, "\"batch\": %d,", to);
    assert_int_equal(strlen(before), strlen(after));
    assert_int_equal(tdmi_file_read(below(tree, name), 1 << 20, &bytes, &n, NULL), TDM_OK);
    assert_non_null(strstr(bytes, before));
    for (char *at; (at = strstr(bytes, before)) != NULL;)
        memcpy(at, after, strlen(after));
    tree_file(tree, name, bytes, n);
    tdmi_free(bytes);
}

TEST_WITH(what_is_chosen_is_the_training_of_that_batch_and_kept, many, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = auto_training(tree, "auto");
    options.source = below(tree, "digits");
    options.shard = 8;
    options.steps = 2;
    options.schedule = "constant";
    options.warmup_epochs = 0.0;
    must_train(&options, (tdm_sink){0}, &result);
    const int chosen = result.batch;
    assert_true(chosen == 32 || chosen == 64);
    assert_int_equal(strncmp(result.batch_reason, "timed 32: ", 10), 0);
    assert_int_equal(recorded_batch(tree, "auto"), chosen);
    options.run = below(tree, "asked");
    options.batch = chosen;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "auto", "asked");
    /* a record that says the other one is believed: nothing is timed again */
    options = auto_training(tree, "auto");
    options.source = below(tree, "digits");
    options.shard = 8;
    options.schedule = "constant";
    options.warmup_epochs = 0.0;
    options.steps = 4;
    options.resume = true;
    put_batch(tree, "auto", chosen, 96 - chosen);
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.batch, 96 - chosen);
    assert_int_equal(strncmp(result.batch_reason, "timed 32: ", 10), 0);
    options.batch = chosen;
    fails_with(&options, TDM_E_USAGE, "but the run was started with auto");
}

TEST_MAIN(NULL, NULL)

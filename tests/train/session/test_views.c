/*
 * Changed pictures in front of a frozen base: a few views of each, made once. Where they come from
 * (the store, or computed anew in every epoch), when they are made, by how many threads and after
 * which interruptions changes no bit, and what judges is never changed.
 */
#include "train/pictures.h"
#include "tandem/model.h"
#include "tandem/event.h"
#include "train/hearing.h"
#include "unit.h"

enum { n_classes = 4, per_class = 20, n_val = 8, n_train = n_classes * per_class - n_val };

static int set_up(void **state)
{
    begin_with_base(state, n_classes, per_class);
    return 0;
}

static struct tdm_train_options with_views(const struct tree *tree, const char *run, int views)
{
    struct tdm_train_options options = small_training(tree);
    options.weights = below(tree, "base");
    options.model = NULL;
    options.augment = "flip,crop:2,resized-crop:0.5";
    options.views = views;
    options.run = below(tree, run);
    return options;
}

/* ---- bits ------------------------------------------------------------------------------------ */

TEST_WITH(views_are_those_of_computing_them_in_every_epoch, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result stored = {.struct_bytes = sizeof stored},
                            computed = {.struct_bytes = sizeof computed};
    struct heard heard = {""};
    struct tdm_train_options options = with_views(tree, "stored", 2);
    must_train(&options, (tdm_sink){0}, &stored);
    assert_int_equal(stored.views, 2);
    assert_int_equal(stored.features.rows, n_val + 2 * n_train);
    options.run = below(tree, "computed");
    options.features = "none";
    must_train(&options, (tdm_sink){&heard, hear}, &computed);
    assert_heard(&heard, "computed in every epoch, because of --features none", true);
    assert_int_equal(computed.features.rows, 0);
    same_runs(tree, "stored", "computed");
    options.run = below(tree, "found");
    options.features = "f32";
    options.threads = 3;
    must_train(&options, (tdm_sink){0}, &stored);
    assert_true(stored.cached);
    assert_int_equal(stored.features.reused, n_val + 2 * n_train);
    same_runs(tree, "found", "computed");
    options.run = below(tree, "anywhere");
    setenv("TANDEM_HOME", below(tree, "another"), 1);
    must_train(&options, (tdm_sink){0}, &stored); /* made by three threads */
    setenv("TANDEM_HOME", "/dev/null/nowhere", 1);
    same_runs(tree, "anywhere", "computed");
    options.run = below(tree, "nowhere"); /* no place to keep them, and the same views */
    must_train(&options, (tdm_sink){0}, &computed);
    assert_int_equal(computed.features.rows, 0);
    same_runs(tree, "nowhere", "computed");
}

TEST_WITH(balanced_classes_go_through_their_views, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_views(tree, "stored", 3);
    for (int i = 4; i < per_class; i++) { /* one class is rare, so it comes often */
        char name[40];
        snprintf(name, sizeof name, "pictures/b/%03d.ppm", i);
        assert_int_equal(remove(below(tree, name)), 0);
    }
    options.balance = true;
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "computed");
    options.features = "none";
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "stored", "computed");
}

static void stop_at_step_13(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_PROGRESS && event->step == 13)
        tdm_stop_request();
}

TEST_WITH(an_interrupted_run_on_views_ends_with_the_same_bits, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    struct tdm_train_options options = with_views(tree, "whole", 3);
    options.schedule = "constant"; /* or its end would be another one */
    must_train(&options, (tdm_sink){0}, &result);
    for (int has_rows = 1; has_rows >= 0; has_rows--) {
        setenv("TANDEM_HOME", below(tree, has_rows ? "home" : "empty"), 1);
        options.run = below(tree, has_rows ? "cut" : "again");
        options.resume = false;
        /* In the middle of the second epoch. (A run that is to end there is judged there, too.) */
        assert_int_equal(tdm_train(&options, (tdm_sink){.event = stop_at_step_13}, &result, &err),
                         TDM_E_STOPPED);
        tdm_stop_clear();
        options.resume = true;
        must_train(&options, (tdm_sink){0}, &result);
        assert_int_equal(result.views, 3);
        same_runs(tree, "whole", has_rows ? "cut" : "again");
    }
}

/* In the epoch of which it is the second sitting. */
static void stop_at_second_sitting(void *self, const tdm_event *event)
{
    int *sittings = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN && strcmp(event->text, "computing features") == 0 &&
        ++*sittings == 2)
        tdm_stop_request();
}

TEST_WITH(a_run_stopped_while_a_view_is_made_is_gone_on_with, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_views(tree, "cut", -1);
    int sittings = 0;
    tdm_error err = {0};
    assert_int_equal(
        tdm_train(&options, (tdm_sink){&sittings, stop_at_second_sitting}, &result, &err),
        TDM_E_STOPPED);
    assert_int_equal(sittings, 2);
    tdm_stop_clear();
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.views, 8);
    options.resume = false;
    options.run = below(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "whole", "cut");
}

/* A run folder as a kill leaves it that comes after the last checkpoint: the record knows no end.
 */
static void forget_the_end(const struct tree *tree, const char *run)
{
    char name[60];
    void *bytes;
    size_t n;
    snprintf(name, sizeof name, "%s/run.json", run);
    assert_int_equal(tdmi_file_read(below(tree, name), 1 << 20, &bytes, &n, NULL), TDM_OK);
    char *text = tdmi_alloc(n + 1, 1);
    assert_non_null(text);
    memcpy(text, bytes, n);
    char *status = strstr(text, "\"status\": \"finished\"");
    char *result = strstr(text, "\"result\": {");
    assert_non_null(status);
    assert_non_null(result);
    memcpy(status, "\"status\": \"running\" ", strlen("\"status\": \"finished\""));
    memcpy(result, "\"forgot\"", strlen("\"result\""));
    tree_file(tree, name, text, n);
    tdmi_free(text);
    tdmi_free(bytes);
}

/* Fewer epochs than views: the next one's view was never promised room. */
TEST_WITH(a_run_that_is_over_is_gone_on_with_without_features, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                            again = {.struct_bytes = sizeof again};
    struct tdm_train_options options = with_views(tree, "run", -1);
    struct heard heard = {""};
    options.epochs = 2;
    options.train_fraction = 0.6;
    options.val_fraction = 0.2;
    options.test_fraction = 0.2;
    must_train(&options, (tdm_sink){0}, &whole);
    assert_true(whole.test.n > 0);
    options.resume = true;
    for (int has_end = 1; has_end >= 0; has_end--) {
        if (!has_end) {
            forget_the_end(tree, "run");
            setenv("TANDEM_HOME", "/dev/null/nowhere", 1);
        }
        must_train(&options, (tdm_sink){&heard, hear}, &again);
        assert_int_equal(again.steps, whole.steps);
        assert_int_equal(again.views, 8);
        assert_int_equal(again.test.correct, whole.test.correct);
        assert_true(again.test.loss == whole.test.loss);
        assert_heard(&heard, "features", false);
    }
    setenv("TANDEM_HOME", below(tree, "home"), 1);
    options.epochs = 3; /* and it goes on from there */
    must_train(&options, (tdm_sink){0}, &again);
    assert_int_equal(again.epochs, 3);
}

/* ---- what is made ---------------------------------------------------------------------------- */

TEST_WITH(a_view_is_made_by_the_epoch_that_first_takes_it, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_views(tree, "chosen", -1);
    options.epochs = 2;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "8 changed views each", true);
    assert_int_equal(result.views, 8);
    assert_int_equal(result.features.rows, n_val + 2 * n_train);
    options.run = below(tree, "longer");
    options.epochs = 10; /* two of which find what the first made */
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.reused, n_val + 2 * n_train);
    assert_int_equal(result.features.rows, n_val + 8 * n_train);
    assert_true(result.features.checked > 5 && result.features.checked < 80);
}

TEST_WITH(rows_of_views_are_found_in_a_renamed_and_grown_folder, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_views(tree, "first", 2);
    must_train(&options, (tdm_sink){0}, &result);
    /* Every picture gets another number and another name, and three are new. */
    assert_int_equal(rename(below(tree, "pictures/a"), below(tree, "pictures/z")), 0);
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "pictures/b/00%d-new.ppm", i);
        paint_picture(tree, name, 1, 500 + i);
    }
    options.run = below(tree, "second");
    must_train(&options, (tdm_sink){0}, &result);
    /* Where a picture trains that judged before, or the other way, its rows are new. */
    assert_true(result.features.reused > 2 * n_train - 30);
    assert_true(result.features.rows > n_val + 2 * n_train);
    options.run = below(tree, "third");
    options.seed = 6; /* other changes */
    must_train(&options, (tdm_sink){0}, &result);
    assert_true(result.features.reused <= n_val + 3);
    options.run = below(tree, "fourth");
    options.augment = "flip,crop:3";
    must_train(&options, (tdm_sink){0}, &result);
    assert_true(result.features.reused <= n_val + 3);
}

TEST_WITH(a_picture_that_cannot_be_decoded_is_told_once, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_views(tree, "run", 3);
    tree_file(tree, "pictures/a/broken.ppm", "P6\n9 9\n255\nshort", 16);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    const char *first = strstr(heard.text, "broken.ppm");
    assert_non_null(first);
    assert_null(strstr(first + 1, "broken.ppm: "));
    assert_int_equal(result.skipped, 1);
    assert_int_equal(result.features.rows, n_val + 3 * n_train);
}

TEST_WITH(what_judges_is_not_changed, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    static const char *const precisions[] = {"f32", "f16"};
    for (int i = 0; i < 2; i++) {
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
        tdm_model *model = NULL;
        struct tdm_train_options options = with_views(tree, precisions[i], 2);
        options.features = precisions[i];
        must_train(&options, (tdm_sink){0}, &result);
        const struct tdm_evaluate_options how = {
            .source = options.source, .part = TDM_PART_VAL, .batch = 5};
        assert_int_equal(tdm_model_open(options.run, NULL, &model, NULL), TDM_OK);
        assert_int_equal(tdm_model_evaluate(model, &how, (tdm_sink){0}, &evaluation, NULL), TDM_OK);
        assert_int_equal(evaluation.metrics.score.correct, result.val.correct);
        assert_true(evaluation.metrics.score.loss == result.val.loss);
        tdm_evaluation_release(&evaluation);
        tdm_model_close(model);
    }
}

/* ---- whether --------------------------------------------------------------------------------- */

TEST_WITH(pictures_are_changed_anew_where_no_views_are_wanted, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard anew = {""}, mixed = {""};
    struct tdm_train_options options = with_views(tree, "anew", 0);
    must_train(&options, (tdm_sink){&anew, hear}, &result);
    assert_heard(&anew, "images are changed anew in each (--augment, --views 0)", true);
    assert_int_equal(result.features.rows, 0);
    options = with_views(tree, "mixed", -1);
    options.augment = "flip,mixup";
    must_train(&options, (tdm_sink){&mixed, hear}, &result);
    assert_heard(&mixed, "because mixup and cutmix mix images with each other", true);
    assert_int_equal(result.features.rows, 0);
    assert_int_equal(result.views, 0);
}

TEST_WITH(views_that_cannot_be_are_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_views(tree, "run", 2);
    options.augment = "flip,cutmix";
    fails_with(&options, TDM_E_USAGE, "mixup and cutmix mix them with others; one of the two");
    options.augment = NULL;
    fails_with(&options, TDM_E_USAGE, "--views 2 requires changed images");
    options.augment = "flip";
    options.freeze = "none";
    fails_with(&options, TDM_E_USAGE, "nothing is frozen; leave it out, or give --freeze base");
}

TEST_MAIN(NULL, NULL)

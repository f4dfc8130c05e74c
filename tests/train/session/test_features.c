/*
 * Training the head on rows that a frozen base made once: the same bits as without, nothing
 * computed twice, and what is stored is never trusted blindly.
 */
#include "train/pictures.h"
#include "base/hash/hash.h"
#include "features/store.h"
#include "weights/weights.h"
#include "tandem/model.h"
#include "tandem/runs.h"
#include "tandem/event.h"
#include "train/hearing.h"
#include "unit.h"

#include <dirent.h>

enum { n_classes = 4, per_class = 20, n_pictures = n_classes * per_class, width = 84 };

static int set_up(void **state)
{
    begin_with_base(state, n_classes, per_class);
    return 0;
}

TEST_WITH(what_a_frozen_base_makes_is_made_once, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result first = {.struct_bytes = sizeof first},
                            second = {.struct_bytes = sizeof second};
    struct heard heard = {""};
    struct tdm_train_options options = with_frozen_base(tree, "first");
    must_train(&options, (tdm_sink){0}, &first);
    assert_false(first.cached);
    assert_int_equal(first.features.rows, n_pictures);
    assert_int_equal(first.features.reused, 0);
    options.run = below(tree, "second");
    options.seed = 99; /* another split, another head, another order */
    options.learning_rate = 0.01;
    must_train(&options, (tdm_sink){&heard, hear}, &second);
    assert_true(second.cached);
    assert_int_equal(second.features.rows, n_pictures);
    assert_int_equal(second.features.reused, n_pictures);
    assert_true(second.features.checked > 5 && second.features.checked < n_pictures);
    assert_heard(&heard, "features: 0 computed", true);
}

TEST_WITH(bits_are_those_of_computing_in_every_epoch, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result stored = {.struct_bytes = sizeof stored},
                            computed = {.struct_bytes = sizeof computed};
    struct heard heard = {""};
    struct tdm_train_options options = with_frozen_base(tree, "stored");
    must_train(&options, (tdm_sink){0}, &stored);
    options.run = below(tree, "computed");
    options.features = "none";
    must_train(&options, (tdm_sink){&heard, hear}, &computed);
    assert_int_equal(computed.features.rows, 0);
    assert_heard(&heard, "computed in every epoch, because of --features none", true);
    same_runs(tree, "stored", "computed");
    options.run = below(tree, "threads");
    options.features = "f32";
    options.threads = 3;
    must_train(&options, (tdm_sink){0}, &stored);
    same_runs(tree, "threads", "computed");
}

TEST_WITH(balanced_classes_draw_the_same_rows, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "stored");
    options.balance = true;
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "computed");
    options.features = "none";
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "stored", "computed");
}

static void stop_at_step_11(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_PROGRESS && event->step == 11)
        tdm_stop_request();
}

TEST_WITH(an_interrupted_run_on_rows_ends_with_the_same_bits, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    struct tdm_train_options options = with_frozen_base(tree, "whole");
    options.schedule = "constant"; /* or its end would be another one */
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "cut");
    /* In the middle of the second epoch. (A run that is to end there is judged there, too.) */
    assert_int_equal(tdm_train(&options, (tdm_sink){.event = stop_at_step_11}, &result, &err),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.reused, n_pictures);
    same_runs(tree, "whole", "cut");
}

static void stop_at_features(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN && strcmp(event->text, "computing features") == 0)
        tdm_stop_request();
}

TEST_WITH(a_run_stopped_while_features_are_computed_is_gone_on_with, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "cut");
    tdm_error err = {0};
    assert_int_equal(tdm_train(&options, (tdm_sink){NULL, stop_at_features}, &result, &err),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    tdm_runs *runs = NULL;
    assert_int_equal(tdm_runs_read(&options.run, 1, &runs, &err), TDM_OK);
    assert_string_equal(tdm_runs_at(runs, 0)->source, options.source);
    assert_int_equal(tdm_runs_at(runs, 0)->epochs, 0);
    tdm_runs_close(runs);
    /* Nothing but the run is named: its record knows the rest. */
    struct tdm_train_options again = tdm_train_options_default();
    tdm_json_document *words;
    assert_int_equal(tdm_train_options_recorded(options.run, &again, &words, NULL), TDM_OK);
    again.source = options.source;
    again.run = options.run;
    again.resume = true;
    must_train(&again, (tdm_sink){0}, &result);
    tdm_json_document_free(words);
    options.run = below(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "whole", "cut");
}

/* Tensors of a model file, the last layer left out. */
static void same_base(const char *a, const char *b)
{
    tdmi_weights *left, *right;
    int n_same = 0;
    assert_int_equal(tdmi_weights_open(a, &left, NULL), TDM_OK);
    assert_int_equal(tdmi_weights_open(b, &right, NULL), TDM_OK);
    for (size_t i = 0; i < tdmi_weights_count(left); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(left, i);
        const struct tdmi_weights_tensor *other = tdmi_weights_find(right, tensor->name);
        if (strncmp(tensor->name, "conv", 4) != 0 && strncmp(tensor->name, "dense1", 6) != 0 &&
            strncmp(tensor->name, "dense2", 6) != 0)
            continue;
        assert_non_null(other);
        assert_int_equal(tensor->bytes, other->bytes);
        assert_memory_equal(tensor->data, other->data, tensor->bytes);
        n_same++;
    }
    assert_true(n_same >= 8);
    tdmi_weights_close(left);
    tdmi_weights_close(right);
}

TEST_WITH(what_is_frozen_keeps_its_bytes, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "run");
    must_train(&options, (tdm_sink){0}, &result);
    same_base(below(tree, "base/best.safetensors"), below(tree, "run/best.safetensors"));
    options.run = below(tree, "none");
    options.features = "none";
    must_train(&options, (tdm_sink){0}, &result);
    same_base(below(tree, "base/best.safetensors"), below(tree, "none/best.safetensors"));
}

/* What validation counted on rows is what the model file says of the pictures. */
static void evaluated_as(const struct tree *tree, const struct tdm_train_options *options,
                         const struct tdm_train_result *result)
{
    tdm_model *model = NULL;
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    const struct tdm_evaluate_options how = {
        .source = options->source, .part = TDM_PART_VAL, .batch = 5};
    assert_int_equal(tdm_model_open(below(tree, "run"), NULL, &model, NULL), TDM_OK);
    assert_int_equal(tdm_model_evaluate(model, &how, (tdm_sink){0}, &evaluation, NULL), TDM_OK);
    assert_int_equal(evaluation.metrics.score.n, result->val.n);
    assert_int_equal(evaluation.metrics.score.correct, result->val.correct);
    assert_true(evaluation.metrics.score.loss == result->val.loss);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
}

TEST_WITH(evaluation_of_pictures_is_validation_of_rows, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    static const char *const precisions[] = {"f32", "f16"};
    for (int i = 0; i < 2; i++) {
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        struct tdm_train_options options = with_frozen_base(tree, "run");
        options.features = precisions[i];
        must_train(&options, (tdm_sink){0}, &result);
        evaluated_as(tree, &options, &result);
        assert_int_equal(rename(below(tree, "run"), below(tree, precisions[i])), 0);
    }
}

TEST_WITH(pictures_that_are_added_are_all_that_is_computed, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "first");
    must_train(&options, (tdm_sink){0}, &result);
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "pictures/b/%d-new.ppm", i);
        paint_picture(tree, name, 1, 500 + i);
    }
    options.run = below(tree, "second");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.rows, n_pictures + 3);
    assert_int_equal(result.features.reused, n_pictures);
}

/* ---- what is stored is looked at ------------------------------------------------------------- */

/* The folder of the only key. */
static const char *store_folder(const struct tree *tree)
{
    DIR *folder = opendir(below(tree, "home/features"));
    const struct dirent *entry;
    const char *found = NULL;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (strlen(entry->d_name) == 16) {
            char name[100];
            snprintf(name, sizeof name, "home/features/%s", entry->d_name);
            found = below(tree, name);
        }
    closedir(folder);
    assert_non_null(found);
    return found;
}

/* Every row of the store a hair larger, as a machine that computes otherwise would have made it. */
static void falsify(const struct tree *tree)
{
    char key[100000], name[100], command[400];
    void *bytes;
    size_t n;
    const char *folder = store_folder(tree);
    snprintf(command, sizeof command, "%s/key.json", folder);
    assert_int_equal(tdmi_file_read(command, sizeof key - 1, &bytes, &n, NULL), TDM_OK);
    memcpy(key, bytes, n);
    key[n - strlen("}\n")] = '\0';
    char *text = strstr(key, "\"key\":"); /* {"format_version":1,"key":…} */
    assert_non_null(text);
    text += strlen("\"key\":");
    tdmi_free(bytes);
    snprintf(command, sizeof command, "rm -f %s/*.rows", folder);
    assert_int_equal(system(command), 0);
    tdmi_store *store;
    float row[width];
    for (int i = 0; i < width; i++)
        row[i] = 0.25f;
    const struct tdmi_store_options options = {.key = text, .width = width};
    assert_int_equal(tdmi_store_open(&options, &store, NULL), TDM_OK);
    assert_int_equal(tdmi_store_fill_begin(store, n_pictures, TDMI_DTYPE_F32, NULL), TDM_OK);
    for (int c = 0; c < n_classes; c++)
        for (int i = 0; i < per_class; i++) {
            snprintf(name, sizeof name, "pictures/%c/%03d.ppm", 'a' + c, i);
            assert_int_equal(tdmi_file_read(below(tree, name), 1 << 20, &bytes, &n, NULL), TDM_OK);
            assert_int_equal(
                tdmi_store_fill_add(store,
                                    (struct tdmi_store_row){.content = tdmi_xxh64_of(bytes, n, 0)},
                                    row, NULL),
                TDM_OK);
            tdmi_free(bytes);
        }
    assert_int_equal(tdmi_store_fill_commit(store, NULL), TDM_OK);
    tdmi_store_close(store);
}

TEST_WITH(rows_that_are_not_what_is_computed_now_are_an_error, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "first");
    must_train(&options, (tdm_sink){0}, &result);
    falsify(tree);
    options.run = below(tree, "second");
    fails_with(&options, TDM_E_FAILED, "differ from those computed now by up to");
    options.resume = true;
    fails_with(&options, TDM_E_FAILED, store_folder(tree));
}

TEST_WITH(without_a_place_for_rows_they_are_computed_in_every_epoch, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_frozen_base(tree, "run");
    setenv("TANDEM_HOME", "/dev/null/nowhere", 1);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "features cannot be kept", true);
    assert_heard(&heard, "  because", false); /* a note is one line */
    assert_int_equal(result.features.rows, 0);
    options.run = below(tree, "half");
    options.features = "f16"; /* would give other bits */
    fails_with(&options, TDM_E_SYSTEM, "features cannot be kept, which --features f16 requires");
    options.features = "f32";
    setenv("TANDEM_HOME", below(tree, "home"), 1);
    options.run = below(tree, "kept");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "run", "kept");
}

TEST_WITH(a_picture_that_cannot_be_decoded_has_no_row, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_frozen_base(tree, "run");
    tree_file(tree, "pictures/a/broken.ppm", "P6\n9 9\n255\nshort", 16);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "broken.ppm", true);
    assert_int_equal(result.skipped, 1);
    assert_int_equal(result.features.rows, n_pictures);
}

/* ---- the border ------------------------------------------------------------------------------ */

TEST_WITH(rounded_rows_are_given_or_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_frozen_base(tree, "run");
    options.features = "f16";
    options.augment = "flip,mixup";
    fails_with(&options, TDM_E_USAGE, "because mixup and cutmix mix images with each other");
    options.augment = NULL;
    options.freeze = "none";
    fails_with(&options, TDM_E_USAGE, "because nothing is frozen; --features f32 is accepted");
}

TEST_WITH(so_many_layers_can_be_frozen, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "two");
    options.freeze = "2";
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.rows, n_pictures); /* pictures of features, as well */
    options.run = below(tree, "computed");
    options.features = "none";
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "two", "computed");
    options.run = below(tree, "all");
    options.freeze = "5";
    fails_with(&options, TDM_E_USAGE, "leaves nothing to train; 0 to 4 are accepted");
    options.freeze = "most";
    fails_with(&options, TDM_E_USAGE, "auto, base, none or a number of layers is accepted");
}

TEST_MAIN(NULL, NULL)

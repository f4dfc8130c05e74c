/*
 * Training that starts with weights, of a tandem model here (tests of the importer cover other
 * files): which file is meant, what is reported, and that a resumed run does not need it.
 */
#include "train/pictures.h"
#include "train/hearing.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/model.h"

#include <string.h>

static int set_up(void **state)
{
    (void)begin_with_classes(state, 3, 20);
    return 0;
}

/* A trained model in "base". */
static struct tdm_train_options with_base(const struct tree *tree, struct tdm_train_result *result)
{
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "base");
    must_train(&options, (tdm_sink){0}, result);
    options.weights = options.run;
    options.model = NULL;
    options.run = below(tree, "next");
    return options;
}

TEST_WITH(a_training_begins_where_its_weights_ended, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result base = {.struct_bytes = sizeof base},
                            next = {.struct_bytes = sizeof next};
    struct heard heard = {""};
    struct tdm_train_options options = with_base(tree, &base);
    options.steps = 1;
    options.epochs = 0;
    options.learning_rate = 1e-9;
    must_train(&options, (tdm_sink){&heard, hear}, &next);
    assert_int_equal(next.val.n, base.val.n);
    assert_int_equal(next.val.correct, base.val.correct);
    assert_true(next.val.loss - base.val.loss < 1e-6 && base.val.loss - next.val.loss < 1e-6);
    assert_heard(&heard,
                 "lenet5 starts with the weights of best.safetensors, the last layer included",
                 true);
    assert_heard(&heard, "trained from scratch", false);
    assert_heard(&heard, "validation images trained", false);
}

TEST_WITH(pictures_that_the_weights_know_are_counted, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_base(tree, &result);
    const uint64_t seed = options.seed;
    options.seed = 77; /* another split */
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "of the 6 validation images trained the weights", true);
    /* The lowest keys validate, as they did: the next ones, which trained then, are the test now.
     */
    options.seed = seed;
    options.run = below(tree, "tested");
    options.train_fraction = 0.8;
    options.test_fraction = 0.1;
    heard.text[0] = '\0';
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "of the 6 test images trained the weights", true);
    assert_heard(&heard, "validation images trained the weights", false);
}

TEST_WITH(other_classes_get_a_new_last_layer, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_base(tree, &result);
    paint_picture(tree, "pictures/d/000.ppm", 3, 0);
    paint_picture(tree, "pictures/d/001.ppm", 3, 1);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "starts with all but the head of best.safetensors", true);
}

TEST_WITH(a_run_is_resumed_without_its_weights_file, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                            result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree, &whole);
    must_train(&options, (tdm_sink){0}, &whole);
    options.run = below(tree, "cut");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(rename(below(tree, "base"), below(tree, "moved")), 0);
    options.epochs = 3;
    options.resume = true;
    options.schedule = "cosine";
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.steps, whole.steps);
    tdm_model *model = NULL;
    tdm_error err = {0};
    assert_int_equal(tdm_model_open(below(tree, "cut"), NULL, &model, &err), TDM_OK);
    assert_string_equal(tdm_model_name(model), "lenet5");
    tdm_model_close(model);
}

TEST_WITH(an_interrupted_run_ends_with_the_same_bits, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree, &result);
    options.schedule = "constant"; /* or its end would be another one */
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "cut");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(rename(below(tree, "base"), below(tree, "moved")), 0);
    options.epochs = 3;
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "cut");
}

TEST_WITH(missing_weights_name_the_command_that_fetches_them, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");
    options.model = NULL;
    options.weights = "resnet18";
    fails_with(&options, TDM_E_INPUT, "tandem weights fetch resnet18");
    options.weights = "no-such.h5";
    fails_with(&options, TDM_E_INPUT, "'no-such.h5' is no file");
    options.weights = below(tree, "pictures/a/000.ppm");
    fails_with(&options, TDM_E_INPUT, "it is an image (");
    assert_int_equal(tdmi_file_kind_of(below(tree, "run")), TDMI_FILE_MISSING);
}

TEST_WITH(training_from_scratch_names_transfer_learning, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");
    options.model = NULL;
    options.epochs = 1;
    options.size = 8;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "so convnet7 is trained from scratch", true);
    assert_heard(&heard, "tandem weights fetch mobilenetv2-notop", true);
}

/* Nine by nine pixels of one value a row. */
static void paint_grey(const struct tree *tree, const char *name, int label, int number)
{
    uint8_t bytes[PICTURE_BYTES];
    int at = snprintf((char *)bytes, sizeof bytes, "P6\n%d %d\n255\n", PICTURE_SIDE, PICTURE_SIDE);
    for (int i = 0; i < PICTURE_SIDE * PICTURE_SIDE; i++)
        for (int c = 0; c < 3; c++)
            bytes[at++] = (uint8_t)(100 * label + 3 * number + i / PICTURE_SIDE);
    tree_file(tree, name, bytes, sizeof bytes);
}

TEST_WITH(small_grey_images_get_a_small_network, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    const struct tdm_weights_known *wanted = NULL;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = small_training(tree);
    tdm_error err = {0};
    options.run = below(tree, "run");
    options.model = NULL;
    options.size = 0;
    options.epochs = 1;
    assert_int_equal(tdm_train_weights_wanted(&options, &wanted, &err), TDM_OK);
    assert_string_equal(wanted->name, "mobilenetv2-notop");
    for (int i = 0; i < 24; i++) {
        char name[40];
        snprintf(name, sizeof name, "grey/%c/%03d.ppm", 'a' + i % 2, i);
        paint_grey(tree, name, i % 2, i);
    }
    options.source = below(tree, "grey");
    assert_int_equal(tdm_train_weights_wanted(&options, &wanted, &err), TDM_OK);
    assert_null(wanted);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard,
                 "grey and small (9 pixels), which suits lenet5 from scratch; the training "
                 "takes about",
                 true);
    assert_heard(&heard, "no pretrained weights", false);
}

TEST_WITH(an_untrained_frozen_base_is_reported, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");
    options.freeze = "base";
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "--freeze base without weights", true);
    heard.text[0] = '\0';
    options.freeze = "none";
    options.run = below(tree, "next");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "without weights", false);
}

TEST_WITH(a_warm_up_beyond_the_end_is_reported, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "run");
    options.warmup_epochs = 4.0;
    fails_with(&options, TDM_E_USAGE, "option --warmup is 4, but training ends after 3 epochs");
    options.warmup_epochs = 3.0;
    options.steps = 2;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "within a warm-up of 3: the learning rate never reaches 0.05", true);
}

/* ---- the network of the weights is the run's ------------------------------------------------ */

/* The description of a model, to be freed. */
static char *description_of(const char *path)
{
    tdmi_safetensors *file = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_safetensors_open(path, &file, &err), TDM_OK);
    char *text = strdup(tdmi_safetensors_metadata(file, "tandem"));
    tdmi_safetensors_close(file);
    assert_non_null(text);
    return text;
}

/* The model with one word of its description changed everywhere. */
static void rewrite(const char *from, const char *to, const char *old, const char *new)
{
    tdmi_safetensors *file = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_safetensors_open(from, &file, &err), TDM_OK);
    const char *rest = tdmi_safetensors_metadata(file, "tandem");
    char *text = calloc(2 * strlen(rest) + 100, 1), *at = text;
    assert_non_null(text);
    assert_non_null(strstr(rest, old));
    for (const char *found; (found = strstr(rest, old)) != NULL; rest = found + strlen(old))
        at += sprintf(at, "%.*s%s", (int)(found - rest), rest, new);
    strcpy(at, rest);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_note(writer, "format", "tandem");
    tdmi_safetensors_note(writer, "tandem", text);
    for (size_t i = 0; i < tdmi_safetensors_count(file); i++) {
        const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_at(file, i);
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    assert_int_equal(tdmi_safetensors_finish(writer, to, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    tdmi_safetensors_close(file);
    free(text);
}

static void assert_said(const char *path, const char *words)
{
    char *text = description_of(path);
    if (!strstr(text, words))
        fail_msg("'%s' is not in %s: %s", words, path, text);
    free(text);
}

/* A convnet7 whose norms, fit and scale are not what that name stands for. */
static struct tdm_train_options with_odd_base(const struct tree *tree)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = small_norm_training(tree);
    options.run = below(tree, "base");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    const char *odd = below(tree, "odd.safetensors");
    rewrite(below(tree, "base/best.safetensors"), odd, "\"epsilon\":1e-05", "\"epsilon\":0.0125");
    rewrite(odd, odd, "\"fit\":\"pad\"", "\"fit\":\"stretch\"");
    rewrite(odd, odd, "\"scale\":\"tf\"", "\"scale\":\"torch\"");
    options.weights = odd;
    options.model = NULL;
    options.size = 0;
    options.run = below(tree, "next");
    return options;
}

TEST_WITH(pictures_are_prepared_and_normed_as_for_the_weights, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_odd_base(tree);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    const char *next = below(tree, "next/best.safetensors");
    assert_said(next, "\"width\":8,\"height\":8");
    assert_said(next, "\"fit\":\"stretch\"");
    assert_said(next, "\"scale\":\"torch\"");
    assert_said(next, "\"epsilon\":0.0125");
    assert_heard(&heard, "images become", false);
    options.model = "convnet7"; /* said again */
    options.run = below(tree, "again");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "again");
}

TEST_WITH(another_size_is_used_and_reported, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_odd_base(tree);
    rewrite(options.weights, options.weights, "\"epsilon\":0.0125", "\"epsilon\":1e-05");
    options.size = 12;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "images become 12×12 here; those of the weights were 8×8", true);
    assert_said(below(tree, "next/best.safetensors"), "\"width\":12,\"height\":12");
    assert_said(below(tree, "next/best.safetensors"), "\"scale\":\"torch\"");
}

TEST_WITH(a_network_known_only_by_its_file_is_resumed, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_odd_base(tree);
    rewrite(options.weights, options.weights, "\"network\":\"convnet7\"", "\"network\":\"mine\"");
    options.size = 12;
    fails_with(&options, TDM_E_USAGE, "none that is known by its name mine");
    options.size = 0;
    must_train(&options, (tdm_sink){0}, &result);
    assert_said(below(tree, "next/best.safetensors"), "\"network\":\"mine\"");
    /* Other classes: a new head on what the file tells. */
    paint_picture(tree, "pictures/d/000.ppm", 3, 0);
    paint_picture(tree, "pictures/d/001.ppm", 3, 1);
    options.run = below(tree, "four");
    must_train(&options, (tdm_sink){0}, &result);
    assert_said(below(tree, "four/best.safetensors"), "\"classes\":[\"a\",\"b\",\"c\",\"d\"]");
}

TEST_WITH(another_network_than_the_weights_is_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree, &result);
    options.model = "convnet7";
    fails_with(&options, TDM_E_USAGE, "it says that it is a lenet5, and --model says convnet7");
}

TEST_MAIN(NULL, NULL)

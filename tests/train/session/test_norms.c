/*
 * Training weights whose batch norms were folded into the convolutions: statistics are measured
 * first, the network gives the same with them, and neither threads nor interruptions change a bit.
 */
#include "train/pictures.h"
#include "train/hearing.h"
#include "base/file/file.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/event.h"
#include "track/run.h"

#include <string.h>

static int set_up(void **state)
{
    (void)begin_with_classes(state, 3, 20);
    return 0;
}

/* The same words, with every momentum at 0.001. */
static char *slow(const char *words)
{
    static const char key[] = "\"momentum\"";
    char *text = calloc(2 * strlen(words) + 1, 1), *to = text;
    assert_non_null(text);
    while (*words) {
        const bool is_key = strncmp(words, key, sizeof key - 1) == 0;
        *to++ = *words++;
        if (!is_key)
            continue;
        to += sprintf(to, "%s:0.001", key + 1);
        words += strcspn(words, ",}");
    }
    return text;
}

/* Of a trained model: with norms that say nothing, as if they stood in the convolutions, or with
 * statistics that hardly move. */
static struct tdm_train_options with_changed(const struct tree *tree, bool is_folded)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = small_norm_training(tree);
    tdmi_safetensors *file = NULL;
    tdm_error err = {0};
    options.run = below(tree, "base");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(tdmi_safetensors_open(below(tree, "base/best.safetensors"), &file, &err),
                     TDM_OK);
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    const char *words = tdmi_safetensors_metadata(file, "tandem");
    char *slower = slow(words);
    tdmi_safetensors_note(writer, "format", tdmi_safetensors_metadata(file, "format"));
    tdmi_safetensors_note(writer, "tandem", is_folded ? words : slower);
    for (size_t i = 0; i < tdmi_safetensors_count(file); i++) {
        const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_at(file, i);
        float *values = (float *)(uintptr_t)tensor->data;
        bool is_mean = strstr(tensor->name, "running_mean") != NULL;
        if (is_folded && (is_mean || strstr(tensor->name, "running_var")))
            for (int64_t v = 0; v < tensor->n_values; v++)
                values[v] = is_mean ? 0.0F : 1.0F;
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    options.weights = below(tree, is_folded ? "folded.safetensors" : "slow.safetensors");
    assert_int_equal(tdmi_safetensors_finish(writer, options.weights, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    tdmi_safetensors_close(file);
    free(slower);
    options.run = below(tree, "next");
    options.model = NULL;
    options.schedule = "constant";
    return options;
}

static struct tdm_train_options with_folded(const struct tree *tree)
{
    return with_changed(tree, true);
}

/* A number of the run's record: a member of "norms". */
static double measured(const struct tree *tree, const char *run, const char *name)
{
    tdm_json_document *document = NULL;
    assert_int_equal(tdmi_run_read(below(tree, run), NULL, &document, NULL), TDM_OK);
    const tdm_json_value *norms = tdm_json_member(tdm_json_root(document), "norms");
    const double value = tdm_json_as_number(tdm_json_member(norms, name), -1.0);
    tdm_json_document_free(document);
    return value;
}

TEST_WITH(folded_batch_norms_are_measured_before_they_are_trained, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "batch norms had been folded into the convolutions", true);
    assert_true(measured(tree, "next", "pictures") == 54.0);
    const double moved = measured(tree, "next", "logits_moved");
    assert_true(moved >= 0.0 && moved < 1e-5);
    tdmi_safetensors *file = NULL;
    assert_int_equal(tdmi_safetensors_open(below(tree, "next/best.safetensors"), &file, NULL),
                     TDM_OK);
    assert_non_null(
        strstr(tdmi_safetensors_metadata(file, "tandem"), "measured over 54 pictures, content "));
    tdmi_safetensors_close(file);
    /* Threads change nothing. */
    options.threads = 3;
    options.run = below(tree, "threads");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "threads");
    /* What has statistics is not measured again. */
    heard.text[0] = '\0';
    options.weights = below(tree, "next");
    options.run = below(tree, "third");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "had been folded", false);
}

TEST_WITH(a_run_with_measured_norms_is_gone_on_with_to_the_same_bits, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_folded(tree);
    options.epochs = 3;
    options.ema = 0.9;
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "cut");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(remove(below(tree, "folded.safetensors")), 0);
    options.epochs = 3;
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "cut");
}

static bool says(const struct tree *tree, const char *path, const char *words)
{
    tdmi_safetensors *file = NULL;
    assert_int_equal(tdmi_safetensors_open(below(tree, path), &file, NULL), TDM_OK);
    const bool found = strstr(tdmi_safetensors_metadata(file, "tandem"), words) != NULL;
    tdmi_safetensors_close(file);
    return found;
}

/* And a run that goes on has them from its checkpoint. */
TEST_WITH(running_statistics_of_weights_follow_what_is_trained, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_changed(tree, false);
    options.epochs = 2;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "the momentum of 6 batch norms is raised to 0.01", true);
    assert_true(says(tree, "next/best.safetensors", "\"momentum\":0.01,"));
    assert_false(says(tree, "next/best.safetensors", "\"momentum\":0.001"));
    options.run = below(tree, "cut");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    options.epochs = 2;
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "cut");
    /* Those that stay need not move. */
    heard.text[0] = '\0';
    options.bn = "frozen";
    options.resume = false;
    options.run = below(tree, "frozen");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "running statistics", false);
}

/* What they do once they thaw does not matter to what a frozen base makes of pictures. */
TEST_WITH(features_of_slow_norms_are_found_by_a_run_that_thaws_them, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_changed(tree, false);
    options.freeze = "base";
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.rows, 60);
    assert_int_equal(result.features.reused, 0);
    options.run = below(tree, "thaws");
    options.freeze = "auto";
    options.unfreeze = 1;
    options.epochs = 2;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.reused, 60);
}

/* Stops at the n-th time that norms are measured. */
struct stopper {
    int left;
};

static void stop_while_measuring(void *self, const tdm_event *event)
{
    struct stopper *it = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN && strcmp(event->text, "measuring batch norms") == 0 &&
        --it->left == 0)
        tdm_stop_request();
}

static void stops_while_measuring(const struct tdm_train_options *options, int nth,
                                  const char *words)
{
    struct stopper stopper = {.left = nth};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    char text[3000];
    const tdm_status status =
        tdm_train(options, (tdm_sink){&stopper, stop_while_measuring}, &result, &err);
    tdm_stop_clear();
    tdm_error_format(&err, text, sizeof text);
    if (status != TDM_E_STOPPED || !strstr(text, words))
        fail_msg("status %d; '%s' is wanted in: %s", (int)status, words, text);
}

TEST_WITH(a_run_stopped_while_norms_are_measured_keeps_what_was_asked_for, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    options.epochs = 2;
    options.freeze = "2"; /* found again, though it is not recorded yet */
    options.augment = "flip";
    options.optimizer = "adam";
    options.learning_rate = 0.001;
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "cut");
    options.resume = true;
    stops_while_measuring(&options, 1, "before its first step, while batch norms were measured");
    options.optimizer = "nadam";
    fails_with(&options, TDM_E_USAGE, "but the run was started with 'adam'");
    options.optimizer = "adam";
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "there is no run in", false);
    same_runs(tree, "next", "cut");
    heard.text[0] = '\0';
    options.run = below(tree, "none");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "--resume: there is no run in", true);
    assert_heard(&heard, "/none yet; starting one", true);
    same_runs(tree, "next", "none");
}

/* Norms that thaw are measured where they do: there is a checkpoint by then. */
TEST_WITH(a_stop_in_the_middle_says_where, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_folded(tree);
    options.epochs = 3;
    options.unfreeze = 1;
    must_train(&options, (tdm_sink){0}, &result);
    options.run = below(tree, "cut");
    options.resume = true;
    stops_while_measuring(&options, 1, "before epoch 2, while batch norms were measured");
    stops_while_measuring(&options, 1, "before epoch 2, while batch norms were measured");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "cut");
}

TEST_WITH(a_picture_that_cannot_be_measured_is_told_or_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    for (int i = 0; i < 6; i++) {
        char name[40], text[40];
        snprintf(name, sizeof name, "pictures/a/broken%d.ppm", i);
        snprintf(text, sizeof text, "P6 9 9 255 no. %d ends here", i);
        tree_text(tree, name, text);
    }
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "batch norms are measured without a picture: ", true);
    options.strict = true;
    options.run = below(tree, "strict");
    fails_with(&options, TDM_E_INPUT, "giving batch norms their statistics back");
    options.resume = true;
    fails_with(&options, TDM_E_INPUT, "a picture cannot be used, and --strict is on");
}

/* Tens of terabytes, of which the run's record is not to say that they are trained with. */
TEST_WITH(more_memory_than_there_is_is_refused_before_norms_are_measured, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_folded(tree);
    options.size = 2048;
    options.batch = options.shard = 65536;
    options.threads = 64;
    fails_with(&options, TDM_E_MEMORY, "training takes ");
    assert_int_equal(tdmi_file_kind_of(below(tree, "next")), TDMI_FILE_MISSING);
}

TEST_WITH(what_would_do_nothing_is_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = with_folded(tree);
    options.freeze = "base";
    options.bn = "frozen";
    fails_with(&options, TDM_E_USAGE, "none is (--freeze base); leave it out, or freeze less");
    options.bn = "batch";
    fails_with(&options, TDM_E_USAGE, "option --bn batch is about batch norms that are trained");
    struct tdm_train_options normless = small_training(tree);
    normless.run = below(tree, "normless");
    normless.bn = "batch";
    fails_with(&normless, TDM_E_USAGE,
               "option --bn batch is about batch norms, and lenet5 has none");
    options.bn = "shard";
    options.layer_decay = 0.1;
    fails_with(&options, TDM_E_USAGE, "--layer-decay is 0.1, but no layer before the head");
    options.layer_decay = 1.0;
    options.min_delta = 5.0;
    fails_with(&options, TDM_E_USAGE, "--min-delta is 5, and with --monitor accuracy");
    options.monitor = "loss"; /* which may well be larger */
    options.patience = 0;
    fails_with(&options, TDM_E_USAGE, "--min-delta is 5, but --patience 0 stops at nothing");
    options.patience = 3;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    must_train(&options, (tdm_sink){0}, &result);
}

/* The head is all that is trained: nothing that needs statistics. */
TEST_WITH(a_frozen_base_is_used_as_it_is, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    options.freeze = "base";
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "had been folded", false);
}

/* The states of one model file are those of another, byte by byte. */
static int states_that_differ(const struct tree *tree, const char *a, const char *b)
{
    tdmi_safetensors *left = NULL, *right = NULL;
    int n = 0, n_states = 0;
    assert_int_equal(tdmi_safetensors_open(below(tree, a), &left, NULL), TDM_OK);
    assert_int_equal(tdmi_safetensors_open(below(tree, b), &right, NULL), TDM_OK);
    for (size_t i = 0; i < tdmi_safetensors_count(left); i++) {
        const struct tdmi_safetensors_tensor *one = tdmi_safetensors_at(left, i);
        if (!strstr(one->name, "running_"))
            continue;
        const struct tdmi_safetensors_tensor *other = tdmi_safetensors_find(right, one->name);
        assert_non_null(other);
        n += memcmp(one->data, other->data, one->bytes) != 0;
        n_states++;
    }
    assert_true(n_states > 0);
    tdmi_safetensors_close(left);
    tdmi_safetensors_close(right);
    return n;
}

TEST_WITH(frozen_statistics_stay_while_scales_and_shifts_are_trained, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    options.weights = below(tree, "base/best.safetensors");
    must_train(&options, (tdm_sink){0}, &result);
    assert_true(states_that_differ(tree, "next/last.safetensors", "base/best.safetensors") > 0);
    options.bn = "frozen";
    options.epochs = 3;
    options.run = below(tree, "kept");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "keep their statistics, scale and shift are trained", true);
    assert_int_equal(states_that_differ(tree, "kept/last.safetensors", "base/best.safetensors"), 0);
    options.threads = 3;
    options.run = below(tree, "threads");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "kept", "threads");
    options.run = below(tree, "cut");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    options.epochs = 3;
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "kept", "cut");
    options.bn = "shard";
    fails_with(&options, TDM_E_USAGE,
               "option --bn is 'shard', but the run was started with 'frozen'");
}

TEST_WITH(there_are_no_statistics_to_keep_from_scratch, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = small_norm_training(tree);
    options.run = below(tree, "base");
    options.bn = "frozen";
    fails_with(&options, TDM_E_USAGE, "from scratch there are none");
}

TEST_WITH(what_becomes_of_batch_norms_is_told, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_folded(tree);
    options.epochs = 1;
    options.bn = "batch";
    options.freeze = "2";
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "2 frozen, which keep statistics, scale and shift; ", true);
    assert_heard(&heard, "trained with the statistics of each batch (8 pictures)", true);
    heard.text[0] = '\0';
    options.freeze = "base";
    options.bn = "shard";
    options.run = below(tree, "head");
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "frozen, which keep statistics, scale and shift\n", true);
}

/* The next layer would thaw in an epoch that never comes. */
TEST_WITH(a_run_that_is_over_thaws_and_measures_nothing_more, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard begun = {""}, resumed = {""}, longer = {""};
    struct tdm_train_options options = with_folded(tree);
    options.unfreeze = options.unfreeze_layers = 1;
    options.epochs = 2;
    must_train(&options, (tdm_sink){&begun, hear}, &result);
    assert_heard(&begun, "had been folded", true);
    options.resume = true;
    must_train(&options, (tdm_sink){&resumed, hear}, &result);
    assert_heard(&resumed, "had been folded", false);
    options.epochs = 3;
    must_train(&options, (tdm_sink){&longer, hear}, &result);
    assert_heard(&longer, "had been folded", true);
    options.run = below(tree, "whole");
    options.resume = false;
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "whole");
}

TEST_MAIN(NULL, NULL)

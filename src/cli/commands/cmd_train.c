/*
 * tandem train SRC: from labelled images to a run folder with a trained model.
 * Defaults are the library's; this file only spells the options and shows the result.
 */
#include "cli/command.h"
#include "base/text/json.h"
#include "cli/scores.h"
#include "cli/settings.h"
#include "tandem/launch.h"
#include "tandem/train.h"
#include "cli/watch.h"
#include "cli/weights_offer.h"

#include <math.h>
#include <string.h>

struct values {
    struct tdm_train_options train;
    struct tdmi_fractions split; /* train, validation and perhaps test as one option */
    bool fetch;                  /* pretrained weights; only where somebody has decided */
    const char *mirror;
};

static struct tdmi_fractions split_of(const struct tdm_train_options *options)
{
    const double test = options->test_fraction;
    return (struct tdmi_fractions){{options->train_fraction, options->val_fraction, test},
                                   test > 0.0 ? 3 : 2};
}

static void defaults(void *values)
{
    struct values *own = values;
    *own = (struct values){.train = tdm_train_options_default()};
    own->split = split_of(&own->train);
}

/* Cost and effect of the epochs after the best one. */
static void print_after_best(struct tdmi_output *out, const struct tdm_train_result *result)
{
    const struct tdm_after_best *after = &result->after_best;
    if (after->epochs == 0)
        return;
    const int last = result->best_epoch + after->epochs;
    if (after->epochs == 1)
        tdmi_print(out, "  after best  epoch %d", last);
    else
        tdmi_print(out, "  after best  epochs %d to %d", result->best_epoch + 1, last);
    tdmi_print(out, " took %.1f s", after->seconds);
    if (after->n > 0)
        tdmi_print(out,
                   " and changed %+lld of %lld images (%lld no longer right, %lld now right; "
                   "McNemar's p = %.2g)",
                   (long long)(after->only_last - after->only_best), (long long)after->n_distinct,
                   (long long)after->only_best, (long long)after->only_last, after->p);
    tdmi_print(out, "\n");
}

/* Options that say where images and classes are: evaluate needs them, too. */
static void print_how(struct tdmi_output *out, const struct tdm_source_options *how)
{
    const struct {
        const char *option, *value;
    } of[] = {{"image-column", how->image_column},
              {"label-column", how->label_column},
              {"raw-shape", how->raw_shape},
              {"quarantine", how->quarantine}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        if (!of[i].value || !*of[i].value)
            continue;
        tdmi_print(out, " --%s ", of[i].option);
        tdmi_print_word(out, of[i].value);
    }
    tdmi_print(out, "%s", how->follow ? " --follow" : "");
}

static void print_then(const struct tdmi_call *call, const struct values *values,
                       const struct tdm_train_result *result)
{
    struct tdmi_output *out = call->out;
    tdmi_print(out, "then: tandem evaluate ");
    tdmi_print_word(out, result->run);
    tdmi_print(out, " ");
    tdmi_print_word(out, call->arguments[0]);
    print_how(out, &values->train.how);
    tdmi_print(out, " --part val   (class by class)\n      tandem predict ");
    tdmi_print_word(out, result->run);
    tdmi_print(out, " IMAGE…\n      ");
    tdmi_print_word(out, result->run);
    tdmi_print(out, "/report.html   (curves and mistakes, for a browser)\n");
}

/* How long it trained, and why it ended. */
static void print_end(struct tdmi_output *out, const struct tdm_train_options *options,
                      const struct tdm_train_result *result)
{
    if (result->epochs == 0)
        tdmi_print(out, "less than an epoch");
    else
        tdmi_print(out, "%d %s", result->epochs, result->epochs == 1 ? "epoch" : "epochs");
    tdmi_print(out, ", %lld %s in %.1f s (steps alone: %.0f images/s); ", (long long)result->steps,
               result->steps == 1 ? "step" : "steps", result->seconds, result->images_per_second);
    if (result->best_epoch > result->epochs)
        tdmi_print(out, "best: after the last step, within epoch %d", result->best_epoch);
    else
        tdmi_print(out, "best epoch: %d", result->best_epoch);
    if (strcmp(result->ended_by, "patience") == 0)
        tdmi_print(out, "; stopped: %d validation%s without a %s", result->patience,
                   result->patience == 1 ? "" : "s in a row",
                   strcmp(options->monitor, "loss") == 0 ? "lower loss" : "better accuracy");
    tdmi_print(out, "\n");
    print_after_best(out, result);
}

static void print_scores(struct tdmi_output *out, const struct tdm_train_result *result)
{
    char text[160];
    tdmi_print_train_score(out, &result->train);
    tdmi_print(out, "  validation  %s\n", tdmi_format_score(&result->val, text, sizeof text));
    tdmi_print_score(out, "test", &result->test);
    if (result->n_tests_before > 0)
        tdmi_print(
            out,
            "              tested %d times, since the run was resumed: to choose the best of "
            "these numbers is to train on the test\n",
            result->n_tests_before + 1);
    if (result->test.n == 0)
        tdmi_print(out, "              it chose the epoch, so it is a little better than on new "
                        "images; --split 0.8,0.1,0.1 keeps a test apart\n");
}

static void print_features(struct tdmi_output *out, const struct tdm_train_result *result)
{
    if (result->features.rows > 0)
        tdmi_print(out,
                   "  features    of %lld images%s; %lld found in the cache, %lld of these "
                   "computed again as a check\n",
                   (long long)result->features.rows, result->views > 0 ? " and changed views" : "",
                   (long long)result->features.reused, (long long)result->features.checked);
    if (result->features.remade > 0)
        tdmi_print(out, "              %lld that were damaged or gone were computed once more\n",
                   (long long)result->features.remade);
}

static void print_people(const struct tdmi_call *call, const struct values *values,
                         const struct tdm_train_result *result)
{
    struct tdmi_output *out = call->out;
    print_end(out, &values->train, result);
    print_scores(out, result);
    print_features(out, result);
    if (result->layers_left > 0)
        tdmi_print(out,
                   "  unfreeze    %d %s before the head %s never unfrozen: training ended before\n",
                   result->layers_left, result->layers_left == 1 ? "layer" : "layers",
                   result->layers_left == 1 ? "was" : "were");
    if (result->skipped > 0)
        tdmi_print(out, "  skipped     %lld %s that could not be read\n",
                   (long long)result->skipped, result->skipped == 1 ? "image" : "images");
    if (result->batch_reason[0])
        tdmi_print(out, "  batch       %d, chosen: %s\n", result->batch, result->batch_reason);
    tdmi_print(out, "  run         %s\n", result->run);
    tdmi_print_styled(out, TDMI_BOLD, "next:");
    tdmi_print(out, " %s; %s\n", tdm_next_words(result->next.step), result->next.evidence);
    if (!call->globals->quiet)
        print_then(call, values, result);
}

/* A resumed run keeps its recorded options, except those given now. */
static tdm_status resolve(const struct tdmi_call *call, struct values *values,
                          tdm_json_document **words, tdm_error *err)
{
    struct tdmi_globals globals = *call->globals;
    *values = *(const struct values *)call->values;
    const char *run = values->train.run;
    if (!values->train.resume)
        return TDM_OK;
    if (!run)
        return TDM_FAIL(err, TDM_E_USAGE, "--resume needs -o RUN: the run to resume");
    const char *copies = values->train.checkpoint_to;
    defaults(values);
    values->train.checkpoint_to = copies;
    tdm_status status = tdm_train_options_recorded(run, &values->train, words, err);
    values->split = split_of(&values->train);
    tdmi_settings_store(call->settings, &globals, values);
    return status;
}

struct preparing {
    const struct tdmi_call *call;
    const struct values *values;
    const struct tdm_train_options *options;
};

static tdm_status offer_weights(void *self, tdm_sink sink, tdm_error *err)
{
    const struct preparing *it = self;
    const struct tdmi_weights_offer offer = {
        .options = it->options,
        .mirror = it->values->mirror,
        .is_decided = tdmi_settings_is_given(it->call->settings, "fetch"),
        .is_allowed = it->values->fetch};
    return TDM_WRAP(err, tdmi_weights_offer(it->call, &offer, sink, err),
                    "beginning with pretrained weights");
}

/* The same command line for each rank, where the command comes first (tandem/launch.h). */
static tdm_status start_ranks(struct tdmi_call *call, int n, tdm_error *err)
{
    struct tdm_launch_options launch = tdm_launch_options_default();
    struct tdm_launch_result result = {.struct_bytes = sizeof result};
    const char **words = call->words;
    size_t n_before = 0; /* global options */
    while (strcmp(words[n_before], "train") != 0)
        n_before++;
    memmove(words + 1, words, sizeof *words * n_before);
    words[0] = "train";
    launch.ranks = n;
    launch.arguments = words;
    while (words[launch.n_arguments])
        launch.n_arguments++;
    TDMI_TRY(tdm_launch(&launch, &result, err));
    call->is_silent = true; /* rank 0 has printed the result */
    call->exit_status = result.exit_status;
    return TDM_OK;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    struct values values;
    int n_ranks;
    call->is_silent = tdm_train_rank() > 0;
    /* Strings of values that were read from the record. */
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *words = NULL;
    TDMI_TRY(resolve(call, &values, &words, err));
    struct tdm_train_options options = values.train;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    TDMI_TRY(tdmi_split_take(&values.split, "is not used", &options.train_fraction,
                             &options.val_fraction, &options.test_fraction, err));
    options.source = call->arguments[0];
    struct preparing preparing = {call, &values, &options};
    TDMI_TRY(tdm_train_processes(&options, &n_ranks, err));
    if (n_ranks > 1) { /* which have no terminal to ask on */
        TDMI_TRY(offer_weights(&preparing, tdmi_watch_sink(call->watch), err));
        return start_ranks(call, n_ranks, err);
    }
    options.prepare = offer_weights;
    options.prepare_self = &preparing;
    TDMI_TRY(tdm_train(&options, tdmi_watch_sink(call->watch), &result, err));
    if (call->is_silent)
        return TDM_OK;
    tdm_train_result_to_json(&result, call->json);
    tdm_json_object_begin(call->json, "options");
    tdmi_settings_write_json(call->settings, &values, call->json);
    tdm_json_object_end(call->json);
    print_people(call, &values, &result);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

#define AT train.

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", train.run, "Result", "run folder to make", .letter = 'o',
             .value_name = "RUN", .default_words = "runs/<model>-<time>", .is_common = true),
    TDMI_ROW(FLAG, "resume", train.resume, "Result",
             "resume RUN with its recorded options; start it if there is none", .is_common = true),
#include "tandem/train.def"
    TDMI_ROW(
        FLAG, "fetch", fetch, "Network",
        "download pretrained weights that are not on this machine; without it train asks on a "
        "terminal, until you say no or a download has worked, and downloads nothing elsewhere"),
    TDMI_ROW(TEXT, "mirror", mirror, "Network",
             "URL of a folder that has published weights, for --fetch", .value_name = "URL",
             .default_words = "the publisher"),
    TDMI_ROW(PATH, "trace", train.trace, "Result",
             "write what every thread of every rank did when, for Perfetto and tandem trace",
             .value_name = "FILE", .default_words = "none"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem train pictures",
    "all options by default",
    "tandem train pictures -o runs/first --epochs 30 --seed 7",
    "a run folder of your choice",
    "tandem train pictures -o runs/first --epochs 60 --resume",
    "train further, also after an interruption",
    NULL,
};

TDMI_COMMAND(
    train, "train a classifier from labelled images",
    "Splits the images by their content, trains, validates, keeps the best weights, and leaves "
    "a run folder that evaluate and predict read. The same source, options and seed give the "
    "same bits at any number of threads and after any number of interruptions.",
    .has_ranks = true);

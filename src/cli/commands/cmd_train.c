/*
 * tandem train SRC: from a folder of labelled pictures to a run folder with a trained model.
 * Defaults are the library's; this file only spells the options and shows the result.
 */
#include "cli/command.h"
#include "cli/settings.h"
#include "tandem/text.h"
#include "tandem/train.h"
#include "cli/watch.h"

#include <math.h>
#include <string.h>

struct values {
    struct tdm_train_options train;
    struct tdmi_fractions split; /* train, validation and perhaps test as one option */
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
    own->train = tdm_train_options_default();
    own->split = split_of(&own->train);
}

static void write_json(const struct tdmi_call *call, const struct values *values,
                       const struct tdm_train_result *result)
{
    tdm_json_writer *json = call->json;
    tdm_train_result_to_json(result, json);
    tdm_json_object_begin(json, "options");
    tdmi_settings_write_json(call->settings, values, json);
    tdm_json_object_end(json);
}

/* What the epochs after the best one came to. */
static void print_after_best(struct tdmi_output *out, const struct tdm_train_result *result)
{
    const struct tdm_after_best *after = &result->after_best;
    if (after->epochs == 0)
        return;
    const int last = result->best_epoch + after->epochs;
    if (after->epochs == 1)
        tdmi_print(out, "  after it    epoch %d", last);
    else
        tdmi_print(out, "  after it    epochs %d to %d", result->best_epoch + 1, last);
    tdmi_print(out, " took %.1f s", after->seconds);
    if (after->n > 0)
        tdmi_print(out,
                   " and changed %+lld of %lld pictures (%lld no longer right, %lld now right; "
                   "McNemar's p = %.2g)",
                   (long long)(after->only_last - after->only_best), (long long)after->n,
                   (long long)after->only_best, (long long)after->only_last, after->p);
    tdmi_print(out, "\n");
}

static void print_then(const struct tdmi_call *call, const struct values *values,
                       const struct tdm_train_result *result)
{
    struct tdmi_output *out = call->out;
    tdmi_print(out, "then: tandem evaluate ");
    tdmi_print_word(out, result->run);
    tdmi_print(out, " ");
    tdmi_print_word(out, call->arguments[0]);
    tdmi_print(out, "%s --part val   (class by class)\n      tandem predict ",
               values->train.how.follow ? " --follow" : "");
    tdmi_print_word(out, result->run);
    tdmi_print(out, " PICTURE…\n");
}

static void print_people(const struct tdmi_call *call, const struct values *values,
                         const struct tdm_train_result *result)
{
    char text[160];
    struct tdmi_output *out = call->out;
    const bool is_by_loss = strcmp(values->train.monitor, "loss") == 0;
    if (result->epochs == 0)
        tdmi_print(out, "less than an epoch");
    else
        tdmi_print(out, "%d %s", result->epochs, result->epochs == 1 ? "epoch" : "epochs");
    tdmi_print(out, ", %lld %s in %.1f s (%.0f images/s); ", (long long)result->steps,
               result->steps == 1 ? "step" : "steps", result->seconds, result->images_per_second);
    if (result->best_epoch > result->epochs)
        tdmi_print(out, "best: its end, within epoch %d", result->best_epoch);
    else
        tdmi_print(out, "best epoch: %d", result->best_epoch);
    if (strcmp(result->ended_by, "patience") == 0)
        tdmi_print(out, "; stopped after %d validations with no more %s", result->patience,
                   is_by_loss ? "improvement of the loss" : "of the pictures right");
    tdmi_print(out, "\n");
    print_after_best(out, result);
    tdmi_print(out, "  train       %s\n", tdmi_format_score(&result->train, text, sizeof text));
    tdmi_print(out, "  validation  %s\n", tdmi_format_score(&result->val, text, sizeof text));
    if (result->test.n > 0)
        tdmi_print(out, "  test        %s\n", tdmi_format_score(&result->test, text, sizeof text));
    if (result->n_tests_before > 0)
        tdmi_print(out,
                   "              judged %d times, since the run went on: whoever takes the best "
                   "of these numbers has chosen by them\n",
                   result->n_tests_before + 1);
    if (result->test.n == 0)
        tdmi_print(out, "              it chose the epoch, so it is a little better than on new "
                        "pictures; --split 0.8,0.1,0.1 keeps a test apart\n");
    if (result->features.rows > 0)
        tdmi_print(out,
                   "  features    of %lld pictures%s, %lld of them found, %lld looked at again\n",
                   (long long)result->features.rows, result->views > 0 ? " and changed views" : "",
                   (long long)result->features.reused, (long long)result->features.checked);
    if (result->features.remade > 0)
        tdmi_print(out, "              %lld that were damaged or gone were computed once more\n",
                   (long long)result->features.remade);
    if (result->layers_left > 0)
        tdmi_print(out, "  unfreeze    %d %s before the head never thawed: training ended before\n",
                   result->layers_left, result->layers_left == 1 ? "layer" : "layers");
    if (result->skipped > 0)
        tdmi_print(out, "  skipped     %lld %s that could not be read\n",
                   (long long)result->skipped, result->skipped == 1 ? "picture" : "pictures");
    if (result->batch_reason[0])
        tdmi_print(out, "  batch       %d, chosen: %s\n", result->batch, result->batch_reason);
    tdmi_print(out, "  run         %s\n", result->run);
    tdmi_print(out, "next: %s; %s\n", result->next.step, result->next.evidence);
    if (!call->globals->quiet)
        print_then(call, values, result);
}

/* A run that is gone on with keeps what it was begun with; only what was said now changes. */
static tdm_status resolve(const struct tdmi_call *call, struct values *values,
                          tdm_json_document **words, tdm_error *err)
{
    struct tdmi_globals globals = *call->globals;
    *values = *(const struct values *)call->values;
    const char *run = values->train.run;
    if (!values->train.resume)
        return TDM_OK;
    if (!run)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--resume needs -o RUN: which run is to be gone on with?");
    defaults(values);
    tdm_status status = tdm_train_options_recorded(run, &values->train, words, err);
    values->split = split_of(&values->train);
    tdmi_settings_store(call->settings, &globals, values);
    return status;
}

static tdm_status train(struct tdmi_call *call, const struct values *values, tdm_error *err)
{
    struct tdm_train_options options = values->train;
    struct tdm_train_result result;
    struct tdmi_watch watch;
    tdm_status status = tdmi_split_take(&values->split, "is not used", &options.train_fraction,
                                        &options.val_fraction, &options.test_fraction, err);
    if (status != TDM_OK)
        return status;
    options.source = call->arguments[0];
    tdmi_watch_start(&watch, call->globals, "images");
    status = tdm_train(&options, tdmi_watch_sink(&watch), &result, err);
    tdmi_watch_stop(&watch);
    if (status == TDM_OK && call->json)
        write_json(call, values, &result);
    else if (status == TDM_OK)
        print_people(call, values, &result);
    return status;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    struct values values;
    tdm_json_document *words = NULL; /* strings of values that were read from the record */
    tdm_status status = resolve(call, &values, &words, err);
    if (status == TDM_OK)
        status = train(call, &values, err);
    tdm_json_document_free(words);
    return status;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

#define FIELD(name) offsetof(struct values, train.name)

static const struct tdmi_option options[] = {
    {.name = "out",
     .letter = 'o',
     .type = TDMI_OPTION_PATH,
     .offset = FIELD(run),
     .value_name = "RUN",
     .default_words = "runs/<model>-<time>",
     .group = "Result",
     .help = "run folder to make"},
    {.name = "resume",
     .type = TDMI_OPTION_FLAG,
     .offset = FIELD(resume),
     .group = "Result",
     .help = "go on where RUN stands, with its options; start it where there is none"},
    {.name = "checkpoint-every",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(checkpoint_every),
     .low = 0,
     .high = INFINITY,
     .unit = "steps",
     .default_words = "only at the end of epochs",
     .group = "Result",
     .help = "save more often"},
    {.name = "checkpoint-minutes",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(checkpoint_minutes),
     .low = 0.0,
     .high = INFINITY,
     .unit = "minutes",
     .default_words = "only at the end of epochs",
     .group = "Result",
     .help = "save more often, by the clock"},

    {.name = "model",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(model),
     .value_name = "NAME",
     .name_at = tdm_network_name,
     .default_words = "what the weights are of, else convnet7",
     .group = "Network",
     .help = "the network to train"},
    {.name = "weights",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(weights),
     .value_name = "FILE|NAME",
     .default_words = "without --model what is at hand, else from scratch",
     .group = "Network",
     .help = "begin with these: a file of Keras, PyTorch or another program, or published ones "
             "that are at hand (tandem weights)"},
    {.name = "freeze",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(freeze),
     .value_name = "base|none|N",
     .default_words = "base where the weights' head is replaced, else none",
     .group = "Network",
     .help = "leave as it is: all but the head, nothing, or so many layers"},
    {.name = "unfreeze",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(unfreeze),
     .low = 0,
     .high = 1000000,
     .unit = "epochs",
     .default_words = "from the first step on",
     .group = "Network",
     .help = "that the head is trained alone; then what is before it too, down to --freeze"},
    {.name = "unfreeze-layers",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(unfreeze_layers),
     .low = 0,
     .high = 100000,
     .unit = "layers",
     .default_words = "all at once",
     .group = "Network",
     .help = "so many more thaw, from the head down, every --unfreeze epochs"},
    {.name = "layer-decay",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(layer_decay),
     .low = 0.01,
     .high = 1.0,
     .group = "Network",
     .help = "a layer's learning rate, as part of that of the layer behind it"},
    {.name = "features",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(features),
     .value_name = "f32|f16|none",
     .group = "Network",
     .help = "what a frozen base makes of pictures is computed once and kept for all runs so; or "
             "not at all"},
    {.name = "hidden",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(hidden),
     .low = 0,
     .high = 65536,
     .unit = "outputs",
     .default_words = "none",
     .group = "Network",
     .help = "a dense layer with ReLU before the last"},
    {.name = "dropout",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(dropout),
     .low = 0.0,
     .high = 0.99,
     .group = "Network",
     .help = "part of the features that is zeroed before the last layer"},
    TDMI_ROWS_INPUT(train, "Network", "as published"),

    {.name = "epochs",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(epochs),
     .low = 0,
     .high = INFINITY,
     .default_words = "no limit",
     .group = "How long",
     .help = "passes over the pictures; 0 sets no limit of this kind"},
    {.name = "steps",
     .type = TDMI_OPTION_LONG,
     .offset = FIELD(steps),
     .low = 0,
     .high = INFINITY,
     .default_words = "no limit",
     .group = "How long",
     .help = "steps of the optimiser"},
    {.name = "minutes",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(minutes),
     .low = 0,
     .high = INFINITY,
     .default_words = "no limit",
     .group = "How long",
     .help = "of training"},
    {.name = "patience",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(patience),
     .low = 0,
     .high = INFINITY,
     .default_words = "a quarter of the epochs, at least 10",
     .group = "How long",
     .help = "stop after so many validations without improvement; 0 never does"},
    {.name = "monitor",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(monitor),
     .choices = "accuracy|loss",
     .group = "How long",
     .help = "of the validation: what is to improve, and which epoch is the best"},
    {.name = "min-delta",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(min_delta),
     .low = 0,
     .high = 1000,
     .group = "How long",
     .help = "an improvement is more than this part of the pictures, or than this much loss"},
    {.name = "eval-every",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(eval_every),
     .low = 1,
     .high = INFINITY,
     .unit = "epochs",
     .group = "How long",
     .help = "validate so often, and at the end"},

    TDMI_ROWS_SOURCE(train.how),
    TDMI_ROW_SPLIT(offsetof(struct values, split), "Pictures",
                   "to train and to validate on; what both leave is not used, or, as a third part, "
                   "kept to be judged at the end"),
    {.name = "fraction",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(fraction),
     .low = 1e-6,
     .high = 1,
     .value_name = "F",
     .group = "Pictures",
     .help = "train on this part of every class only"},
    {.name = "per-class",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(per_class),
     .low = 0,
     .high = INFINITY,
     .unit = "pictures",
     .default_words = "all",
     .group = "Pictures",
     .help = "train on at most so many of every class"},
    TDMI_ROW_AUGMENT(FIELD(augment), "Pictures", "change them while training, such as flip,crop:4"),
    {.name = "views",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(views),
     .low = 0,
     .high = 65536,
     .value_name = "K",
     .default_words = "8 where features are kept, else 0",
     .group = "Pictures",
     .help = "with a frozen base: changed pictures of each that are computed once, and kept; 0: "
             "anew in every epoch"},
    {.name = "balance",
     .type = TDMI_OPTION_FLAG,
     .offset = FIELD(balance),
     .group = "Pictures",
     .help = "show every class equally often, whatever its size"},
    {.name = "strict",
     .type = TDMI_OPTION_FLAG,
     .offset = FIELD(strict),
     .group = "Pictures",
     .help = "end with 3 at the first that cannot be read, instead of skipping it, and at the "
             "first that audit calls damaged, instead of using it"},
    {.name = "batch",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(batch),
     .low = 1,
     .high = 65536,
     .unit = "images",
     .zero = "auto",
     .group = "Pictures",
     .help = "in one step, over all devices; auto: by pictures, memory and what is faster"},
    {.name = "shard",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(shard),
     .low = 0,
     .high = 65536,
     .unit = "images",
     .default_words = "the model's own",
     .group = "Pictures",
     .help = "that one thread takes at a time; part of the result's bits"},
    {.name = "bn",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(bn),
     .choices = "shard|batch|frozen",
     .group = "Pictures",
     .help = "images that a batch norm's statistics are over; batch is what PyTorch does; frozen "
             "keeps those of the weights and trains scale and shift"},
    {.name = "precision",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(precision),
     .choices = "auto|f32|bf16|f16",
     .group = "Pictures",
     .help = "that activations are stored in; processors have f32 alone"},
    {.name = "fast",
     .type = TDMI_OPTION_FLAG,
     .offset = FIELD(fast),
     .group = "Pictures",
     .help = "on a card: faster where that gives other bits on every run"},
    TDMI_ROW_SEED(FIELD(seed), "Pictures", "of split, order and first weights"),

    {.name = "loss",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(loss),
     .choices = "softmax|binary",
     .group = "Loss",
     .help = "one class of all, or yes and no for each; of two classes by one logit"},
    {.name = "label-smoothing",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(label_smoothing),
     .low = 0.0,
     .high = 0.99,
     .group = "Loss",
     .help = "part of each label that is given to all classes"},
    {.name = "class-weights",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(class_weights),
     .choices = "none|balanced",
     .group = "Loss",
     .help = "balanced: every class weighs as much in the loss, whatever its size"},
    {.name = "optimizer",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(optimizer),
     .value_name = "NAME[:KEY=VALUE,…]",
     .name_at = tdm_optimizer_name,
     .group = "Optimiser",
     .help = "how gradients become steps, such as adam:beta2=0.99"},
    {.name = "lr",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(learning_rate),
     .low = 1e-9, /* 0 would train nothing */
     .high = 1000,
     .default_words = "the optimiser's own, scaled with the batch",
     .group = "Optimiser",
     .help = "learning rate"},
    {.name = "lr-scaling",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(lr_scaling),
     .value_name = "RULE",
     .name_at = tdm_lr_scaling_name,
     .default_words = "the optimiser's own for its own rate, none for --lr",
     .group = "Optimiser",
     .help = "how the rate follows the batch"},
    {.name = "reference-batch",
     .type = TDMI_OPTION_INTEGER,
     .offset = FIELD(reference_batch),
     .low = 1,
     .high = 65536,
     .unit = "images",
     .group = "Optimiser",
     .help = "that the rate is meant for, before it is scaled"},
    {.name = "momentum",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(momentum),
     .low = 0,
     .high = 0.9999,
     .default_words = "the optimiser's own",
     .group = "Optimiser",
     .help = "part of the last step that is kept, of sgd, rmsprop and lars"},
    {.name = "weight-decay",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(weight_decay),
     .low = 0,
     .high = 1,
     .default_words = "the optimiser's own",
     .group = "Optimiser",
     .help = "on weights, never on biases or batch-norm parameters"},
    {.name = "clip-norm",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(clip_norm),
     .low = 0,
     .high = 1e9,
     .default_words = "as it is",
     .group = "Optimiser",
     .help = "longest mean gradient, all tensors together; a longer one is shortened"},
    {.name = "ema",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(ema),
     .low = 0,
     .high = 0.999999,
     .value_name = "DECAY",
     .default_words = "no averages",
     .group = "Optimiser",
     .help = "keep running averages of the weights, such as 0.999; they are validated and kept"},
    {.name = "schedule",
     .type = TDMI_OPTION_TEXT,
     .offset = FIELD(schedule),
     .value_name = "NAME[:KEY=VALUE,…]",
     .name_at = tdm_schedule_name,
     .group = "Optimiser",
     .help = "of the learning rate, such as step:every=5,factor=0.3"},
    {.name = "warmup",
     .type = TDMI_OPTION_NUMBER,
     .offset = FIELD(warmup_epochs),
     .low = 0,
     .high = INFINITY,
     .unit = "epochs",
     .default_words = "1; 0 where the schedule rises itself",
     .group = "Optimiser",
     .help = "over which the learning rate rises first"},

    {.name = "memory",
     .type = TDMI_OPTION_SIZE,
     .offset = FIELD(memory),
     .low = 0,
     .high = INFINITY,
     .default_words = "a part of what is free",
     .group = "Machine",
     .help = "for reading ahead and for caches"},
    {.name = "cache",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(cache),
     .choices = "auto|none|encoded|decoded|disk",
     .group = "Machine",
     .help = "what is kept of pictures once read; changes no bit"},
    TDMI_ROW_THREADS(FIELD(threads), "any number gives the same bits"),
    TDMI_ROW_DEVICE(FIELD(device), "cpu, or one backend: cuda, cuda:1, ref"),
    {.name = "decode",
     .type = TDMI_OPTION_CHOICE,
     .offset = FIELD(decode),
     .choices = "cpu|card",
     .group = "Machine",
     .help = "who decodes pictures; card: JPEG files by nvJPEG on --device cuda"},
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem train pictures",
    "everything chosen for you",
    "tandem train pictures -o runs/first --epochs 30 --seed 7",
    "a run folder of your choice",
    "tandem train pictures -o runs/first --epochs 60 --resume",
    "go on, also after it was interrupted",
    NULL,
};

const struct tdmi_command tdmi_command_train = {
    .name = "train",
    .summary = "train a classifier from a folder of labelled pictures",
    .description =
        "Splits the pictures by their content, trains, validates, keeps the best weights and "
        "leaves "
        "a run folder that evaluate and predict read. The same source, options and seed give the "
        "same bits at any number of threads and however often it was interrupted.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .values_bytes = sizeof(struct values),
    .defaults = defaults,
    .run = run,
};

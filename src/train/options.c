/* Options are checked, recorded and compared; options_table.c lists them. */
#include "train/options.h"
#include "data/loader.h"
#include "image/augment.h"
#include "train/freeze.h"
#include "train/options_table.h"
#include "train/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

<<<<<<< HEAD
/* TEXT is a name that this build knows, MAYBE one or nothing, WORDS anything or nothing. */
enum type { FLAG, INTEGER, LONG, SEED, NUMBER, TEXT, MAYBE, WORDS };
/* What another value does to a run that is resumed. */
enum effect {
    SAME_BITS,  /* nothing */
    OTHER_BITS, /* it would be another run */
    LIMIT       /* it may grow; a schedule that knows its end follows the new one from there on */
};

static const struct row {
    const char *name;
    enum type type;
    enum effect effect;
    size_t offset;
    double low, high; /* accepted, both included; of numbers */
    /* What `special` means, where it is no number that a person chose; else NULL. */
    const char *words;
    double special;
} rows[] = {
#define ROW_SPECIAL(name, type, effect, field, low, high, words, special)                        \
    {                                                                                            \
        name, type, effect, offsetof(struct tdm_train_options, field), low, high, words, special \
    }
#define ROW_ZERO(name, type, effect, field, low, high, words) \
    ROW_SPECIAL(name, type, effect, field, low, high, words, 0)
#define ROW(name, type, effect, field, low, high) \
    ROW_SPECIAL(name, type, effect, field, low, high, NULL, 0)
    ROW("model", MAYBE, OTHER_BITS, model, 0, 0),
    ROW("weights", WORDS, OTHER_BITS, weights, 0, 0),
    ROW("freeze", TEXT, OTHER_BITS, freeze, 0, 0),
    ROW_ZERO("unfreeze", INTEGER, OTHER_BITS, unfreeze, 0, 1e6, "from the first step on"),
    ROW_ZERO("unfreeze-layers", INTEGER, OTHER_BITS, unfreeze_layers, 0, 100000, "all at once"),
    ROW("layer-decay", NUMBER, OTHER_BITS, layer_decay, 0.01, 1),
    ROW("features", TEXT, OTHER_BITS, features, 0, 0),
    ROW("fit", WORDS, OTHER_BITS, fit, 0, 0),
    ROW("resample", WORDS, OTHER_BITS, resample, 0, 0),
    ROW("scale", WORDS, OTHER_BITS, scale, 0, 0),
    ROW("padding", WORDS, OTHER_BITS, padding, 0, 0),
    ROW_ZERO("crop-fraction", NUMBER, OTHER_BITS, crop_fraction, 0, 1, "the model's own"),
    ROW_ZERO("size", INTEGER, OTHER_BITS, size, 0, 4096, "the network's own"),
    ROW_ZERO("hidden", INTEGER, OTHER_BITS, hidden, 0, 65536, "none"),
    ROW("dropout", NUMBER, OTHER_BITS, dropout, 0, 0.99),
    ROW("loss", TEXT, OTHER_BITS, loss, 0, 0),
    ROW("label-smoothing", NUMBER, OTHER_BITS, label_smoothing, 0, 0.99),
    ROW("class-weights", TEXT, OTHER_BITS, class_weights, 0, 0),
    ROW_ZERO("epochs", INTEGER, LIMIT, epochs, 0, 1e9, "no limit"),
    ROW_ZERO("steps", LONG, LIMIT, steps, 0, 1e15, "no limit"),
    ROW_ZERO("minutes", NUMBER, LIMIT, minutes, 0, 1e9, "no limit"),
    ROW("eval-every", INTEGER, OTHER_BITS, eval_every, 1, 1e9),
    ROW("image-column", WORDS, OTHER_BITS, how.image_column, 0, 0),
    ROW("label-column", WORDS, OTHER_BITS, how.label_column, 0, 0),
    ROW("raw-shape", WORDS, OTHER_BITS, how.raw_shape, 0, 0),
    ROW("quarantine", WORDS, OTHER_BITS, how.quarantine, 0, 0),
    ROW("split-train", NUMBER, OTHER_BITS, train_fraction, 0, 1),
    ROW("split-val", NUMBER, OTHER_BITS, val_fraction, 0, 1),
    ROW("fraction", NUMBER, OTHER_BITS, fraction, 0, 1),
    ROW_ZERO("per-class", INTEGER, OTHER_BITS, per_class, 0, 1e9, "all"),
    ROW("augment", WORDS, OTHER_BITS, augment, 0, 0),
    ROW_SPECIAL("views", INTEGER, OTHER_BITS, views, 0, 65536, "8 where features are kept", -1),
    ROW("balance", FLAG, OTHER_BITS, balance, 0, 1),
    ROW("strict", FLAG, SAME_BITS, strict, 0, 1),
    ROW_ZERO("memory", LONG, SAME_BITS, memory, 0, 0x1p62, "a part of what is free"),
    ROW("cache", TEXT, SAME_BITS, cache, 0, 0),
    ROW("batch", INTEGER, OTHER_BITS, batch, 1, 65536),
    ROW_ZERO("shard", INTEGER, OTHER_BITS, shard, 0, 65536, "the network's own"),
    ROW("bn", TEXT, OTHER_BITS, bn, 0, 0),
    ROW_ZERO("lr", NUMBER, OTHER_BITS, learning_rate, 0, 1000, "the network's own"),
    ROW("lr-scaling", WORDS, OTHER_BITS, lr_scaling, 0, 0),
    ROW("reference-batch", INTEGER, OTHER_BITS, reference_batch, 1, 65536),
    ROW("optimizer", TEXT, OTHER_BITS, optimizer, 0, 0),
    ROW_SPECIAL("momentum", NUMBER, OTHER_BITS, momentum, 0, 0.9999, "the optimizer's own", -1),
    ROW_SPECIAL("weight-decay", NUMBER, OTHER_BITS, weight_decay, 0, 1, "the optimizer's own", -1),
    ROW_ZERO("clip-norm", NUMBER, OTHER_BITS, clip_norm, 0, 1e9, "no limit"),
    ROW_ZERO("ema", NUMBER, OTHER_BITS, ema, 0, 0.999999, "no average"),
    ROW("schedule", TEXT, OTHER_BITS, schedule, 0, 0),
    ROW_SPECIAL("warmup", NUMBER, OTHER_BITS, warmup_epochs, 0, 1e6, "the schedule's own", -1),
    ROW_ZERO("patience", INTEGER, OTHER_BITS, patience, 0, 1e9, "no limit"),
    ROW_ZERO("threads", INTEGER, SAME_BITS, threads, 0, 4096, "all usable CPUs"),
    ROW("device", TEXT, OTHER_BITS, device, 0, 0),
    ROW("seed", SEED, OTHER_BITS, seed, 0, 0),
    ROW_ZERO("checkpoint-every", INTEGER, SAME_BITS, checkpoint_every, 0, 1e9,
             "the ends of epochs"),
    ROW_ZERO("checkpoint-minutes", NUMBER, SAME_BITS, checkpoint_minutes, 0, 1e9,
             "the ends of epochs"),
#undef ROW
#undef ROW_ZERO
#undef ROW_SPECIAL
};

enum { n_rows = sizeof rows / sizeof rows[0] };

struct tdm_train_options tdm_train_options_default(void)
{
    return (struct tdm_train_options){
        .epochs = 20,
        .eval_every = 1,
        .train_fraction = 0.9,
        .val_fraction = 0.1,
        .fraction = 1.0,
        .views = -1,
        .freeze = "auto",
        .layer_decay = 1.0,
        .features = "f32",
        .loss = "softmax",
        .class_weights = "none",
        .cache = "auto",
        .batch = 32,
        .bn = "shard",
        .reference_batch = 32,
        .optimizer = "sgd",
        .momentum = -1.0,
        .weight_decay = -1.0,
        .schedule = "cosine",
        .warmup_epochs = -1.0,
        .device = "cpu",
        .seed = 42,
    };
}

/* NULL: there is none of that name. */
static const struct row *row_named(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool is_text(const struct row *row)
{
    return row->type == TEXT || row->type == MAYBE || row->type == WORDS;
}

static const void *field(const struct tdm_train_options *options, const struct row *row)
{
    return (const char *)options + row->offset;
}

static const char *text_of(const struct tdm_train_options *options, const struct row *row)
{
    const char *text = *(const char *const *)field(options, row);
    return text || row->type == TEXT ? text : "";
}

/* Every number fits a double exactly but the seed, which is compared by itself. */
static double number_of(const struct tdm_train_options *options, const struct row *row)
{
    switch (row->type) {
    case FLAG:
        return *(const bool *)field(options, row);
    case INTEGER:
        return *(const int *)field(options, row);
    case LONG:
        return (double)*(const int64_t *)field(options, row);
    case NUMBER:
        return *(const double *)field(options, row);
    default:
        return 0.0;
    }
}

/* Options of few words, which have no list of their own elsewhere. */
static const struct {
    const char *option, *words[4];
} choices[] = {
    {"features", {"f32", "f16", "none"}},
    {"loss", {"softmax", "binary"}},
    {"class-weights", {"none", "balanced"}},
    {"bn", {"shard", "batch", "frozen"}},
};

enum { n_choices = sizeof choices / sizeof choices[0] };

/* The same word in static storage, if the option accepts it; else NULL. */
static const char *choice_of(int choice, const char *word)
{
    for (int i = 0; i < 4 && choices[choice].words[i]; i++)
        if (strcmp(word, choices[choice].words[i]) == 0)
            return choices[choice].words[i];
    return NULL;
}

static bool is_special(const struct row *row, double value)
{
    return row->words && value >= row->special && value <= row->special;
}

static tdm_status check_number(const struct row *row, double value, tdm_error *err)
{
    if ((value >= row->low && value <= row->high) || is_special(row, value))
=======
/* "a, b or c" of the words, into the sentence that refuses another. */
static tdm_status check_choice(const struct tdmi_row *row, const char *given, tdm_error *err)
{
    const char *const *words = tdmi_row_choices(row);
    if (!words || tdmi_row_choice(row, given))
>>>>>>> 77d261f (train: it stops by itself, says what the last epochs changed, and keeps a third part for the end)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE, "training: option --%s is '%s'; %s%s%s or %s is accepted",
                    row->name, given, words[0], words[2] ? ", " : "", words[2] ? words[1] : "",
                    words[2] ? words[2] : words[1]);
}

static tdm_status check_row(const struct tdmi_row *row, const struct tdm_train_options *options,
                            tdm_error *err)
{
    if (row->type == TDMI_ROW_SEED || row->type == TDMI_ROW_WORDS)
        return TDM_OK;
    if (!tdmi_row_is_text(row))
        return tdmi_row_check(row, tdmi_row_number(row, options), TDM_E_USAGE, err);
    const char *text = *(const char *const *)((const char *)options + row->offset);
    if (text ? *text == '\0' : row->type == TDMI_ROW_TEXT)
        return TDM_FAIL(err, TDM_E_USAGE, "training: option --%s is empty", row->name);
    return text ? check_choice(row, text, err) : TDM_OK;
}

static tdm_status check_views(const struct tdm_train_options *options,
                              const struct tdmi_augment *augment, tdm_error *err)
{
    bool is_changed = false;
    for (int i = 0; i < TDMI_AUGMENTS; i++)
        is_changed = is_changed || augment->is_on[i];
    if (options->views > 0 && !is_changed)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --views %d wants pictures that are changed, and --augment does "
                        "not change them; --augment, or no --views, is accepted",
                        options->views);
    if (options->views > 0 && tdmi_augment_has_mix(augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --views %d keeps what becomes of single pictures, and mixup and "
                        "cutmix mix them with others; one of the two is accepted",
                        options->views);
    return TDM_OK;
}

tdm_status tdmi_options_check(const struct tdm_train_options *options, tdm_error *err)
{
    if (!options->source || !*options->source)
        return TDM_FAIL(err, TDM_E_USAGE, "training: no source of pictures was named");
    const struct tdmi_row *row;
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++) {
        const tdm_status status = check_row(row, options, err);
        if (status != TDM_OK)
            return status;
    }
    if (options->epochs == 0 && options->steps == 0 && !(options->minutes > 0.0))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: nothing ends it; one of --epochs, --steps and --minutes must be "
                        "above 0");
    struct tdmi_augment augment;
    enum tdmi_cache_kind cache;
    TDM_TRY(tdmi_augment_read(options->augment ? options->augment : "", &augment, err), err,
            "training: option --augment");
    TDM_TRY(check_views(options, &augment, err), err, "checking options");
    TDM_TRY(tdmi_cache_kind_find(options->cache, &cache, err), err, "training: option --cache");
    TDM_TRY(tdmi_freeze_check(options->freeze, err), err, "training: option --freeze");
<<<<<<< HEAD
    TDM_TRY(check_choices(options, err), err, "checking options");
    TDM_TRY(tdmi_freeze_check_thawing(options, err), err, "checking options");
=======
>>>>>>> 77d261f (train: it stops by itself, says what the last epochs changed, and keeps a third part for the end)
    if (options->balance && strcmp(options->class_weights, "balanced") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --balance shows every class equally often, and --class-weights "
                        "balanced weighs what is rare; together rare classes count twice; one of "
                        "them is accepted");
    if (!(options->fraction > 0.0))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --fraction is %g; more than 0, up to 1, is accepted",
                        options->fraction);
    if (!(options->train_fraction > 0.0) || !(options->val_fraction > 0.0) ||
        options->train_fraction + options->val_fraction + options->test_fraction > 1.0 + 1e-9)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --split is %g,%g,%g; two or three parts above 0 that sum "
                        "to at most 1 are accepted",
                        options->train_fraction, options->val_fraction, options->test_fraction);
    struct tdmi_rates rates;
    return tdmi_rates_read(options, &rates, err);
}

bool tdmi_options_ask_for_split(const struct tdm_train_options *options)
{
    const struct tdm_train_options usual = tdm_train_options_default();
    return fabs(options->train_fraction - usual.train_fraction) > 0.0 ||
           fabs(options->val_fraction - usual.val_fraction) > 0.0 || options->test_fraction > 0.0;
}

void tdmi_options_to_json(const struct tdm_train_options *options, tdm_json_writer *writer,
                          const char *key)
{
    tdm_json_object_begin(writer, key);
    const struct tdmi_row *row;
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++) {
        if (tdmi_row_is_text(row))
            tdm_json_string(writer, row->name, tdmi_row_text(row, options));
        else if (row->type == TDMI_ROW_SEED)
            tdm_json_integer(writer, row->name, (int64_t)options->seed);
        else
            tdm_json_number(writer, row->name, tdmi_row_number(row, options));
    }
    tdm_json_object_end(writer);
}

const char *tdmi_options_words(const char *name, const tdm_json_value *value)
{
    const struct tdmi_row *row = tdmi_row_named(name);
    if (!row || tdm_json_kind_of(value) != TDM_JSON_NUMBER)
        return NULL;
    const double number = tdm_json_as_number(value, 0.0);
    if (row->type == TDMI_ROW_FLAG)
        return number > 0.0 ? "yes" : "no";
    return tdmi_row_is_special(row, number) ? row->words : NULL;
}

static bool has_shrunk(double now, double before)
{
    return now > 0.0 && (before == 0.0 || now < before);
}

static const char *say(const struct tdmi_row *row, double value, char text[32])
{
    if (tdmi_row_is_special(row, value))
        return row->words;
    snprintf(text, 32, "%g", value);
    return text;
}

/* What ends the sentences of options that may not change. */
#define KEEP_IT "; leave it out, or give another -o"

tdm_status tdmi_options_match(const struct tdm_train_options *options,
                              const tdm_json_value *recorded, tdm_error *err)
{
    const struct tdm_train_options defaults = tdm_train_options_default();
    const struct tdmi_row *row;
    char words[2][32];
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++) {
        const tdm_json_value *value = tdm_json_member(recorded, row->name);
        if (row->effect == TDMI_ROW_SAME_BITS)
            continue;
        if (tdmi_row_is_text(row)) {
            /* A record that lacks the option is older: it was begun with the default. */
            const char *before =
                value ? tdm_json_as_string(value, "") : tdmi_row_text(row, &defaults);
            if (strcmp(before, tdmi_row_text(row, options)) == 0)
                continue;
            if (*before == '\0')
                return TDM_FAIL(err, TDM_E_USAGE,
                                "option --%s is '%s', but the run was begun without it" KEEP_IT,
                                row->name, tdmi_row_text(row, options));
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is '%s', but the run was begun with '%s'" KEEP_IT,
                            row->name, tdmi_row_text(row, options), before);
        }
        if (row->type == TDMI_ROW_SEED) {
            int64_t before = tdm_json_as_integer(value, 0);
            if (before != (int64_t)options->seed)
                return TDM_FAIL(err, TDM_E_USAGE,
                                "option --seed is %lld, but the run was begun with %lld" KEEP_IT,
                                (long long)options->seed, (long long)before);
            continue;
        }
        double before = tdm_json_as_number(value, tdmi_row_number(row, &defaults));
        double now = tdmi_row_number(row, options);
        if (row->effect == TDMI_ROW_LIMIT && has_shrunk(now, before))
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is %s, but the run was begun with %s; as much or more is "
                            "accepted",
                            row->name, say(row, now, words[0]), say(row, before, words[1]));
        if (row->effect == TDMI_ROW_OTHER_BITS && fabs(before - now) > 0.0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is %s, but the run was begun with %s" KEEP_IT, row->name,
                            say(row, now, words[0]), say(row, before, words[1]));
    }
    return TDM_OK;
}

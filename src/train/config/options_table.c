/* One table of the options: what each is called, where it lies, what it accepts. */
#include "train/config/options_table.h"

#include <string.h>

static const struct tdmi_row rows[] = {
#define ROW_SPECIAL(name, type, effect, field, low, high, words, special)                         \
    {                                                                                             \
        name, TDMI_ROW_##type, TDMI_ROW_##effect, offsetof(struct tdm_train_options, field), low, \
            high, words, special                                                                  \
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
    ROW("follow", FLAG, SAME_BITS, how.follow, 0, 1),
    ROW("split-train", NUMBER, OTHER_BITS, train_fraction, 0, 1),
    ROW("split-val", NUMBER, OTHER_BITS, val_fraction, 0, 1),
    ROW_ZERO("split-test", NUMBER, OTHER_BITS, test_fraction, 0, 1, "none"),
    ROW("fraction", NUMBER, OTHER_BITS, fraction, 0, 1),
    ROW_ZERO("per-class", INTEGER, OTHER_BITS, per_class, 0, 1e9, "all"),
    ROW("augment", WORDS, OTHER_BITS, augment, 0, 0),
    ROW_SPECIAL("views", INTEGER, OTHER_BITS, views, 0, 65536, "8 where features are kept", -1),
    ROW("balance", FLAG, OTHER_BITS, balance, 0, 1),
    ROW("strict", FLAG, SAME_BITS, strict, 0, 1),
    ROW_ZERO("memory", LONG, SAME_BITS, memory, 0, 0x1p62, "a part of what is free"),
    ROW("cache", TEXT, SAME_BITS, cache, 0, 0),
    ROW_ZERO("batch", INTEGER, OTHER_BITS, batch, 1, 65536, "auto"),
    ROW_ZERO("shard", INTEGER, OTHER_BITS, shard, 0, 65536, "the network's own"),
    ROW("bn", TEXT, OTHER_BITS, bn, 0, 0),
    ROW("precision", TEXT, OTHER_BITS, precision, 0, 0),
    ROW("fast", FLAG, OTHER_BITS, fast, 0, 1),
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
    ROW_SPECIAL("patience", INTEGER, OTHER_BITS, patience, 0, 1e9,
                "a quarter of the epochs, at least 10", -1),
    ROW("monitor", TEXT, OTHER_BITS, monitor, 0, 0),
    ROW("min-delta", NUMBER, OTHER_BITS, min_delta, 0, 1000),
    ROW_ZERO("threads", INTEGER, SAME_BITS, threads, 0, 4096, "all usable CPUs"),
    ROW("device", TEXT, OTHER_BITS, device, 0, 0),
    ROW("decode", TEXT, OTHER_BITS, decode, 0, 0),
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
        .precision = "auto",
        .reference_batch = 32,
        .optimizer = "sgd",
        .momentum = -1.0,
        .weight_decay = -1.0,
        .schedule = "cosine",
        .warmup_epochs = -1.0,
        .patience = -1,
        .monitor = "accuracy",
        .device = "cpu",
        .decode = "cpu",
        .seed = 42,
    };
}

const struct tdmi_row *tdmi_row_at(int index)
{
    return index >= 0 && index < n_rows ? &rows[index] : NULL;
}

const struct tdmi_row *tdmi_row_named(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

bool tdmi_row_is_text(const struct tdmi_row *row)
{
    return row->type == TDMI_ROW_TEXT || row->type == TDMI_ROW_MAYBE || row->type == TDMI_ROW_WORDS;
}

bool tdmi_row_is_special(const struct tdmi_row *row, double value)
{
    return row->words && value >= row->special && value <= row->special;
}

static const void *field(const struct tdmi_row *row, const struct tdm_train_options *options)
{
    return (const char *)options + row->offset;
}

const char *tdmi_row_text(const struct tdmi_row *row, const struct tdm_train_options *options)
{
    const char *text = *(const char *const *)field(row, options);
    return text || row->type == TDMI_ROW_TEXT ? text : "";
}

double tdmi_row_number(const struct tdmi_row *row, const struct tdm_train_options *options)
{
    switch (row->type) {
    case TDMI_ROW_FLAG:
        return *(const bool *)field(row, options);
    case TDMI_ROW_INTEGER:
        return *(const int *)field(row, options);
    case TDMI_ROW_LONG:
        return (double)*(const int64_t *)field(row, options);
    case TDMI_ROW_NUMBER:
        return *(const double *)field(row, options);
    default:
        return 0.0;
    }
}

tdm_status tdmi_row_check(const struct tdmi_row *row, double value, tdm_status code, tdm_error *err)
{
    if ((value >= row->low && value <= row->high) || tdmi_row_is_special(row, value))
        return TDM_OK;
    return TDM_FAIL(err, code, "training: option --%s is %g; %g to %g is accepted", row->name,
                    value, row->low, row->high);
}

static const struct {
    const char *option, *words[4];
} choices[] = {
    {"features", {"f32", "f16", "none"}},
    {"loss", {"softmax", "binary"}},
    {"class-weights", {"none", "balanced"}},
    {"bn", {"shard", "batch", "frozen"}},
    {"monitor", {"accuracy", "loss"}},
    {"precision", {"auto", "f32", "bf16", "f16"}},
    {"decode", {"cpu", "card"}},
};

enum { n_choices = sizeof choices / sizeof choices[0] };

const char *const *tdmi_row_choices(const struct tdmi_row *row)
{
    for (int i = 0; i < n_choices; i++)
        if (strcmp(choices[i].option, row->name) == 0)
            return choices[i].words;
    return NULL;
}

const char *tdmi_row_choice(const struct tdmi_row *row, const char *word)
{
    const char *const *words = tdmi_row_choices(row);
    for (int i = 0; words && i < 4 && words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return words[i];
    return NULL;
}

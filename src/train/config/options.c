/* Options are checked, recorded and compared; tandem/train.def lists them. */
#include "train/config/options.h"
#include "base/scope.h"
#include "train/freeze.h"
#include "train/config/options_table.h"
#include "train/config/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "a, b or c": the choices of a row. */
static void list_choices(const struct tdmi_row *row, char *text, size_t text_bytes)
{
    const char *last = strrchr(row->choices, '|');
    size_t used = 0;
    for (const char *at = row->choices; *at && used + 5 < text_bytes; at++) {
        if (*at != '|')
            text[used++] = *at;
        else
            used +=
                (size_t)snprintf(text + used, text_bytes - used, "%s", at == last ? " or " : ", ");
    }
    text[used] = '\0';
}

static tdm_status check_row(const struct tdmi_row *row, const struct tdm_train_options *options,
                            tdm_error *err)
{
    char accepted[120];
    if (row->type == TDMI_ROW_SEED || row->type == TDMI_ROW_TEXT)
        return TDM_OK;
    if (!tdmi_row_is_text(row))
        return tdmi_row_check(row, tdmi_row_number(row, options), TDM_E_USAGE, err);
    const char *text = *(const char *const *)((const char *)options + row->offset);
    if (text ? *text == '\0' : row->text != NULL)
        return TDM_FAIL(err, TDM_E_USAGE, "training: option --%s is empty", row->name);
    if (!text || row->type != TDMI_ROW_CHOICE || tdmi_row_has_choice(row, text))
        return TDM_OK;
    list_choices(row, accepted, sizeof accepted);
    return TDM_FAIL(err, TDM_E_USAGE, "training: option --%s is '%s'; %s is accepted", row->name,
                    text, accepted);
}

bool tdmi_options_augment_by_images(const struct tdm_train_options *options)
{
    return options->augment && strcmp(options->augment, "auto") == 0;
}

tdm_status tdmi_options_read_augment(const struct tdm_train_options *options,
                                     struct tdmi_augment *augment, tdm_error *err)
{
    const bool is_named = options->augment && !tdmi_options_augment_by_images(options);
    return TDM_WRAP(err, tdmi_augment_read(is_named ? options->augment : "", augment, err),
                    "option --augment");
}

static tdm_status check_views(const struct tdm_train_options *options,
                              const struct tdmi_augment *augment, tdm_error *err)
{
    if (options->views > 0 && !tdmi_augment_changes(augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --views %d requires changed images, and --augment %s changes "
                        "none whose features are kept; name changes, such as --augment flip, or "
                        "leave --views out",
                        options->views, options->augment ? options->augment : "none");
    if (options->views > 0 && tdmi_augment_has_mix(augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --views %d keeps the features of single images, and mixup and "
                        "cutmix mix images; one of the two is accepted",
                        options->views);
    return TDM_OK;
}

tdm_status tdmi_options_check(const struct tdm_train_options *options, tdm_error *err)
{
    if (!options->source || !*options->source)
        return TDM_FAIL(err, TDM_E_USAGE, "training: no source of images is given");
    const struct tdmi_row *row;
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++) {
        TDMI_TRY(check_row(row, options, err));
    }
    if (options->epochs == 0 && options->steps == 0 && !(options->minutes > 0.0))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: nothing ends it; one of --epochs, --steps and --minutes must be "
                        "above 0");
    if (options->min_delta > 1.0 && strcmp(options->monitor, "accuracy") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --min-delta is %g, and with --monitor accuracy it is a "
                        "fraction of the validation images; 0 to 1 is accepted (0.01: one of 100)",
                        options->min_delta);
    if (options->min_delta > 0.0 && options->patience == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --min-delta is %g, but --patience 0 stops at nothing, so "
                        "no improvement is too small; --patience above 0, or no --min-delta, is "
                        "accepted",
                        options->min_delta);
    struct tdmi_augment augment;
    TDM_TRY(tdmi_options_read_augment(options, &augment, err), err, "training");
    TDM_TRY(check_views(options, &augment, err), err, "checking options");
    TDM_TRY(tdmi_freeze_check(options->freeze, err), err, "training: option --freeze");
    TDM_TRY(tdmi_freeze_check_unfreezing(options, err), err, "checking options");
    if (options->balance && strcmp(options->class_weights, "balanced") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --balance shows every class equally often, and --class-weights "
                        "balanced weighs what is rare; together rare classes count twice; one of "
                        "them is accepted");
    if (!(options->train_fraction > 0.0) || !(options->val_fraction > 0.0) ||
        options->train_fraction + options->val_fraction + options->test_fraction > 1.0 + 1e-9) {
        char test[40] = "";
        if (options->test_fraction > 0.0)
            snprintf(test, sizeof test, ",%g", options->test_fraction);
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --split is %g,%g%s; two or three parts above 0 that sum "
                        "to at most 1 are accepted",
                        options->train_fraction, options->val_fraction, test);
    }
    if (options->batch == 0 && options->learning_rate > 0.0 && !options->lr_scaling)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: --batch auto chooses a batch, and --lr %g is meant for one that "
                        "is known; --lr-scaling linear, sqrt or none with it, or no --lr, is "
                        "accepted",
                        options->learning_rate);
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
    return tdmi_row_is_unset(row, number) ? row->words : NULL;
}

static bool has_shrunk(double now, double before)
{
    return now > 0.0 && (before == 0.0 || now < before);
}

static const char *value_words(const struct tdmi_row *row, double value, char text[32])
{
    if (tdmi_row_is_unset(row, value))
        return row->words;
    snprintf(text, 32, "%g", value);
    return text;
}

tdm_status tdmi_options_same(const struct tdm_train_options *options, const tdm_json_value *theirs,
                             tdm_error *err)
{
    const struct tdmi_row *row;
    char words[2][32];
    for (int i = 0; (row = tdmi_row_at(i)) != NULL; i++) {
        const tdm_json_value *value = tdm_json_member(theirs, row->name);
        const bool is_seed = row->type == TDMI_ROW_SEED;
        if (tdmi_row_is_text(row)) {
            const char *text = tdm_json_as_string(value, "");
            if (strcmp(tdmi_row_text(row, options), text) != 0)
                return TDM_FAIL(err, TDM_E_USAGE, "its --%s is '%s', and rank 0 has '%s'",
                                row->name, tdmi_row_text(row, options), text);
        } else if (is_seed && tdm_json_as_integer(value, 0) != (int64_t)options->seed) {
            return TDM_FAIL(err, TDM_E_USAGE, "its --seed is %lld, and rank 0 has %lld",
                            (long long)options->seed, (long long)tdm_json_as_integer(value, 0));
        } else if (!is_seed) {
            const double now = tdmi_row_number(row, options);
            const double other = tdm_json_as_number(value, 0.0);
            if (fabs(now - other) > 0.0)
                return TDM_FAIL(err, TDM_E_USAGE, "its --%s is %s, and rank 0 has %s", row->name,
                                value_words(row, now, words[0]), value_words(row, other, words[1]));
        }
    }
    return TDM_OK;
}

/* A run continues on other GPUs of the same machine, and on more or fewer: its groups stay. */
static bool is_same_text(const struct tdmi_row *row, const char *before, const char *now)
{
    const size_t n = strcspn(before, ":");
    if (strcmp(row->name, "augment") == 0)
        return strcmp(*before ? before : "none", *now ? now : "none") == 0;
    if (strcmp(row->name, "device") != 0)
        return strcmp(before, now) == 0;
    return n == strcspn(now, ":") && strncmp(before, now, n) == 0;
}

/* The end of messages about options that may not change. */
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
            const char *before = tdm_json_as_string(value, tdmi_row_text_before(row));
            if (is_same_text(row, before, tdmi_row_text(row, options)))
                continue;
            if (*before == '\0')
                return TDM_FAIL(err, TDM_E_USAGE,
                                "option --%s is '%s', but the run was started without it" KEEP_IT,
                                row->name, tdmi_row_text(row, options));
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is '%s', but the run was started with '%s'" KEEP_IT,
                            row->name, tdmi_row_text(row, options), before);
        }
        if (row->type == TDMI_ROW_SEED) {
            int64_t before = tdm_json_as_integer(value, 0);
            if (before != (int64_t)options->seed)
                return TDM_FAIL(err, TDM_E_USAGE,
                                "option --seed is %lld, but the run was started with %lld" KEEP_IT,
                                (long long)options->seed, (long long)before);
            continue;
        }
        double before = tdm_json_as_number(value, tdmi_row_number(row, &defaults));
        double now = tdmi_row_number(row, options);
        if (row->effect == TDMI_ROW_LIMIT && has_shrunk(now, before))
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is %s, but the run was last trained with %s; as much or "
                            "more is accepted",
                            row->name, value_words(row, now, words[0]),
                            value_words(row, before, words[1]));
        if (row->effect == TDMI_ROW_OTHER_BITS && fabs(before - now) > 0.0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "option --%s is %s, but the run was started with %s" KEEP_IT, row->name,
                            value_words(row, now, words[0]), value_words(row, before, words[1]));
    }
    return TDM_OK;
}

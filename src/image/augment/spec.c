/*
 * The list of augmentations, and their description in words: "flip,crop:4".
 */
#include "image/augment/augment.h"
#include "base/scope.h"

#include "base/text/suggest.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE, REAL, LONGEST_WORD = 63 };
#define SAME NAN

struct argument {
    const char *name; /* NULL ends the list */
    double usual, lowest, highest;
    int type;
    const char *meaning;
};

static const struct entry {
    const char *name;
    struct argument arguments[TDMI_AUGMENT_ARGUMENTS + 1];
} entries[TDMI_AUGMENTS] = {
#define X(name, text, stream, ...) {text, {__VA_ARGS__}},
#include "image/augment/augments.def"
#undef X
};

const char *tdmi_augment_name(enum tdmi_augment_kind kind)
{
    return entries[kind].name;
}

static int count_of(const struct entry *entry)
{
    int n = 0;
    while (n < TDMI_AUGMENT_ARGUMENTS && entry->arguments[n].name != NULL)
        n++;
    return n;
}

static const char *number_of(double value, char text[32])
{
    tdmi_number_write(value, text);
    return text;
}

/* ---- names --------------------------------------------------------------------------------- */

static tdm_status find_kind(const char *name, const struct tdmi_augment *augment, int *kind,
                            tdm_error *err)
{
    char near[100], all[200] = "";
    size_t used = 0;
    tdmi_suggestion suggestion = {.typed = name};
    for (*kind = 0; *kind < TDMI_AUGMENTS; (*kind)++) {
        tdmi_suggest_consider(&suggestion, entries[*kind].name);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", *kind > 0 ? ", " : "",
                                 entries[*kind].name);
        if (strcmp(name, entries[*kind].name) != 0)
            continue;
        if (augment->is_on[*kind])
            return TDM_FAIL(err, TDM_E_USAGE, "'%s' is there twice; once is possible", name);
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_USAGE, "'%s' is no augmentation (known are %s)%s", name, all,
                    tdmi_suggest_words(&suggestion, "", near, sizeof near));
}

/* ---- values -------------------------------------------------------------------------------- */

static tdm_status check_value(const struct entry *entry, int i, double value, tdm_error *err)
{
    const struct argument *argument = &entry->arguments[i];
    char low[32], high[32], found[32];
    if (value >= argument->lowest && value <= argument->highest &&
        (argument->type == REAL || value == floor(value)))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE, "'%s' has the %s %s (%s); %s from %s to %s are possible",
                    entry->name, argument->name, number_of(value, found), argument->meaning,
                    argument->type == WHOLE ? "whole numbers" : "numbers",
                    number_of(argument->lowest, low), number_of(argument->highest, high));
}

/* Omitted values are NaN and get their defaults. Rules across several values are checked here. */
static tdm_status complete(int kind, double values[TDMI_AUGMENT_ARGUMENTS], tdm_error *err)
{
    const struct entry *entry = &entries[kind];
    for (int i = 0; i < count_of(entry); i++) {
        const double usual = entry->arguments[i].usual;
        if (isnan(values[i]))
            values[i] = isnan(usual) ? values[0] : usual;
        values[i] += 0.0; /* -0 is 0 */
    }
    if ((kind == TDMI_AUGMENT_RESIZED_CROP || kind == TDMI_AUGMENT_ZOOM) && values[0] > values[1])
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' has the smallest area %g and the largest %g; the first must not be "
                        "larger",
                        entry->name, values[0], values[1]);
    return TDM_OK;
}

/* ---- spec ---------------------------------------------------------------------------------- */

/* Cuts the word before one of the ends off *rest; long ones are cut short, which no name is. */
static void take_word(const char **rest, const char *ends, char word[LONGEST_WORD + 1])
{
    const size_t length = strcspn(*rest, ends);
    snprintf(word, LONGEST_WORD + 1, "%.*s", (int)(length < LONGEST_WORD ? length : LONGEST_WORD),
             *rest);
    *rest += length;
}

static tdm_status read_values(const char **rest, int kind, double *values, tdm_error *err)
{
    const struct entry *entry = &entries[kind];
    char word[LONGEST_WORD + 1];
    for (int i = 0; i < TDMI_AUGMENT_ARGUMENTS; i++)
        values[i] = i < count_of(entry) ? NAN : 0;
    for (int i = 0; **rest == ':'; i++) {
        (*rest)++;
        take_word(rest, ":,", word);
        if (i == count_of(entry))
            return TDM_FAIL(err, TDM_E_USAGE, "'%s' has a value too many, '%s'; it takes %d",
                            entry->name, word, count_of(entry));
        if (!tdmi_number_read(word, &values[i]))
            return TDM_FAIL(err, TDM_E_USAGE, "'%s' has the %s '%s' (%s), which is no number",
                            entry->name, entry->arguments[i].name, word,
                            entry->arguments[i].meaning);
        TDMI_TRY(check_value(entry, i, values[i], err));
    }
    return complete(kind, values, err);
}

static tdm_status read_spec(const char *rest, struct tdmi_augment *augment, tdm_error *err)
{
    char word[LONGEST_WORD + 1];
    if (rest[0] == '\0' || strcmp(rest, "none") == 0)
        return TDM_OK;
    for (;; rest++) {
        int kind;
        take_word(&rest, ":,", word);
        if (word[0] == '\0')
            return TDM_FAIL(err, TDM_E_USAGE,
                            "a name is missing; names stand with a comma between them, as in "
                            "flip,crop:4");
        TDMI_TRY(find_kind(word, augment, &kind, err));
        TDMI_TRY(read_values(&rest, kind, augment->arguments[kind], err));
        augment->is_on[kind] = true;
        if (*rest == '\0')
            return TDM_OK;
    }
}

tdm_status tdmi_augment_read(const char *spec, struct tdmi_augment *augment, tdm_error *err)
{
    struct tdmi_augment read = {0};
    *augment = read;
    tdm_error cause = {0};
    if (read_spec(spec, &read, &cause) != TDM_OK)
        return TDM_FAIL(err, TDM_E_USAGE, "cannot augment by '%.100s': %s", spec,
                        tdm_error_sentence(&cause, 0));
    *augment = read;
    return TDM_OK;
}

void tdmi_augment_write(const struct tdmi_augment *augment, tdmi_text *text)
{
    bool is_first = true;
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        if (!augment->is_on[kind])
            continue;
        tdmi_text_printf(text, "%s%s", is_first ? "" : ",", entries[kind].name);
        is_first = false;
        for (int i = 0; i < count_of(&entries[kind]); i++) {
            char number[32];
            tdmi_text_printf(text, ":%s", number_of(augment->arguments[kind][i], number));
        }
    }
    if (is_first)
        tdmi_text_add(text, "none", 4);
}

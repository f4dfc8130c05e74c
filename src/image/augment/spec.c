/*
 * The list of augmentations, and their description in words: "flip,crop:4" and JSON. Both forms go
 * through the same two steps, a name and then its values, so they refuse the same things.
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

/* "; did you mean …?", or nothing where no name of the list is near. */
static const char *suggest(const char *typed, const char *(*name_of)(const void *list, int i),
                           const void *list, char text[100])
{
    tdmi_suggestion suggestion = {.typed = typed};
    for (int i = 0; name_of(list, i) != NULL; i++)
        tdmi_suggest_consider(&suggestion, name_of(list, i));
    return tdmi_suggest_words(&suggestion, "", text, 100);
}

static const char *entry_name(const void *list, int i)
{
    (void)list;
    return i < TDMI_AUGMENTS ? entries[i].name : NULL;
}

static const char *argument_name(const void *list, int i)
{
    const struct entry *entry = list;
    return i < TDMI_AUGMENT_ARGUMENTS ? entry->arguments[i].name : NULL;
}

/* Names with ", " between them. */
static const char *list_names(const char *(*name_of)(const void *list, int i), const void *list,
                              char text[200])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; name_of(list, i) != NULL && used < 200; i++)
        used +=
            (size_t)snprintf(text + used, 200 - used, "%s%s", i > 0 ? ", " : "", name_of(list, i));
    return text;
}

static tdm_status find_kind(const char *name, const struct tdmi_augment *augment, int *kind,
                            tdm_error *err)
{
    char near[100], all[200];
    for (*kind = 0; *kind < TDMI_AUGMENTS; (*kind)++) {
        if (strcmp(name, entries[*kind].name) != 0)
            continue;
        if (augment->is_on[*kind])
            return TDM_FAIL(err, TDM_E_USAGE, "'%s' is there twice; once is possible", name);
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_USAGE, "'%s' is no augmentation (known are %s)%s", name,
                    list_names(entry_name, NULL, all), suggest(name, entry_name, NULL, near));
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
    if (kind == TDMI_AUGMENT_RESIZED_CROP && values[0] > values[1])
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' has the smallest area %g and the largest %g; the first must not be "
                        "larger",
                        entry->name, values[0], values[1]);
    return TDM_OK;
}

static void forget(double values[TDMI_AUGMENT_ARGUMENTS], int n)
{
    for (int i = 0; i < TDMI_AUGMENT_ARGUMENTS; i++)
        values[i] = i < n ? NAN : 0;
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
    forget(values, count_of(entry));
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
        tdm_status status = find_kind(word, augment, &kind, err);
        if (status == TDM_OK)
            status = read_values(&rest, kind, augment->arguments[kind], err);
        if (status != TDM_OK)
            return status;
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

/* ---- JSON ---------------------------------------------------------------------------------- */

void tdmi_augment_to_json(const struct tdmi_augment *augment, tdm_json_writer *writer,
                          const char *key)
{
    tdm_json_object_begin(writer, key);
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        if (!augment->is_on[kind])
            continue;
        tdm_json_object_begin(writer, entries[kind].name);
        for (int i = 0; i < count_of(&entries[kind]); i++)
            tdm_json_number(writer, entries[kind].arguments[i].name, augment->arguments[kind][i]);
        tdm_json_object_end(writer);
    }
    tdm_json_object_end(writer);
}

static tdm_status read_members(const tdm_json_value *object, int kind, double *values,
                               tdm_error *err)
{
    const struct entry *entry = &entries[kind];
    char near[100], all[200];
    if (tdm_json_kind_of(object) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is no object of values", entry->name);
    forget(values, count_of(entry));
    for (size_t m = 0; m < tdm_json_count(object); m++) {
        const char *key = tdm_json_key_at(object, m);
        const tdm_json_value *value = tdm_json_at(object, m);
        char word[LONGEST_WORD + 1]; /* long keys are cut short, which no name is */
        int i = 0;
        snprintf(word, sizeof word, "%s", key);
        while (i < count_of(entry) && strcmp(key, entry->arguments[i].name) != 0)
            i++;
        if (i == count_of(entry))
            return TDM_FAIL(err, TDM_E_INPUT, "'%s' has no value '%s' (known are %s)%s",
                            entry->name, word, list_names(argument_name, entry, all),
                            suggest(word, argument_name, entry, near));
        if (tdm_json_kind_of(value) != TDM_JSON_NUMBER)
            return TDM_FAIL(err, TDM_E_INPUT, "the %s of '%s' is no number", key, entry->name);
        values[i] = tdm_json_as_number(value, NAN);
        TDMI_TRY(check_value(entry, i, values[i], err));
    }
    return complete(kind, values, err);
}

static tdm_status read_object(const tdm_json_value *object, struct tdmi_augment *augment,
                              tdm_error *err)
{
    if (tdm_json_kind_of(object) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_INPUT, "it is missing or no object");
    for (size_t m = 0; m < tdm_json_count(object); m++) {
        char word[LONGEST_WORD + 1];
        int kind;
        snprintf(word, sizeof word, "%s", tdm_json_key_at(object, m));
        tdm_status status = find_kind(word, augment, &kind, err);
        if (status == TDM_OK)
            status = read_members(tdm_json_at(object, m), kind, augment->arguments[kind], err);
        if (status != TDM_OK)
            return status;
        augment->is_on[kind] = true;
    }
    return TDM_OK;
}

tdm_status tdmi_augment_from_json(const tdm_json_value *object, const char *name,
                                  struct tdmi_augment *augment, tdm_error *err)
{
    struct tdmi_augment read = {0};
    *augment = read;
    tdm_error cause = {0};
    if (read_object(object, &read, &cause) != TDM_OK)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot use the augmentation of \"%s\": %s", name,
                        tdm_error_sentence(&cause, 0));
    *augment = read;
    return TDM_OK;
}

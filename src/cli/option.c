/*
 * Reading, checking, storing and describing one option value. Every refusal is one sentence: where
 * the value stood, what is accepted, what was found.
 */
#include "cli/option.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { range_bytes = 240 };

static const struct {
    const char *name;       /* in help --json */
    const char *value_name; /* in --help */
    size_t bytes;           /* of the stored value */
    const char *accepted;   /* before the range: "an integer", "a size such as 512M" */
} types[] = {
    [TDMI_OPTION_FLAG] = {"flag", "", sizeof(bool), "true or false"},
    [TDMI_OPTION_INTEGER] = {"integer", "N", sizeof(int), "an integer"},
    [TDMI_OPTION_LONG] = {"integer", "N", sizeof(int64_t), "an integer"},
    [TDMI_OPTION_SEED] = {"integer", "N", sizeof(uint64_t),
                          "an integer from 0 to 18446744073709551615"},
    [TDMI_OPTION_NUMBER] = {"number", "X", sizeof(double), "a number"},
    [TDMI_OPTION_SIZE] = {"size", "SIZE", sizeof(int64_t), "a size such as 512M or 2G"},
    [TDMI_OPTION_DURATION] = {"duration", "TIME", sizeof(double),
                              "a duration such as 90s, 5m or 2h"},
    [TDMI_OPTION_TEXT] = {"text", "TEXT", sizeof(char *), "a text that is not empty"},
    [TDMI_OPTION_PATH] = {"path", "PATH", sizeof(char *), "a path that is not empty"},
    [TDMI_OPTION_CHOICE] = {"choice", "", sizeof(char *), ""},
    [TDMI_OPTION_FRACTIONS] = {"fractions", "F,F", sizeof(struct tdmi_fractions),
                               "fractions such as 0.9,0.1, each from 0 to 1, that sum to at most "
                               "1"},
};

/* ---- reading ---------------------------------------------------------------------------- */

static bool has_limits(const struct tdmi_option *option)
{
    return option->low != 0 || option->high != 0;
}

static bool is_in_range(const struct tdmi_option *option, double number)
{
    return !has_limits(option) || (number >= option->low && number <= option->high);
}

/* strtod takes hexadecimal, infinities and leading blanks too; people who type those made a slip.
 */
static bool read_number(const char *text, double *number, const char **end)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *stop;
    if (!(*digits >= '0' && *digits <= '9') && *digits != '.')
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    *number = strtod(text, &stop);
    *end = stop;
    return stop != text && isfinite(*number);
}

static bool read_integer(const char *text, int64_t *integer)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    if (!(*digits >= '0' && *digits <= '9'))
        return false;
    errno = 0;
    long long read = strtoll(text, &end, 10);
    *integer = read;
    return errno == 0 && *end == '\0';
}

static bool read_seed(const char *text, uint64_t *seed)
{
    char *end;
    if (!(*text >= '0' && *text <= '9'))
        return false;
    errno = 0;
    unsigned long long read = strtoull(text, &end, 10);
    *seed = read;
    return errno == 0 && *end == '\0';
}

struct scale {
    const char *suffix;
    double factor;
};

static const struct scale size_scales[] = {
    {"", 1},         {"B", 1},       {"K", 0x1p10},   {"KB", 0x1p10},  {"KiB", 0x1p10},
    {"M", 0x1p20},   {"MB", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30},   {"GB", 0x1p30},
    {"GiB", 0x1p30}, {"T", 0x1p40},  {"TB", 0x1p40},  {"TiB", 0x1p40}, {NULL, 0},
};
static const struct scale duration_scales[] = {
    {"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}, {NULL, 0},
};

static bool read_scaled(const char *text, const struct scale *scales, double *number)
{
    const char *suffix;
    if (!read_number(text, number, &suffix))
        return false;
    for (; scales->suffix; scales++) {
        if (strcasecmp(suffix, scales->suffix) == 0) {
            *number *= scales->factor;
            return true;
        }
    }
    return false;
}

static bool read_flag(const char *text, bool *flag)
{
    static const char *const yes[] = {"true", "1", "yes", "on"};
    static const char *const no[] = {"false", "0", "no", "off"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        *flag = strcasecmp(text, yes[i]) == 0;
        if (*flag || strcasecmp(text, no[i]) == 0)
            return true;
    }
    return false;
}

static bool read_fractions(const char *text, struct tdmi_fractions *fractions)
{
    double sum = 0;
    memset(fractions, 0, sizeof *fractions);
    for (;;) {
        double number;
        text += strspn(text, " \t");
        if (fractions->count == TDMI_FRACTIONS_MAX || !read_number(text, &number, &text) ||
            number < 0 || number > 1)
            return false;
        fractions->of[fractions->count++] = number;
        sum += number;
        text += strspn(text, " \t");
        if (*text == '\0')
            return sum <= 1 + 1e-9; /* 0.7 + 0.2 + 0.1 is above 1 in binary */
        if (*text++ != ',')
            return false;
    }
}

static bool read_choice(const char *text, const char *choices)
{
    size_t length = strlen(text);
    for (const char *at = choices; length > 0; at += strcspn(at, "|") + 1) {
        size_t span = strcspn(at, "|");
        if (span == length && memcmp(at, text, length) == 0)
            return true;
        if (at[span] == '\0')
            return false;
    }
    return false;
}

static bool read_whole_number(const char *text, double *number)
{
    const char *end;
    return read_number(text, number, &end) && *end == '\0';
}

/* Is the text a value of the option's type, and in its range? */
static bool read_value(const struct tdmi_option *option, const char *text,
                       struct tdmi_option_value *value)
{
    int64_t integer = 0;
    double number = 0;
    value->text = text;
    switch (option->type) {
    case TDMI_OPTION_FLAG:
        return read_flag(text, &value->flag);
    case TDMI_OPTION_INTEGER:
        if (option->zero && strcmp(text, option->zero) == 0) {
            value->integer = 0;
            return true;
        }
        if (!read_integer(text, &integer) || integer < INT32_MIN || integer > INT32_MAX)
            return false;
        value->integer = (int)integer;
        return is_in_range(option, (double)integer);
    case TDMI_OPTION_LONG:
        return read_integer(text, &value->integer64) &&
               is_in_range(option, (double)value->integer64);
    case TDMI_OPTION_SEED:
        return read_seed(text, &value->seed);
    case TDMI_OPTION_NUMBER:
        return read_whole_number(text, &value->number) && is_in_range(option, value->number);
    case TDMI_OPTION_SIZE:
        if (!read_scaled(text, size_scales, &number) || number < 0 || number >= 0x1p62)
            return false;
        value->integer64 = (int64_t)number;
        return is_in_range(option, number);
    case TDMI_OPTION_DURATION:
        return read_scaled(text, duration_scales, &value->number) && value->number >= 0 &&
               is_in_range(option, value->number);
    case TDMI_OPTION_TEXT:
    case TDMI_OPTION_PATH:
        return *text != '\0';
    case TDMI_OPTION_CHOICE:
        return read_choice(text, option->choices);
    case TDMI_OPTION_FRACTIONS:
        return read_fractions(text, &value->fractions);
    }
    return false;
}

tdm_status tdmi_option_parse(const struct tdmi_option *option, const char *where, const char *text,
                             struct tdmi_option_value *value, tdm_error *err)
{
    char range[range_bytes];
    double number;
    memset(value, 0, sizeof *value);
    if (read_value(option, text, value))
        return TDM_OK;
    const char *accepted = tdmi_option_is_one_of(option) ? "" : types[option->type].accepted;
    tdmi_option_describe_range(option, range, sizeof range);
    /* The limit of the type is worth a word only to numbers beyond it. */
    const bool is_huge = option->type == TDMI_OPTION_INTEGER && isinf(option->high) &&
                         read_whole_number(text, &number) && number > INT32_MAX;
    return TDM_FAIL(err, TDM_E_USAGE, "%s takes %s%s%s%s; found '%.100s'", where, accepted,
                    *accepted ? tdmi_option_range_gap(option, range) : "", range,
                    is_huge ? " and at most 2147483647" : "", text);
}

/* ---- storing ---------------------------------------------------------------------------- */

void tdmi_option_store(const struct tdmi_option *option, const struct tdmi_option_value *value,
                       void *values)
{
    memcpy((char *)values + option->offset, value, types[option->type].bytes);
}

static struct tdmi_option_value stored_value(const struct tdmi_option *option, const void *values)
{
    struct tdmi_option_value value = {0};
    memcpy(&value, (const char *)values + option->offset, types[option->type].bytes);
    return value;
}

/* ---- finding ---------------------------------------------------------------------------- */

static bool is_same_name(const char *name, const char *typed)
{
    for (; *name && *typed; name++, typed++) {
        if (*name != (*typed == '_' ? '-' : *typed))
            return false;
    }
    return *name == *typed;
}

const struct tdmi_option *tdmi_option_find(const struct tdmi_option *table, const char *name)
{
    for (; table->name; table++) {
        if (is_same_name(table->name, name) ||
            (table->old_name && is_same_name(table->old_name, name)))
            return table;
    }
    return NULL;
}

/* ---- describing ------------------------------------------------------------------------- */

const char *tdmi_option_value_name(const struct tdmi_option *option)
{
    if (option->value_name)
        return option->value_name;
    return option->type == TDMI_OPTION_CHOICE ? option->choices : types[option->type].value_name;
}

const char *tdmi_option_type_name(const struct tdmi_option *option)
{
    return types[option->type].name;
}

/* "512M", "1.5G": exact when the suffix divides, else plain bytes. */
static void describe_size(double bytes, char *text, size_t text_bytes)
{
    static const char suffixes[] = {'T', 'G', 'M', 'K'};
    double unit = 0x1p40;
    for (size_t i = 0; i < sizeof suffixes; i++, unit /= 1024) {
        double count = bytes / unit;
        if (count >= 1 && count * 4 == floor(count * 4)) {
            snprintf(text, text_bytes, "%.10g%c", count, suffixes[i]);
            return;
        }
    }
    snprintf(text, text_bytes, "%.0f", bytes);
}

static void describe_number(const struct tdmi_option *option, double number, char *text,
                            size_t text_bytes)
{
    if (option->type == TDMI_OPTION_SIZE)
        describe_size(number, text, text_bytes);
    else
        snprintf(text, text_bytes, "%.12g%s", number,
                 option->type == TDMI_OPTION_DURATION ? "s" : "");
}

int tdmi_option_unit_length(const char *plural, bool is_one)
{
    int length = (int)strlen(plural);
    if (!is_one)
        return length;
    if (length > 4 && strcmp(plural + length - 4, "sses") == 0)
        return length - 2;
    return length > 0 && plural[length - 1] == 's' ? length - 1 : length;
}

bool tdmi_option_is_one_of(const struct tdmi_option *option)
{
    return option->type == TDMI_OPTION_CHOICE || option->name_at != NULL;
}

const char *tdmi_option_range_gap(const struct tdmi_option *option, const char *range)
{
    return !*range ? "" : isinf(option->high) ? " of " : " ";
}

void tdmi_option_describe_range(const struct tdmi_option *option, char *text, size_t text_bytes)
{
    char low[32], high[32];
    const char *unit = option->unit ? option->unit : "";
    const char *gap = option->unit ? " " : "";
    text[0] = '\0';
    if (option->type == TDMI_OPTION_CHOICE) {
        size_t length = (size_t)snprintf(text, text_bytes, "one of ");
        for (const char *at = option->choices; *at && length + 3 < text_bytes; at++) {
            text[length++] = *at == '|' ? ',' : *at;
            if (*at == '|')
                text[length++] = ' ';
        }
        text[length] = '\0';
        return;
    }
    if (option->name_at) {
        size_t length = 0;
        const char *name;
        for (int i = 0; (name = option->name_at(i)) != NULL && length < text_bytes; i++)
            length += (size_t)snprintf(text + length, text_bytes - length, "%s%s",
                                       i == 0 ? "one of " : ", ", name);
        return;
    }
    if (!has_limits(option))
        return;
    describe_number(option, option->low, low, sizeof low);
    describe_number(option, option->high, high, sizeof high);
    const double last = isinf(option->high) ? option->low : option->high;
    const int unit_length = tdmi_option_unit_length(unit, last == 1);
    if (isinf(option->high))
        snprintf(text, text_bytes, "at least %s%s%.*s", low, gap, unit_length, unit);
    else
        snprintf(text, text_bytes, "from %s to %s%s%.*s%s%s", low, high, gap, unit_length, unit,
                 option->zero ? ", or " : "", option->zero ? option->zero : "");
}

static void describe_fractions(const struct tdmi_fractions *fractions, char *text,
                               size_t text_bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < fractions->count && length < text_bytes; i++)
        length += (size_t)snprintf(text + length, text_bytes - length, "%s%.12g", i ? "," : "",
                                   fractions->of[i]);
}

/* A number that was not chosen, where 0 could be. */
static bool is_unset(const struct tdmi_option *option, double number)
{
    return option->default_words && number < option->low;
}

static bool is_zero_word(const struct tdmi_option *option, int number)
{
    return option->zero && number == 0;
}

void tdmi_option_describe_value(const struct tdmi_option *option, const void *values, char *text,
                                size_t text_bytes)
{
    const struct tdmi_option_value value = stored_value(option, values);
    text[0] = '\0';
    switch (option->type) {
    case TDMI_OPTION_FLAG:
        snprintf(text, text_bytes, "%s", value.flag ? "true" : "false");
        break;
    case TDMI_OPTION_INTEGER:
        if (is_zero_word(option, value.integer))
            snprintf(text, text_bytes, "%s", option->zero);
        else if (!is_unset(option, value.integer))
            snprintf(text, text_bytes, "%d", value.integer);
        break;
    case TDMI_OPTION_LONG:
        snprintf(text, text_bytes, "%lld", (long long)value.integer64);
        break;
    case TDMI_OPTION_SIZE:
        describe_size((double)value.integer64, text, text_bytes);
        break;
    case TDMI_OPTION_SEED:
        snprintf(text, text_bytes, "%llu", (unsigned long long)value.seed);
        break;
    case TDMI_OPTION_NUMBER:
    case TDMI_OPTION_DURATION:
        if (!is_unset(option, value.number))
            describe_number(option, value.number, text, text_bytes);
        break;
    case TDMI_OPTION_TEXT:
    case TDMI_OPTION_PATH:
    case TDMI_OPTION_CHOICE:
        snprintf(text, text_bytes, "%s", value.text ? value.text : "");
        break;
    case TDMI_OPTION_FRACTIONS:
        describe_fractions(&value.fractions, text, text_bytes);
        break;
    }
}

void tdmi_option_write_json(const struct tdmi_option *option, const void *values,
                            tdm_json_writer *json)
{
    const struct tdmi_option_value value = stored_value(option, values);
    const char *key = option->name;
    char digits[32];
    switch (option->type) {
    case TDMI_OPTION_FLAG:
        tdm_json_bool(json, key, value.flag);
        break;
    case TDMI_OPTION_INTEGER:
        if (is_zero_word(option, value.integer))
            tdm_json_string(json, key, option->zero);
        else if (is_unset(option, value.integer))
            tdm_json_null(json, key);
        else
            tdm_json_integer(json, key, value.integer);
        break;
    case TDMI_OPTION_LONG:
    case TDMI_OPTION_SIZE:
        tdm_json_integer(json, key, value.integer64);
        break;
    case TDMI_OPTION_SEED:
        /* Above the range of the writer's integers a string keeps every digit. */
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)value.seed);
        if (value.seed <= INT64_MAX)
            tdm_json_integer(json, key, (int64_t)value.seed);
        else
            tdm_json_string(json, key, digits);
        break;
    case TDMI_OPTION_NUMBER:
    case TDMI_OPTION_DURATION:
        tdm_json_number(json, key, is_unset(option, value.number) ? NAN : value.number);
        break;
    case TDMI_OPTION_TEXT:
    case TDMI_OPTION_PATH:
    case TDMI_OPTION_CHOICE:
        tdm_json_string(json, key, value.text);
        break;
    case TDMI_OPTION_FRACTIONS:
        tdm_json_array_begin(json, key);
        for (int i = 0; i < value.fractions.count; i++)
            tdm_json_number(json, NULL, value.fractions.of[i]);
        tdm_json_array_end(json);
        break;
    }
}

tdm_status tdmi_split_take(const struct tdmi_fractions *split, const char *rest, double *train,
                           double *val, double *test, tdm_error *err)
{
    if (split->count < 2 || (split->count > 2 && !test)) {
        char found[100];
        describe_fractions(split, found, sizeof found);
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--split takes two fractions with a comma, as in 0.8,0.2, to train and to "
                        "validate on (what they leave over %s)%s; found %s",
                        rest, test ? ", or a third, as in 0.8,0.1,0.1, to test on" : "", found);
    }
    *train = split->of[0];
    *val = split->of[1];
    if (test)
        *test = split->count > 2 ? split->of[2] : 0.0;
    return TDM_OK;
}

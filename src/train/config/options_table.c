/* The rows of tandem/train.def, with access to the members that they describe. */
#include "train/config/options_table.h"
#include "base/sized.h"

#include <math.h>
#include <string.h>

#define MEMBER(name) offsetof(struct tdm_train_options, name)
#define NUMERIC(name, type, member, usual, effect, low, high, unset, words, ...) \
    {                                                                            \
        name,                                                                    \
        TDMI_ROW_##type,                                                         \
        TDMI_ROW_##effect,                                                       \
        MEMBER(member),                                                          \
        low,                                                                     \
        high,                                                                    \
        unset,                                                                   \
        words,                                                                   \
        NULL,                                                                    \
        usual,                                                                   \
        NULL},
#define TEXTUAL(name, type, member, usual, effect, choices, ...) \
    {name, TDMI_ROW_##type, TDMI_ROW_##effect, MEMBER(member), 0, 0, 0, NULL, choices, 0, usual},
#define FLAG(name, member, effect, ...) \
    {name, TDMI_ROW_FLAG, TDMI_ROW_##effect, MEMBER(member), 0, 1, 0, NULL, NULL, 0, NULL},
#define SPLIT(name, ...)                                                           \
    NUMERIC(name "-train", NUMBER, train_fraction, 0.9, OTHER_BITS, 0, 1, 0, NULL) \
    NUMERIC(name "-val", NUMBER, val_fraction, 0.1, OTHER_BITS, 0, 1, 0, NULL)     \
    NUMERIC(name "-test", NUMBER, test_fraction, 0, OTHER_BITS, 0, 1, 0, "none")

static const struct tdmi_row rows[] = {
#include "tandem/train.def"
};

enum { n_rows = sizeof rows / sizeof rows[0] };

static void *member_of(const struct tdmi_row *row, struct tdm_train_options *options)
{
    return (char *)options + row->offset;
}

void tdm_train_options_init(struct tdm_train_options *options, size_t struct_bytes)
{
    struct tdm_train_options usual = {0};
    for (int i = 0; i < n_rows; i++) {
        if (tdmi_row_is_text(&rows[i]))
            *(const char **)member_of(&rows[i], &usual) = rows[i].text;
        else
            tdmi_row_store(&rows[i], rows[i].number, &usual);
    }
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
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
    return row->type >= TDMI_ROW_TEXT;
}

bool tdmi_row_is_unset(const struct tdmi_row *row, double value)
{
    return row->words && value >= row->unset && value <= row->unset;
}

const char *tdmi_row_text(const struct tdmi_row *row, const struct tdm_train_options *options)
{
    const char *text = *(const char *const *)((const char *)options + row->offset);
    return text ? text : "";
}

const char *tdmi_row_text_before(const struct tdmi_row *row)
{
    if (strcmp(row->name, "augment") == 0)
        return "none";
    return row->text ? row->text : "";
}

double tdmi_row_number(const struct tdmi_row *row, const struct tdm_train_options *options)
{
    const void *member = (const char *)options + row->offset;
    switch (row->type) {
    case TDMI_ROW_FLAG:
        return *(const bool *)member;
    case TDMI_ROW_INTEGER:
        return *(const int *)member;
    case TDMI_ROW_LONG:
        return (double)*(const int64_t *)member;
    case TDMI_ROW_NUMBER:
        return *(const double *)member;
    default:
        return 0.0;
    }
}

void tdmi_row_store(const struct tdmi_row *row, double value, struct tdm_train_options *options)
{
    void *member = member_of(row, options);
    switch (row->type) {
    case TDMI_ROW_FLAG:
        *(bool *)member = value > 0.0;
        break;
    case TDMI_ROW_INTEGER:
        *(int *)member = (int)value;
        break;
    case TDMI_ROW_LONG:
        *(int64_t *)member = (int64_t)value;
        break;
    case TDMI_ROW_SEED:
        *(uint64_t *)member = (uint64_t)value;
        break;
    default:
        *(double *)member = value;
    }
}

tdm_status tdmi_row_check(const struct tdmi_row *row, double value, tdm_status code, tdm_error *err)
{
    const double high = !isinf(row->high) ? row->high : row->type == TDMI_ROW_LONG ? 1e15 : 1e9;
    if ((value >= row->low && value <= high) || tdmi_row_is_unset(row, value))
        return TDM_OK;
    return TDM_FAIL(err, code, "training: option --%s is %g; %g to %g is accepted", row->name,
                    value, row->low, high);
}

bool tdmi_row_has_choice(const struct tdmi_row *row, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = row->choices; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return length > 0;
    }
    return false;
}

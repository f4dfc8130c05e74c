/*
 * The table behind options.h: one row an option, for the files that check, record, compare and read
 * them (options.c, options_read.c).
 */
#ifndef TANDEM_TRAIN_OPTIONS_TABLE_H
#define TANDEM_TRAIN_OPTIONS_TABLE_H

#include "tandem/train.h"

/* TEXT is a name that this build knows, MAYBE one or nothing, WORDS anything or nothing. */
enum tdmi_row_type {
    TDMI_ROW_FLAG,
    TDMI_ROW_INTEGER,
    TDMI_ROW_LONG,
    TDMI_ROW_SEED,
    TDMI_ROW_NUMBER,
    TDMI_ROW_TEXT,
    TDMI_ROW_MAYBE,
    TDMI_ROW_WORDS
};

/* What another value does to a run that is resumed. */
enum tdmi_row_effect {
    TDMI_ROW_SAME_BITS,  /* nothing */
    TDMI_ROW_OTHER_BITS, /* it would be another run */
    TDMI_ROW_LIMIT /* it may grow; a schedule that knows its end follows the new one from there on
                    */
};

struct tdmi_row {
    const char *name;
    enum tdmi_row_type type;
    enum tdmi_row_effect effect;
    size_t offset;
    double low, high; /* accepted, both included; of numbers */
    /* What `special` means, where it is no number that a person chose; else NULL. */
    const char *words;
    double special;
};

/* NULL past the last. */
const struct tdmi_row *tdmi_row_at(int index);
/* NULL: there is none of that name. */
const struct tdmi_row *tdmi_row_named(const char *name);

bool tdmi_row_is_text(const struct tdmi_row *row);
bool tdmi_row_is_special(const struct tdmi_row *row, double value);
/* Of a text nobody gave: "" where it may be missing. */
const char *tdmi_row_text(const struct tdmi_row *row, const struct tdm_train_options *options);
/* Every number fits a double exactly but the seed, which is compared by itself. */
double tdmi_row_number(const struct tdmi_row *row, const struct tdm_train_options *options);
/* A number in the row's range; code is what another one is. */
tdm_status tdmi_row_check(const struct tdmi_row *row, double value, tdm_status code,
                          tdm_error *err) TDM_MUST_USE;

/* Options of few words, which have no list of their own elsewhere: their words, up to 4 and NULL
 * where there are fewer; NULL for every other row. */
const char *const *tdmi_row_choices(const struct tdmi_row *row);
/* The same word in static storage, if the row accepts it; else NULL. */
const char *tdmi_row_choice(const struct tdmi_row *row, const char *word);

#endif

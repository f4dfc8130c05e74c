/*
 * The rows of tandem/train.def, for the files that check, record, compare and read options
 * (options.c, options_read.c).
 */
#pragma once

#include "tandem/train.h"

enum tdmi_row_type {
    TDMI_ROW_FLAG,
    TDMI_ROW_INTEGER,
    TDMI_ROW_LONG,
    TDMI_ROW_SIZE = TDMI_ROW_LONG,
    TDMI_ROW_SEED,
    TDMI_ROW_NUMBER,
    TDMI_ROW_TEXT,
    TDMI_ROW_PATH = TDMI_ROW_TEXT,
    TDMI_ROW_NAME,
    TDMI_ROW_CHOICE
};

/* Effect of another value on a run that is resumed. */
enum tdmi_row_effect {
    TDMI_ROW_SAME_BITS,
    TDMI_ROW_OTHER_BITS, /* another run: refused */
    TDMI_ROW_LIMIT /* may grow; a schedule that knows its end follows the new one from there */
};

struct tdmi_row {
    const char *name;
    enum tdmi_row_type type;
    enum tdmi_row_effect effect;
    size_t offset;
    double low, high;    /* accepted numbers, both included; INFINITY: no limit of its own */
    double unset;        /* accepted, too, where there are words: nobody chose a number */
    const char *words;   /* meaning of unset; NULL: there is none */
    const char *choices; /* "a|b|c" */
    double number;       /* the default of a number or flag */
    const char *text;    /* … of a text; NULL: it may be missing */
};

/* NULL past the last. */
const struct tdmi_row *tdmi_row_at(int index);
/* NULL: there is none of that name. */
const struct tdmi_row *tdmi_row_named(const char *name);

bool tdmi_row_is_text(const struct tdmi_row *row);
bool tdmi_row_is_unset(const struct tdmi_row *row, double value);
/* "" for a missing text. */
const char *tdmi_row_text(const struct tdmi_row *row, const struct tdm_train_options *options);
/* The value of a run whose record lacks the option, because it is older. */
const char *tdmi_row_text_before(const struct tdmi_row *row);
/* Every number fits a double exactly but the seed, which is compared by itself. */
double tdmi_row_number(const struct tdmi_row *row, const struct tdm_train_options *options);
/* Store a number that tdmi_row_check accepts, whole where the row counts. */
void tdmi_row_store(const struct tdmi_row *row, double value, struct tdm_train_options *options);
/* A number in the row's range; code is the status of another one. */
tdm_status tdmi_row_check(const struct tdmi_row *row, double value, tdm_status code,
                          tdm_error *err) TDM_MUST_USE;
/* Is the word one of the row's choices? */
bool tdmi_row_has_choice(const struct tdmi_row *row, const char *word);

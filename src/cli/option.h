/*
 * One row describes one option completely: its spelling, accepted values, place and help. The
 * command line, the environment, the config file, --help, the option page and --json work from
 * these rows. Rows that the library needs too (train, data sets, input of networks) are made from
 * .def files of include/tandem.
 *
 * Values are stored in a plain struct of the command through the row's offset; the command's
 * defaults() fills it first, so the library's defaults are not repeated.
 */
#pragma once

#include "tandem/error.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stored type and spelling of a value. */
enum tdmi_option_type {
    /* bool: --name, --no-name, true, false */
    TDMI_OPTION_FLAG,
    /* int, int64_t: 12 */
    TDMI_OPTION_INTEGER,
    TDMI_OPTION_LONG,
    /* uint64_t: 42 */
    TDMI_OPTION_SEED,
    /* double: 0.1, 1e-3 */
    TDMI_OPTION_NUMBER,
    /* int64_t, bytes: 512M, 1.5G, 4096 */
    TDMI_OPTION_SIZE,
    /* double, seconds: 90, 90s, 5m, 2h, 250ms */
    TDMI_OPTION_DURATION,
    /* const char *: any text but "" */
    TDMI_OPTION_TEXT,
    TDMI_OPTION_NAME = TDMI_OPTION_TEXT,
    TDMI_OPTION_PATH,
    /* const char *: one of choices */
    TDMI_OPTION_CHOICE,
    /* struct tdmi_fractions: 0.9,0.1 */
    TDMI_OPTION_FRACTIONS
};

enum { TDMI_FRACTIONS_MAX = 3 };

struct tdmi_fractions {
    double of[TDMI_FRACTIONS_MAX]; /* each in [0, 1], the sum at most 1 */
    int count;
};

/* Take two or three fractions of --split, else TDM_E_USAGE; rest says what happens to the rest of
 * two. test is 0 without a third; NULL refuses one. */
tdm_status tdmi_split_take(const struct tdmi_fractions *split, const char *rest, double *train,
                           double *val, double *test, tdm_error *err) TDM_MUST_USE;

struct tdmi_option {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* short form, 0 for none */
    enum tdmi_option_type type;
    size_t offset;
    double low, high;    /* inclusive, in the stored unit; both 0: no limit */
    const char *choices; /* "a|b|c" for TDMI_OPTION_CHOICE */
    /* Names that a text may begin with, if the library has a list of them; NULL past the last. */
    const char *(*name_at)(int index);
    const char *unit;       /* "images", "seconds" */
    const char *zero;       /* an integer's word for 0, which its range leaves out: "auto" */
    const char *value_name; /* in --help: "N", "RUN"; NULL: made from the type */
    /* The value of the name alone; NULL: a value is required. The next argument is taken as the
     * value only if is_value accepts it. */
    const char *alone;
    bool (*is_value)(const char *text);
    const char *default_words; /* meaning of a stored default of 0, NULL or below low */
    const char *group;         /* heading in --help-all */
    const char *help;
    const char *old_name;      /* a name that it had before, which still works; NULL: none. Only
                                  this one is a setting for every command that has it. */
    bool is_common;            /* --help of a long table shows it; --help-all shows all */
    bool is_command_line_only; /* makes no sense as a setting: --help, --version */
};

/* A row of a table over `object`; help is followed by further members, if any. */
#define TDMI_ROW_OF(object, type_, name_, member, heading, ...)                         \
    {                                                                                   \
        .name = name_, .type = TDMI_OPTION_##type_, .offset = offsetof(object, member), \
        .group = heading, .help = __VA_ARGS__                                           \
    }
/* A command keeps its values in a `struct values`. */
#define TDMI_ROW(type_, ...) TDMI_ROW_OF(struct values, type_, __VA_ARGS__)

/* Rows of several commands. */
#define TDMI_ROW_THREADS(member, words, help_)                                                   \
    TDMI_ROW(INTEGER, "threads", member, "Machine", help_, .high = 4096, .default_words = words, \
             .is_common = true)
#define TDMI_ROW_DEVICE(member, help_) \
    TDMI_ROW(TEXT, "device", member, "Machine", help_, .value_name = "NAME", .is_common = true)
#define TDMI_ROW_SEED(member, heading, help_) TDMI_ROW(SEED, "seed", member, heading, help_)
/* least 0: the default is the model's own. */
#define TDMI_ROW_SIZE(member, least, most, heading, help_)                             \
    TDMI_ROW(INTEGER, "size", member, heading, help_, .low = least, .high = most,      \
             .unit = "pixels", .value_name = "PX", .default_words = "the model's own", \
             .is_common = true)
#define TDMI_ROW_BATCH(member, most, heading, help_)                                             \
    TDMI_ROW(INTEGER, "batch", member, heading, help_, .low = 1, .high = most, .unit = "images", \
             .is_common = true)
#define TDMI_ROW_AUGMENT(member, heading, help_)                            \
    TDMI_ROW(TEXT, "augment", member, heading, help_, .value_name = "SPEC", \
             .default_words = "none", .name_at = tdm_augment_name)
/* A struct tdmi_fractions, which tdmi_split_take reads. */
#define TDMI_ROW_SPLIT(member, heading, help_) \
    TDMI_ROW(FRACTIONS, "split", member, heading, help_, .is_common = true)

/* Rows out of tandem/train.def, source.def and input.def. The including file defines AT: the path
 * to the members that they name, with a dot, or nothing. */
#define NUMERIC(name_, type_, member, usual, effect, low_, high_, unset, words, group_, ...) \
    TDMI_ROW(type_, name_, AT member, group_, __VA_ARGS__, .low = low_, .high = high_,       \
             .default_words = words),
#define TEXTUAL(name_, type_, member, usual, effect, choices_, words, group_, ...) \
    TDMI_ROW(type_, name_, AT member, group_, __VA_ARGS__, .choices = choices_,    \
             .default_words = words),
#define FLAG(name_, member, effect, group_, help_) TDMI_ROW(FLAG, name_, AT member, group_, help_),
#define SPLIT(name_, group_, help_) \
    TDMI_ROW(FRACTIONS, name_, split, group_, help_, .is_common = true),

struct tdmi_option_value {
    union {
        bool flag;
        int integer;
        int64_t integer64;
        uint64_t seed;
        double number;
        const char *text; /* lent by argv, the environment or the config file's text */
        struct tdmi_fractions fractions;
    };
};

/* where names the value in messages: "--epochs", "TANDEM_EPOCHS", "a.toml, line 3: epochs".
 * TDM_E_USAGE with the accepted range and what was found. */
tdm_status tdmi_option_parse(const struct tdmi_option *option, const char *where, const char *text,
                             struct tdmi_option_value *value, tdm_error *err) TDM_MUST_USE;
void tdmi_option_store(const struct tdmi_option *option, const struct tdmi_option_value *value,
                       void *values);

/* The row called name now or before ('_' and '-' are the same here, for config keys), or NULL. */
const struct tdmi_option *tdmi_option_find(const struct tdmi_option *table, const char *name);

/* "N", "SIZE", "jpeg|png", …: the value's name in --help; "" for flags. */
const char *tdmi_option_value_name(const struct tdmi_option *option);
/* "integer", "size", …: its type in JSON. */
const char *tdmi_option_type_name(const struct tdmi_option *option);
/* Is its range a list of names, "one of a, b, c"? */
bool tdmi_option_is_one_of(const struct tdmi_option *option);
/* Length of a unit's singular or plural: "1 epoch", "2 epochs". */
int tdmi_option_unit_length(const char *plural, bool is_one);
/* Text between a type and its range: "a number of at least 0", "… from 1 to 2". */
const char *tdmi_option_range_gap(const struct tdmi_option *option, const char *range);
/* "from 1 to 100 epochs", "at least 0", "one of a, b, c", or "". */
void tdmi_option_describe_range(const struct tdmi_option *option, char *text, size_t text_bytes);
/* The stored value as one would type it; "" for NULL texts and empty fractions. */
void tdmi_option_describe_value(const struct tdmi_option *option, const void *values, char *text,
                                size_t text_bytes);
/* The stored value under its name, with its JSON type. */
void tdmi_option_write_json(const struct tdmi_option *option, const void *values,
                            tdm_json_writer *json);

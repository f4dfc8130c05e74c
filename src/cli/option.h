/*
 * One row describes one option completely: how it is spelled, what it accepts, where the value goes
 * and what a person is told. The command line, the environment, the config file, --help and the
 * run record all work from these rows, so an option cannot be known to one and not to another.
 *
 * Values are stored in a plain struct of the command through the row's offset; the defaults are
 * whatever the command's defaults() left there. The library's own defaults are thus never repeated.
 */
#ifndef TANDEM_CLI_OPTION_H
#define TANDEM_CLI_OPTION_H

#include "tandem/error.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is stored and spelled. */
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

/* The two or three that --split means, or TDM_E_USAGE; rest says what becomes of what two leave
 * over. test is 0 without a third, which NULL refuses. */
tdm_status tdmi_split_take(const struct tdmi_fractions *split, const char *rest, double *train,
                           double *val, double *test, tdm_error *err) TDM_MUST_USE;

struct tdmi_option {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* short form, 0 for none */
    enum tdmi_option_type type;
    size_t offset;
    double low, high;    /* inclusive, in the stored unit; both 0: no limit */
    const char *choices; /* "a|b|c" for TDMI_OPTION_CHOICE */
    /* What a text may be, where the library keeps the list and checks it; NULL past the last. */
    const char *(*name_at)(int index);
    const char *unit;       /* what a number counts: "images", "seconds" */
    const char *zero;       /* an integer's word for 0, which its range leaves out: "auto" */
    const char *value_name; /* in --help: "N", "RUN"; NULL: made from the type */
    /* What the name alone means; NULL: a value is wanted. The next argument is then taken for its
     * value only where is_value says so. */
    const char *alone;
    bool (*is_value)(const char *text);
    const char *default_words; /* what a stored default of 0, NULL or below low means */
    const char *group;         /* heading in --help */
    const char *help;
    bool is_command_line_only; /* makes no sense as a setting: --help, --version */
};

/* Rows that several commands have; at is the offset in the command's struct. */
#define TDMI_ROW_THREADS(at, words)                                                             \
    {                                                                                           \
        .name = "threads", .type = TDMI_OPTION_INTEGER, .offset = (at), .low = 0, .high = 4096, \
        .default_words = "all usable CPUs", .group = "Machine", .help = words                   \
    }
#define TDMI_ROW_DEVICE(at, words)                                                        \
    {                                                                                     \
        .name = "device", .type = TDMI_OPTION_TEXT, .offset = (at), .value_name = "NAME", \
        .group = "Machine", .help = words                                                 \
    }

/* heading: the group it stands in. */
#define TDMI_ROW_SEED(at, heading, words)                                                         \
    {                                                                                             \
        .name = "seed", .type = TDMI_OPTION_SEED, .offset = (at), .group = heading, .help = words \
    }
/* least 0: the default is the model's own. */
#define TDMI_ROW_SIZE(at, least, most, heading, words)                                           \
    {                                                                                            \
        .name = "size", .type = TDMI_OPTION_INTEGER, .offset = (at), .low = least, .high = most, \
        .unit = "pixels", .value_name = "PX", .default_words = "the model's own",                \
        .group = heading, .help = words                                                          \
    }
#define TDMI_ROW_BATCH(at, most, heading, words)                                              \
    {                                                                                         \
        .name = "batch", .type = TDMI_OPTION_INTEGER, .offset = (at), .low = 1, .high = most, \
        .unit = "images", .group = heading, .help = words                                     \
    }
#define TDMI_ROW_AUGMENT(at, heading, words)                                                  \
    {                                                                                         \
        .name = "augment", .type = TDMI_OPTION_TEXT, .offset = (at), .value_name = "SPEC",    \
        .default_words = "none", .name_at = tdm_augment_name, .group = heading, .help = words \
    }
/* How pictures become a network's input; at is a struct of struct values that has these fields. */
#define TDMI_ROWS_INPUT(at, heading, usual)                                         \
    {.name = "fit",                                                                 \
     .type = TDMI_OPTION_CHOICE,                                                    \
     .offset = offsetof(struct values, at.fit),                                     \
     .choices = "pad|crop|stretch",                                                 \
     .default_words = usual,                                                        \
     .group = heading,                                                              \
     .is_command_line_only = true,                                                  \
     .help = "how pictures come into its input"},                                   \
        {.name = "crop-fraction",                                                   \
         .type = TDMI_OPTION_NUMBER,                                                \
         .offset = offsetof(struct values, at.crop_fraction),                       \
         .low = 0.01,                                                               \
         .high = 1.0,                                                               \
         .default_words = usual,                                                    \
         .group = heading,                                                          \
         .is_command_line_only = true,                                              \
         .help = "with fit crop: the short side becomes size divided by this"},     \
        {.name = "resample",                                                        \
         .type = TDMI_OPTION_CHOICE,                                                \
         .offset = offsetof(struct values, at.resample),                            \
         .choices = "lanczos|bicubic|bilinear",                                     \
         .default_words = usual,                                                    \
         .group = heading,                                                          \
         .is_command_line_only = true,                                              \
         .help = "how pictures are resized"},                                       \
        {.name = "size",                                                            \
         .type = TDMI_OPTION_INTEGER,                                               \
         .offset = offsetof(struct values, at.size),                                \
         .low = 1,                                                                  \
         .high = 4096,                                                              \
         .unit = "pixels",                                                          \
         .value_name = "PX",                                                        \
         .default_words = usual,                                                    \
         .group = heading,                                                          \
         .is_command_line_only = true,                                              \
         .help = "pixels a side"},                                                  \
        {.name = "scale",                                                           \
         .type = TDMI_OPTION_CHOICE,                                                \
         .offset = offsetof(struct values, at.scale),                               \
         .choices = "tf|torch|unit|raw|caffe",                                      \
         .default_words = usual,                                                    \
         .group = heading,                                                          \
         .is_command_line_only = true,                                              \
         .help = "how bytes become numbers: x/127.5-1, by ImageNet's mean and"      \
                 " deviation, x/255, x, x-mean"},                                   \
    {                                                                               \
        .name = "padding", .type = TDMI_OPTION_CHOICE,                              \
        .offset = offsetof(struct values, at.padding), .choices = "same|symmetric", \
        .default_words = usual, .group = heading, .is_command_line_only = true,     \
        .help = "zeros around windows: TensorFlow's, or as many on all sides"       \
    }
/* Of every command that opens a model, about the file at hand and so no settings; at is the struct
 * tdm_model_options in struct values. */
#define TDMI_ROWS_FOREIGN(at)                                                            \
    {.name = "model",                                                                    \
     .type = TDMI_OPTION_TEXT,                                                           \
     .offset = offsetof(struct values, at.network),                                      \
     .value_name = "NAME",                                                               \
     .default_words = "as the file says",                                                \
     .group = "Weights of other programs",                                               \
     .is_command_line_only = true,                                                       \
     .help = "the network, where the file does not say it"},                             \
        TDMI_ROWS_INPUT(at, "Weights of other programs", "as published"),                \
    {                                                                                    \
        .name = "classes", .type = TDMI_OPTION_PATH,                                     \
        .offset = offsetof(struct values, at.classes), .value_name = "FILE",             \
        .default_words = "as the file says, or numbers", .is_command_line_only = true,   \
        .group = "Weights of other programs", .help = "names of the classes, one a line" \
    }

/* A struct tdmi_fractions, which tdmi_split_take reads. */
#define TDMI_ROW_SPLIT(at, heading, words)                                                \
    {                                                                                     \
        .name = "split", .type = TDMI_OPTION_FRACTIONS, .offset = (at), .group = heading, \
        .help = words                                                                     \
    }

/* Of every command that reads a data set; at is the struct tdm_source_options in struct values. */
#define TDMI_ROWS_COLUMNS(at)                                                    \
    {.name = "image-column",                                                     \
     .type = TDMI_OPTION_TEXT,                                                   \
     .offset = offsetof(struct values, at.image_column),                         \
     .value_name = "NAME",                                                       \
     .default_words = "found by name and type",                                  \
     .group = "Source",                                                          \
     .help = "column of a table that holds the pictures"},                       \
        {.name = "label-column",                                                 \
         .type = TDMI_OPTION_TEXT,                                               \
         .offset = offsetof(struct values, at.label_column),                     \
         .value_name = "NAME",                                                   \
         .default_words = "found by name and type",                              \
         .group = "Source",                                                      \
         .help = "column of a table that holds the classes"},                    \
        {.name = "follow",                                                       \
         .type = TDMI_OPTION_FLAG,                                               \
         .offset = offsetof(struct values, at.follow),                           \
         .group = "Source",                                                      \
         .help = "let a local list name files in a store, and a local Delta "    \
                 "table files in a store or outside of its folder"},             \
    {                                                                            \
        .name = "raw-shape", .type = TDMI_OPTION_TEXT,                           \
        .offset = offsetof(struct values, at.raw_shape), .value_name = "HxWxC",  \
        .default_words = "as the table says", .group = "Source",                 \
        .help = "of pictures that a table holds as plain bytes, such as 32x32x3" \
    }
#define TDMI_ROWS_SOURCE(at)                                                    \
    TDMI_ROWS_COLUMNS(at),                                                      \
    {                                                                           \
        .name = "quarantine", .type = TDMI_OPTION_PATH,                         \
        .offset = offsetof(struct values, at.quarantine), .value_name = "FILE", \
        .default_words = "none", .group = "Source",                             \
        .help = "list of pictures to leave out, as audit writes it"             \
    }

struct tdmi_option_value {
    bool flag;
    int64_t integer;
    uint64_t seed;
    double number;
    const char *text; /* lent by argv, the environment or the config file's text */
    struct tdmi_fractions fractions;
};

/* where is what messages call the value: "--epochs", "TANDEM_EPOCHS", "a.toml, line 3: epochs".
 * TDM_E_USAGE with the accepted range and what was found. */
tdm_status tdmi_option_parse(const struct tdmi_option *option, const char *where, const char *text,
                             struct tdmi_option_value *value, tdm_error *err) TDM_MUST_USE;
void tdmi_option_store(const struct tdmi_option *option, const struct tdmi_option_value *value,
                       void *values);

bool tdmi_option_takes_value(const struct tdmi_option *option);
/* The row called name ('_' and '-' are the same here, for config keys), or NULL. */
const struct tdmi_option *tdmi_option_find(const struct tdmi_option *table, const char *name);
const struct tdmi_option *tdmi_option_find_letter(const struct tdmi_option *table, char letter);

/* "N", "SIZE", "jpeg|png", …: what stands after the name in --help; "" for flags. */
const char *tdmi_option_value_name(const struct tdmi_option *option);
/* Is its range a list of names, "one of a, b, c"? */
bool tdmi_option_is_one_of(const struct tdmi_option *option);
/* How much of a unit's plural is written: "1 epoch", "2 epochs". */
int tdmi_option_unit_length(const char *plural, bool is_one);
/* What stands between what is wanted and its range: "a number of at least 0", "… from 1 to 2". */
const char *tdmi_option_range_gap(const struct tdmi_option *option, const char *range);
/* "from 1 to 100 epochs", "at least 0", "one of a, b, c", or "". */
void tdmi_option_describe_range(const struct tdmi_option *option, char *text, size_t text_bytes);
/* The stored value as one would type it; "" for NULL texts and empty fractions. */
void tdmi_option_describe_value(const struct tdmi_option *option, const void *values, char *text,
                                size_t text_bytes);
/* The stored value under its name, with its JSON type. */
void tdmi_option_write_json(const struct tdmi_option *option, const void *values,
                            tdm_json_writer *json);

#endif

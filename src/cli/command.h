/*
 * A command is one const struct in cmd_<name>.c and one line of commands.def. The frame (main.c)
 * reads the options, calls run, prints the result or the error, and ends with the exit status that
 * the status code prescribes. A command therefore only computes and describes its result.
 */
#pragma once

#include "cli/option.h"
#include "cli/output.h"
#include "tandem/error.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stddef.h>

struct tdmi_argument {
    const char *name; /* "SRC"; NULL ends a table */
    const char *help;
    bool is_optional;
    bool is_many;        /* only the last one: takes all that follows */
    const char *choices; /* "list|show": the words that it can be; NULL: anything, mostly a path */
    bool is_command;     /* it has options of its own, so -- precedes it */
};

/* A data set, as one argument. */
#define TDMI_ARGUMENT_SRC                                                                      \
    {                                                                                          \
        .name = "SRC", .help = "labelled images: class folders, archives, WebDataset shards, " \
                               "lists, Parquet or Delta tables, IDX or CIFAR files"            \
    }

/* A trained model, as one argument. */
#define TDMI_ARGUMENT_MODEL                                                                 \
    {                                                                                       \
        .name = "MODEL", .help = "a run folder, a .safetensors file that tandem wrote, or " \
                                 "weights of another program"                               \
    }

/* Options that every command has. */
struct tdmi_globals {
    bool help, help_all, version, json, quiet, verbose;
    const char *config;
};

struct tdmi_settings;
struct tdmi_watch;

struct tdmi_call {
    const struct tdmi_globals *globals;
    const struct tdmi_settings *settings; /* with origins, for the record */
    const void *values; /* the command's struct, filled through its option table */
    const char **words; /* the command line as it was typed, without the program; ends with NULL */
    const char *const *arguments; /* as many as the argument table allows */
    int n_arguments;
    struct tdmi_watch *watch; /* shows the events of the work (cli/watch.h) */
    /* The result goes to both, and both accept NULL: */
    struct tdmi_output *out; /* standard output, for people; NULL with --json */
    tdm_json_writer *json;   /* NULL unless --json: inside the one object that is printed */
    bool is_silent;          /* another process of the job prints the result */
    int exit_status;         /* 0; a command whose answer is "no" sets 1 and returns TDM_OK */
};

struct tdmi_command {
    const char *name;
    const char *summary;     /* one line, lower case, no full stop */
    const char *description; /* what a user should know, one paragraph; NULL: none */
    const struct tdmi_argument *arguments;
    const struct tdmi_option *options;
    const char *const *examples; /* "command line", "what it does", …, NULL */
    bool has_ranks;              /* several processes run it together; rank 0 prints */
    size_t values_bytes;         /* at most TDMI_VALUES_BYTES */
    void (*defaults)(void *values);
    tdm_status (*run)(struct tdmi_call *call, tdm_error *err);
};

/* One of several actions of a command, named by its first argument; name NULL ends a table. */
struct tdmi_verb {
    const char *name, *takes; /* "show", "one RUN" */
    int least, most;          /* arguments, the verb itself counted */
    tdm_status (*run)(struct tdmi_call *call, tdm_error *err);
};
/* The verb of the first argument, by default the first of the table. TDM_E_USAGE: there is none of
 * that name, or the number of arguments is wrong. */
tdm_status tdmi_verb_find(const struct tdmi_call *call, const struct tdmi_verb *verbs,
                          const struct tdmi_verb **verb, tdm_error *err) TDM_MUST_USE;

/* The command of a cmd_<name>.c, whose parts have these names; the description is last, and members
 * that few commands set follow it. */
#define TDMI_COMMAND(name_, summary_, ...)                               \
    _Static_assert(sizeof options / sizeof *options <= TDMI_OPTIONS_MAX, \
                   "a setting for each row");                            \
    const struct tdmi_command tdmi_command_##name_ = {                   \
        .name = #name_,                                                  \
        .summary = summary_,                                             \
        .description = __VA_ARGS__,                                      \
        .arguments = arguments,                                          \
        .options = options,                                              \
        .examples = examples,                                            \
        .values_bytes = sizeof(struct values),                           \
        .defaults = defaults,                                            \
        .run = run,                                                      \
    }

enum {
    TDMI_VALUES_BYTES = 1024, /* room for any command's struct */
    TDMI_OPTIONS_MAX = 96     /* rows of any option table */
};

/* Storage for any command's struct. */
union tdmi_command_values {
    unsigned char bytes[TDMI_VALUES_BYTES];
    max_align_t align;
};

extern const struct tdmi_option tdmi_global_options[];

/* In the order of commands.def; NULL ends it. */
extern const struct tdmi_command *const tdmi_commands[];
/* TDM_E_USAGE with a suggestion when there is none of that name. */
tdm_status tdmi_command_find(const char *name, const struct tdmi_command **command,
                             tdm_error *err) TDM_MUST_USE;

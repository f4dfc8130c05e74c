/*
 * Options gathered from four places. The stronger one wins:
 *
 *     command line  >  TANDEM_<COMMAND>_<OPTION>, TANDEM_<OPTION>  >  config file  >  default
 *
 * Each source is read and validated whole; a setting remembers where it came from.
 */
#pragma once

#include "cli/command.h"

/* Weakest first. */
enum tdmi_origin {
    TDMI_FROM_DEFAULT,
    TDMI_FROM_CONFIG,         /* top level of the file */
    TDMI_FROM_CONFIG_SECTION, /* [command] of the file */
    TDMI_FROM_ENVIRONMENT,
    TDMI_FROM_COMMAND_LINE
};

struct tdmi_setting {
    enum tdmi_origin origin;
    int line; /* in the config file */
    struct tdmi_option_value value;
};

enum { TDMI_CONFIG_BYTES = 65536 };

enum { TDMI_TABLE_OWN, TDMI_TABLE_GLOBAL, TDMI_TABLES };

struct tdmi_settings { /* start from a zeroed object; it lends texts to the values stored */
    const struct tdmi_command *command;                    /* NULL: none was named */
    struct tdmi_setting of[TDMI_TABLES][TDMI_OPTIONS_MAX]; /* by row of each option table */
    const char **arguments;
    int n_arguments;
    char config_text[TDMI_CONFIG_BYTES + 1];
};

/* Finds the command and reads everything after it. Positional arguments are gathered at the front
 * of argv, which must stay. TDM_E_USAGE for anything unknown or out of range. */
tdm_status tdmi_settings_read_arguments(struct tdmi_settings *settings, int argc, char **argv,
                                        tdm_error *err) TDM_MUST_USE;
/* environment: "NAME=value" texts, NULL at the end. A TANDEM_<COMMAND>_… that names no option is
 * warned about. */
tdm_status tdmi_settings_read_environment(struct tdmi_settings *settings,
                                          const char *const *environment,
                                          tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT when path cannot be read or is no config text, TDM_E_USAGE for what it says. */
tdm_status tdmi_settings_read_config(struct tdmi_settings *settings, const char *path,
                                     tdm_error *err) TDM_MUST_USE;
/* The command's row of that name, else the global one, and its setting, which may be NULL as an
 * argument; NULL: there is none. */
const struct tdmi_option *tdmi_settings_find(struct tdmi_settings *settings, const char *name,
                                             struct tdmi_setting **setting);
/* Has the command line, the environment or a config file set the command's option? */
bool tdmi_settings_is_given(const struct tdmi_settings *settings, const char *name);
/* Has the command line? A setting for every run may be of no use to this one; typed, it is a
 * mistake. */
bool tdmi_settings_is_typed(const struct tdmi_settings *settings, const char *name);
/* Are there as many positional arguments as the command takes? */
tdm_status tdmi_settings_check_arguments(const struct tdmi_settings *settings,
                                         tdm_error *err) TDM_MUST_USE;

/* Overwrites in both structs what any source has set. values may be NULL without a command. */
void tdmi_settings_store(const struct tdmi_settings *settings, struct tdmi_globals *globals,
                         void *values);
/* The resolved options of the command as members of the object that json is in. */
void tdmi_settings_write_json(const struct tdmi_settings *settings, const void *values,
                              tdm_json_writer *json);
/* One debug message an option: name, value, origin. */
void tdmi_settings_log(const struct tdmi_settings *settings, const void *values);

/*
 * The option tables as text: help for people, the same as JSON, manual pages, shell completion.
 * Nothing here knows a single option; everything comes from the rows.
 */
#pragma once

#include "cli/command.h"

/* --help (the common options and three examples) or, with all, --help-all. command NULL: prints
 * the list of commands. */
void tdmi_help_print(struct tdmi_output *out, const struct tdmi_command *command, bool all);
void tdmi_help_write_json(tdm_json_writer *json, const struct tdmi_command *command);

/* "-o, --out RUN"; a flag that is on by default is spelled as what turns it off. values: where the
 * defaults stand. */
void tdmi_help_spell(const struct tdmi_option *option, const void *values, char *text,
                     size_t text_bytes);
/* Is that flag on by default? */
bool tdmi_help_is_on(const struct tdmi_option *option, const void *values);
/* "help (range; default: value)" */
void tdmi_help_describe(const struct tdmi_option *option, const void *values, char *text,
                        size_t text_bytes);
/* Does the row begin a group that no row before it is of? */
bool tdmi_help_is_first_of_group(const struct tdmi_option *table, const struct tdmi_option *row);

/* A manual page in the language of man(7). Command NULL: the page of tandem itself. */
void tdmi_manual_print(struct tdmi_output *out, const struct tdmi_command *command);

/* "bash", "zsh", …; NULL past the last. */
const char *tdmi_completion_shell(int index);
/* The script by which that shell completes commands, options and values. */
void tdmi_completion_print(struct tdmi_output *out, int shell);

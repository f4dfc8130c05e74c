/* --help in both forms: for people, and as JSON for programs (completion, pages). */
#pragma once

#include "cli/command.h"

/* command NULL: the list of commands. */
void tdmi_help_print(struct tdmi_output *out, const struct tdmi_command *command);
void tdmi_help_write_json(tdm_json_writer *json, const struct tdmi_command *command);

/*
 * tandem help [COMMAND]: the text that --help prints, or the manual page.
 */
#include "cli/help.h"

struct values {
    bool man;
};

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    const struct tdmi_command *command = NULL;
    if (call->n_arguments > 0)
        TDM_TRY(tdmi_command_find(call->arguments[0], &command, err), err,
                "showing the help of a command");
    tdmi_help_write_json(call->json, command);
    if (values->man)
        tdmi_manual_print(call->out, command);
    else
        tdmi_help_print(call->out, command, false);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "COMMAND", .help = "command to describe; default: list all", .is_optional = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(FLAG, "man", man, "Form", "print the manual page, as man reads it",
             .is_command_line_only = true),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem help train",
    "its common options; tandem train --help-all shows all",
    "tandem help train --man | man -l -",
    "its manual page, where it is not installed",
    NULL,
};

const struct tdmi_command tdmi_command_help = {
    .name = "help",
    .summary = "list the commands, or show the options of one",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .values_bytes = sizeof(struct values),
    .run = run,
};

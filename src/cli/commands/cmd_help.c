/*
 * tandem help [COMMAND]: the same text that --help prints.
 */
#include "cli/command.h"

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct tdmi_command *command = NULL;
    if (call->n_arguments > 0)
        TDM_TRY(tdmi_command_find(call->arguments[0], &command, err), err,
                "showing the help of a command");
    tdmi_help_write_json(call->json, command);
    tdmi_help_print(call->out, command);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "COMMAND", .help = "command to describe; default: list all", .is_optional = true},
    {.name = NULL},
};
static const struct tdmi_option options[] = {{.name = NULL}};

const struct tdmi_command tdmi_command_help = {
    .name = "help",
    .summary = "list the commands, or show the options of one",
    .arguments = arguments,
    .options = options,
    .run = run,
};

/*
 * tandem completion SHELL: the script by which a shell completes tandem's commands and options.
 */
#include "cli/help.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static tdm_status find_shell(const char *name, int *shell, tdm_error *err)
{
    const char *known;
    for (*shell = 0; (known = tdmi_completion_shell(*shell)) != NULL; ++*shell)
        if (strcmp(known, name) == 0)
            return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE, "tandem completion takes bash, zsh or fish; found '%s'",
                    name);
}

static tdm_status write_json(tdm_json_writer *json, const char *name, int shell, tdm_error *err)
{
    char *text = NULL;
    size_t n_bytes;
    struct tdmi_output memory = {.stream = open_memstream(&text, &n_bytes)};
    if (!memory.stream)
        return TDM_FAIL(err, TDM_E_MEMORY, "the script for %s: out of memory", name);
    tdmi_completion_print(&memory, shell);
    const tdm_status status = tdmi_output_close(&memory, err);
    tdm_json_string(json, "shell", name);
    tdm_json_string(json, "text", status == TDM_OK ? text : NULL);
    free(text);
    return status;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const char *name = call->arguments[0];
    int shell;
    TDMI_TRY(find_shell(name, &shell, err));
    if (call->json)
        return write_json(call->json, name, shell, err);
    tdmi_completion_print(call->out, shell);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "SHELL", .help = "bash, zsh or fish", .choices = "bash|zsh|fish"},
    {.name = NULL},
};

static const struct tdmi_option options[] = {{.name = NULL}};

static const char *const examples[] = {
    "eval \"$(tandem completion bash)\"",
    "in ~/.bashrc, where the package has not installed it",
    "tandem completion zsh >~/.zfunc/_tandem",
    "in a folder of zsh's fpath",
    "tandem completion fish >~/.config/fish/completions/tandem.fish",
    "for fish",
    NULL,
};

const struct tdmi_command tdmi_command_completion = {
    .name = "completion",
    .summary = "print the script that completes commands in a shell",
    .description =
        "Completes commands, options, and values that are one of a list; other values and "
        "arguments as file names.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};

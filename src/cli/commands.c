/*
 * The table of commands and the options that all of them share.
 */
#include "cli/settings.h"
#include "base/text/suggest.h"

#include <string.h>

#define X(name) extern const struct tdmi_command tdmi_command_##name;
#include "cli/commands.def"
#undef X

const struct tdmi_command *const tdmi_commands[] = {
#define X(name) &tdmi_command_##name,
#include "cli/commands.def"
#undef X
    NULL,
};

#define GLOBAL(type, name, member, ...) \
    TDMI_ROW_OF(struct tdmi_globals, type, name, member, "Every command", __VA_ARGS__)

const struct tdmi_option tdmi_global_options[] = {
    GLOBAL(FLAG, "json", json, "print the result as exactly one JSON object"),
    GLOBAL(FLAG, "quiet", quiet, "no progress and no messages, only the result and errors"),
    GLOBAL(FLAG, "verbose", verbose,
           "more messages: where each option came from, what the library decides"),
    GLOBAL(PATH, "config", config,
           "read options from a file of name = value lines and [command] sections",
           .value_name = "FILE", .default_words = "config.toml of the user, if there is one"),
    GLOBAL(FLAG, "help", help, "show the common options, with examples",
           .is_command_line_only = true),
    GLOBAL(FLAG, "help-all", help_all, "show all options", .is_command_line_only = true),
    GLOBAL(FLAG, "version", version, "show the version", .is_command_line_only = true),
    {.name = NULL},
};

/* Words of other tools for a command, and of ours for what is none. */
static const struct {
    const char *word, *use;
} other_words[] = {
    {"next", "runs show RUN, which has the run's next step"},
    {"fit", "train SRC"},
    {"finetune", "train SRC"},
    {"fine-tune", "train SRC"},
    {"retrain", "train SRC"},
    {"resume", "train SRC -o RUN --resume"},
    {"continue", "train SRC -o RUN --resume"},
    {"test", "evaluate MODEL SRC"},
    {"val", "evaluate MODEL SRC"},
    {"validate", "evaluate MODEL SRC"},
    {"score", "evaluate MODEL SRC"},
    {"metrics", "evaluate MODEL SRC"},
    {"infer", "predict MODEL FILE"},
    {"inference", "predict MODEL FILE"},
    {"classify", "predict MODEL FILE"},
    {"label", "predict MODEL FILE"},
    {"serve", "predict MODEL --serve"},
    {"deploy", "predict MODEL --serve"},
    {"show", "runs show RUN"},
    {"info", "runs show RUN, or tandem doctor for this machine"},
    {"run-info", "runs show RUN"},
    {"status", "runs show RUN"},
    {"list", "runs list"},
    {"ls", "runs list"},
    {"history", "runs list"},
    {"compare", "runs compare A B"},
    {"diff", "runs compare A B"},
    {"plot", "report RUN"},
    {"tensorboard", "report RUN"},
    {"fetch", "weights fetch NAME"},
    {"download", "weights fetch NAME"},
    {"inspect", "weights inspect FILE"},
    {"convert", "weights convert FILE TO, or tandem export MODEL -o FILE"},
    {"summary", "model show NAME"},
    {"check", "audit SRC"},
    {"clean", "audit SRC"},
    {"stats", "audit SRC"},
    {"resize", "prepare SRC -o OUT"},
    {"preprocess", "prepare SRC -o OUT"},
    {"profile", "trace summary FILE"},
    {"env", "doctor"},
    {"checks", "doctor"},
    {"version", "--version"},
};

static const char *other_word(const char *name)
{
    for (size_t i = 0; i < sizeof other_words / sizeof other_words[0]; i++)
        if (strcmp(other_words[i].word, name) == 0)
            return other_words[i].use;
    return NULL;
}

tdm_status tdmi_command_find(const char *name, const struct tdmi_command **command, tdm_error *err)
{
    tdmi_suggestion suggestion = {.typed = name};
    char words[80];
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        if (strcmp((*at)->name, name) == 0) {
            *command = *at;
            return TDM_OK;
        }
        tdmi_suggest_consider(&suggestion, (*at)->name);
    }
    if (other_word(name))
        return TDM_FAIL(err, TDM_E_USAGE, "there is no command '%s'; use tandem %s", name,
                        other_word(name));
    tdmi_suggest_words(&suggestion, "tandem ", words, sizeof words);
    return TDM_FAIL(err, TDM_E_USAGE, "there is no command '%.60s'%s", name,
                    *words ? words : "; 'tandem help' lists them all");
}

tdm_status tdmi_verb_find(const struct tdmi_call *call, const struct tdmi_verb *verbs,
                          const struct tdmi_verb **verb, tdm_error *err)
{
    const int n = call->n_arguments > 0 ? call->n_arguments : 1;
    const char *command = call->settings->command->name, *name = verbs->name;
    char names[100] = "";
    if (call->n_arguments > 0)
        name = call->arguments[0];
    for (; verbs->name && strcmp(verbs->name, name) != 0; verbs++) {
        const size_t used = strlen(names);
        const char *before = used == 0 ? "" : verbs[1].name ? ", " : " or ";
        snprintf(names + used, sizeof names - used, "%s%s", before, verbs->name);
    }
    if (!verbs->name)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem %s takes %s first; found '%s'", command, names,
                        name);
    if (n < verbs->least || n > verbs->most)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem %s %s takes %s; found %d argument%s", command,
                        name, verbs->takes, n - 1, n == 2 ? "" : "s");
    *verb = verbs;
    return TDM_OK;
}

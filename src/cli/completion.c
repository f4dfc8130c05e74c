/*
 * Shell completion, made of the option tables. A script has all words in it, so that a keystroke
 * starts no program: what it offers is as old as the script, which is installed with the program.
 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

/* Completions of a value or an argument. */
struct values {
    bool are_files;
    char words[600]; /* with blanks between; "": anything */
};

/* "a|b|c" with blanks. */
static void take_choices(const char *choices, struct values *values)
{
    snprintf(values->words, sizeof values->words, "%s", choices);
    for (char *at = values->words; *at; at++)
        *at = *at == '|' ? ' ' : *at;
}

static void add_word(struct values *values, const char *word)
{
    const size_t used = strlen(values->words);
    snprintf(values->words + used, sizeof values->words - used, "%s%s", used ? " " : "", word);
}

static struct values values_of(const struct tdmi_option *option)
{
    struct values values = {.are_files = option->type == TDMI_OPTION_PATH};
    const char *name;
    if (option->choices)
        take_choices(option->choices, &values);
    for (int i = 0; option->name_at && (name = option->name_at(i)) != NULL; i++)
        if (!strchr(name, ' ')) /* "resnetN-cifar (N = 6n + 2)" stands for several */
            add_word(&values, name);
    /* --weights FILE|NAME */
    values.are_files |= option->value_name && strstr(option->value_name, "FILE");
    return values;
}

/* Completions of the first argument; later ones are mostly paths. */
static struct values values_of_argument(const struct tdmi_command *command)
{
    struct values values = {.are_files = command->arguments->name != NULL};
    if (command->arguments->choices)
        take_choices(command->arguments->choices, &values);
    else if (command->arguments->name && strcmp(command->arguments->name, "COMMAND") == 0)
        for (int i = 0; tdmi_commands[i]; i++)
            add_word(&values, tdmi_commands[i]->name);
    return values;
}

/* Text between two quotes ' of a shell: a quote inside becomes quote_as; of the characters in
 * special each gets a backslash. */
static void print_quoted(struct tdmi_output *out, const char *text, const char *quote_as,
                         const char *special)
{
    for (; *text; text++) {
        const char piece[3] = {'\\', *text, '\0'};
        if (*text == '\'')
            tdmi_print_raw(out, quote_as);
        else
            tdmi_print_raw(out, strchr(special, *text) ? piece : piece + 1);
    }
}

/* A default decides whether a flag is offered as --name or as --no-name. */
typedef void print_option_function(struct tdmi_output *out, const struct tdmi_command *command,
                                   const struct tdmi_option *option, bool is_on);

/* Print the options of a command; command NULL: those of every command. */
static void for_each_option(struct tdmi_output *out, const struct tdmi_command *command,
                            print_option_function *print)
{
    union tdmi_command_values values = {{0}};
    if (command && command->defaults)
        command->defaults(values.bytes);
    for (const struct tdmi_option *row = command ? command->options : tdmi_global_options;
         row->name; row++)
        print(out, command, row, tdmi_help_is_on(row, values.bytes));
}

/* ---- bash ------------------------------------------------------------------------------- */

static void print_bash_name(struct tdmi_output *out, const struct tdmi_command *command,
                            const struct tdmi_option *option, bool is_on)
{
    (void)command;
    tdmi_print(out, " --%s%s", is_on ? "no-" : "", option->name);
}

/* A line of the case that says how a value goes on. */
static void print_bash_value(struct tdmi_output *out, const struct tdmi_command *command,
                             const struct tdmi_option *option, bool is_on)
{
    const struct values values = values_of(option);
    (void)is_on;
    if (option->type == TDMI_OPTION_FLAG)
        return;
    tdmi_print(out, "    %s:--%s", command ? command->name : "*", option->name);
    if (option->letter)
        tdmi_print(out, "|%s:-%c", command ? command->name : "*", option->letter);
    tdmi_print(out, ") words='%s' kind=%s ;;\n", values.words,
               values.are_files ? "files"
               : *values.words  ? "words"
                                : "none");
}

static void print_bash_command(struct tdmi_output *out, const struct tdmi_command *command)
{
    const struct values first = values_of_argument(command);
    tdmi_print(out, "        %s:-*) words='", command->name);
    for_each_option(out, command, print_bash_name);
    for_each_option(out, NULL, print_bash_name);
    tdmi_print_raw(out, "' kind=words ;;\n");
    if (*first.words)
        tdmi_print(out, "        %s:*) [[ $prev == %s ]] && words='%s' kind=words ;;\n",
                   command->name, command->name, first.words);
}

static void print_bash(struct tdmi_output *out)
{
    tdmi_print_raw(out,
                   "_tandem() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                   "    local command= words= kind=files i\n"
                   "    # bash makes three words of --name=value.\n"
                   "    if [[ $cur == = ]]; then\n"
                   "        cur=\n"
                   "    elif [[ $prev == = ]]; then\n"
                   "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                   "    fi\n"
                   "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                   "        if [[ $command == run && ${COMP_WORDS[i]} == -- ]]; then\n"
                   "            command=\n"
                   "        elif [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then\n"
                   "            command=${COMP_WORDS[i]}\n"
                   "        fi\n"
                   "    done\n"
                   "    case $command:$prev in\n");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++)
        for_each_option(out, *at, print_bash_value);
    for_each_option(out, NULL, print_bash_value);
    tdmi_print_raw(out, "    *)\n        case $command:$cur in\n        :-*) words='");
    for_each_option(out, NULL, print_bash_name);
    tdmi_print_raw(out, "' kind=words ;;\n        :*) words='");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++)
        tdmi_print(out, " %s", (*at)->name);
    tdmi_print_raw(out, "' kind=words ;;\n");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++)
        print_bash_command(out, *at);
    tdmi_print_raw(out, "        esac\n"
                        "        ;;\n"
                        "    esac\n"
                        "    COMPREPLY=()\n"
                        "    # Without an answer bash completes file names.\n"
                        "    [[ $kind != none ]] || compopt +o default 2>/dev/null\n"
                        "    [[ -z $words ]] || "
                        "mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                        "}\n"
                        "complete -o default -F _tandem tandem\n");
}

/* ---- zsh -------------------------------------------------------------------------------- */

static void print_zsh_text(struct tdmi_output *out, const char *text)
{
    print_quoted(out, text, "'\\''", "[]:\\");
}

/* ":message:action" of a value. */
static void print_zsh_values(struct tdmi_output *out, const char *name, const struct values *values)
{
    tdmi_print_raw(out, ":");
    print_zsh_text(out, name);
    if (*values->words)
        tdmi_print(out, ":(%s)", values->words);
    else
        tdmi_print_raw(out, values->are_files ? ":_files" : ": ");
}

static void print_zsh_option(struct tdmi_output *out, const struct tdmi_command *command,
                             const struct tdmi_option *option, bool is_on)
{
    const struct values values = values_of(option);
    const bool has_value = option->type != TDMI_OPTION_FLAG;
    (void)command;
    if (option->letter)
        tdmi_print(out, "            '(-%c --%s)'{-%c+,--%s=}'[", option->letter, option->name,
                   option->letter, option->name);
    else
        tdmi_print(out, "            '--%s%s%s[", is_on ? "no-" : "", option->name,
                   has_value ? "=" : "");
    print_zsh_text(out, option->help);
    tdmi_print_raw(out, "]");
    if (has_value)
        print_zsh_values(out, tdmi_option_value_name(option), &values);
    tdmi_print_raw(out, "' \\\n");
}

static void print_zsh_command(struct tdmi_output *out, const struct tdmi_command *command)
{
    const struct values first = values_of_argument(command);
    tdmi_print(out, "        %s)\n            _arguments \\\n", command->name);
    for_each_option(out, command, print_zsh_option);
    for_each_option(out, NULL, print_zsh_option);
    if (command->arguments->name) {
        tdmi_print_raw(out, "            '1");
        print_zsh_values(out, command->arguments->name, &first);
        tdmi_print_raw(out, "' \\\n");
    }
    tdmi_print_raw(out, "            '*:file:_files'\n            ;;\n");
}

static void print_zsh(struct tdmi_output *out)
{
    tdmi_print_raw(out, "#compdef tandem\n"
                        "_tandem() {\n"
                        "    local curcontext=$curcontext state line\n"
                        "    local -a commands\n"
                        "    commands=(\n");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        tdmi_print(out, "        '%s:", (*at)->name);
        print_zsh_text(out, (*at)->summary);
        tdmi_print_raw(out, "'\n");
    }
    tdmi_print_raw(out, "    )\n    _arguments -C \\\n");
    for_each_option(out, NULL, print_zsh_option);
    tdmi_print_raw(out, "            '1:command:->command' '*::argument:->argument' && return\n"
                        "    case $state in\n"
                        "    command) _describe -t commands command commands ;;\n"
                        "    argument)\n"
                        "        case $words[1] in\n");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++)
        print_zsh_command(out, *at);
    tdmi_print_raw(out, "        esac\n"
                        "        ;;\n"
                        "    esac\n"
                        "}\n"
                        "if [[ $funcstack[1] == _tandem ]]; then\n"
                        "    _tandem \"$@\"\n"
                        "else\n"
                        "    compdef _tandem tandem\n"
                        "fi\n");
}

/* ---- fish ------------------------------------------------------------------------------- */

static void print_fish_condition(struct tdmi_output *out, const struct tdmi_command *command)
{
    tdmi_print_raw(out, "complete -c tandem");
    if (command)
        tdmi_print(out, " -n '__fish_seen_subcommand_from %s'", command->name);
}

static void print_fish_description(struct tdmi_output *out, const char *text)
{
    tdmi_print_raw(out, " -d '");
    print_quoted(out, text, "\\'", "\\");
    tdmi_print_raw(out, "'\n");
}

static void print_fish_option(struct tdmi_output *out, const struct tdmi_command *command,
                              const struct tdmi_option *option, bool is_on)
{
    const struct values values = values_of(option);
    print_fish_condition(out, command);
    if (option->letter)
        tdmi_print(out, " -s %c", option->letter);
    tdmi_print(out, " -l %s%s", is_on ? "no-" : "", option->name);
    if (option->type != TDMI_OPTION_FLAG)
        tdmi_print_raw(out, values.are_files ? " -r -F" : " -x");
    if (*values.words)
        tdmi_print(out, " -a '%s'", values.words);
    print_fish_description(out, option->help);
}

static void print_fish(struct tdmi_output *out)
{
    tdmi_print_raw(out, "complete -c tandem -f\n");
    for_each_option(out, NULL, print_fish_option);
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        const struct values first = values_of_argument(*at);
        tdmi_print(out, "complete -c tandem -n __fish_use_subcommand -a %s", (*at)->name);
        print_fish_description(out, (*at)->summary);
        for_each_option(out, *at, print_fish_option);
        print_fish_condition(out, *at);
        if (*first.words)
            tdmi_print(out, " -a '%s'", first.words);
        tdmi_print_raw(out, first.are_files ? " -F\n" : "\n");
    }
}

/* ---- the shells ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(struct tdmi_output *out);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

const char *tdmi_completion_shell(int index)
{
    return index < (int)(sizeof shells / sizeof *shells) ? shells[index].name : NULL;
}

void tdmi_completion_print(struct tdmi_output *out, int shell)
{
    shells[shell].print(out);
}

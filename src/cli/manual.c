/*
 * Manual pages, in the language of man(7), from the same tables as help. Options are listed group
 * by group; text outside ASCII is written as \[uXXXX], so that a page does not depend on a locale.
 */
#include "cli/help.h"
#include "tandem/api.h"

#include <stdio.h>
#include <string.h>

/* The code point at *text, which moves past it. Our own texts are UTF-8. */
static unsigned next_character(const char **text)
{
    const unsigned char *at = (const unsigned char *)*text;
    const int n_more = at[0] < 0x80 ? 0 : at[0] < 0xe0 ? 1 : at[0] < 0xf0 ? 2 : 3;
    unsigned character = n_more == 0 ? at[0] : at[0] & (0x3fU >> n_more);
    int i = 1;
    for (; i <= n_more && (at[i] & 0xc0) == 0x80; i++)
        character = character << 6 | (at[i] & 0x3f);
    *text += i;
    return character;
}

static void print_escaped(struct tdmi_output *out, const char *text)
{
    if (*text == '.' || *text == '\'') /* at the start of a line these are requests */
        tdmi_print_raw(out, "\\&");
    while (*text) {
        const unsigned character = next_character(&text);
        char piece[16];
        if (character == '\\')
            snprintf(piece, sizeof piece, "\\e");
        else if (character == '-')
            snprintf(piece, sizeof piece, "\\-");
        else if (character == 0x2026) /* "…" is not in every device's font */
            snprintf(piece, sizeof piece, "...");
        else if (character < 0x80)
            snprintf(piece, sizeof piece, "%c", (int)character);
        else
            snprintf(piece, sizeof piece, "\\[u%04X]", character);
        tdmi_print_raw(out, piece);
    }
}

static void print_text(struct tdmi_output *out, const char *text)
{
    print_escaped(out, text);
    tdmi_print_raw(out, "\n");
}

static void print_in(struct tdmi_output *out, char font, const char *text)
{
    tdmi_print(out, "\\f%c", font);
    print_escaped(out, text);
    tdmi_print_raw(out, "\\fR");
}

static void print_section(struct tdmi_output *out, const char *title)
{
    tdmi_print(out, ".SH %s\n", title);
}

static void print_head(struct tdmi_output *out, const char *name, const char *summary)
{
    tdmi_print(out, ".TH %s 1 \"\" \"tandem %s\" \"Manual of tandem\"\n", name, tdm_version());
    print_section(out, "NAME");
    print_escaped(out, name);
    tdmi_print_raw(out, " \\- ");
    print_text(out, summary);
    print_section(out, "SYNOPSIS");
    tdmi_print_raw(out, ".B tandem");
}

static void print_option(struct tdmi_output *out, const struct tdmi_option *option,
                         const void *values)
{
    const char *value_name = tdmi_option_value_name(option);
    char name[80], help[600];
    tdmi_print_raw(out, ".TP\n");
    if (option->letter) {
        snprintf(name, sizeof name, "-%c", option->letter);
        print_in(out, 'B', name);
        tdmi_print_raw(out, ", ");
    }
    snprintf(name, sizeof name, "--%s%s", tdmi_help_is_on(option, values) ? "no-" : "",
             option->name);
    print_in(out, 'B', name);
    if (*value_name) {
        tdmi_print_raw(out, " ");
        print_in(out, 'I', value_name);
    }
    tdmi_print_raw(out, "\n");
    tdmi_help_describe(option, values, help, sizeof help);
    print_text(out, help);
}

static void print_options(struct tdmi_output *out, const struct tdmi_option *table,
                          const void *values)
{
    for (const struct tdmi_option *first = table; first->name; first++) {
        if (!tdmi_help_is_first_of_group(table, first))
            continue;
        tdmi_print(out, ".SS ");
        print_text(out, first->group);
        for (const struct tdmi_option *row = first; row->name; row++)
            if (strcmp(row->group, first->group) == 0)
                print_option(out, row, values);
    }
}

static void print_arguments(struct tdmi_output *out, const struct tdmi_argument *argument)
{
    if (!argument->name)
        return;
    print_section(out, "ARGUMENTS");
    for (; argument->name; argument++) {
        tdmi_print_raw(out, ".TP\n");
        print_in(out, 'I', argument->name);
        tdmi_print_raw(out, "\n");
        print_text(out, argument->help);
    }
}

static void print_examples(struct tdmi_output *out, const char *const *example)
{
    if (!example)
        return;
    print_section(out, "EXAMPLES");
    for (; *example; example += 2) {
        print_text(out, example[1]);
        tdmi_print_raw(out, ".PP\n.RS 4\n.nf\n");
        print_text(out, example[0]);
        tdmi_print_raw(out, ".fi\n.RE\n.PP\n");
    }
}

static void print_exit_status(struct tdmi_output *out)
{
    print_section(out, "EXIT STATUS");
    tdmi_print_raw(out, ".TP\n0\ndone\n");
    for (int exit = 1; exit <= 5; exit++) {
        const char *comma = "";
        tdmi_print(out, ".TP\n%d\n", exit);
        for (int status = TDM_OK + 1; status <= TDM_E_BUG; status++) {
            if (tdm_status_exit((tdm_status)status) != exit)
                continue;
            tdmi_print_raw(out, comma);
            print_escaped(out, tdm_status_text((tdm_status)status));
            comma = ", ";
        }
        tdmi_print_raw(out, "\n");
    }
}

static void print_environment(struct tdmi_output *out)
{
    print_section(out, "ENVIRONMENT");
    tdmi_print_raw(
        out,
        "Each option can be set as \\fBTANDEM_\\fICOMMAND\\fB_\\fIOPTION\\fR or, for every command "
        "that has it, as \\fBTANDEM_\\fIOPTION\\fR, and in the file that \\fB\\-\\-config\\fR "
        "names. "
        "The command line wins over the environment, the environment over the file.\n"
        ".TP\n\\fBTANDEM_HOME\\fR\nfolder of caches and of weights that were fetched (default: "
        "~/.cache/tandem)\n"
        ".TP\n\\fBNO_COLOR\\fR\nif set, no colours are printed\n");
}

static void print_command(struct tdmi_output *out, const struct tdmi_command *command)
{
    const struct tdmi_globals globals = {0};
    union tdmi_command_values values = {{0}};
    char name[60];
    if (command->defaults)
        command->defaults(values.bytes);
    snprintf(name, sizeof name, "tandem-%s", command->name);
    print_head(out, name, command->summary);
    const bool is_before = command->arguments->is_command; /* which has options of its own */
    tdmi_print(out, " %s\n", command->name);
    tdmi_print_raw(out, is_before ? "[\\fIoptions\\fR]\n\\-\\-\n" : "");
    for (const struct tdmi_argument *argument = command->arguments; argument->name; argument++) {
        tdmi_print_raw(out, argument->is_optional ? "[" : "");
        print_in(out, 'I', argument->name);
        tdmi_print_raw(out, argument->is_many ? " ..." : "");
        tdmi_print_raw(out, argument->is_optional ? "]\n" : "\n");
    }
    tdmi_print_raw(out, is_before ? "" : "[\\fIoptions\\fR]\n");
    if (command->description) {
        print_section(out, "DESCRIPTION");
        print_text(out, command->description);
    }
    print_arguments(out, command->arguments);
    print_section(out, "OPTIONS");
    print_options(out, command->options, values.bytes);
    print_options(out, tdmi_global_options, &globals);
    print_examples(out, command->examples);
    print_environment(out);
    print_exit_status(out);
    print_section(out, "SEE ALSO");
    tdmi_print_raw(out, ".BR tandem (1)\n");
}

void tdmi_manual_print(struct tdmi_output *out, const struct tdmi_command *command)
{
    const struct tdmi_globals globals = {0};
    if (!out)
        return;
    if (command) {
        print_command(out, command);
        return;
    }
    print_head(out, "tandem", "from labelled images to a trained, checked classifier");
    tdmi_print_raw(out, "\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n");
    print_section(out, "COMMANDS");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        tdmi_print(out, ".TP\n.BR tandem\\-%s (1)\n", (*at)->name);
        print_text(out, (*at)->summary);
    }
    print_section(out, "OPTIONS");
    print_options(out, tdmi_global_options, &globals);
    print_environment(out);
    print_exit_status(out);
}

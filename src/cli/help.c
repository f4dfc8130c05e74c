/*
 * Help is made from the tables alone; defaults are read from the struct that defaults() fills.
 */
#include "cli/help.h"
#include "tandem/api.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    option_column_max = 30,
    short_table = 14,    /* rows that --help shows all of */
    common_examples = 3, /* that --help shows */
};

bool tdmi_help_is_on(const struct tdmi_option *option, const void *values)
{
    return option->type == TDMI_OPTION_FLAG &&
           *(const bool *)((const char *)values + option->offset);
}

void tdmi_help_spell(const struct tdmi_option *option, const void *values, char *text,
                     size_t text_bytes)
{
    const char *value_name = tdmi_option_value_name(option);
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, text_bytes, "%s--%s%s%s%s", letter, tdmi_help_is_on(option, values) ? "no-" : "",
             option->name, *value_name ? " " : "", value_name);
}

void tdmi_help_describe(const struct tdmi_option *option, const void *values, char *text,
                        size_t text_bytes)
{
    char range[240] = "", value[240] = "";
    size_t length = (size_t)snprintf(text, text_bytes, "%s", option->help);
    /* A choice stands in the spelling already; "at least 0" says nothing to a person. */
    if (option->type != TDMI_OPTION_CHOICE && !(option->low == 0 && isinf(option->high)))
        tdmi_option_describe_range(option, range, sizeof range);
    if (option->type != TDMI_OPTION_FLAG)
        tdmi_option_describe_value(option, values, value, sizeof value);
    if (option->default_words && (!*value || strcmp(value, "0") == 0 || strcmp(value, "0s") == 0))
        snprintf(value, sizeof value, "%s", option->default_words);
    else if (*value && !*range && option->unit) /* else the range names the unit */
        snprintf(value + strlen(value), sizeof value - strlen(value), " %.*s",
                 tdmi_option_unit_length(option->unit, strcmp(value, "1") == 0), option->unit);
    if ((*range || *value) && length < text_bytes)
        snprintf(text + length, text_bytes - length, " (%s%s%s%s)", range,
                 *range && *value ? "; " : "", *value ? "default: " : "", value);
}

static void print_row(struct tdmi_output *out, const char *left, const char *right, int column,
                      int width)
{
    int length = (int)strlen(left);
    tdmi_print(out, "  %s", left);
    if (length + 4 > column)
        tdmi_print(out, "\n%*s", column, "");
    else
        tdmi_print(out, "%*s", column - length - 2, "");
    tdmi_print_wrapped(out, right, column, column, width);
    tdmi_print(out, "\n");
}

static int widest_option(const struct tdmi_option *table, const void *values, int so_far)
{
    for (; table->name; table++) {
        char text[160];
        tdmi_help_spell(table, values, text, sizeof text);
        int length = (int)strlen(text);
        if (length <= option_column_max - 4 && length > so_far)
            so_far = length;
    }
    return so_far;
}

bool tdmi_help_is_first_of_group(const struct tdmi_option *table, const struct tdmi_option *row)
{
    for (; table < row; table++)
        if (strcmp(table->group, row->group) == 0)
            return false;
    return true;
}

static void print_heading(struct tdmi_output *out, const char *heading)
{
    tdmi_print(out, "\n");
    tdmi_print_styled(out, TDMI_BOLD, heading);
    tdmi_print(out, "\n");
}

static void print_option(struct tdmi_output *out, const struct tdmi_option *row, const void *values,
                         int column, int width)
{
    char left[160], right[600];
    tdmi_help_spell(row, values, left, sizeof left);
    tdmi_help_describe(row, values, right, sizeof right);
    print_row(out, left, right, column, width);
}

/* Group by group, in the order in which the groups first appear. */
static void print_options(struct tdmi_output *out, const struct tdmi_option *table,
                          const void *values, int column, int width)
{
    for (const struct tdmi_option *first = table; first->name; first++) {
        if (!tdmi_help_is_first_of_group(table, first))
            continue;
        print_heading(out, first->group);
        for (const struct tdmi_option *row = first; row->name; row++)
            if (strcmp(row->group, first->group) == 0)
                print_option(out, row, values, column, width);
    }
}

static int count_rows(const struct tdmi_option *table)
{
    int n = 0;
    while (table[n].name)
        n++;
    return n;
}

static void print_common_options(struct tdmi_output *out, const struct tdmi_option *table,
                                 const void *values, int column, int width)
{
    print_heading(out, "Common options");
    for (; table->name; table++)
        if (table->is_common)
            print_option(out, table, values, column, width);
}

/* The options of every command by name alone. */
static void print_global_names(struct tdmi_output *out, int width)
{
    const struct tdmi_globals globals = {0};
    char names[300] = "", name[80];
    for (const struct tdmi_option *row = tdmi_global_options; row->name; row++) {
        const size_t used = strlen(names);
        tdmi_help_spell(row, &globals, name, sizeof name);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
    }
    print_heading(out, tdmi_global_options->group);
    tdmi_print(out, "  ");
    tdmi_print_wrapped(out, names, 2, 2, width);
    tdmi_print(out, "\n");
}

static void print_examples(struct tdmi_output *out, const char *const *example, int most)
{
    if (example)
        print_heading(out, "Examples");
    for (int i = 0; example && *example && i < most; i++, example += 2)
        tdmi_print(out, "  %s\n      %s\n", example[0], example[1]);
}

static void print_usage(struct tdmi_output *out, const struct tdmi_command *command)
{
    const bool is_before = command->arguments->is_command; /* which has options of its own */
    tdmi_print(out, "\nUsage: tandem %s%s", command->name, is_before ? " [options] --" : "");
    for (const struct tdmi_argument *argument = command->arguments; argument->name; argument++)
        tdmi_print(out, argument->is_optional ? " [%s%s]" : " %s%s", argument->name,
                   argument->is_many ? "…" : "");
    tdmi_print(out, is_before ? "\n" : " [options]\n");
}

/* Print the help of one command; without all, only the options that most people need. */
static void print_command(struct tdmi_output *out, const struct tdmi_command *command, bool all)
{
    union tdmi_command_values values = {{0}};
    const struct tdmi_globals globals = {0};
    const int width = tdmi_output_width(out), n_options = count_rows(command->options);
    const bool is_whole = all || n_options <= short_table;
    int column;
    if (command->defaults)
        command->defaults(values.bytes);

    tdmi_print(out, "tandem %s: %s\n", command->name, command->summary);
    print_usage(out, command);
    if (command->description) {
        tdmi_print(out, "\n");
        tdmi_print_wrapped(out, command->description, 0, 0, width);
        tdmi_print(out, "\n");
    }
    column = widest_option(command->options, values.bytes, 0);
    column = widest_option(tdmi_global_options, &globals, column) + 4;
    if (command->arguments->name)
        print_heading(out, "Arguments");
    for (const struct tdmi_argument *argument = command->arguments; argument->name; argument++)
        print_row(out, argument->name, argument->help, column, width);
    if (is_whole)
        print_options(out, command->options, values.bytes, column, width);
    else
        print_common_options(out, command->options, values.bytes, column, width);
    if (all)
        print_options(out, tdmi_global_options, &globals, column, width);
    else
        print_global_names(out, width);
    print_examples(out, command->examples, all ? INT_MAX : common_examples);
    if (!is_whole)
        tdmi_print(out, "\n'tandem %s --help-all' shows all %d options, by group.\n", command->name,
                   n_options);
}

void tdmi_help_print(struct tdmi_output *out, const struct tdmi_command *command, bool all)
{
    static const char *const first_commands[] = {
        "tandem train photos -o runs/first", "photos has one folder of images for each class",
        "tandem predict runs/first new.jpg", "the class of an image that the model has not seen",
        NULL};
    const int width = tdmi_output_width(out);
    const struct tdmi_globals globals = {0};
    const int column = widest_option(tdmi_global_options, &globals, 0) + 4;
    if (command) {
        print_command(out, command, all);
        return;
    }
    tdmi_print(out,
               "tandem %s: from labelled images to a trained, checked classifier\n\nUsage: tandem "
               "COMMAND [options]\n",
               tdm_version());
    print_heading(out, "Commands");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++)
        print_row(out, (*at)->name, (*at)->summary, column, width);
    print_options(out, tdmi_global_options, &globals, column, width);
    print_examples(out, first_commands, INT_MAX);
    tdmi_print(out, "\n'tandem COMMAND --help' shows the common options of one command, with "
                    "examples.\n");
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void write_option(tdm_json_writer *json, const struct tdmi_option *option,
                         const void *values)
{
    char letter[2] = {option->letter, '\0'}, value[240];
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "name", option->name);
    if (option->letter)
        tdm_json_string(json, "letter", letter);
    tdm_json_string(json, "type", tdmi_option_type_name(option));
    tdm_json_string(json, "group", option->group);
    tdm_json_bool(json, "common", option->is_common);
    if (option->low != 0 || option->high != 0) {
        tdm_json_number(json, "low", option->low);
        tdm_json_number(json, "high", option->high); /* null: no upper limit */
    }
    if (option->choices)
        tdm_json_string(json, "choices", option->choices);
    if (option->unit)
        tdm_json_string(json, "unit", option->unit);
    if (option->zero)
        tdm_json_string(json, "word", option->zero);
    tdmi_option_describe_value(option, values, value, sizeof value);
    tdm_json_string(json, "default", value);
    tdm_json_string(json, "help", option->help);
    tdm_json_object_end(json);
}

static void write_command(tdm_json_writer *json, const struct tdmi_command *command)
{
    union tdmi_command_values values = {{0}};
    if (command->defaults)
        command->defaults(values.bytes);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "name", command->name);
    tdm_json_string(json, "summary", command->summary);
    tdm_json_array_begin(json, "arguments");
    for (const struct tdmi_argument *argument = command->arguments; argument->name; argument++) {
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "name", argument->name);
        tdm_json_bool(json, "optional", argument->is_optional);
        tdm_json_bool(json, "many", argument->is_many);
        if (argument->choices)
            tdm_json_string(json, "choices", argument->choices);
        tdm_json_string(json, "help", argument->help);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
    tdm_json_array_begin(json, "options");
    for (const struct tdmi_option *option = command->options; option->name; option++)
        write_option(json, option, values.bytes);
    tdm_json_array_end(json);
    tdm_json_object_end(json);
}

void tdmi_help_write_json(tdm_json_writer *json, const struct tdmi_command *command)
{
    struct tdmi_globals globals = {0};
    tdm_json_string(json, "version", tdm_version());
    tdm_json_array_begin(json, "commands");
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        if (!command || command == *at)
            write_command(json, *at);
    }
    tdm_json_array_end(json);
    tdm_json_array_begin(json, "options");
    for (const struct tdmi_option *option = tdmi_global_options; option->name; option++)
        write_option(json, option, &globals);
    tdm_json_array_end(json);
}

/*
 * The command line, the environment and the positional arguments; settings_config.c adds the file.
 */
#include "cli/settings.h"
#include "cli/hints.h"
#include "tandem/log.h"
#include "base/scope.h"
#include "base/file/file.h"
#include "base/text/suggest.h"
#include "tandem/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows and their settings ------------------------------------------------------------ */

static const struct tdmi_option *table_of(const struct tdmi_settings *settings, int table)
{
    static const struct tdmi_option none = {.name = NULL};
    const struct tdmi_option *own = settings->command ? settings->command->options : &none;
    return table == TDMI_TABLE_GLOBAL ? tdmi_global_options : own;
}

const struct tdmi_option *tdmi_settings_find(struct tdmi_settings *settings, const char *name,
                                             struct tdmi_setting **setting)
{
    for (int t = 0; t < TDMI_TABLES; t++) {
        const struct tdmi_option *table = table_of(settings, t);
        const struct tdmi_option *row = tdmi_option_find(table, name);
        if (row && setting)
            *setting = &settings->of[t][row - table];
        if (row)
            return row;
    }
    return NULL;
}

static enum tdmi_origin origin_of(const struct tdmi_settings *settings, const char *name)
{
    const struct tdmi_option *table = table_of(settings, TDMI_TABLE_OWN);
    const struct tdmi_option *row = tdmi_option_find(table, name);
    return row ? settings->of[TDMI_TABLE_OWN][row - table].origin : TDMI_FROM_DEFAULT;
}

bool tdmi_settings_is_given(const struct tdmi_settings *settings, const char *name)
{
    return origin_of(settings, name) != TDMI_FROM_DEFAULT;
}

bool tdmi_settings_is_typed(const struct tdmi_settings *settings, const char *name)
{
    return origin_of(settings, name) == TDMI_FROM_COMMAND_LINE;
}

static tdm_status unknown_option(const struct tdmi_settings *settings, const char *typed,
                                 const char *name, tdm_error *err)
{
    const struct tdmi_argument *first = settings->command ? settings->command->arguments : NULL;
    tdmi_suggestion suggestion = {.typed = name};
    char words[80], command[64], hint[160];
    if (settings->n_arguments > 0 && first && first->is_command)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "tandem %s has no option '%.60s'; a command with options of its own follows "
            "--: tandem %s … -- %.60s …",
            settings->command->name, typed, settings->command->name, settings->arguments[0]);
    if (settings->command && *tdmi_hint(settings->command, name, hint, sizeof hint))
        return TDM_FAIL(err, TDM_E_USAGE, "tandem %s has no option '%.60s'; %s",
                        settings->command->name, typed, hint);
    const bool is_letter = name[0] != '\0' && name[1] == '\0'; /* near to too many names */
    for (int t = TDMI_TABLES - 1; t >= 0 && !is_letter; t--)
        for (const struct tdmi_option *row = table_of(settings, t); row->name; row++)
            tdmi_suggest_consider(&suggestion, row->name);
    tdmi_suggest_words(&suggestion, "--", words, sizeof words);
    snprintf(command, sizeof command, "tandem%s%s", settings->command ? " " : "",
             settings->command ? settings->command->name : "");
    if (*words)
        return TDM_FAIL(err, TDM_E_USAGE, "%s has no option '%.60s'%s", command, typed, words);
    if (settings->command && !is_letter &&
        *tdmi_hint_near(settings->command, name, hint, sizeof hint))
        return TDM_FAIL(err, TDM_E_USAGE, "tandem %s has no option '%.60s'; %s",
                        settings->command->name, typed, hint);
    return TDM_FAIL(err, TDM_E_USAGE, "%s has no option '%.60s'; '%s --help-all' lists them all",
                    command, typed, command);
}

static tdm_status set(struct tdmi_settings *settings, const struct tdmi_option *option,
                      enum tdmi_origin origin, const char *where, const char *text, tdm_error *err)
{
    struct tdmi_option_value value;
    struct tdmi_setting *setting = NULL;
    TDMI_TRY(tdmi_option_parse(option, where, text, &value, err));
    tdmi_settings_find(settings, option->name, &setting);
    if (setting->origin <= origin)
        *setting = (struct tdmi_setting){.origin = origin, .value = value};
    return TDM_OK;
}

/* ---- command line ----------------------------------------------------------------------- */

struct cursor {
    char **argv;
    int argc, at;
};

/* The value of an option that needs one: after '=', or the next argument. Another option in its
 * place is a forgotten value, not a value; "--name=--text" gives such a text. */
static tdm_status take_value(struct cursor *cursor, const struct tdmi_option *option,
                             const char *where, const char *attached, const char **value,
                             tdm_error *err)
{
    char range[240];
    *value = attached;
    if (attached)
        return TDM_OK;
    if (option->alone) {
        const bool is_next =
            cursor->at < cursor->argc && option->is_value(cursor->argv[cursor->at]);
        *value = is_next ? cursor->argv[cursor->at++] : option->alone;
        return TDM_OK;
    }
    if (cursor->at < cursor->argc && strncmp(cursor->argv[cursor->at], "--", 2) != 0) {
        *value = cursor->argv[cursor->at++];
        return TDM_OK;
    }
    tdmi_option_describe_range(option, range, sizeof range);
    const bool is_one_of = tdmi_option_is_one_of(option); /* the range says it all */
    const char *gap = is_one_of ? "" : tdmi_option_range_gap(option, range);
    return TDM_FAIL(err, TDM_E_USAGE, "%s needs %s%s%s%s; found %s", where,
                    is_one_of ? "" : "a value ", is_one_of ? "" : tdmi_option_value_name(option),
                    gap, range,
                    cursor->at < cursor->argc ? "another option" : "the end of the command line");
}

static tdm_status read_long_option(struct tdmi_settings *settings, struct cursor *cursor,
                                   tdm_error *err)
{
    const char *typed = cursor->argv[cursor->at++];
    const char *equals = strchr(typed, '=');
    int length = (int)(equals ? equals - typed : (ptrdiff_t)strlen(typed));
    char name[64], where[64];
    const char *value;
    const struct tdmi_option *option;
    bool is_negated = false;

    snprintf(where, sizeof where, "%.*s", length, typed);
    snprintf(name, sizeof name, "%s", where + 2);
    option = strchr(name, '_') ? NULL : tdmi_settings_find(settings, name, NULL);
    if (!option && strncmp(name, "no-", 3) == 0) {
        option = tdmi_settings_find(settings, name + 3, NULL);
        is_negated = option && option->type == TDMI_OPTION_FLAG;
        option = is_negated ? option : NULL;
    }
    if (!option || length >= (int)sizeof where)
        return unknown_option(settings, where, name, err);
    if (is_negated && equals)
        return TDM_FAIL(err, TDM_E_USAGE, "%s takes no value; found '%.100s'", where, equals + 1);
    if (option->type == TDMI_OPTION_FLAG) {
        value = is_negated ? "false" : equals ? equals + 1 : "true";
    } else {
        TDMI_TRY(take_value(cursor, option, where, equals ? equals + 1 : NULL, &value, err));
    }
    return set(settings, option, TDMI_FROM_COMMAND_LINE, where, value, err);
}

/* -o VALUE or -oVALUE. */
static tdm_status read_short_option(struct tdmi_settings *settings, struct cursor *cursor,
                                    tdm_error *err)
{
    const char *typed = cursor->argv[cursor->at++];
    const struct tdmi_option *option = NULL;
    const char *value;
    char where[3] = {'-', typed[1], '\0'};
    if (strcmp(typed, "-h") == 0)
        return set(settings, tdmi_settings_find(settings, "help", NULL), TDMI_FROM_COMMAND_LINE,
                   typed, "true", err);
    for (const struct tdmi_option *row = table_of(settings, TDMI_TABLE_OWN); row->name; row++)
        if (row->letter && row->letter == typed[1])
            option = row;
    if (!option) { /* -b 64 and -b64 are one word of another tool, -lr another */
        const char letter[2] = {typed[1], '\0'};
        const bool is_value = typed[2] >= '0' && typed[2] <= '9';
        return unknown_option(settings, typed, is_value ? letter : typed + 1, err);
    }
    TDMI_TRY(take_value(cursor, option, where, typed[2] ? typed + 2 : NULL, &value, err));
    return set(settings, option, TDMI_FROM_COMMAND_LINE, where, value, err);
}

tdm_status tdmi_settings_read_arguments(struct tdmi_settings *settings, int argc, char **argv,
                                        tdm_error *err)
{
    struct cursor cursor = {argv, argc, 1};
    bool are_options_over = false;
    settings->arguments = (const char **)argv;
    while (cursor.at < argc) {
        char *typed = argv[cursor.at];
        if (are_options_over || typed[0] != '-' || typed[1] == '\0') {
            cursor.at++;
            if (settings->command)
                argv[settings->n_arguments++] = typed;
            else
                TDMI_TRY(tdmi_command_find(typed, &settings->command, err));
        } else if (strcmp(typed, "--") == 0) {
            cursor.at++;
            are_options_over = true;
        } else if (typed[1] == '-') {
            TDMI_TRY(read_long_option(settings, &cursor, err));
        } else {
            TDMI_TRY(read_short_option(settings, &cursor, err));
        }
    }
    return TDM_OK;
}

/* Ultralytics writes options as "imgsz=224". */
static tdm_status one_argument_more(const struct tdmi_settings *settings, int taken, tdm_error *err)
{
    const struct tdmi_command *command = settings->command;
    const char *found = settings->arguments[taken];
    char word[60], use[160], hint[200] = "";
    const size_t length = strcspn(found, "="); /* a letter is an option's only after a dash */
    if (found[length] == '=' && length < sizeof word) {
        snprintf(word, sizeof word, "%.*s", (int)length, found);
        if (tdmi_option_find(command->options, word))
            snprintf(hint, sizeof hint, "; options have two dashes: --%s", word);
        else if (length > 1 && *tdmi_hint(command, word, use, sizeof use))
            snprintf(hint, sizeof hint, "; %s", use);
    }
    return TDM_FAIL(err, TDM_E_USAGE, "tandem %s takes %d argument%s; found one more: '%.100s'%s",
                    command->name, taken, taken == 1 ? "" : "s", found, hint);
}

/* --model names a network; predict, evaluate and export take the path of a model first. */
static tdm_status check_model(const struct tdmi_settings *settings, tdm_error *err)
{
    const struct tdmi_command *command = settings->command;
    const struct tdmi_argument *first = command->arguments;
    const struct tdmi_option *row = tdmi_option_find(command->options, "model");
    if (!first->name || strcmp(first->name, "MODEL") != 0 || !row ||
        !tdmi_settings_is_given(settings, "model"))
        return TDM_OK;
    const char *found = settings->of[TDMI_TABLE_OWN][row - command->options].value.text, *name;
    for (int i = 0; (name = tdm_network_name(i)) != NULL; i++)
        if (strncmp(found, name, strlen(name)) == 0)
            return TDM_OK;
    if (!strchr(found, '/') && tdmi_file_kind_of(found) == TDMI_FILE_MISSING)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "--model '%.100s' is a path, not a network's name: MODEL stands first, without "
                    "an option's name, as in tandem %s %.100s%s%s",
                    found, command->name, found, first[1].name ? " " : "",
                    first[1].name ? first[1].name : "");
}

tdm_status tdmi_settings_check_arguments(const struct tdmi_settings *settings, tdm_error *err)
{
    const struct tdmi_argument *argument = settings->command->arguments;
    const char *name = settings->command->name;
    int given = settings->n_arguments, taken = 0;
    TDMI_TRY(check_model(settings, err));
    for (; argument->name; argument++) {
        /* The one that is given is often not the one that it is taken for. */
        if (given == taken && taken > 0 && !argument->is_optional)
            return TDM_FAIL(err, TDM_E_USAGE, "tandem %s needs %s after %s '%.100s': %s", name,
                            argument->name, argument[-1].name, settings->arguments[taken - 1],
                            argument->help);
        if (given == taken && !argument->is_optional)
            return TDM_FAIL(err, TDM_E_USAGE, "tandem %s needs %s: %s", name, argument->name,
                            argument->help);
        taken = argument->is_many ? given : taken + (given > taken);
    }
    if (given > taken && taken == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem %s takes no arguments; found '%.100s'", name,
                        settings->arguments[0]);
    return given > taken ? one_argument_more(settings, taken, err) : TDM_OK;
}

/* ---- environment ------------------------------------------------------------------------ */

static void append_upper(char *text, size_t text_bytes, const char *name)
{
    size_t length = strlen(text);
    for (; *name && length + 1 < text_bytes; name++)
        text[length++] = (char)(*name == '-'                   ? '_'
                                : *name >= 'a' && *name <= 'z' ? *name - 32
                                                               : *name);
    text[length] = '\0';
}

static const char *look_up(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    }
    return NULL;
}

static tdm_status read_variables(struct tdmi_settings *settings, const struct tdmi_option *option,
                                 const char *const *environment, tdm_error *err)
{
    const char *const names[] = {option->name, option->old_name};
    for (int i = settings->command ? 0 : 2; i < 4; i++) {
        const bool is_general = i >= 2, is_old = i % 2 == 1;
        char name[128] = "TANDEM_";
        if (!names[is_old] || (is_general && !is_old && option->old_name))
            continue;
        if (!is_general) {
            append_upper(name, sizeof name, settings->command->name);
            append_upper(name, sizeof name, "_");
        }
        append_upper(name, sizeof name, names[is_old]);
        const char *text = look_up(environment, name);
        if (text)
            return set(settings, option, TDMI_FROM_ENVIRONMENT, name, text, err);
    }
    return TDM_OK;
}

/* A variable meant for this command that no option answers to is most likely mistyped. */
static void warn_of_strays(struct tdmi_settings *settings, const char *const *environment)
{
    char prefix[64] = "TANDEM_";
    append_upper(prefix, sizeof prefix, settings->command->name);
    append_upper(prefix, sizeof prefix, "_");
    for (size_t length = strlen(prefix); *environment; environment++) {
        char name[64] = "";
        if (strncmp(*environment, prefix, length) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*environment + length, "="),
                 *environment + length);
        for (char *at = name; *at; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
        const struct tdmi_option *option = tdmi_settings_find(settings, name, NULL);
        if (!option || option->is_command_line_only)
            tdm_log(TDM_LOG_WARNING, "the environment variable %.*s names no option of tandem %s",
                    (int)strcspn(*environment, "="), *environment, settings->command->name);
    }
}

tdm_status tdmi_settings_read_environment(struct tdmi_settings *settings,
                                          const char *const *environment, tdm_error *err)
{
    for (int t = TDMI_TABLES - 1; t >= 0; t--)
        for (const struct tdmi_option *row = table_of(settings, t); row->name; row++)
            if (!row->is_command_line_only)
                TDMI_TRY(read_variables(settings, row, environment, err));
    if (settings->command)
        warn_of_strays(settings, environment);
    return TDM_OK;
}

/* ---- results ---------------------------------------------------------------------------- */

void tdmi_settings_store(const struct tdmi_settings *settings, struct tdmi_globals *globals,
                         void *values)
{
    for (int t = 0; t < TDMI_TABLES; t++) {
        const struct tdmi_option *table = table_of(settings, t);
        for (int i = 0; table[i].name; i++)
            if (settings->of[t][i].origin != TDMI_FROM_DEFAULT)
                tdmi_option_store(&table[i], &settings->of[t][i].value,
                                  t == TDMI_TABLE_GLOBAL ? (void *)globals : values);
    }
}

void tdmi_settings_write_json(const struct tdmi_settings *settings, const void *values,
                              tdm_json_writer *json)
{
    for (int i = 0; settings->command->options[i].name; i++)
        tdmi_option_write_json(&settings->command->options[i], values, json);
}

void tdmi_settings_log(const struct tdmi_settings *settings, const void *values)
{
    static const char *const origins[] = {"default", "config file", "config file", "environment",
                                          "command line"};
    for (int i = 0; settings->command->options[i].name; i++) {
        char text[240];
        tdmi_option_describe_value(&settings->command->options[i], values, text, sizeof text);
        tdm_log(TDM_LOG_DEBUG, "option %s = %s (%s)", settings->command->options[i].name,
                *text ? text : "none", origins[settings->of[TDMI_TABLE_OWN][i].origin]);
    }
}

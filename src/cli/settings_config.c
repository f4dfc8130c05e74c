/*
 * Settings from the config file. Sections of other commands are checked too: a file that is wrong
 * is better refused today than on the day the other command runs.
 */
#include "cli/config.h"
#include "cli/settings.h"
#include "base/scope.h"
#include "base/text/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct visit {
    struct tdmi_settings *settings;
    const char *path;
};

static tdm_status unknown_key(const struct visit *visit, const struct tdmi_config_entry *entry,
                              const struct tdmi_command *only, tdm_error *err)
{
    tdmi_suggestion suggestion = {.typed = entry->key};
    char words[80];
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        for (const struct tdmi_option *row = (*at)->options; (!only || only == *at) && row->name;
             row++)
            tdmi_suggest_consider(&suggestion, row->name);
    }
    tdmi_suggest_words(&suggestion, "", words, sizeof words);
    if (!only)
        return TDM_FAIL(err, TDM_E_USAGE, "%s, line %d: no command has an option '%.60s'%s",
                        visit->path, entry->line, entry->key, words);
    return TDM_FAIL(err, TDM_E_USAGE, "%s, line %d: tandem %s has no option '%.60s'%s", visit->path,
                    entry->line, only->name, entry->key, words);
}

/* Find the option that a key names: an option of the section's command; at top level one of this
 * run's command, else of any command. *setting is NULL where this run does not use it. */
static const struct tdmi_option *find_row(const struct visit *visit, const char *key,
                                          const struct tdmi_command *only,
                                          struct tdmi_setting **setting)
{
    const struct tdmi_option *option = NULL;
    *setting = NULL;
    if (!only || only == visit->settings->command)
        option = tdmi_settings_find(visit->settings, key, setting);
    if (!only && option && option->old_name && strcmp(option->name, key) == 0)
        *setting = NULL; /* `out` above all sections is meant for train, not for every file */
    for (const struct tdmi_command *const *at = tdmi_commands; *at && !option; at++) {
        if (!only || only == *at)
            option = tdmi_option_find((*at)->options, key);
    }
    return option ? option : tdmi_option_find(tdmi_global_options, key);
}

static tdm_status visit_entry(void *self, const struct tdmi_config_entry *entry, tdm_error *err)
{
    const struct visit *visit = self;
    const struct tdmi_command *only = NULL;
    struct tdmi_setting *setting = NULL;
    struct tdmi_option_value value;
    char where[TDM_ERROR_TEXT_BYTES];

    if (*entry->section) {
        TDM_TRY(tdmi_command_find(entry->section, &only, err), err,
                "%s, line %d: [%.60s] names no command", visit->path, entry->line, entry->section);
    }
    if (!entry->key)
        return TDM_OK;

    const struct tdmi_option *option = find_row(visit, entry->key, only, &setting);
    if (!option)
        return unknown_key(visit, entry, only, err);
    if (option->is_command_line_only || strcmp(option->name, "config") == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "%s, line %d: '%s' cannot be set in a config file",
                        visit->path, entry->line, option->name);

    snprintf(where, sizeof where, "%s, line %d: %s", visit->path, entry->line, option->name);
    TDMI_TRY(tdmi_option_parse(option, where, entry->value, &value, err));
    enum tdmi_origin origin = only ? TDMI_FROM_CONFIG_SECTION : TDMI_FROM_CONFIG;
    if (!setting)
        return TDM_OK;
    if (setting->origin == origin)
        return TDM_FAIL(err, TDM_E_USAGE, "%s was set already in line %d", where, setting->line);
    if (setting->origin < origin)
        *setting = (struct tdmi_setting){origin, entry->line, value};
    return TDM_OK;
}

/* Opening a pipe must not wait for its writer. */
static tdm_status open_regular(const char *path, FILE **file, tdm_error *err)
{
    struct stat facts;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is_found = descriptor >= 0 && fstat(descriptor, &facts) == 0;
    if (is_found && !S_ISREG(facts.st_mode)) {
        close(descriptor);
        return TDM_FAIL(err, TDM_E_INPUT, "the config file %s is a %s; a regular file is required",
                        path, S_ISDIR(facts.st_mode) ? "folder" : "pipe or device");
    }
    *file = is_found ? fdopen(descriptor, "rb") : NULL;
    if (*file)
        return TDM_OK;
    const int reason = errno;
    if (descriptor >= 0)
        close(descriptor);
    return TDM_FAIL(err, TDM_E_INPUT, "the config file %s could not be opened: %s", path,
                    strerror(reason));
}

tdm_status tdmi_settings_read_config(struct tdmi_settings *settings, const char *path,
                                     tdm_error *err)
{
    struct visit visit = {settings, path};
    FILE *file;
    TDMI_TRY(open_regular(path, &file, err));
    errno = 0;
    size_t length = fread(settings->config_text, 1, TDMI_CONFIG_BYTES + 1, file);
    int problem = ferror(file) ? errno : 0;
    fclose(file);
    if (problem)
        return TDM_FAIL(err, TDM_E_INPUT, "the config file %s could not be read: %s", path,
                        strerror(problem));
    if (length > TDMI_CONFIG_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT, "the config file %s is larger than %d bytes", path,
                        TDMI_CONFIG_BYTES);
    return tdmi_config_read(settings->config_text, length, path,
                            (struct tdmi_config_visitor){&visit, visit_entry}, err);
}

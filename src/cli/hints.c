/*
 * Somebody who comes from Keras or PyTorch types that tool's word. The nearest name by its letters
 * is often a wrong one (--pretrained, --precision), so the words have a table.
 */
#include "cli/hints.h"
#include "base/text/suggest.h"

#include <stdio.h>
#include <string.h>

static const struct hint {
    const char *word, *target, *use;
} hints[] = {
#define HINT(word, target, use) {word, target, use},
#include "tandem/hints.def"
#undef HINT
};

static bool is_word(const char *word, const char *typed)
{
    for (; *word && *typed; word++, typed++) {
        const char small = (char)(*typed >= 'A' && *typed <= 'Z' ? *typed + 32 : *typed);
        if (*word != (small == '_' ? '-' : small))
            return false;
    }
    return *word == *typed;
}

static bool has_argument(const struct tdmi_command *command, const char *name)
{
    const struct tdmi_argument *argument = command->arguments;
    while (argument->name && strcmp(argument->name, name) != 0)
        argument++;
    return argument->name != NULL;
}

/* False where the command has no such option or argument. */
static bool describe(const struct tdmi_command *command, const struct hint *hint, char *text,
                     size_t text_bytes)
{
    const struct tdmi_option *option = tdmi_option_find(command->options, hint->target);
    if (!option && !has_argument(command, hint->target))
        return false;
    if (hint->use)
        snprintf(text, text_bytes, "use %s", hint->use);
    else if (!option)
        snprintf(text, text_bytes, "%s is an argument of tandem %s, without an option's name",
                 hint->target, command->name);
    else {
        const char *value_name = tdmi_option_value_name(option);
        snprintf(text, text_bytes, "use --%s%s%s", option->name, *value_name ? " " : "",
                 value_name);
    }
    return true;
}

const char *tdmi_hint(const struct tdmi_command *command, const char *word, char *text,
                      size_t text_bytes)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (is_word(hints[i].word, word) && describe(command, &hints[i], text, text_bytes))
            break;
    return text;
}

const char *tdmi_hint_near(const struct tdmi_command *command, const char *word, char *text,
                           size_t text_bytes)
{
    tdmi_suggestion suggestion = {.typed = word};
    char use[160];
    text[0] = '\0';
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strlen(hints[i].word) > 1 && describe(command, &hints[i], use, sizeof use))
            tdmi_suggest_consider(&suggestion, hints[i].word);
    if (suggestion.nearest)
        snprintf(text, text_bytes, "for --%s %s", suggestion.nearest,
                 tdmi_hint(command, suggestion.nearest, use, sizeof use));
    return text;
}

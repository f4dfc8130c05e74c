/* Parsing names with parameters, and the messages that refuse them. */
#include "optim/parameter.h"
#include "base/scope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { longest_word = 63 };

size_t tdmi_parameters_name_length(const char *text)
{
    return strcspn(text, ":");
}

void tdmi_parameters_usual(const struct tdmi_parameter *parameters, double *values)
{
    for (int i = 0; parameters[i].name; i++)
        values[i] = parameters[i].usual;
}

/* "beta1=0.9 (0 to 0.9999), …"; "no parameters". */
static void list_parameters(const struct tdmi_parameter *parameters, tdmi_text *text)
{
    char usual[32], low[32], high[32];
    for (int i = 0; parameters[i].name; i++) {
        const struct tdmi_parameter *it = &parameters[i];
        tdmi_number_write(it->usual, usual);
        tdmi_number_write(it->low, low);
        tdmi_number_write(it->high, high);
        tdmi_text_printf(text, "%s%s=%s (%s%s to %s)", i > 0 ? ", " : "", it->name, usual,
                         it->is_whole ? "whole, " : "", low, high);
    }
    if (!parameters[0].name)
        tdmi_text_printf(text, "no parameters");
}

static tdm_status refuse(const char *what, const char *text,
                         const struct tdmi_parameter *parameters, const char *why, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text known = {0};
    list_parameters(parameters, &known);
    return TDM_FAIL(err, TDM_E_USAGE, "the %s '%s': %s; %.*s takes %s", what, text, why,
                    (int)tdmi_parameters_name_length(text), text, tdmi_text_string(&known));
}

static bool is_accepted(const struct tdmi_parameter *parameter, double value)
{
    return value >= parameter->low && value <= parameter->high &&
           (!parameter->is_whole || !(fabs(value - floor(value)) > 0.0));
}

/* Index of the parameter of that name, below 0: there is none. */
static int find(const struct tdmi_parameter *parameters, const char *name, size_t length)
{
    for (int i = 0; parameters[i].name; i++)
        if (strlen(parameters[i].name) == length && memcmp(parameters[i].name, name, length) == 0)
            return i;
    return -1;
}

tdm_status tdmi_parameters_read(const char *what, const char *text,
                                const struct tdmi_parameter *parameters, double *values,
                                tdm_error *err)
{
    bool is_set[TDMI_PARAMETERS] = {false};
    char why[200], word[longest_word + 1];
    const char *at = text + tdmi_parameters_name_length(text);
    tdmi_parameters_usual(parameters, values);
    while (*at != '\0') { /* at the colon, or a comma */
        const size_t length = strcspn(++at, ",");
        const char *equals = memchr(at, '=', length);
        const size_t name = equals ? (size_t)(equals - at) : length;
        const size_t value = equals ? length - name - 1 : 0;
        const int index = find(parameters, at, name);
        double number = 0.0;
        why[0] = '\0';
        if (!equals)
            snprintf(why, sizeof why, "'%.*s' is no key=value", (int)(length < 80 ? length : 80),
                     at);
        else if (index < 0)
            snprintf(why, sizeof why, "it has no '%.*s'", (int)(name < 80 ? name : 80), at);
        else if (is_set[index])
            snprintf(why, sizeof why, "%s is there twice", parameters[index].name);
        if (!why[0]) {
            snprintf(word, sizeof word, "%.*s", (int)(value <= longest_word ? value : 0),
                     equals + 1);
            if (!tdmi_number_read(word, &number) || !is_accepted(&parameters[index], number))
                snprintf(why, sizeof why, "%s is '%s'", parameters[index].name, word);
        }
        if (why[0])
            return refuse(what, text, parameters, why, err);
        is_set[index] = true;
        values[index] = number;
        at += length;
    }
    return TDM_OK;
}

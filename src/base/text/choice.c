/* One name out of a list. */
#include "base/text/choice.h"
#include "base/text/suggest.h"

#include <stdio.h>
#include <string.h>

int tdmi_choice_index(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

const char *tdmi_choice_list(const char *const *names, int n, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n && used + 1 < text_bytes; i++)
        used +=
            (size_t)snprintf(text + used, text_bytes - used, "%s%s", i > 0 ? ", " : "", names[i]);
    return text;
}

tdm_status tdmi_choice_find(const char *what, const char *name, const char *const *names, int n,
                            int *index, tdm_error *err)
{
    char known[TDM_ERROR_TEXT_BYTES / 2], nearest[100];
    tdmi_suggestion suggestion = {.typed = name};
    const int found = tdmi_choice_index(name, names, n);
    if (found >= 0) {
        *index = found;
        return TDM_OK;
    }
    for (int i = 0; i < n; i++)
        tdmi_suggest_consider(&suggestion, names[i]);
    return TDM_FAIL(err, TDM_E_USAGE,
                    "choosing the %s '%s': there is none of that name; there is %s%s", what, name,
                    tdmi_choice_list(names, n, known, sizeof known),
                    tdmi_suggest_words(&suggestion, "", nearest, sizeof nearest));
}

/* One name out of a list. */
#include "base/text/choice.h"
#include "base/text/suggest.h"

#include <stdio.h>
#include <string.h>

tdm_status tdmi_choice_find(const char *what, const char *name, const char *const *names, int n,
                            int *index, tdm_error *err)
{
    char known[TDM_ERROR_TEXT_BYTES / 2] = "", nearest[100];
    tdmi_suggestion suggestion = {.typed = name};
    size_t length = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(name, names[i]) == 0) {
            *index = i;
            return TDM_OK;
        }
        tdmi_suggest_consider(&suggestion, names[i]);
        int added =
            snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", names[i]);
        if (added > 0 && (size_t)added < sizeof known - length)
            length += (size_t)added;
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "choosing the %s '%s': there is none of that name; there is %s%s", what, name,
                    known, tdmi_suggest_words(&suggestion, "", nearest, sizeof nearest));
}

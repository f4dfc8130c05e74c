/*
 * "Did you mean …?": the known name nearest to a mistyped one. Feed every known name to consider,
 * then ask for the words.
 */
#pragma once

#include "tandem/api.h"
#include <stddef.h>

typedef struct tdmi_suggestion { /* start from {.typed = …} */
    const char *typed;
    const char *nearest; /* NULL while nothing is near enough */
    int distance;
} tdmi_suggestion;

void tdmi_suggest_consider(tdmi_suggestion *suggestion, const char *known);
/* "; did you mean '--epochs'?" with prefix before the name, or "". */
const char *tdmi_suggest_words(const tdmi_suggestion *suggestion, const char *prefix, char *text,
                               size_t text_bytes);

/*
 * "Did you mean …?": the known name nearest to a mistyped one. Feed every known name to consider,
 * then ask for the words.
 */
#ifndef TANDEM_SUGGEST_H
#define TANDEM_SUGGEST_H

#include "tandem/api.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_suggestion { /* start from {.typed = …} */
    const char *typed;
    const char *nearest; /* NULL while nothing is near enough */
    int distance;
} tdm_suggestion;

TDM_API void tdm_suggest_consider(tdm_suggestion *suggestion, const char *known);
/* "; did you mean '--epochs'?" with prefix before the name, or "". */
TDM_API const char *tdm_suggest_words(const tdm_suggestion *suggestion, const char *prefix,
                                      char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif

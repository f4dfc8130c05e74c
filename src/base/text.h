/*
 * A growing byte string, always terminated. The first failed growth is remembered and
 * makes later additions do nothing: check is_broken once at the end.
 */
#ifndef TANDEM_BASE_TEXT_H
#define TANDEM_BASE_TEXT_H

#include "tandem/api.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct tdmi_text { /* start from a zeroed object */
    char *bytes;           /* NULL while nothing was added */
    size_t length_bytes, capacity_bytes;
    bool is_broken;
} tdmi_text;

void tdmi_text_release(tdmi_text *text);
/* Empty again, and no longer broken; keeps the memory. */
void tdmi_text_clear(tdmi_text *text);
void tdmi_text_add(tdmi_text *text, const void *bytes, size_t length_bytes);
void tdmi_text_printf(tdmi_text *text, const char *format, ...) TDM_PRINTF(2, 3);
/* "" while nothing was added. */
const char *tdmi_text_string(const tdmi_text *text);

#endif

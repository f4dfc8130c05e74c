/*
 * A growing byte string, always terminated. The first failed growth is remembered and
 * makes later additions do nothing: check is_broken once at the end.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_text { /* start from a zeroed object */
    char *bytes;           /* NULL while nothing was added */
    size_t length_bytes, capacity_bytes;
    bool is_broken;
} tdmi_text;

void tdmi_text_release(tdmi_text *text);
/* Empty again, and no longer broken; keeps the memory. */
void tdmi_text_clear(tdmi_text *text);
void tdmi_text_add(tdmi_text *text, const void *bytes, size_t length_bytes);
/* Adds length_bytes bytes for the caller to fill and returns where they begin; NULL: broken. */
char *tdmi_text_room(tdmi_text *text, size_t length_bytes);
void tdmi_text_printf(tdmi_text *text, const char *format, ...) TDM_PRINTF(2, 3);
/* TDM_OK, or the error of a text that is broken. */
tdm_status tdmi_text_status(const tdmi_text *text, tdm_error *err);
/* Are the bytes this text? */
bool tdmi_text_is(const void *bytes, size_t length_bytes, const char *text);
/* Does text end with ending? */
bool tdmi_ends_with(const char *text, const char *ending);
/* Is name one of these endings, in any case, with something before it? endings ends with NULL. */
bool tdmi_has_ending(const char *name, const char *const *endings);
/* For qsort and bsearch: strcmp of the strings that two elements point to. */
int tdmi_compare_names(const void *a, const void *b);
/* "" while nothing was added. */
const char *tdmi_text_string(const tdmi_text *text);

/* Bytes of the UTF-8 character at the start of room_bytes bytes; 0 when they start with none
 * (overlong forms, surrogates and anything above U+10FFFF are none). */
size_t tdmi_utf8_length(const char *at, size_t room_bytes);
/* code (no surrogate, at most U+10FFFF) as UTF-8 into bytes; returns how many. */
size_t tdmi_utf8_write(uint32_t code, char bytes[4]);

/* Numbers as text, whatever the locale. The shortest of 15, 16 and 17 digits that reads back to the
 * same double; "nan", "inf" and "-inf" too. Returns the length. */
size_t tdmi_number_write(double value, char text[32]);
/* "12.3 s", "3 min 05 s", "2 h 10 min". Returns text. */
const char *tdmi_duration_write(double seconds, char text[32]);
/* The whole of text as a number (strtod's forms); false when it is none or leaves anything over. A
 * number too large for a double reads as an infinity. */
bool tdmi_number_read(const char *text, double *value);

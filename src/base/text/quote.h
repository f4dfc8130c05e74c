/* The parts of tandem/quote.h that the library's own files use. */
#ifndef TANDEM_BASE_TEXT_QUOTE_H
#define TANDEM_BASE_TEXT_QUOTE_H

#include "tandem/quote.h"
#include <stdbool.h>

enum { TDMI_SPELLED_BYTES = 8 };

/* Bytes of the character at the start of room_bytes > 0 bytes; 1 where there is none. *is_plain:
 * it may reach a terminal as it is. */
size_t tdmi_character(const char *at, size_t room_bytes, bool *is_plain);
/* The same; spelled gets the character as tdm_quote shows it, terminated. */
size_t tdmi_spell(const char *at, size_t room_bytes, char spelled[TDMI_SPELLED_BYTES]);

/* tdm_quote for a function that has a format of its own. */
size_t tdmi_quote(char *text, size_t text_bytes, const char *format, va_list arguments)
    TDM_PRINTF(3, 0);

#endif

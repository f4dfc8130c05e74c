/*
 * Messages for people that name things of other people: files, classes, tensors, options. Such a
 * name may hold any bytes, and a terminal obeys some of them. So %s is quoted:
 *
 *     \x1b    a control byte (below U+0020, U+007F), or a byte that is no UTF-8
 *     \u202e  a character that steers a terminal, breaks a line or reverses what is read: U+0080
 *             to U+009F, U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069
 *
 * All else stands as it is, a backslash too. Text that is quoted already is not changed. The format
 * itself is the program's own and may have line ends. Conversions are printf's without %n, wide
 * characters and long double; %s counts its width in characters.
 */
#pragma once

#include "tandem/api.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Into text, always terminated; returns the length. Where there is too little room every %s that
 * is too long loses its middle to a "…", so that the rest of the sentence stays. */
size_t tdmi_quote_text(char *text, size_t text_bytes, const char *format, ...) TDM_PRINTF(3, 4);

/* Piece by piece, each of whole characters. A %s of more than most_bytes loses its middle. */
void tdmi_quote_pieces(void (*put)(void *to, const char *piece, size_t n_bytes), void *to,
                       size_t most_bytes, const char *format, va_list arguments) TDM_PRINTF(4, 0);

enum { TDMI_SPELLED_BYTES = 8 };

/* Bytes of the character at the start of room_bytes > 0 bytes; 1 where there is none. *is_plain:
 * it may reach a terminal as it is. */
size_t tdmi_character(const char *at, size_t room_bytes, bool *is_plain);
/* The same; spelled gets the character as tdmi_quote_text shows it, terminated. */
size_t tdmi_spell(const char *at, size_t room_bytes, char spelled[TDMI_SPELLED_BYTES]);

/* tdmi_quote_text for a function that has a format of its own. */
size_t tdmi_quote(char *text, size_t text_bytes, const char *format, va_list arguments)
    TDM_PRINTF(3, 0);

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
#ifndef TANDEM_QUOTE_H
#define TANDEM_QUOTE_H

#include "tandem/api.h"
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Into text, always terminated; returns the length. Where there is too little room every %s that
 * is too long loses its middle to a "…", so that the rest of the sentence stays. */
TDM_API size_t tdm_quote(char *text, size_t text_bytes, const char *format, ...) TDM_PRINTF(3, 4);

/* Piece by piece, each of whole characters. A %s of more than most_bytes loses its middle. */
TDM_API void tdm_quote_pieces(void (*put)(void *to, const char *piece, size_t n_bytes), void *to,
                              size_t most_bytes, const char *format, va_list arguments)
    TDM_PRINTF(4, 0);

#ifdef __cplusplus
}
#endif
#endif

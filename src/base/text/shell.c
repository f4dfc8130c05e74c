/* Quoting for shells. */
#include "base/text/shell.h"
#include "base/text/quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum form { PLAIN, QUOTED, ESCAPED };
static const char *const begins[] = {"", "'", "$'"}, *const ends[] = {"", "'", "'"};

/* Characters of other scripts are plain; what a terminal obeys (base/text/quote.h) is not. *n: its
 * bytes. */
static bool is_control(const char *at, size_t *n)
{
    bool is_plain;
    *n = tdmi_character(at, strnlen(at, 4), &is_plain);
    return !is_plain;
}

static bool is_plain(unsigned char byte)
{
    static const char others[] = "_./,:@%+=-";
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte >= 0x80 || strchr(others, byte) != NULL;
}

static enum form form_of(const char *word)
{
    enum form form = *word == '\0' ? QUOTED : PLAIN;
    size_t n;
    for (const char *at = word; *at; at += n) {
        if (is_control(at, &n))
            return ESCAPED;
        if (!is_plain((unsigned char)*at))
            form = QUOTED;
    }
    return form;
}

/* Escape of the character at `at`; *n of its bytes. */
static const char *spell(enum form form, const char *at, size_t *n, char own[16])
{
    const bool is_escaped = is_control(at, n);
    snprintf(own, 16, "%.*s", (int)*n, at);
    if (form == QUOTED && *at == '\'')
        return "'\\''";
    if (form == ESCAPED && (*at == '\'' || *at == '\\'))
        snprintf(own, 16, "\\%c", *at);
    for (size_t i = 0; is_escaped && i < *n; i++)
        snprintf(own + 4 * i, 16 - 4 * i, "\\%03o", (unsigned)(unsigned char)at[i]);
    return own;
}

/* Adds a piece; false where it and what must still follow do not fit. */
static bool add(char *text, size_t text_bytes, size_t *length, const char *piece)
{
    static const char end[] = "…'";
    const size_t n = strlen(piece);
    if (*length + n + sizeof end > text_bytes)
        return false;
    memcpy(text + *length, piece, n + 1);
    *length += n;
    return true;
}

const char *tdmi_shell_word(const char *word, char *text, size_t text_bytes)
{
    const enum form form = form_of(word);
    size_t length = 0, n;
    char own[16];
    if (text_bytes == 0)
        return text;
    *text = '\0';
    bool fits = add(text, text_bytes, &length, begins[form]);
    if (*word == '-')
        fits = fits && add(text, text_bytes, &length, "./");
    for (const char *at = word; *at && fits; at += n)
        fits = add(text, text_bytes, &length, spell(form, at, &n, own));
    snprintf(text + length, text_bytes - length, "%s%s", fits ? "" : "…", ends[form]);
    return text;
}

void tdmi_shell_add(tdmi_text *text, const char *word)
{
    const enum form form = form_of(word);
    size_t n;
    char own[16];
    tdmi_text_printf(text, "%s", begins[form]);
    for (const char *at = word; *at; at += n)
        tdmi_text_printf(text, "%s", spell(form, at, &n, own));
    tdmi_text_printf(text, "%s", ends[form]);
}

/* Quoting for shells. */
#include "tandem/shell.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/banned.h"

enum form { PLAIN, QUOTED, ESCAPED };

/* Characters of other scripts are plain; those of U+0080 to U+009F control terminals. */
static bool is_control(const char *at)
{
    const unsigned char byte = (unsigned char)at[0], next = (unsigned char)at[1];
    return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next < 0xa0);
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
    for (const char *at = word; *at; at++) {
        if (is_control(at))
            return ESCAPED;
        if (!is_plain((unsigned char)*at))
            form = QUOTED;
    }
    return form;
}

/* What stands for the character at `at`; *n of its bytes. */
static const char *spell(enum form form, const char *at, size_t *n, char own[16])
{
    *n = 1;
    snprintf(own, 16, "%c", *at);
    if (form == QUOTED && *at == '\'')
        return "'\\''";
    if (form == ESCAPED && (*at == '\'' || *at == '\\'))
        snprintf(own, 16, "\\%c", *at);
    if (form != ESCAPED || !is_control(at))
        return own;
    *n = (unsigned char)*at == 0xc2 ? 2 : 1;
    if (*n == 2)
        snprintf(own, 16, "\\302\\%03o", (unsigned)(unsigned char)at[1]);
    else
        snprintf(own, 16, "\\%03o", (unsigned)(unsigned char)*at);
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

const char *tdm_shell_word(const char *word, char *text, size_t text_bytes)
{
    static const char *const begins[] = {"", "'", "$'"}, *const ends[] = {"", "'", "'"};
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
    while (!fits && length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
        length--; /* no character in half: its first byte goes, too */
    if (!fits && length > 0 && (unsigned char)text[length - 1] >= 0xc0)
        length--;
    snprintf(text + length, text_bytes - length, "%s%s", fits ? "" : "…", ends[form]);
    return text;
}

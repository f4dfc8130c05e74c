/*
 * A small printf whose %s is quoted. It reads the format itself, because only there is known which
 * bytes are the program's and which came with a name; numbers go through snprintf.
 */
#include "base/text/quote.h"
#include "base/text/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- characters -------------------------------------------------------------------------- */

static uint32_t code_of(const char *at, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)at;
    uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3f);
    return code;
}

static bool is_plain_code(uint32_t code)
{
    return !(code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
             code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
             (code >= 0x2066 && code <= 0x2069));
}

size_t tdmi_character(const char *at, size_t room_bytes, bool *is_plain)
{
    const size_t length = tdmi_utf8_length(at, room_bytes);
    *is_plain = length > 0 && is_plain_code(code_of(at, length));
    return length > 0 ? length : 1;
}

size_t tdmi_spell(const char *at, size_t room_bytes, char spelled[TDMI_SPELLED_BYTES])
{
    bool is_plain;
    const size_t length = tdmi_character(at, room_bytes, &is_plain);
    if (is_plain)
        snprintf(spelled, TDMI_SPELLED_BYTES, "%.*s", (int)length, at);
    else if (length == 1)
        snprintf(spelled, TDMI_SPELLED_BYTES, "\\x%02x", (unsigned)(unsigned char)*at);
    else
        snprintf(spelled, TDMI_SPELLED_BYTES, "\\u%04x", (unsigned)code_of(at, length) & 0xffff);
    return length;
}

/* ---- the format -------------------------------------------------------------------------- */

struct printer {
    void (*put)(void *to, const char *piece, size_t n_bytes);
    void *to;
    size_t most_bytes;
    va_list arguments;
};

/* Flags, width and precision between a % and its letter. */
struct conversion {
    char flags[7];
    int width, precision; /* 0 and below 0: none */
    char size;            /* of an integer: 0, l, L for ll, z, j, t */
    char letter;
};

/* Our own text; character by character, because pieces are whole ones. */
static void put_plain(const struct printer *printer, const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        const size_t length = tdmi_utf8_length(text + i, n_bytes - i);
        printer->put(printer->to, text + i, length > 0 ? length : 1);
        i += length > 0 ? length : 1;
    }
}

/* Returns the columns that it takes; counts only where printer is NULL. */
static int put_quoted(const struct printer *printer, const char *text, size_t n_bytes)
{
    int columns = 0;
    for (size_t i = 0; i < n_bytes;) {
        char spelled[TDMI_SPELLED_BYTES];
        bool is_plain;
        tdmi_character(text + i, n_bytes - i, &is_plain);
        i += tdmi_spell(text + i, n_bytes - i, spelled);
        columns += is_plain ? 1 : (int)strlen(spelled);
        if (printer)
            printer->put(printer->to, spelled, strlen(spelled));
    }
    return columns;
}

static void put_blanks(const struct printer *printer, int n)
{
    for (; n > 0; n--)
        printer->put(printer->to, " ", 1);
}

static bool is_inside_character(const char *at)
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

/* The start of the character that ends at or after text[at]; bytes that are none stay. */
static size_t character_before(const char *text, size_t at)
{
    for (size_t back = 0; back < 4 && back < at; back++)
        if (!is_inside_character(text + at - back))
            return at - back;
    return at;
}

/* text[0, n_bytes) without its middle where it is too long. */
struct halves {
    size_t head_bytes, tail_at; /* equal: nothing is left out */
};

static struct halves cut(const char *text, size_t n_bytes, size_t most_bytes)
{
    if (n_bytes <= most_bytes)
        return (struct halves){n_bytes, n_bytes};
    const size_t tail_bytes = most_bytes / 3;
    return (struct halves){character_before(text, most_bytes - tail_bytes),
                           tail_bytes > 0 ? character_before(text, n_bytes - tail_bytes) : n_bytes};
}

/* Length without a character that a precision cut in the middle. */
static size_t whole_bytes(const char *text, size_t n_bytes)
{
    const size_t start = n_bytes > 0 ? character_before(text, n_bytes - 1) : 0;
    const unsigned char lead = n_bytes > 0 ? (unsigned char)text[start] : 0;
    return lead >= 0xc2 && lead <= 0xf4 && tdmi_utf8_length(text + start, n_bytes - start) == 0
               ? start
               : n_bytes;
}

static void put_string(const struct printer *printer, const struct conversion *it, const char *text)
{
    if (!text)
        text = "(null)";
    size_t n_bytes = it->precision < 0 ? strlen(text) : strnlen(text, (size_t)it->precision);
    if (it->precision >= 0 && n_bytes == (size_t)it->precision)
        n_bytes = whole_bytes(text, n_bytes);
    const struct halves halves = cut(text, n_bytes, printer->most_bytes);
    const bool is_cut = halves.head_bytes < halves.tail_at || halves.tail_at < n_bytes;
    const int columns = put_quoted(NULL, text, halves.head_bytes) + is_cut +
                        put_quoted(NULL, text + halves.tail_at, n_bytes - halves.tail_at);
    const bool is_left = strchr(it->flags, '-') != NULL;
    if (!is_left)
        put_blanks(printer, it->width - columns);
    put_quoted(printer, text, halves.head_bytes);
    if (is_cut)
        put_plain(printer, "…", strlen("…"));
    put_quoted(printer, text + halves.tail_at, n_bytes - halves.tail_at);
    if (is_left)
        put_blanks(printer, it->width - columns);
}

static intmax_t take_signed(struct printer *printer, char size)
{
    switch (size) {
    case 'l':
        return va_arg(printer->arguments, long);
    case 'L':
        return va_arg(printer->arguments, long long);
    case 'z':
    case 't':
        return va_arg(printer->arguments, ptrdiff_t);
    case 'j':
        return va_arg(printer->arguments, intmax_t);
    default:
        return va_arg(printer->arguments, int);
    }
}

static uintmax_t take_unsigned(struct printer *printer, char size)
{
    switch (size) {
    case 'l':
        return va_arg(printer->arguments, unsigned long);
    case 'L':
        return va_arg(printer->arguments, unsigned long long);
    case 'z':
    case 't':
        return va_arg(printer->arguments, size_t);
    case 'j':
        return va_arg(printer->arguments, uintmax_t);
    default:
        return va_arg(printer->arguments, unsigned);
    }
}

/* Its width and precision as digits, its integers as the widest ones. */
static void put_number(struct printer *printer, const struct conversion *it)
{
    enum { most = 1100 }; /* no message is longer */
    const bool is_integer = strchr("diuoxX", it->letter) != NULL;
    char format[48], precision[16] = "", width[16] = "", text[most];
    if (it->width > 0)
        snprintf(width, sizeof width, "%d", it->width);
    if (it->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", it->precision);
    snprintf(format, sizeof format, "%%%s%s%s%s%c", it->flags, width, precision,
             is_integer ? "j" : "", it->letter);
    if (it->letter == 'd' || it->letter == 'i')
        snprintf(text, sizeof text, format, take_signed(printer, it->size));
    else if (is_integer)
        snprintf(text, sizeof text, format, take_unsigned(printer, it->size));
    else if (it->letter == 'p')
        snprintf(text, sizeof text, format, va_arg(printer->arguments, void *));
    else
        snprintf(text, sizeof text, format, va_arg(printer->arguments, double));
    put_plain(printer, text, strlen(text));
}

/* Digits or a *; 0: neither stands here. */
static void read_number(struct printer *printer, const char **at, int *number)
{
    *number = 0;
    if (**at == '*') {
        *number = va_arg(printer->arguments, int);
        (*at)++;
    }
    for (; **at >= '0' && **at <= '9'; (*at)++)
        *number = *number * 10 + (**at - '0');
}

/* at stands behind the %. */
static const char *read_conversion(struct printer *printer, const char *at, struct conversion *it)
{
    size_t n_flags = 0;
    *it = (struct conversion){.precision = -1};
    for (; *at && strchr("-+ #0", *at) && n_flags < sizeof it->flags - 2; at++)
        it->flags[n_flags++] = *at;
    read_number(printer, &at, &it->width);
    if (it->width < 0) { /* of a *: what a - means */
        it->flags[n_flags] = '-';
        it->width = -it->width;
    }
    if (*at == '.') {
        at++;
        read_number(printer, &at, &it->precision); /* a * below zero: none */
    }
    for (; *at && strchr("hlzjt", *at); at++)
        it->size = (char)(*at == 'h' ? 0 : *at == 'l' && it->size == 'l' ? 'L' : *at);
    it->letter = *at;
    return *at ? at + 1 : at;
}

void tdmi_quote_pieces(void (*put)(void *to, const char *piece, size_t n_bytes), void *to,
                       size_t most_bytes, const char *format, va_list arguments)
{
    struct printer printer = {.put = put, .to = to, .most_bytes = most_bytes};
    va_copy(printer.arguments, arguments);
    while (*format) {
        struct conversion it;
        const size_t n = strcspn(format, "%");
        put_plain(&printer, format, n);
        format += n;
        if (!*format)
            break;
        format = read_conversion(&printer, format + 1, &it);
        if (it.letter == 's') {
            put_string(&printer, &it, va_arg(printer.arguments, const char *));
        } else if (it.letter == 'c') {
            const char byte = (char)va_arg(printer.arguments, int);
            put_quoted(&printer, &byte, 1);
        } else if (it.letter == '%') {
            put_plain(&printer, "%", 1);
        } else if (it.letter && strchr("diuoxXpeEfFgGaA", it.letter)) {
            put_number(&printer, &it);
        } else {
            break; /* what its argument is nobody knows, nor where the next one is */
        }
    }
    va_end(printer.arguments);
}

/* ---- into an array ----------------------------------------------------------------------- */

struct room {
    char *text;
    size_t bytes, length;
    size_t whole; /* the longest length behind which a mark fits */
    bool is_full;
};

static const char mark[] = "…";

static void put_into_room(void *to, const char *piece, size_t n_bytes)
{
    struct room *room = to;
    room->is_full = room->is_full || n_bytes >= room->bytes - room->length;
    if (room->is_full)
        return;
    memcpy(room->text + room->length, piece, n_bytes);
    room->length += n_bytes;
    if (room->length + sizeof mark <= room->bytes)
        room->whole = room->length;
}

/* False: it did not fit, and ends with a mark. */
static bool fill(struct room *room, size_t most_bytes, const char *format, va_list arguments)
{
    *room = (struct room){.text = room->text, .bytes = room->bytes};
    tdmi_quote_pieces(put_into_room, room, most_bytes, format, arguments);
    if (room->is_full && room->bytes >= sizeof mark) {
        memcpy(room->text + room->whole, mark, sizeof mark - 1);
        room->length = room->whole + sizeof mark - 1;
    }
    room->text[room->length] = '\0';
    return !room->is_full;
}

size_t tdmi_quote(char *text, size_t text_bytes, const char *format, va_list arguments)
{
    enum { least = 24 }; /* of a name: enough to know it by */
    struct room room = {.text = text, .bytes = text_bytes};
    if (text_bytes == 0)
        return 0;
    for (size_t most = text_bytes; most >= least; most -= most / 16)
        if (fill(&room, most, format, arguments))
            return room.length;
    fill(&room, text_bytes, format, arguments);
    return room.length;
}

size_t tdmi_quote_text(char *text, size_t text_bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t length = tdmi_quote(text, text_bytes, format, arguments);
    va_end(arguments);
    return length;
}

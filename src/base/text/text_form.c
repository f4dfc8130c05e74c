/*
 * Characters and numbers as text, the same under every locale: decimal points of the user's
 * language must not reach a file.
 */
#include "base/text/text.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

size_t tdmi_utf8_length(const char *at, size_t room_bytes)
{
    const unsigned char *bytes = (const unsigned char *)at;
    if (room_bytes == 0)
        return 0;
    unsigned char lead = bytes[0];
    if (lead < 0x80)
        return 1;
    /* The second byte's range shuts out overlong forms, surrogates and values too large. */
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || room_bytes < length || bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

size_t tdmi_utf8_write(uint32_t code, char bytes[4])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 63));
    bytes[0] = (char)(leads[n] | code);
    return n;
}

/* The locale "C" for this thread between the two calls. The C libraries we know keep that locale as
 * a constant, so making it allocates nothing and cannot fail. */
struct plain_locale {
    locale_t plain, before;
};

static struct plain_locale enter_plain_locale(void)
{
    struct plain_locale locale = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    locale.before = uselocale(locale.plain);
    return locale;
}

static void leave_plain_locale(struct plain_locale locale)
{
    uselocale(locale.before);
    if (locale.plain)
        freelocale(locale.plain);
}

size_t tdmi_number_write(double value, char text[32])
{
    struct plain_locale locale = enter_plain_locale();
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    leave_plain_locale(locale);
    return length > 0 ? (size_t)length : 0;
}

bool tdmi_number_read(const char *text, double *value)
{
    struct plain_locale locale = enter_plain_locale();
    char *end = NULL;
    *value = strtod(text, &end);
    leave_plain_locale(locale);
    return end != text && *end == '\0';
}

const char *tdmi_duration_write(double seconds, char text[32])
{
    const long whole = (long)seconds;
    if (whole < 60)
        snprintf(text, 32, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(text, 32, "%ld min %02ld s", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
    return text;
}

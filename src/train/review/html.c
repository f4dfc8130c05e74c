/* Names come from folders and files of anybody: none of their bytes may become markup. */
#include "train/review/html.h"

#include <limits.h>
#include <string.h>

static void put_character(tdmi_text *out, const char *at, size_t length_bytes)
{
    static const char unknown[] = "\xef\xbf\xbd";
    const unsigned char byte = (unsigned char)*at;
    if (length_bytes == 0 || byte < 0x20 || byte == 0x7f)
        tdmi_text_add(out, unknown, 3);
    else if (byte == '&')
        tdmi_text_add(out, "&amp;", 5);
    else if (byte == '<')
        tdmi_text_add(out, "&lt;", 4);
    else if (byte == '>')
        tdmi_text_add(out, "&gt;", 4);
    else if (byte == '"')
        tdmi_text_add(out, "&quot;", 6);
    else if (byte == '\'')
        tdmi_text_add(out, "&#39;", 5);
    else
        tdmi_text_add(out, at, length_bytes);
}

void tdmi_html_short(tdmi_text *out, const char *text, int most)
{
    size_t rest = strlen(text);
    for (int i = 0; rest > 0; i++) {
        const size_t n = tdmi_utf8_length(text, rest);
        if (i == most) {
            tdmi_text_add(out, "…", strlen("…"));
            return;
        }
        put_character(out, text, n);
        text += n > 0 ? n : 1;
        rest -= n > 0 ? n : 1;
    }
}

void tdmi_html_text(tdmi_text *out, const char *text)
{
    tdmi_html_short(out, text, INT_MAX);
}

void tdmi_html_base64(tdmi_text *out, const uint8_t *bytes, int64_t n_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int64_t i = 0; i < n_bytes; i += 3) {
        const int64_t rest = n_bytes - i;
        const unsigned value = (unsigned)bytes[i] << 16 |
                               (rest > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (rest > 2 ? (unsigned)bytes[i + 2] : 0);
        const char text[4] = {digits[value >> 18], digits[value >> 12 & 63],
                              rest > 1 ? digits[value >> 6 & 63] : '=',
                              rest > 2 ? digits[value & 63] : '='};
        tdmi_text_add(out, text, 4);
    }
}

/* Names come from folders and files of anybody: none of their bytes may become markup. */
#include "train/report/html.h"
#include "base/text/quote.h"

#include <limits.h>
#include <string.h>

/* Returns its bytes. */
static size_t put_character(tdmi_text *out, const char *at, size_t room_bytes)
{
    char spelled[TDMI_SPELLED_BYTES];
    const size_t length_bytes = tdmi_spell(at, room_bytes, spelled);
    const unsigned char byte = (unsigned char)*at;
    if (byte == '&')
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
        tdmi_text_add(out, spelled, strlen(spelled));
    return length_bytes;
}

void tdmi_html_short(tdmi_text *out, const char *text, int most)
{
    size_t rest = strlen(text);
    for (int i = 0; rest > 0; i++) {
        if (i == most) {
            tdmi_text_add(out, "…", strlen("…"));
            return;
        }
        const size_t n = put_character(out, text, rest);
        text += n;
        rest -= n;
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

/* Names come from folders and files of other people: none of their bytes may become markup. */
#include "train/report/html.h"
#include "base/text/quote.h"

#include <limits.h>
#include <string.h>

/* Returns its bytes. */
static size_t put_character(tdmi_text *out, const char *at, size_t room_bytes)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    char spelled[TDMI_SPELLED_BYTES];
    const size_t length_bytes = tdmi_spell(at, room_bytes, spelled);
    const char *text = spelled;
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
        if (*at == entities[i].character)
            text = entities[i].entity;
    tdmi_text_add(out, text, strlen(text));
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

void tdmi_html_put(tdmi_text *out, const char *before, const char *text, const char *after)
{
    tdmi_text_add(out, before, strlen(before));
    tdmi_html_text(out, text);
    tdmi_text_add(out, after, strlen(after));
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

/* The place and the spelling of the checksum, and sizes that must not overflow. */
#include "weights/safetensors/safetensors_form.h"
#include <string.h>
#include "base/banned.h"

bool tdmi_safetensors_multiply(uint64_t *n, uint64_t factor)
{
    if (factor != 0 && *n > UINT64_MAX / factor)
        return false;
    *n *= factor;
    return true;
}

static size_t skip_space(const char *text, size_t at, size_t end)
{
    while (at < end &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
        at++;
    return at;
}

/* Another program may have written the file again with other white space, so the digits are looked
 * for rather than expected at a fixed byte. A quoted key cannot appear inside a string: its quotes
 * would be escaped there. */
char *tdmi_safetensors_digits(char *header, size_t length_bytes)
{
    static const char key[] = "\"" TDMI_SAFETENSORS_CHECKSUM_KEY "\"";
    const char *found = memmem(header, length_bytes, key, sizeof key - 1);
    if (found == NULL)
        return NULL;
    size_t at = skip_space(header, (size_t)(found - header) + sizeof key - 1, length_bytes);
    if (at == length_bytes || header[at] != ':')
        return NULL;
    at = skip_space(header, at + 1, length_bytes);
    if (length_bytes - at < TDMI_SAFETENSORS_DIGITS + 2 || header[at] != '"' ||
        header[at + 1 + TDMI_SAFETENSORS_DIGITS] != '"')
        return NULL;
    for (size_t i = 0; i < TDMI_SAFETENSORS_DIGITS; i++)
        if (memchr("0123456789abcdef", header[at + 1 + i], 16) == NULL)
            return NULL;
    return header + at + 1;
}

void tdmi_safetensors_put_digits(char *digits, uint64_t checksum)
{
    for (int i = TDMI_SAFETENSORS_DIGITS - 1; i >= 0; i--, checksum >>= 4)
        digits[i] = "0123456789abcdef"[checksum & 15];
}

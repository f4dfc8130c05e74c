/* Canonical codes: those of one length are consecutive, and the next length goes on where they end.
 */
#include "image/jpeg/codes.h"
#include <string.h>

/* Table entry of a symbol, or 0 for one that no file of 8 bits has: differences of means have up to
 * 11 bits, other coefficients 10. */
static uint32_t entry_of(int kind, int symbol, int n_bits)
{
    int size = symbol & 15, step = (symbol >> 4) + 1;
    if (kind == TDMI_JPEG_DC) {
        if (symbol > 11)
            return 0;
        step = 0;
    } else if (size == 0 && step < 16) {
        step = TDMI_JPEG_END_STEP;
    } else if (size > 10) {
        return 0;
    }
    return (uint32_t)(step << TDMI_JPEG_STEP_AT | size << TDMI_JPEG_SIZE_AT | (n_bits + size));
}

bool tdmi_jpeg_codes_make(const uint8_t *counts_and_symbols, int kind,
                          struct tdmi_jpeg_codes *codes)
{
    const uint8_t *counts = counts_and_symbols, *symbols = counts + TDMI_JPEG_CODE_LENGTHS;
    uint32_t code = 0;
    int n = 0;
    memset(codes->fast, 0, sizeof codes->fast);
    for (int length = 1; length <= TDMI_JPEG_CODE_LENGTHS; length++, code <<= 1) {
        codes->first[length] = n - (int32_t)code;
        /* Like libjpeg: no code is all ones. */
        if (code + counts[length - 1] >= 1u << length || n + counts[length - 1] > 256)
            return false;
        for (int i = 0; i < counts[length - 1]; i++, n++, code++) {
            /* Symbols of means above 15 make libjpeg refuse the table. */
            if (kind == TDMI_JPEG_DC && symbols[n] > 15)
                return false;
            const uint32_t entry = entry_of(kind, symbols[n], length);
            codes->entries[n] = entry;
            if (length > TDMI_JPEG_FAST || (entry & 63) > TDMI_JPEG_FAST_BITS)
                continue;
            uint32_t *fast = codes->fast + (code << (TDMI_JPEG_FAST - length));
            for (int k = 0; k < 1 << (TDMI_JPEG_FAST - length); k++)
                fast[k] = entry;
        }
        codes->limit[length] = code << (TDMI_JPEG_CODE_LENGTHS - length);
    }
    codes->limit[TDMI_JPEG_CODE_LENGTHS + 1] = 1u << TDMI_JPEG_CODE_LENGTHS;
    return true;
}

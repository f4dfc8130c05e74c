/* Tables K.1 to K.6 of the standard, and what is computed from them once a picture. */
#include "image/jpeg_encode/tables.h"

#include <string.h>

const uint8_t tdmi_jpeg_zigzag[TDMI_JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* Steps of quality 50, row by row. */
static const uint8_t usual_steps[TDMI_JPEG_SETS][TDMI_JPEG_BLOCK] = {
    {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
     14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
     18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
     49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

/* The symbol of a value: run of zeros before it in the upper half, bits of it in the lower. */
const uint8_t
    tdmi_jpeg_usual_codes[TDMI_JPEG_SETS][2][TDMI_JPEG_CODE_LENGTHS + TDMI_JPEG_MOST_SYMBOLS] = {
        {{0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
         {0,    2,    1,    3,    3,    2,    4,    3,    5,    5,    4,    4,    0,    0,    1,
          125,  0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
          0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15,
          0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a,
          0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44,
          0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63,
          0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a,
          0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
          0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5,
          0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2,
          0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
          0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}},
        {{0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
         {0,    2,    1,    2,    4,    4,    3,    4,    7,    5,    4,    4,    0,    1,    2,
          119,  0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
          0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23,
          0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17,
          0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43,
          0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a,
          0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79,
          0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96,
          0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3,
          0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9,
          0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6,
          0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}}};

size_t tdmi_jpeg_n_symbols(const uint8_t *counts)
{
    size_t n = 0;
    for (int i = 0; i < TDMI_JPEG_CODE_LENGTHS; i++)
        n += counts[i];
    return n;
}

/* ---- divisors -------------------------------------------------------------------------------- */

void tdmi_jpeg_divisors_make(int set, int quality, struct tdmi_jpeg_divisors *divisors)
{
    const int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    for (int i = 0; i < TDMI_JPEG_BLOCK; i++) {
        int step = (usual_steps[set][i] * percent + 50) / 100;
        step = step < 1 ? 1 : step > 255 ? 255 : step;
        /* What is divided is 8 times too large. The reciprocal has 16 bits, the highest set, and is
         * rounded up: its error times what is divided stays below one. */
        const unsigned divisor = 8 * (unsigned)step;
        unsigned shift = 0;
        while ((2u << shift) < divisor)
            shift++;
        divisors->steps[i] = (uint8_t)step;
        divisors->half[i] = (uint16_t)(divisor / 2);
        divisors->reciprocal[i] = (uint16_t)(((1u << (16 + shift)) + divisor - 1) / divisor);
        divisors->scale[i] = (uint16_t)(1u << (16 - shift));
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* Of a symbol with its number of bits, both signs. */
static void enter(struct tdmi_jpeg_entry *entries, uint32_t code, unsigned length, unsigned bits)
{
    const struct tdmi_jpeg_entry entry = {code << bits, length + bits};
    entries[2 * bits] = entries[2 * bits + 1] = entry;
    /* Behind its code stand the lowest bits of value - 1. */
    entries[2 * bits + 1].bits += (1u << bits) - 1;
}

static void index_code(struct tdmi_jpeg_coding *coding, uint32_t code, unsigned length,
                       unsigned run, unsigned bits)
{
    coding->codes[TDMI_JPEG_LONGEST_STEP * bits + run] = (uint16_t)code;
    coding->lengths[TDMI_JPEG_LONGEST_STEP * bits + run] = (uint8_t)(length + bits);
}

void tdmi_jpeg_coding_make(int set, struct tdmi_jpeg_coding *coding)
{
    memset(coding, 0, sizeof *coding);
    for (int kind = TDMI_JPEG_DC; kind <= TDMI_JPEG_AC; kind++) {
        const uint8_t *counts = tdmi_jpeg_usual_codes[set][kind];
        const uint8_t *symbol = counts + TDMI_JPEG_CODE_LENGTHS;
        uint32_t code = 0;
        for (unsigned length = 1; length <= TDMI_JPEG_CODE_LENGTHS; length++, code <<= 1)
            for (int i = 0; i < counts[length - 1]; i++, code++, symbol++) {
                const unsigned run = *symbol >> 4, bits = *symbol & 15;
                if (kind == TDMI_JPEG_AC)
                    index_code(coding, code, length, run, bits);
                if (kind == TDMI_JPEG_DC)
                    enter(coding->dc, code, length, bits);
                else if (bits > 0)
                    enter(coding->ac + (run + 1) * TDMI_JPEG_SIZES, code, length, bits);
                else
                    *(run == 0 ? &coding->ac[TDMI_JPEG_SIZES] : &coding->zeros) =
                        (struct tdmi_jpeg_entry){code, length};
            }
    }
}

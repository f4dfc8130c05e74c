/* Marker by marker; all numbers are stored with their highest byte first. */
#include "image/jpeg_encode/head.h"

static void add_byte(tdmi_text *out, int value)
{
    const uint8_t byte = (uint8_t)value;
    tdmi_text_add(out, &byte, 1);
}

static void add_number(tdmi_text *out, int value)
{
    add_byte(out, value >> 8);
    add_byte(out, value);
}

/* The length counts its own two bytes. */
static void begin(tdmi_text *out, int marker, size_t length_bytes)
{
    add_byte(out, 0xff);
    add_byte(out, marker);
    add_number(out, (int)length_bytes + 2);
}

static void write_divisors(int set, const struct tdmi_jpeg_divisors *divisors, tdmi_text *out)
{
    begin(out, 0xdb, 1 + TDMI_JPEG_BLOCK);
    add_byte(out, set);
    for (int i = 0; i < TDMI_JPEG_BLOCK; i++)
        add_byte(out, divisors->steps[tdmi_jpeg_zigzag[i]]);
}

static void write_codes(int set, int kind, tdmi_text *out)
{
    const uint8_t *codes = tdmi_jpeg_usual_codes[set][kind];
    const size_t n_bytes = TDMI_JPEG_CODE_LENGTHS + tdmi_jpeg_n_symbols(codes);
    begin(out, 0xc4, 1 + n_bytes);
    add_byte(out, kind << 4 | set);
    tdmi_text_add(out, codes, n_bytes);
}

static int set_of(int component)
{
    return component == 0 ? TDMI_JPEG_LUMA : TDMI_JPEG_CHROMA;
}

static void write_frame(const struct tdmi_jpeg_head *head, tdmi_text *out)
{
    begin(out, 0xc0, 6 + 3 * TDMI_JPEG_COMPONENTS);
    add_byte(out, 8); /* bits of a sample */
    add_number(out, head->height);
    add_number(out, head->width);
    add_byte(out, TDMI_JPEG_COMPONENTS);
    for (int c = 0; c < TDMI_JPEG_COMPONENTS; c++) {
        const int sampling = c == 0 ? head->sampling : 1;
        add_byte(out, c + 1);
        add_byte(out, sampling << 4 | sampling);
        add_byte(out, set_of(c));
    }
}

static void write_scan(tdmi_text *out)
{
    begin(out, 0xda, 4 + 2 * TDMI_JPEG_COMPONENTS);
    add_byte(out, TDMI_JPEG_COMPONENTS);
    for (int c = 0; c < TDMI_JPEG_COMPONENTS; c++) {
        add_byte(out, c + 1);
        add_byte(out, set_of(c) << 4 | set_of(c));
    }
    add_byte(out, 0); /* all coefficients, with all their bits */
    add_byte(out, TDMI_JPEG_BLOCK - 1);
    add_byte(out, 0);
}

void tdmi_jpeg_head_write(const struct tdmi_jpeg_head *head, tdmi_text *out)
{
    /* Version 1.1, no unit, square pixels, no thumbnail. */
    static const char jfif[] = "JFIF\0\1\1\0\0\1\0\1\0";
    tdmi_text_add(out, "\xff\xd8", 2);
    begin(out, 0xe0, sizeof jfif);
    tdmi_text_add(out, jfif, sizeof jfif);
    for (int set = 0; set < TDMI_JPEG_SETS; set++)
        write_divisors(set, &head->divisors[set], out);
    write_frame(head, out);
    for (int set = 0; set < TDMI_JPEG_SETS; set++)
        for (int kind = TDMI_JPEG_DC; kind <= TDMI_JPEG_AC; kind++)
            write_codes(set, kind, out);
    if (head->interval > 0) {
        begin(out, 0xdd, 2);
        add_number(out, head->interval);
    }
    write_scan(out);
}

/*
 * The markers of a usual JPEG file: sequential Huffman coding of 8 bits, grey or YCbCr, one scan,
 * no component larger than the first. jpeg/plain.h decodes such files; any other file, or one with
 * the least irregularity, is left to libjpeg-turbo.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TDMI_JPEG_BLOCK = 64,         /* coefficients, 8 x 8 */
    TDMI_JPEG_COMPONENTS = 3,     /* at most */
    TDMI_JPEG_TABLES = 4,         /* of a kind that a file can hold at once */
    TDMI_JPEG_DC = 0,             /* kinds of codes: of means … */
    TDMI_JPEG_AC = 1,             /* … and of all other coefficients */
    TDMI_JPEG_CODE_LENGTHS = 16,  /* counts that begin a table of codes */
    TDMI_JPEG_BYTES_A_BLOCK = 256 /* more than any block takes */
};

struct tdmi_jpeg_component {
    const uint8_t *divisors; /* 64, in the order of the zigzag */
    const uint8_t *codes[2]; /* TDMI_JPEG_DC, _AC: 16 counts, then as many symbols */
    int across, down;        /* blocks in an MCU, 1 or 2 */
};

struct tdmi_jpeg_layout {
    int width, height;
    int n_components; /* 1 or 3 */
    struct tdmi_jpeg_component components[TDMI_JPEG_COMPONENTS];
    int n_mcus_across, n_mcus_down;
    int interval;        /* MCUs from one restart to the next, all of them without restarts */
    const uint8_t *scan; /* coded data, up to the end of the file */
    size_t scan_bytes;
};

/* false: not a usual file. */
bool tdmi_jpeg_lay_out(const uint8_t *bytes, size_t length_bytes, struct tdmi_jpeg_layout *layout);

int64_t tdmi_jpeg_n_segments(const struct tdmi_jpeg_layout *layout);
/* The most bytes of coded data that such an image can have and this file has. */
size_t tdmi_jpeg_most_bytes(const struct tdmi_jpeg_layout *layout);
/* The coded data without stuffing and markers at out, most_bytes of it at most. Segment i, between
 * two restarts, is from starts[i] to starts[i + 1]; there are n_segments + 1 starts. false where
 * the markers are not exactly those that belong there. */
bool tdmi_jpeg_unstuff(const struct tdmi_jpeg_layout *layout, uint8_t *out, size_t *starts);

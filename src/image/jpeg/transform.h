/*
 * The numbers of libjpeg's slow integer transform (Loeffler, Ligtenberg and Moschytz 1989) in 13
 * bits of fraction, and of its conversion from and to YCbCr in 16. The original multiplies in steps
 * that share products; these are the sums of those products, which in integers is the same.
 *
 *     even part   e0 = (x0 + x4) ONE + x2 C2A + x6 C2B     e3 = (x0 + x4) ONE - x2 C2A - x6 C2B
 *                 e1 = (x0 - x4) ONE + x2 C6A + x6 C6B     e2 = (x0 - x4) ONE - x2 C6A - x6 C6B
 *     odd part    oi = x1 O[i][0] + x3 O[i][1] + x5 O[i][2] + x7 O[i][3]
 *     result      ei + oi, i = 0 … 3, then ei - oi, i = 3 … 0, rounded
 */
#ifndef TANDEM_IMAGE_JPEG_TRANSFORM_H
#define TANDEM_IMAGE_JPEG_TRANSFORM_H

enum {
    TDMI_JPEG_ONE = 8192,
    TDMI_JPEG_C2A = 10703,
    TDMI_JPEG_C2B = 4433,
    TDMI_JPEG_C6A = 4433,
    TDMI_JPEG_C6B = -10704,
    TDMI_JPEG_DOWN_SHIFT = 11,   /* after columns: two bits of fraction stay */
    TDMI_JPEG_ACROSS_SHIFT = 18, /* after rows: those, and a factor of 8 */
    TDMI_JPEG_CENTRE = 128
};

/* As an X-macro, so that each set of instructions makes of them what it wants. */
#define TDMI_JPEG_ODD(X)             \
    X(0, 11363, 9633, 6437, 2260)    \
    X(1, 9633, -2259, -11362, -6436) \
    X(2, 6437, -11362, 2261, 9633)   \
    X(3, 2260, -6436, 9633, -11363)

/* red = luma + 1.402 R, blue = luma + 1.772 B, green = luma - 0.34414 B - 0.71414 R. */
enum {
    TDMI_JPEG_RED = 91881,
    TDMI_JPEG_BLUE = 116130,
    TDMI_JPEG_GREEN_BLUE = -22554,
    TDMI_JPEG_GREEN_RED = -46802
};

/* The way there, in the same order of numbers: si = xi + x(7-i), di = xi - x(7-i), and
 *
 *     y0 = (s0 + s3) + (s1 + s2)                      y4 = (s0 + s3) - (s1 + s2)
 *     y2 = (s0 - s3) C2A + (s1 - s2) C2B              y6 = (s0 - s3) C6A + (s1 - s2) C6B
 *     y(2 j + 1) = d0 O[j][0] + d1 O[j][1] + d2 O[j][2] + d3 O[j][3]
 *
 * rows first, with two bits of fraction more, then columns, without them: 8 times too large. */
enum {
    TDMI_JPEG_ALONG_BITS = 2,
    TDMI_JPEG_ALONG_SHIFT = 11, /* of products, after rows */
    TDMI_JPEG_UPRIGHT_SHIFT = 15
};

/* luma = LUMA_RED R + LUMA_GREEN G + LUMA_BLUE B; the differences are half of blue, and half of
 * red, less these parts of the two others. Luma is rounded half up, the differences half down. */
enum {
    TDMI_JPEG_LUMA_RED = 19595,
    TDMI_JPEG_LUMA_GREEN = 38470,
    TDMI_JPEG_LUMA_BLUE = 7471,
    TDMI_JPEG_BLUE_LESS_RED = 11059,
    TDMI_JPEG_BLUE_LESS_GREEN = 21709,
    TDMI_JPEG_RED_LESS_GREEN = 27439,
    TDMI_JPEG_RED_LESS_BLUE = 5329,
    TDMI_JPEG_HALF = 32768
};

#endif

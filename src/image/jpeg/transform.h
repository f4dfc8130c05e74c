/*
 * The numbers of libjpeg's slow integer transform (Loeffler, Ligtenberg and Moschytz 1989) in 13
 * bits of fraction, and of its conversion from YCbCr in 16. The original multiplies in steps
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

#endif

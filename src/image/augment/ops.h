/*
 * The parts of augmentation: draws, and what is done to the bytes of one image. Factors are 1 for
 * no change; "blend" is base + factor · (image - base), rounded to nearest and cut to a byte.
 */
#pragma once

#include "base/hash/rng.h"
#include "image/augment/augment.h"

/* The draws of one augmentation for one sample. */
tdmi_rng tdmi_augment_rng(struct tdmi_augment_key key, enum tdmi_augment_kind kind);

static inline int tdmi_augment_between(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* An image and a second one as large to work into. Operations that need it exchange the two. */
struct tdmi_canvas {
    struct tdmi_augment_shape shape;
    uint8_t *pixels, *spare;
};

/* ---- augment/warp.c ------------------------------------------------------------------------ */

void tdmi_warp_flip(struct tdmi_canvas *canvas);
/* Content moves left by dx and up by dy. */
void tdmi_warp_shift(struct tdmi_canvas *canvas, int dx, int dy, uint8_t fill);
/* Output pixel centre (x, y) is taken from (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]),
 * bilinear, where that lies inside the image; fill elsewhere. */
void tdmi_warp_affine(struct tdmi_canvas *canvas, const double m[6], uint8_t fill);
/* The box is scaled to the whole, bilinear. */
void tdmi_warp_zoom(struct tdmi_canvas *canvas, struct tdmi_box box);
/* Counter-clockwise around the centre. */
void tdmi_warp_rotate(struct tdmi_canvas *canvas, double degrees, uint8_t fill);

/* ---- augment/colour.c ---------------------------------------------------------------------- */

void tdmi_colour_brightness(struct tdmi_canvas *canvas, double factor); /* blend with black */
void tdmi_colour_contrast(struct tdmi_canvas *canvas, double factor);   /* with the mean luma */
void tdmi_colour_saturation(struct tdmi_canvas *canvas, double factor); /* with each pixel's luma */
void tdmi_colour_hue(struct tdmi_canvas *canvas, double turn); /* in parts of the colour circle */
void tdmi_colour_sharpness(struct tdmi_canvas *canvas, double factor); /* with the smoothed one */
void tdmi_colour_posterize(struct tdmi_canvas *canvas, int bits);      /* keeps the highest bits */
void tdmi_colour_solarize(struct tdmi_canvas *canvas, int threshold);  /* inverts from it on */
void tdmi_colour_autocontrast(struct tdmi_canvas *canvas); /* each channel stretched to 0–255 */
void tdmi_colour_equalize(struct tdmi_canvas *canvas);     /* each channel's histogram made flat */

/* ---- augment/randaugment.c ----------------------------------------------------------------- */

void tdmi_randaugment(struct tdmi_canvas *canvas, int n_operations, int magnitude, tdmi_rng *rng);

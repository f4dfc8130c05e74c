/*
 * RandAugment (Cubuk et al., 2019) with the operations and strengths that torchvision documents for
 * 31 bins: each time one of fourteen, all as strong as the magnitude says, in either direction
 * where there are two. What becomes a whole number is computed in whole numbers: a product of
 * fractions may fall just short of it.
 */
#include "image/augment/ops.h"

enum { STRONGEST = 30 };

/* The numbers of the operations are part of the format of a run. */
enum operation {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOUR,
    CONTRAST,
    SHARPNESS, /* the operations up to here have two directions */
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    N_OPERATIONS
};

/* 150 of 331 pixels at most, the fraction cut off. */
static int shift_of(int side, int strength)
{
    return (int)((int64_t)150 * side * strength / (331 * STRONGEST));
}

/* A strength is in [0, 30], or in [-30, 30] where an operation has two directions. */
static void change(struct tdmi_canvas *canvas, enum operation operation, int strength)
{
    const double share = (double)strength / STRONGEST, factor = 1 + 0.9 * share;
    switch (operation) {
    case SHEAR_X:
        tdmi_warp_affine(canvas, (const double[]){1, 0.3 * share, 0, 0, 1, 0}, 0);
        break;
    case SHEAR_Y:
        tdmi_warp_affine(canvas, (const double[]){1, 0, 0, 0.3 * share, 1, 0}, 0);
        break;
    case TRANSLATE_X:
        tdmi_warp_shift(canvas, shift_of(canvas->shape.width, strength), 0, 0);
        break;
    case TRANSLATE_Y:
        tdmi_warp_shift(canvas, 0, shift_of(canvas->shape.height, strength), 0);
        break;
    case ROTATE:
        tdmi_warp_rotate(canvas, 30 * share, 0);
        break;
    case BRIGHTNESS:
        tdmi_colour_brightness(canvas, factor);
        break;
    case COLOUR:
        tdmi_colour_saturation(canvas, factor);
        break;
    case CONTRAST:
        tdmi_colour_contrast(canvas, factor);
        break;
    case SHARPNESS:
        tdmi_colour_sharpness(canvas, factor);
        break;
    case POSTERIZE:
        tdmi_colour_posterize(canvas, 8 - (4 * strength + STRONGEST / 2) / STRONGEST);
        break;
    case SOLARIZE: /* from 255 - 8.5 a step on: the first whole number that reaches it */
        tdmi_colour_solarize(canvas, (255 * (STRONGEST - strength) + STRONGEST - 1) / STRONGEST);
        break;
    case AUTOCONTRAST:
        tdmi_colour_autocontrast(canvas);
        break;
    case EQUALIZE:
        tdmi_colour_equalize(canvas);
        break;
    default:
        break;
    }
}

void tdmi_randaugment(struct tdmi_canvas *canvas, int n_operations, int magnitude, tdmi_rng *rng)
{
    for (int i = 0; i < n_operations; i++) {
        const uint32_t which = tdmi_rng_below(rng, N_OPERATIONS);
        bool is_opposite = tdmi_rng_below(rng, 2) == 1; /* drawn for all: draws keep their places */
        const bool is_negative = is_opposite && which <= SHARPNESS;
        change(canvas, (enum operation)which, is_negative ? -magnitude : magnitude);
    }
}

/*
 * RandAugment (Cubuk et al., 2019) with the operations and strengths that torchvision documents for
 * 31 bins: each time one of fourteen, all as strong as the magnitude says, in either direction
 * where there are two. What becomes a whole number is computed in whole numbers: a product of
 * fractions may fall just short of it.
 */
#include "image/augment/ops.h"

enum { STRONGEST = 30 };

/* A strength is in [0, 30], or in [-30, 30] where an operation has two directions. */
static double share_of(int strength)
{
    return (double)strength / STRONGEST;
}

static void identity(struct tdmi_canvas *canvas, int strength)
{
    (void)canvas;
    (void)strength;
}

static void shear_x(struct tdmi_canvas *canvas, int strength)
{
    tdmi_warp_affine(canvas, (const double[]){1, 0.3 * share_of(strength), 0, 0, 1, 0}, 0);
}

static void shear_y(struct tdmi_canvas *canvas, int strength)
{
    tdmi_warp_affine(canvas, (const double[]){1, 0, 0, 0.3 * share_of(strength), 1, 0}, 0);
}

/* 150 of 331 pixels at most, the fraction cut off. */
static int shift_of(int side, int strength)
{
    return (int)((int64_t)150 * side * strength / (331 * STRONGEST));
}

static void translate_x(struct tdmi_canvas *canvas, int strength)
{
    tdmi_warp_shift(canvas, shift_of(canvas->shape.width, strength), 0, 0);
}

static void translate_y(struct tdmi_canvas *canvas, int strength)
{
    tdmi_warp_shift(canvas, 0, shift_of(canvas->shape.height, strength), 0);
}

static void rotate(struct tdmi_canvas *canvas, int strength)
{
    tdmi_warp_rotate(canvas, 30 * share_of(strength), 0);
}

static void brightness(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_brightness(canvas, 1 + 0.9 * share_of(strength));
}

static void colour(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_saturation(canvas, 1 + 0.9 * share_of(strength));
}

static void contrast(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_contrast(canvas, 1 + 0.9 * share_of(strength));
}

static void sharpness(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_sharpness(canvas, 1 + 0.9 * share_of(strength));
}

static void posterize(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_posterize(canvas, 8 - (4 * strength + STRONGEST / 2) / STRONGEST);
}

/* From 255 - 8.5 a step on; whole numbers reach a threshold where they reach its ceiling. */
static void solarize(struct tdmi_canvas *canvas, int strength)
{
    tdmi_colour_solarize(canvas, (255 * (STRONGEST - strength) + STRONGEST - 1) / STRONGEST);
}

static void autocontrast(struct tdmi_canvas *canvas, int strength)
{
    (void)strength;
    tdmi_colour_autocontrast(canvas);
}

static void equalize(struct tdmi_canvas *canvas, int strength)
{
    (void)strength;
    tdmi_colour_equalize(canvas);
}

/* The numbers of the operations are part of the format of a run. */
static const struct {
    void (*change)(struct tdmi_canvas *canvas, int strength);
    bool has_directions;
} operations[] = {
    {identity, false},     {shear_x, true},   {shear_y, true},    {translate_x, true},
    {translate_y, true},   {rotate, true},    {brightness, true}, {colour, true},
    {contrast, true},      {sharpness, true}, {posterize, false}, {solarize, false},
    {autocontrast, false}, {equalize, false},
};

void tdmi_randaugment(struct tdmi_canvas *canvas, int n_operations, int magnitude, tdmi_rng *rng)
{
    for (int i = 0; i < n_operations; i++) {
        uint32_t which = tdmi_rng_below(rng, sizeof operations / sizeof operations[0]);
        bool is_opposite = tdmi_rng_below(rng, 2) == 1; /* drawn for all: draws keep their places */
        const bool is_negative = is_opposite && operations[which].has_directions;
        operations[which].change(canvas, is_negative ? -magnitude : magnitude);
    }
}

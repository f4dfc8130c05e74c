/*
 * RandAugment (Cubuk et al., 2019) with the operations and strengths that torchvision documents for
 * 31 bins: each time one of fourteen, all as strong as the magnitude says, in either direction
 * where there are two.
 */
#include "image/augment_ops.h"

#include <math.h>

enum { STRONGEST = 30 };

/* amount is in [0, 1], or in [-1, 1] where an operation has two directions. */
static void identity(struct tdmi_canvas *canvas, double amount)
{
    (void)canvas;
    (void)amount;
}

static void shear_x(struct tdmi_canvas *canvas, double amount)
{
    tdmi_warp_affine(canvas, (const double[]){1, 0.3 * amount, 0, 0, 1, 0}, 0);
}

static void shear_y(struct tdmi_canvas *canvas, double amount)
{
    tdmi_warp_affine(canvas, (const double[]){1, 0, 0, 0.3 * amount, 1, 0}, 0);
}

static void translate_x(struct tdmi_canvas *canvas, double amount)
{
    tdmi_warp_shift(canvas, (int)(150.0 / 331.0 * canvas->shape.width * amount), 0, 0);
}

static void translate_y(struct tdmi_canvas *canvas, double amount)
{
    tdmi_warp_shift(canvas, 0, (int)(150.0 / 331.0 * canvas->shape.height * amount), 0);
}

static void rotate(struct tdmi_canvas *canvas, double amount)
{
    tdmi_warp_rotate(canvas, 30 * amount, 0);
}

static void brightness(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_brightness(canvas, 1 + 0.9 * amount);
}

static void colour(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_saturation(canvas, 1 + 0.9 * amount);
}

static void contrast(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_contrast(canvas, 1 + 0.9 * amount);
}

static void sharpness(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_sharpness(canvas, 1 + 0.9 * amount);
}

static void posterize(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_posterize(canvas, 8 - (int)rint(4 * amount));
}

/* Compared as whole numbers: x >= threshold is x >= its ceiling, less what rounding added to it. */
static void solarize(struct tdmi_canvas *canvas, double amount)
{
    tdmi_colour_solarize(canvas, (int)ceil(255 * (1 - amount) - 1e-6));
}

static void autocontrast(struct tdmi_canvas *canvas, double amount)
{
    (void)amount;
    tdmi_colour_autocontrast(canvas);
}

static void equalize(struct tdmi_canvas *canvas, double amount)
{
    (void)amount;
    tdmi_colour_equalize(canvas);
}

/* The numbers of the operations are part of the format of a run. */
static const struct {
    void (*change)(struct tdmi_canvas *canvas, double amount);
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
        bool is_turned = tdmi_rng_below(rng, 2) == 1; /* drawn for all: draws keep their places */
        double amount = (double)magnitude / STRONGEST;
        if (is_turned && operations[which].has_directions)
            amount = -amount;
        operations[which].change(canvas, amount);
    }
}

/*
 * From a description to draws to pixels. Every augmentation has a stream of its own in the counter
 * generator, so adding one to a run changes nothing about the draws of the others.
 */
#include "image/augment/ops.h"

#include <math.h>
#include <string.h>

static const uint32_t streams[] = {
#define X(name, text, stream, ...) [TDMI_AUGMENT_##name] = (stream),
#include "image/augment/augments.def"
#undef X
};

/* Counter word 0 numbers blocks of four draws: 2^24 of them for each stream. */
tdmi_rng tdmi_augment_rng(struct tdmi_augment_key key, enum tdmi_augment_kind kind)
{
    tdmi_rng rng = key.content != 0
                       ? tdmi_rng_at(key.seed, TDMI_RNG_VIEW, key.view, key.content)
                       : tdmi_rng_at(key.seed, TDMI_RNG_AUGMENT, key.epoch,
                                     (uint64_t)key.sample | (uint64_t)key.repeat << 40);
    rng.counter[0] = streams[kind] << 24;
    return rng;
}

/* ---- boxes --------------------------------------------------------------------------------- */

static double uniform(tdmi_rng *rng, double low, double high)
{
    return low + (high - low) * (double)tdmi_rng_unit(rng);
}

/* The largest centred box whose aspect is as near to the image's as the range allows. */
static struct tdmi_box middle(int width, int height, double aspect)
{
    double w = width, h = height;
    if (w / h < 1 / aspect)
        h = floor(w * aspect + 0.5);
    else if (w / h > aspect)
        w = floor(h * aspect + 0.5);
    return (struct tdmi_box){floor((width - w) / 2), floor((height - h) / 2), w, h};
}

/* The arguments of resized-crop and zoom are alike. */
static struct tdmi_box draw_box(const double *arguments, tdmi_rng *rng, int width, int height)
{
    enum { ATTEMPTS = 10 };
    const double area = (double)width * height, log_aspect = log(arguments[2]);
    for (int i = 0; i < ATTEMPTS; i++) {
        double share = area * uniform(rng, arguments[0], arguments[1]);
        double aspect = exp(uniform(rng, -log_aspect, log_aspect));
        double w = floor(sqrt(share * aspect) + 0.5), h = floor(sqrt(share / aspect) + 0.5);
        if (w < 1 || h < 1 || w > width || h > height)
            continue;
        double y = tdmi_rng_below(rng, (uint32_t)(height - (int)h + 1));
        double x = tdmi_rng_below(rng, (uint32_t)(width - (int)w + 1));
        return (struct tdmi_box){x, y, w, h};
    }
    return middle(width, height, arguments[2]);
}

bool tdmi_augment_box(const struct tdmi_augment *augment, struct tdmi_augment_key key, int width,
                      int height, struct tdmi_box *box)
{
    const enum tdmi_augment_kind kind = TDMI_AUGMENT_RESIZED_CROP;
    if (!augment->is_on[kind])
        return false;
    tdmi_rng rng = tdmi_augment_rng(key, kind);
    *box = draw_box(augment->arguments[kind], &rng, width, height);
    return true;
}

/* ---- draws of one image ---------------------------------------------------------------- */

static void draw_crop(const double *arguments, tdmi_rng *rng, struct tdmi_augment_change *change)
{
    const int pixels = (int)arguments[0];
    const uint32_t range = 2 * (uint32_t)pixels + 1;
    change->dy = (int)tdmi_rng_below(rng, range) - pixels;
    change->dx = (int)tdmi_rng_below(rng, range) - pixels;
    change->fill = (int)arguments[1];
}

/* All draws are made, needed or not: each keeps its place. */
static void draw_jitter(const double *arguments, tdmi_rng *rng, struct tdmi_augment_change *change)
{
    int order[] = {TDMI_COLOUR_BRIGHTNESS, TDMI_COLOUR_CONTRAST, TDMI_COLOUR_SATURATION,
                   TDMI_COLOUR_HUE};
    double amounts[4];
    for (int i = 3; i > 0; i--) {
        int j = (int)tdmi_rng_below(rng, (uint32_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < 4; i++)
        amounts[i] = (i < 3 ? 1 : 0) + uniform(rng, -arguments[i], arguments[i]);
    for (int i = 0; i < 4; i++) {
        if (arguments[order[i]] <= 0)
            continue;
        change->colours[change->n_colours].kind = (enum tdmi_augment_colour)order[i];
        change->colours[change->n_colours++].amount = amounts[order[i]];
    }
}

static void draw_cutout(const double *arguments, struct tdmi_augment_shape shape, tdmi_rng *rng,
                        struct tdmi_augment_change *change)
{
    const int side = (int)arguments[0];
    const int top = (int)tdmi_rng_below(rng, (uint32_t)shape.height) - side / 2;
    const int left = (int)tdmi_rng_below(rng, (uint32_t)shape.width) - side / 2;
    change->cut_top = tdmi_augment_between(top, 0, shape.height);
    change->cut_left = tdmi_augment_between(left, 0, shape.width);
    change->cut_bottom = tdmi_augment_between(top + side, 0, shape.height);
    change->cut_right = tdmi_augment_between(left + side, 0, shape.width);
    change->cut_fill = (int)arguments[1];
}

/* Kinds that change pixels by tdmi_augment_change alone, or with draws of their own. */
enum use { NO_PIXELS, BY_CHANGE, BY_OWN_DRAWS };
static const enum use uses[TDMI_AUGMENTS] = {
    [TDMI_AUGMENT_ZOOM] = BY_OWN_DRAWS, [TDMI_AUGMENT_CROP] = BY_CHANGE,
    [TDMI_AUGMENT_FLIP] = BY_CHANGE,    [TDMI_AUGMENT_ROTATE] = BY_OWN_DRAWS,
    [TDMI_AUGMENT_JITTER] = BY_CHANGE,  [TDMI_AUGMENT_RANDAUGMENT] = BY_OWN_DRAWS,
    [TDMI_AUGMENT_CUTOUT] = BY_CHANGE,
};

void tdmi_augment_draw(const struct tdmi_augment *rest, struct tdmi_augment_key key,
                       struct tdmi_augment_shape shape, struct tdmi_augment_change *change)
{
    *change = (struct tdmi_augment_change){.is_flipped = false};
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        const double *arguments = rest->arguments[kind];
        if (!rest->is_on[kind] || uses[kind] != BY_CHANGE)
            continue;
        tdmi_rng rng = tdmi_augment_rng(key, (enum tdmi_augment_kind)kind);
        if (kind == TDMI_AUGMENT_FLIP)
            change->is_flipped = (double)tdmi_rng_unit(&rng) < arguments[0];
        else if (kind == TDMI_AUGMENT_CROP)
            draw_crop(arguments, &rng, change);
        else if (kind == TDMI_AUGMENT_JITTER)
            draw_jitter(arguments, &rng, change);
        else
            draw_cutout(arguments, shape, &rng, change);
    }
}

/* ---- changes of one image -------------------------------------------------------------- */

static void jitter(struct tdmi_canvas *canvas, const struct tdmi_augment_change *change)
{
    static void (*const colours[])(struct tdmi_canvas *, double) = {
        [TDMI_COLOUR_BRIGHTNESS] = tdmi_colour_brightness,
        [TDMI_COLOUR_CONTRAST] = tdmi_colour_contrast,
        [TDMI_COLOUR_SATURATION] = tdmi_colour_saturation,
        [TDMI_COLOUR_HUE] = tdmi_colour_hue,
    };
    for (int i = 0; i < change->n_colours; i++)
        colours[change->colours[i].kind](canvas, change->colours[i].amount);
}

static void cutout(struct tdmi_canvas *canvas, const struct tdmi_augment_change *change)
{
    const size_t channels = (size_t)canvas->shape.channels;
    const size_t row_bytes = (size_t)canvas->shape.width * channels;
    for (int y = change->cut_top; y < change->cut_bottom; y++)
        memset(canvas->pixels + row_bytes * (size_t)y + channels * (size_t)change->cut_left,
               change->cut_fill, channels * (size_t)(change->cut_right - change->cut_left));
}

/* rng has the draws of kinds that have their own. */
static void apply(enum tdmi_augment_kind kind, const double *arguments, tdmi_rng *rng,
                  const struct tdmi_augment_change *change, struct tdmi_canvas *canvas)
{
    if (kind == TDMI_AUGMENT_ZOOM)
        tdmi_warp_zoom(canvas, draw_box(arguments, rng, canvas->shape.width, canvas->shape.height));
    else if (kind == TDMI_AUGMENT_CROP)
        tdmi_warp_shift(canvas, change->dx, change->dy, (uint8_t)change->fill);
    else if (kind == TDMI_AUGMENT_FLIP && change->is_flipped)
        tdmi_warp_flip(canvas);
    else if (kind == TDMI_AUGMENT_ROTATE)
        tdmi_warp_rotate(canvas, uniform(rng, -arguments[0], arguments[0]), (uint8_t)arguments[1]);
    else if (kind == TDMI_AUGMENT_RANDAUGMENT)
        tdmi_randaugment(canvas, (int)arguments[0], (int)arguments[1], rng);
    else if (kind == TDMI_AUGMENT_JITTER)
        jitter(canvas, change);
    else if (kind == TDMI_AUGMENT_CUTOUT)
        cutout(canvas, change);
}

bool tdmi_augment_changes(const struct tdmi_augment *augment)
{
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++)
        if (augment->is_on[kind])
            return true;
    return false;
}

bool tdmi_augment_has_pixels(const struct tdmi_augment *augment)
{
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++)
        if (augment->is_on[kind] && uses[kind] != NO_PIXELS)
            return true;
    return false;
}

bool tdmi_augment_divide(const struct tdmi_augment *augment, struct tdmi_augment *first,
                         struct tdmi_augment *rest)
{
    int last = -1; /* kind with draws of its own */
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++)
        if (augment->is_on[kind] && uses[kind] == BY_OWN_DRAWS)
            last = kind;
    *first = *rest = (struct tdmi_augment){.is_on = {false}};
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        struct tdmi_augment *to = kind <= last ? first : rest;
        if (!augment->is_on[kind] || uses[kind] == NO_PIXELS)
            continue;
        to->is_on[kind] = true;
        memcpy(to->arguments[kind], augment->arguments[kind], sizeof to->arguments[kind]);
    }
    return tdmi_augment_has_pixels(rest);
}

void tdmi_augment_picture(const struct tdmi_augment *augment, struct tdmi_augment_key key,
                          struct tdmi_augment_shape shape, uint8_t *pixels, uint8_t *spare)
{
    struct tdmi_canvas canvas = {shape, pixels, spare};
    struct tdmi_augment_change change;
    tdmi_augment_draw(augment, key, shape, &change);
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        if (!augment->is_on[kind])
            continue;
        tdmi_rng rng = tdmi_augment_rng(key, (enum tdmi_augment_kind)kind);
        apply((enum tdmi_augment_kind)kind, augment->arguments[kind], &rng, &change, &canvas);
    }
    if (canvas.pixels != pixels)
        memcpy(pixels, canvas.pixels,
               (size_t)shape.height * (size_t)shape.width * (size_t)shape.channels);
}

/*
 * The content of an image, drawn from back to front: a background of clouds, clutter (ellipses and
 * bars, some with a class's texture), the objects of the class with their shadows, things that hide
 * a part of them, and the camera. Size, background, clutter, light, pose and camera are drawn
 * without looking at the class, so none of them reveals it.
 *
 * Every random number is drawn in a statement of its own: C leaves the order inside an expression
 * to the compiler, and the order is part of the data set.
 */
#include "synth/scene.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "synth/class.h"
#include <math.h>

struct scene {
    const struct tdmi_synth_tables *tables;
    struct tdmi_synth_canvas *canvas;
    tdmi_rng rng;
    float light_x, light_y; /* towards the light: a unit vector, y down */
};

static float uniform(struct scene *scene, float low, float high)
{
    return tdmi_rng_uniform(&scene->rng, low, high);
}

static int below(struct scene *scene, int bound)
{
    return (int)tdmi_rng_below(&scene->rng, (uint32_t)bound);
}

static int chance(struct scene *scene, float probability)
{
    return tdmi_rng_unit(&scene->rng) < probability;
}

/* ---- angles and colours -------------------------------------------------------------------- */

/* Sine of a quarter turn times x in [-1, 1]: the Taylor series, wrong by less than 4e-6. */
static float quarter_sine(float x)
{
    float a = x * 1.57079633F, b = a * a;
    return a * (1.0F + b * (-1.0F / 6.0F +
                            b * (1.0F / 120.0F + b * (-1.0F / 5040.0F + b * (1.0F / 362880.0F)))));
}

/* Unit vector of an angle in turns, in [-1, 1]. */
static void direction(float turns, float *x, float *y)
{
    float quarters = 4.0F * (turns + 1.0F);
    int whole = (int)quarters;
    float rest = quarters - (float)whole;
    float s = quarter_sine(rest), c = quarter_sine(1.0F - rest);
    const float xs[] = {c, -s, -c, s};
    *x = xs[whole % 4];
    *y = xs[(whole + 3) % 4];
}

/* Hue in turns, at least -1. */
static struct tdmi_synth_colour hsv(float hue, float saturation, float value)
{
    struct tdmi_synth_colour colour;
    for (int c = 0; c < 3; c++) {
        float h = hue + 1.0F + (c == 0 ? 0.0F : c == 1 ? 2.0F / 3.0F : 1.0F / 3.0F);
        h = 6.0F * (h - (float)(int)h);
        float away = h < 3.0F ? h : 6.0F - h; /* from this channel's own hue */
        colour.c[c] = value * (1.0F - saturation * tdmi_synth_limit(away - 1.0F));
    }
    return colour;
}

static float brightness(struct tdmi_synth_colour colour)
{
    return 0.299F * colour.c[0] + 0.587F * colour.c[1] + 0.114F * colour.c[2];
}

static struct tdmi_synth_colour any_colour(struct scene *scene, float most_saturated)
{
    float hue = uniform(scene, 0.0F, 1.0F);
    float saturation = uniform(scene, 0.0F, most_saturated);
    float value = uniform(scene, 0.2F, 0.85F);
    return hsv(hue, saturation, value);
}

/* The two colours of an object: one of the scheme, and a light or dark one to draw its texture. */
static void object_colours(struct scene *scene, int scheme, struct tdmi_synth_colour colours[2])
{
    static const float hues[TDMI_SYNTH_SCHEMES] = {0.0F, 0.14F, 0.33F, 0.49F, 0.63F, 0.86F};
    int any = below(scene, TDMI_SYNTH_SCHEMES);
    float wobble = uniform(scene, -0.05F, 0.05F);
    float saturation = uniform(scene, 0.5F, 0.95F);
    float value = uniform(scene, 0.62F, 1.0F);
    colours[0] = hsv(hues[scheme < 0 ? any : scheme] + wobble, saturation, value);

    float hue = uniform(scene, 0.0F, 1.0F);
    float pale = uniform(scene, 0.0F, 0.25F);
    float depth = uniform(scene, 0.0F, 0.18F);
    float light_share = brightness(colours[0]) < 0.45F ? 0.95F : 0.05F;
    colours[1] = hsv(hue, pale, chance(scene, light_share) ? 1.0F - depth : depth);
}

/* ---- things -------------------------------------------------------------------------------- */

struct pose {
    float x, y;    /* centre, in shorter sides */
    float radius;  /* in shorter sides */
    float turns;   /* angle */
    float stretch; /* u is this much longer, v this much shorter */
    float slant;
};

static struct tdmi_synth_place place_of(const struct scene *scene, const struct pose *pose,
                                        struct tdmi_synth_thing *thing)
{
    float cx, cy, side = scene->canvas->side;
    direction(pose->turns, &cx, &cy);
    /* pixels = radius * turn * [[stretch, slant], [0, 1 / stretch]] * (u, v), inverted. */
    float scale = 1.0F / (pose->radius * side);
    float a = scale / pose->stretch, b = -scale * pose->slant, d = scale * pose->stretch;
    float longest = pose->stretch > 1.0F ? pose->stretch : 1.0F / pose->stretch;
    float slant = pose->slant < 0.0F ? -pose->slant : pose->slant;
    struct tdmi_synth_place place = {
        .x = pose->x * side,
        .y = pose->y * side,
        .ux = a * cx - b * cy,
        .uy = a * cy + b * cx,
        .vx = -d * cy,
        .vy = d * cx,
        .reach = 1.8F * pose->radius * side * (longest + slant),
        .unit_px = pose->radius * side / longest,
    };
    /* The light in the coordinates of the thing. */
    thing->light_u = scene->light_x * cx + scene->light_y * cy;
    thing->light_v = scene->light_y * cx - scene->light_x * cy;
    return place;
}

static struct tdmi_synth_surface surface_of(struct scene *scene, int texture, float unit_px)
{
    struct tdmi_synth_surface surface = {.texture = texture};
    surface.scale = uniform(scene, 0.88F, 1.15F);
    float turns = uniform(scene, -0.04F, 0.04F);
    direction(turns, &surface.turn_x, &surface.turn_y);
    surface.shift_u = uniform(scene, 0.0F, 1.0F);
    surface.shift_v = uniform(scene, 0.0F, 1.0F);
    float sharpness = 0.2F * unit_px;
    surface.sharpness = sharpness < 2.0F ? 2.0F : sharpness > 12.0F ? 12.0F : sharpness;
    return surface;
}

/* A thing that belongs to no class. */
static struct tdmi_synth_thing any_thing(struct scene *scene, const struct pose *pose)
{
    struct tdmi_synth_thing thing = {0};
    thing.place = place_of(scene, pose, &thing);
    thing.outline = chance(scene, 0.5F) ? TDMI_SYNTH_ELLIPSE : TDMI_SYNTH_BAR;
    int texture = below(scene, TDMI_SYNTH_TEXTURES);
    float contrast = chance(scene, 0.2F) ? uniform(scene, 0.1F, 0.3F) : 0.0F;
    thing.surface = surface_of(scene, texture, thing.place.unit_px);
    /* A quarter of the clutter wears the objects' colours, so that they prove no object. */
    if (chance(scene, 0.25F)) {
        object_colours(scene, TDMI_SYNTH_ANY_SCHEME, thing.colours);
    } else {
        thing.colours[0] = any_colour(scene, 0.95F);
        thing.colours[1] = any_colour(scene, 0.95F);
    }
    for (int c = 0; c < 3; c++)
        thing.colours[1].c[c] =
            thing.colours[0].c[c] + contrast * (thing.colours[1].c[c] - thing.colours[0].c[c]);
    thing.relief = uniform(scene, 0.0F, 0.25F);
    thing.slope = uniform(scene, 0.0F, 0.25F);
    return thing;
}

static void paint_clutter(struct scene *scene)
{
    float width = (float)scene->canvas->width / scene->canvas->side;
    float height = (float)scene->canvas->height / scene->canvas->side;
    int n = 2 + below(scene, 4);
    for (int i = 0; i < n; i++) {
        struct pose pose = {0};
        pose.x = uniform(scene, 0.0F, width);
        pose.y = uniform(scene, 0.0F, height);
        pose.radius = uniform(scene, 0.05F, 0.13F);
        pose.turns = uniform(scene, -0.5F, 0.5F);
        pose.stretch = uniform(scene, 1.25F, 2.4F);
        struct tdmi_synth_thing thing = any_thing(scene, &pose);
        if (chance(scene, 0.4F))
            tdmi_synth_paint_shadow(scene->canvas, scene->tables, &thing,
                                    -0.1F * pose.radius * scene->canvas->side * scene->light_x,
                                    -0.1F * pose.radius * scene->canvas->side * scene->light_y,
                                    0.3F, 0.4F);
        tdmi_synth_paint_thing(scene->canvas, scene->tables, &thing);
    }
}

/* Bars and ellipses before the objects, each over an edge of what lies around (x, y, radius). */
static void paint_occluders(struct scene *scene, float x, float y, float radius)
{
    int n = chance(scene, 0.3F) ? 1 + below(scene, 2) : 0;
    for (int i = 0; i < n; i++) {
        float turns = uniform(scene, -0.5F, 0.5F), away_x, away_y;
        direction(turns, &away_x, &away_y);
        float distance = uniform(scene, 0.65F, 1.1F) * radius;
        struct pose pose = {.x = x + distance * away_x, .y = y + distance * away_y};
        pose.radius = uniform(scene, 0.16F, 0.3F) * radius;
        pose.stretch = uniform(scene, 1.2F, 2.6F);
        pose.turns = uniform(scene, -0.5F, 0.5F);
        struct tdmi_synth_thing thing = any_thing(scene, &pose);
        tdmi_synth_paint_thing(scene->canvas, scene->tables, &thing);
    }
}

static void paint_background(struct scene *scene)
{
    struct tdmi_synth_background background;
    for (int i = 0; i < 3; i++)
        background.colours[i] = any_colour(scene, 0.65F);
    static const float cells[TDMI_SYNTH_CLOUDS][2] = {{2.0F, 5.0F}, {5.0F, 12.0F}, {14.0F, 32.0F}};
    static const float strengths[TDMI_SYNTH_CLOUDS][2] = {
        {0.1F, 0.4F}, {0.0F, 0.35F}, {0.0F, 0.1F}};
    for (int k = 0; k < TDMI_SYNTH_CLOUDS; k++) {
        background.clouds[k].cells = uniform(scene, cells[k][0], cells[k][1]);
        background.clouds[k].from = tdmi_rng_below(&scene->rng, TDMI_SYNTH_CLOUD_STARTS);
        background.clouds[k].strength = uniform(scene, strengths[k][0], strengths[k][1]);
    }
    background.slope_x = uniform(scene, -0.8F, 0.8F);
    background.slope_y = uniform(scene, -0.8F, 0.8F);
    tdmi_synth_paint_background(scene->canvas, scene->tables, &background);
}

/* ---- the objects of the class -------------------------------------------------------------- */

struct slot { /* of one object, in radii of the whole group */
    float x, y, radius;
};

static const struct arrangement {
    int n;
    struct slot slots[3];
} arrangements[TDMI_SYNTH_ARRANGEMENTS] = {
    [TDMI_SYNTH_SINGLE] = {1, {{0.0F, 0.0F, 0.92F}}},
    [TDMI_SYNTH_PAIR] = {2, {{-0.62F, 0.0F, 0.6F}, {0.62F, 0.0F, 0.6F}}},
    [TDMI_SYNTH_STACK] = {2, {{0.0F, -0.62F, 0.6F}, {0.0F, 0.62F, 0.6F}}},
    [TDMI_SYNTH_TRIO] = {3, {{0.0F, -0.62F, 0.54F}, {-0.6F, 0.44F, 0.54F}, {0.6F, 0.44F, 0.54F}}},
};

static void paint_objects(struct scene *scene, const struct tdmi_synth_class *class)
{
    const struct arrangement *arrangement = &arrangements[class->arrangement];
    float width = (float)scene->canvas->width / scene->canvas->side;
    float height = (float)scene->canvas->height / scene->canvas->side;
    struct pose group = {0};
    group.radius = uniform(scene, 0.4F, 0.5F);
    group.x = 0.5F * width + uniform(scene, -0.7F, 0.7F) * (0.5F * width - 0.8F * group.radius);
    group.y = 0.5F * height + uniform(scene, -0.7F, 0.7F) * (0.5F * height - 0.8F * group.radius);
    group.turns = uniform(scene, -0.055F, 0.055F);
    group.stretch = uniform(scene, 0.93F, 1.08F);
    group.slant = uniform(scene, -0.08F, 0.08F);
    float turn_x, turn_y;
    direction(group.turns, &turn_x, &turn_y);

    struct tdmi_synth_thing thing = {.outline = TDMI_SYNTH_SILHOUETTE, .shape = class->shape};
    object_colours(scene, class->scheme, thing.colours);
    thing.relief = uniform(scene, 0.1F, 0.4F);
    thing.slope = uniform(scene, 0.0F, 0.25F);
    thing.gloss = chance(scene, 0.4F) ? uniform(scene, 0.05F, 0.3F) : 0.0F;
    float shadow = uniform(scene, 0.1F, 0.55F);
    float shadow_length = uniform(scene, 0.05F, 0.22F);
    for (int i = 0; i < arrangement->n; i++) {
        const struct slot *slot = &arrangement->slots[i];
        struct pose pose = group;
        pose.x += group.radius * (slot->x * turn_x - slot->y * turn_y);
        pose.y += group.radius * (slot->x * turn_y + slot->y * turn_x);
        float jitter = uniform(scene, 0.93F, 1.05F);
        pose.radius *= slot->radius * jitter;
        pose.turns += uniform(scene, -0.02F, 0.02F);
        thing.place = place_of(scene, &pose, &thing);
        thing.surface = surface_of(scene, class->texture, thing.place.unit_px);
        float length = -shadow_length * pose.radius * scene->canvas->side;
        tdmi_synth_paint_shadow(scene->canvas, scene->tables, &thing, length * scene->light_x,
                                length * scene->light_y, 0.35F, shadow);
        tdmi_synth_paint_thing(scene->canvas, scene->tables, &thing);
    }
    paint_occluders(scene, group.x, group.y, group.radius);
}

static struct tdmi_synth_camera any_camera(struct scene *scene)
{
    struct tdmi_synth_camera camera = {0};
    float exposure = uniform(scene, 0.85F, 1.15F);
    for (int c = 0; c < 3; c++)
        camera.gains[c] = exposure * uniform(scene, 0.9F, 1.1F);
    float fall = uniform(scene, 0.0F, 0.5F);
    camera.light_x = fall * scene->light_x;
    camera.light_y = fall * scene->light_y;
    camera.vignette = uniform(scene, 0.0F, 0.2F);
    camera.blur_passes = scene->canvas->side < 48.0F ? below(scene, 2) : below(scene, 3);
    camera.blur = uniform(scene, 0.05F, 0.25F);
    camera.noise = uniform(scene, 0.005F, 0.025F);
    camera.colour_noise = uniform(scene, 0.0F, 0.015F);
    camera.grain_seed = tdmi_rng_u32(&scene->rng);
    return camera;
}

/* Sides around the requested size: an aspect ratio of common photographs, and a random size. */
static void any_size(struct scene *scene, int size, int *width, int *height)
{
    /* Square roots of 1, 5/4 and 4/3 and their inverses: the area does not follow the aspect. */
    static const float stretches[5] = {1.0F, 1.118F, 0.8944F, 1.1547F, 0.866F};
    float stretch = stretches[below(scene, 5)];
    float side = (float)size * uniform(scene, 0.85F, 1.15F);
    *width = (int)(side * stretch + 0.5F);
    *height = (int)(side / stretch + 0.5F);
}

tdm_status tdmi_synth_draw(const struct tdmi_synth_tables *tables, uint64_t seed, int class_index,
                           int64_t number, int size, struct tdmi_synth_canvas *canvas,
                           tdmi_image *image, int *quality, tdm_error *err)
{
    struct scene scene = {.tables = tables, .canvas = canvas};
    scene.rng =
        tdmi_rng_at(seed, TDMI_RNG_SYNTH, 0, (uint64_t)class_index << 32 | (uint64_t)number);
    struct tdmi_synth_class class = tdmi_synth_class_of(class_index);
    int width, height;
    any_size(&scene, size, &width, &height);
    TDMI_TRY(tdmi_synth_canvas_reshape(canvas, width, height, err));

    float light_turns = uniform(&scene, -0.5F, 0.0F); /* from above */
    direction(light_turns, &scene.light_x, &scene.light_y);
    paint_background(&scene);
    paint_clutter(&scene);
    paint_objects(&scene, &class);
    struct tdmi_synth_camera camera = any_camera(&scene);
    *quality = 78 + below(&scene, 16);
    return tdmi_synth_develop(canvas, tables, &camera, image, err);
}

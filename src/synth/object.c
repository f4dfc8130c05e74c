/*
 * Silhouettes are written down as a few discs and polygons that are added or cut out, in hundredths
 * of the object's radius, v pointing down. min and max of the parts' distances are exact where it
 * counts, at the outline.
 *
 * Textures are built of triangle waves, cells and thresholds. Each is one expression per point; a
 * macro makes the loop around it, so that the choice of texture stays outside of the loop.
 *
 * Only + - * / and sqrt are used, which compilers turn into vector code and which give the same
 * bits on every machine.
 */
#include "synth/object.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* ---- silhouettes --------------------------------------------------------------------------- */

enum { MAX_PARTS = 6, MAX_POINTS = 12, SIDE = TDMI_SYNTH_SHAPE_SIDE };

struct part {
    enum { END, ADD_DISC, CUT_DISC, ADD_POLYGON } kind;
    int n_points;                   /* of a polygon */
    int8_t numbers[2 * MAX_POINTS]; /* disc: u, v, radius; polygon: u, v of each corner */
};

struct silhouette {
    const char *name;
    struct part parts[MAX_PARTS];
};

static const struct silhouette silhouettes[TDMI_SYNTH_SHAPES] = {
    {"star", {{ADD_POLYGON, 10, {0, -100, 25,  -34, 95,  -31, 40,  13,  59,  81,
                                 0, 42,   -59, 81,  -40, 13,  -95, -31, -25, -34}}}},
    {"disc", {{ADD_DISC, 0, {0, 0, 78}}}},
    {"heart",
     {{ADD_DISC, 0, {-42, -32, 48}},
      {ADD_DISC, 0, {42, -32, 48}},
      {ADD_POLYGON, 4, {-81, -5, 0, -40, 81, -5, 0, 92}}}},
    {"square", {{ADD_POLYGON, 4, {-70, -70, 70, -70, 70, 70, -70, 70}}}},
    {"cross", {{ADD_POLYGON, 12, {-30, -95, 30,  -95, 30,  -30, 95,  -30, 95,  30,  30,  30,
                                  30,  95,  -30, 95,  -30, 30,  -95, 30,  -95, -30, -30, -30}}}},
    {"triangle", {{ADD_POLYGON, 3, {0, -95, 92, 72, -92, 72}}}},
    {"ring", {{ADD_DISC, 0, {0, 0, 94}}, {CUT_DISC, 0, {0, 0, 46}}}},
    {"arrow", {{ADD_POLYGON, 7, {-95, -28, 5, -28, 5, -74, 98, 0, 5, 74, 5, 28, -95, 28}}}},
    {"crescent", {{ADD_DISC, 0, {0, 0, 95}}, {CUT_DISC, 0, {46, -12, 72}}}},
    {"flower",
     {{ADD_DISC, 0, {0, -58, 38}},
      {ADD_DISC, 0, {55, -18, 38}},
      {ADD_DISC, 0, {34, 47, 38}},
      {ADD_DISC, 0, {-34, 47, 38}},
      {ADD_DISC, 0, {-55, -18, 38}},
      {ADD_DISC, 0, {0, 0, 42}}}},
    {"bowtie", {{ADD_POLYGON, 6, {-92, -68, 0, -14, 92, -68, 92, 68, 0, 14, -92, 68}}}},
    {"tee",
     {{ADD_POLYGON,
       8,
       {-90, -88, 90, -88, 90, -32, 29, -32, 29, 92, -29, 92, -29, -32, -90, -32}}}},
    {"bolt", {{ADD_POLYGON, 7, {10, -98, -66, 16, -12, 16, -38, 98, 66, -22, 12, -22, 52, -98}}}},
    {"drop", {{ADD_DISC, 0, {0, 32, 60}}, {ADD_POLYGON, 4, {-54, 8, 0, -98, 54, 8, 0, 40}}}},
};

const char *tdmi_synth_shape_name(int shape)
{
    return silhouettes[shape].name;
}

static float hundredth(int8_t number)
{
    return (float)number / 100.0F;
}

/* Distance to the nearest edge, negative inside: a ray to the right crosses an odd number. */
static float polygon_distance(const struct part *part, float u, float v)
{
    float nearest = 1e6F;
    int is_inside = 0;
    for (int i = 0; i < part->n_points; i++) {
        int j = (i + 1) % part->n_points;
        float au = hundredth(part->numbers[2 * i]), av = hundredth(part->numbers[2 * i + 1]);
        float bu = hundredth(part->numbers[2 * j]), bv = hundredth(part->numbers[2 * j + 1]);
        float eu = bu - au, ev = bv - av;
        float along = ((u - au) * eu + (v - av) * ev) / (eu * eu + ev * ev);
        along = tdmi_synth_limit(along);
        float ru = u - au - along * eu, rv = v - av - along * ev;
        float square = ru * ru + rv * rv;
        nearest = square < nearest ? square : nearest;
        if ((av > v) != (bv > v) && u < au + eu * (v - av) / ev)
            is_inside = !is_inside;
    }
    return is_inside ? -sqrtf(nearest) : sqrtf(nearest);
}

static float disc_distance(const struct part *part, float u, float v)
{
    float du = u - hundredth(part->numbers[0]), dv = v - hundredth(part->numbers[1]);
    return sqrtf(du * du + dv * dv) - hundredth(part->numbers[2]);
}

static float silhouette_distance(const struct silhouette *silhouette, float u, float v)
{
    float d = 1e6F;
    for (int i = 0; i < MAX_PARTS && silhouette->parts[i].kind != END; i++) {
        const struct part *part = &silhouette->parts[i];
        float e =
            part->kind == ADD_POLYGON ? polygon_distance(part, u, v) : disc_distance(part, u, v);
        if (part->kind == CUT_DISC)
            d = d > -e ? d : -e;
        else
            d = d < e ? d : e;
    }
    return d;
}

void tdmi_synth_shapes_fill(struct tdmi_synth_shapes *shapes)
{
    const float step = 2.0F * TDMI_SYNTH_SHAPE_EXTENT / (float)(SIDE - 1);
    for (int shape = 0; shape < TDMI_SYNTH_SHAPES; shape++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                shapes->distance[shape][y * SIDE + x] = silhouette_distance(
                    &silhouettes[shape], (float)x * step - TDMI_SYNTH_SHAPE_EXTENT,
                    (float)y * step - TDMI_SYNTH_SHAPE_EXTENT);
}

static float table_place(float coordinate)
{
    float place = (coordinate + TDMI_SYNTH_SHAPE_EXTENT) *
                  ((float)(SIDE - 1) / (2.0F * TDMI_SYNTH_SHAPE_EXTENT));
    return place < 0.0F ? 0.0F : place > (float)SIDE - 1.001F ? (float)SIDE - 1.001F : place;
}

void tdmi_synth_shape_sample(const struct tdmi_synth_shapes *shapes, int shape, int n,
                             const float *u, const float *v, float *d, float *du, float *dv)
{
    const float *table = shapes->distance[shape];
    const float slope = (float)(SIDE - 1) / (2.0F * TDMI_SYNTH_SHAPE_EXTENT);
    for (int i = 0; i < n; i++) {
        float x = table_place(u[i]), y = table_place(v[i]);
        int column = (int)x, row = (int)y;
        const float *cell = table + (size_t)row * SIDE + column;
        float fx = x - (float)column, fy = y - (float)row;
        float top = cell[0] + fx * (cell[1] - cell[0]);
        float bottom = cell[SIDE] + fx * (cell[SIDE + 1] - cell[SIDE]);
        float left = cell[0] + fy * (cell[SIDE] - cell[0]);
        float right = cell[1] + fy * (cell[SIDE + 1] - cell[1]);
        d[i] = top + fy * (bottom - top);
        du[i] = (right - left) * slope;
        dv[i] = (bottom - top) * slope;
    }
}

/* ---- surfaces ------------------------------------------------------------------------------ */

/* Coordinates stay far below this; adding it makes truncation round down. */
#define ABOVE 64.0F

static inline float fraction(float x)
{
    float y = x + ABOVE;
    return y - (float)(int)y;
}

/* 1 at whole numbers, 0 half-way. */
static inline float wave(float x)
{
    float f = 2.0F * fraction(x) - 1.0F;
    return f < 0.0F ? -f : f;
}

/* The same, but round: a stand-in for a cosine, in [0, 1]. */
static inline float round_wave(float x)
{
    float w = wave(x);
    return w * w * (3.0F - 2.0F * w);
}

static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

/* Squared distance from the middle of a unit cell. */
static inline float cell_square(float x, float y)
{
    float dx = fraction(x) - 0.5F, dy = fraction(y) - 0.5F;
    return dx * dx + dy * dy;
}

/* Above 0 in one dot per unit cell; a hash of the cell says where in it and how large. */
static inline float speckle(float x, float y)
{
    float px = x + ABOVE, py = y + ABOVE;
    int cx = (int)px, cy = (int)py;
    uint32_t h = ((uint32_t)cx * 0x9E3779B1U) ^ ((uint32_t)cy * 0x85EBCA77U);
    h = (h ^ (h >> 15)) * 0x2C1B3C6DU;
    h ^= h >> 13;
    float dx = px - (float)cx - 0.3F - (float)(int)(h & 255U) * (0.4F / 256.0F);
    float dy = py - (float)cy - 0.3F - (float)(int)((h >> 8) & 255U) * (0.4F / 256.0F);
    return (float)(int)((h >> 16) & 255U) * (0.1F / 256.0F) - dx * dx - dy * dy;
}

/* Lines between bricks, every second row moved by half a brick. */
static inline float mortar(float x, float y)
{
    float row_shift = fraction(0.5F * y) > 0.5F ? 0.5F : 0.0F;
    return greater(wave(y), wave(0.55F * x + row_shift)) - 0.8F;
}

/* TEXTURE(name, value): value above 0 means the second colour. It may use x, y (the point in the
 * texture's own directions, moved by its shift), cx, cy (the same, not moved) and d. */
#define TEXTURES                                                                     \
    TEXTURE(striped, wave(1.7F * y) - 0.55F)                                         \
    TEXTURE(dotted, 2.0F * (0.12F - cell_square(1.7F * x, 1.7F * y)))                \
    TEXTURE(checked, 3.0F * (wave(1.25F * x) - 0.5F) * (wave(1.25F * y) - 0.5F))     \
    TEXTURE(ringed, wave(2.0F * sqrtf(cx * cx + cy * cy) + surface->shift_u) - 0.5F) \
    TEXTURE(plain, -1.0F)                                                            \
    TEXTURE(meshed, greater(wave(1.7F * x), wave(1.7F * y)) - 0.76F)                 \
    TEXTURE(waved, wave(1.7F * y + 0.6F * round_wave(1.3F * x)) - 0.5F)              \
    TEXTURE(rimmed, d + 0.2F)                                                        \
    TEXTURE(halved, 1.5F * cx + 0.4F * (surface->shift_u - 0.5F))                    \
    TEXTURE(marbled, wave(1.1F * x + 0.9F * round_wave(0.9F * y + 0.3F * x) +        \
                          0.5F * round_wave(1.7F * x - 1.4F * y)) -                  \
                         0.5F)                                                       \
    TEXTURE(speckled, 1.6F * speckle(3.0F * x, 3.0F * y))                            \
    TEXTURE(bricked, mortar(2.1F * x, 2.1F * y))

#define TEXTURE(name, value)                                                                \
    static void mix_##name(const struct tdmi_synth_surface *surface, int n, const float *u, \
                           const float *v, const float *distance, float *mix)               \
    {                                                                                       \
        const float ax = surface->scale * surface->turn_x;                                  \
        const float ay = surface->scale * surface->turn_y;                                  \
        for (int i = 0; i < n; i++) {                                                       \
            float d = distance[i];                                                          \
            float cx = u[i] * ax + v[i] * ay, cy = v[i] * ax - u[i] * ay;                   \
            float x = cx + surface->shift_u, y = cy + surface->shift_v;                     \
            (void)d, (void)x, (void)y;                                                      \
            mix[i] = tdmi_synth_limit(0.5F + surface->sharpness * (value));                 \
        }                                                                                   \
    }
TEXTURES
#undef TEXTURE

static const struct {
    const char *name;
    void (*mix)(const struct tdmi_synth_surface *surface, int n, const float *u, const float *v,
                const float *distance, float *mix);
} textures[] = {
#define TEXTURE(name, value) {#name, mix_##name},
    TEXTURES
#undef TEXTURE
};
_Static_assert(sizeof textures / sizeof textures[0] == TDMI_SYNTH_TEXTURES, "one row per texture");

const char *tdmi_synth_texture_name(int texture)
{
    return textures[texture].name;
}

void tdmi_synth_texture(const struct tdmi_synth_surface *surface, int n, const float *u,
                        const float *v, const float *d, float *mix)
{
    textures[surface->texture].mix(surface, n, u, v, d, mix);
}

/*
 * Textures are built of triangle waves, cells and thresholds: plain arithmetic that compilers turn
 * into vector code and that gives the same bits everywhere. Each is one expression per point; a
 * macro makes the loop around it, so that the choice of texture stays outside of the loop.
 */
#include "synth/texture.h"
#include <math.h>
#include <stdint.h>

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

static inline float limit(float x)
{
    return x < 0.0F ? 0.0F : x > 1.0F ? 1.0F : x;
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
            mix[i] = limit(0.5F + surface->sharpness * (value));                            \
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

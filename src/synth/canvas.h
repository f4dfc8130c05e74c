/*
 * The painter behind the synthetic images: a canvas of three float planes, background, things
 * with an outline and a surface, and what a camera adds. It decides nothing; synth/scene.c does.
 *
 * Only + - * / and sqrt on f32 are used, in a fixed order, so that every machine, compiler and
 * optimisation level paints the same bits (the build forbids fused multiply-add).
 */
#pragma once

#include "synth/object.h"
#include "image/image.h"

/* ---- shared by all images of a data set; read-only once filled -------------------------- */

enum { TDMI_SYNTH_GRAIN = 16384 };

struct tdmi_synth_tables {
    struct tdmi_synth_shapes shapes;
    float grain[TDMI_SYNTH_GRAIN]; /* independent, mean 0, variance 1: noise and clouds */
};

/* *tables is of tdmi_alloc. */
tdm_status tdmi_synth_tables_new(uint64_t seed, struct tdmi_synth_tables **tables,
                                 tdm_error *err) TDM_MUST_USE;

/* ---- the canvas ---------------------------------------------------------------------------- */

struct tdmi_synth_colour {
    float c[3]; /* red, green, blue, 0 to 1 */
};

enum { TDMI_SYNTH_ROWS = 16 }; /* scratch rows behind the planes */

struct tdmi_synth_canvas { /* start from a zeroed object; one per thread */
    int width, height;
    float side;       /* the shorter of both, in pixels */
    float *planes[3]; /* (height, width) each */
    float *rows[TDMI_SYNTH_ROWS];
    float *memory;
    size_t capacity; /* floats */
};

tdm_status tdmi_synth_canvas_reshape(struct tdmi_synth_canvas *canvas, int width, int height,
                                     tdm_error *err) TDM_MUST_USE;
void tdmi_synth_canvas_release(struct tdmi_synth_canvas *canvas);

/* ---- background: three colours mixed by clouds of three sizes ------------------------------- */

enum { TDMI_SYNTH_CLOUDS = 3, TDMI_SYNTH_MAX_CELLS = 32 /* along the shorter side */ };

struct tdmi_synth_background {
    struct tdmi_synth_colour colours[3];
    struct {
        float cells;   /* along the shorter side, at most TDMI_SYNTH_MAX_CELLS */
        uint32_t from; /* where in the grain its lattice begins, below TDMI_SYNTH_CLOUD_STARTS */
        float strength;
    } clouds[TDMI_SYNTH_CLOUDS]; /* between colours 0 and 1; towards 2; brightness */
    float slope_x, slope_y;      /* from colour 0 to 1, per shorter side */
};

/* A lattice needs ((cells * longest aspect) + 2) squared values. */
#define TDMI_SYNTH_CLOUD_STARTS (TDMI_SYNTH_GRAIN - 64 * 64)

void tdmi_synth_paint_background(struct tdmi_synth_canvas *canvas,
                                 const struct tdmi_synth_tables *tables,
                                 const struct tdmi_synth_background *background);

/* ---- things -------------------------------------------------------------------------------- */

enum tdmi_synth_outline {
    TDMI_SYNTH_SILHOUETTE, /* of the table of shapes */
    TDMI_SYNTH_ELLIPSE,
    TDMI_SYNTH_BAR
};

/* Position of an object: its centre in pixels, and its own coordinates (u, v) as a linear function
 * of the offset from there: u = ux * dx + uy * dy. The outline lies around a radius of 1. */
struct tdmi_synth_place {
    float x, y;
    float ux, uy, vx, vy;
    float reach;   /* pixels: nothing lies further above or below the centre */
    float unit_px; /* pixels per unit, for edges one pixel wide */
};

struct tdmi_synth_thing {
    struct tdmi_synth_place place;
    enum tdmi_synth_outline outline;
    int shape;
    struct tdmi_synth_surface surface;
    struct tdmi_synth_colour colours[2];
    float light_u, light_v;     /* towards the light, in own coordinates */
    float relief, slope, gloss; /* how strongly light shows on edges, across, as a spot */
};

void tdmi_synth_paint_thing(struct tdmi_synth_canvas *canvas,
                            const struct tdmi_synth_tables *tables,
                            const struct tdmi_synth_thing *thing);
/* Darken what lies under the thing moved by (dx, dy) pixels; softness in units of the thing. */
void tdmi_synth_paint_shadow(struct tdmi_synth_canvas *canvas,
                             const struct tdmi_synth_tables *tables,
                             const struct tdmi_synth_thing *thing, float dx, float dy,
                             float softness, float strength);

/* ---- the camera ---------------------------------------------------------------------------- */

struct tdmi_synth_camera {
    float gains[3];         /* exposure and white balance */
    float light_x, light_y; /* brightness slope per shorter side */
    float vignette;         /* darkening at half the shorter side from the middle */
    int blur_passes;
    float blur; /* weight of each neighbour in a pass, at most 0.25 */
    float noise, colour_noise;
    uint32_t grain_seed;
};

/* Lens, light and sensor, then 8 bits a channel. */
tdm_status tdmi_synth_develop(struct tdmi_synth_canvas *canvas,
                              const struct tdmi_synth_tables *tables,
                              const struct tdmi_synth_camera *camera, tdmi_image *image,
                              tdm_error *err) TDM_MUST_USE;

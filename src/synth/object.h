/*
 * Silhouettes and surfaces of the synthetic data set. Silhouettes are tables of signed distance, so
 * that any of them is drawn at any size, angle and slant at the same cost; a surface is how much of
 * an object's second colour lies at a point.
 */
#pragma once

static inline float tdmi_synth_limit(float x)
{
    return x < 0.0F ? 0.0F : x > 1.0F ? 1.0F : x;
}

/* ---- silhouettes --------------------------------------------------------------------------- */

enum {
    TDMI_SYNTH_SHAPES = 14, /* neighbours (0 and 1, 2 and 3, …) form the pairs of synth/class.c */
    TDMI_SYNTH_SHAPE_SIDE = 64
};
/* The tables cover [-EXTENT, EXTENT] in both directions; silhouettes lie within a radius of 1.1. */
#define TDMI_SYNTH_SHAPE_EXTENT 1.25F

struct tdmi_synth_shapes {
    /* (shape, v, u): distance to the outline, negative inside */
    float distance[TDMI_SYNTH_SHAPES][TDMI_SYNTH_SHAPE_SIDE * TDMI_SYNTH_SHAPE_SIDE];
};

void tdmi_synth_shapes_fill(struct tdmi_synth_shapes *shapes);
const char *tdmi_synth_shape_name(int shape);

/* Distance d and its slope (du, dv) at n points; outside the table its edge values repeat. */
void tdmi_synth_shape_sample(const struct tdmi_synth_shapes *shapes, int shape, int n,
                             const float *u, const float *v, float *d, float *du, float *dv);

/* ---- surfaces ------------------------------------------------------------------------------ */

enum { TDMI_SYNTH_TEXTURES = 12 }; /* neighbours form the pairs of synth/class.c */

struct tdmi_synth_surface { /* one object's variation of its class's texture */
    int texture;
    float scale;            /* near 1 */
    float turn_x, turn_y;   /* the texture's own direction: a unit vector */
    float shift_u, shift_v; /* in [0, 1): where the pattern begins */
    float sharpness;        /* of edges: pattern values per unit, grows with the object's pixels */
};

const char *tdmi_synth_texture_name(int texture);

/* mix[i] in [0, 1] at n points (u, v) of the object, d its distance to the outline. (u, v) must lie
 * in [-8, 8]. mix may not be one of the others. */
void tdmi_synth_texture(const struct tdmi_synth_surface *surface, int n, const float *u,
                        const float *v, const float *d, float *mix);

/*
 * The surfaces of the synthetic data set: how much of an object's second colour lies at a point.
 */
#ifndef TANDEM_SYNTH_TEXTURE_H
#define TANDEM_SYNTH_TEXTURE_H

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

#endif

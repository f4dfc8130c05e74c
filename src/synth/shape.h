/*
 * The silhouettes of the synthetic data set as tables of signed distance, so that any of them is
 * drawn at any size, angle and slant at the same cost.
 */
#ifndef TANDEM_SYNTH_SHAPE_H
#define TANDEM_SYNTH_SHAPE_H

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

/* Distance d and its slope (du, dv) at n points; outside of the table its border goes on. */
void tdmi_synth_shape_sample(const struct tdmi_synth_shapes *shapes, int shape, int n,
                             const float *u, const float *v, float *d, float *du, float *dv);

#endif

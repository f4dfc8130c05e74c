/*
 * Silhouettes are written down as a few discs and polygons that are added or cut out, in hundredths
 * of the object's radius, v pointing down. min and max of the parts' distances are exact where it
 * counts, at the outline. Only + - * / and sqrt are used: the tables are equal on every machine.
 */
#include "synth/shape.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
        along = along < 0.0F ? 0.0F : along > 1.0F ? 1.0F : along;
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

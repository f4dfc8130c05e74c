/*
 * The shape of one image's activation, (height, width, channels), NHWC in memory. The number of
 * images is never part of a shape: it is given at run time, so ragged batches need no new plan.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tdmi_shape {
    int h, w, c;
};

static inline int64_t tdmi_shape_pixels(struct tdmi_shape shape)
{
    return (int64_t)shape.h * shape.w;
}

static inline int64_t tdmi_shape_values(struct tdmi_shape shape)
{
    return tdmi_shape_pixels(shape) * shape.c;
}

static inline bool tdmi_shape_equal(struct tdmi_shape a, struct tdmi_shape b)
{
    return a.h == b.h && a.w == b.w && a.c == b.c;
}

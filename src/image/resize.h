/*
 * Resampling with all its choices, for callers that want a part of the result: a centre crop costs
 * only the pixels it keeps and equals the same crop of the whole result bit by bit.
 */
#ifndef TANDEM_IMAGE_RESIZE_H
#define TANDEM_IMAGE_RESIZE_H

#include "image/image.h"

struct tdmi_resize {
    struct tdmi_box box; /* of the source, in source pixels */
    int width, height;   /* what the box becomes */
    enum tdmi_filter filter;
    int part_x, part_y, part_width, part_height; /* of that, what is wanted */
};

/* target takes the part's size and must be another object than source. */
tdm_status tdmi_image_resize_part(const tdmi_image *source, const struct tdmi_resize *how,
                                  tdmi_image *target, tdm_error *err) TDM_MUST_USE;

#endif

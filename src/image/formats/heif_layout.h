/*
 * The primary image of a HEIC or AVIF file as its boxes describe it, found without libheif. Always
 * built: facts.h needs it, and the decoder checks it before libheif sees the file.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_heif_layout {
    int64_t width, height; /* after rotation, mirroring and cropping */
    int64_t coded_pixels;  /* before cropping, or of the largest image or frame it is made from */
    int64_t frame_pixels;  /* pixels of the largest frame that the coded data announce */
    int bits;              /* per channel */
    bool is_grey, has_alpha, has_icc;
    bool is_cut;            /* a box ends beyond the file */
    bool has_larger_frames; /* than the sizes of their images allow */
    bool is_tangled;        /* its boxes refer to each other so often that they were not all read,
                               or coded data lie in pieces that cannot be looked at */
};

/* TDM_E_INPUT: no primary image with a size; what was found until then stays. */
tdm_status tdmi_heif_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_heif_layout *layout, tdm_error *err) TDM_MUST_USE;
/* Does the box at the beginning of a file, of which so many bytes are there, name this brand? */
bool tdmi_heif_has_brand(const uint8_t *bytes, size_t length_bytes, const char *brand);

/*
 * The first image of a TIFF file as its directory describes it, found without libtiff. Always
 * built: facts.h needs it, and the decoder checks it before libtiff sees the file.
 */
#pragma once

#include "image/facts.h"

struct tdmi_tiff_layout {
    int64_t width, height;
    int64_t tile_width, tile_height; /* 0: strips */
    int bits;                        /* per sample; the largest number */
    int64_t n_samples;
    int64_t photometric;   /* 0 and 1 grey, 2 RGB, 3 palette, 5 inks, 6 YCbCr, …; -1: not said */
    int64_t n_images;      /* directories of the file; counting stops at 1000 */
    bool has_alpha;        /* its first extra sample is opacity */
    bool is_premultiplied; /* colours were multiplied by it */
    bool has_icc, has_layers; /* a profile; images below this one */
    bool is_reduced;          /* a smaller copy of another image */
    bool is_raw;              /* a camera's raw file, whose first image is a thumbnail */
    bool has_all_pixels;      /* every strip or tile lies inside the file */
    bool is_cut;              /* the directory, pixels or other values lie beyond the end */
};

/* TDM_E_INPUT: no directory with a size; what was found until then stays. */
tdm_status tdmi_tiff_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_tiff_layout *layout, tdm_error *err) TDM_MUST_USE;
enum tdmi_colours tdmi_tiff_colours(const struct tdmi_tiff_layout *layout);

/*
 * The header of a JPEG XL file, read without libjxl. Always built: facts.h needs it, and the
 * decoder checks it before libjxl sees the file.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_jxl_layout {
    int64_t width, height; /* as stored */
    int orientation;       /* 1 to 8; libjxl applies it */
    int bits;              /* per channel */
    int64_t n_extra;       /* channels beside the colours */
    bool is_grey, has_alpha, has_icc, is_animated;
    bool is_cut; /* a box ends beyond the file; bare codestreams do not tell */
};

/* TDM_E_INPUT: no header with a size; what was found until then stays. */
tdm_status tdmi_jxl_walk(const uint8_t *bytes, size_t length_bytes, struct tdmi_jxl_layout *layout,
                         tdm_error *err) TDM_MUST_USE;

/*
 * Layout of a WebP file, found by walking its chunks and nothing else. Always built: facts.h needs
 * it, and the decoder where libwebp is there.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One image as libwebp takes it: the whole file, or the chunks of an animation's frame. */
struct tdmi_webp_frame {
    const uint8_t *bytes;
    size_t length_bytes;
    int left, top, width, height; /* on the canvas; the frame lies inside it */
};

struct tdmi_webp_layout {
    int width, height; /* of the canvas */
    int n_frames;
    bool has_alpha, has_icc;
    bool is_cut;            /* the file is shorter than its header says */
    uint64_t claimed_bytes; /* the header's length of the file */
    const uint8_t *exif;    /* the TIFF block or NULL */
    size_t exif_bytes;
    struct tdmi_webp_frame first;
};

/* TDM_E_INPUT when no first frame with its size can be found; what was found until then stays. */
tdm_status tdmi_webp_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_webp_layout *layout, tdm_error *err) TDM_MUST_USE;

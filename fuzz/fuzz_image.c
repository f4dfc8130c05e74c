/*
 * Any bytes as a picture: decoded under a small limit of pixels, turned, then preprocessed in a way
 * that the bytes' own length chooses. What comes out must be a picture or a sentence.
 */
#include "image/preprocess.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    const int orientation = tdmi_exif_orientation(bytes, length_bytes);
    if (orientation < 1 || orientation > 8)
        abort();
    struct tdmi_preprocess_scratch scratch = {0};
    tdm_error err = {0};
    const struct tdmi_image_limits limits = {.max_pixels = 1 << 16};
    if (tdmi_image_decode(bytes, length_bytes, "input", limits, &scratch.decoded, &err) != TDM_OK) {
        if (err.n_frames == 0 || err.frames[0].text[0] == '\0')
            abort();
        goto out;
    }
    uint8_t out[3 * 24 * 17];
    const struct tdmi_preprocess preprocess = {
        .width = 24,
        .height = 17,
        .channels = length_bytes % 2 == 0 ? 3 : 1,
        .fit = (enum tdmi_fit)(length_bytes % 3),
        .crop_fraction = 0.875,
        .filter = (enum tdmi_filter)(length_bytes / 3 % 3),
    };
    if (tdmi_preprocess_image(&preprocess, &scratch.decoded, &scratch, out, &err) != TDM_OK)
        abort();
out:
    tdmi_preprocess_scratch_release(&scratch);
    return 0;
}

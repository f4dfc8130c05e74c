/*
 * Planes of a decoded JPEG file become RGB, upright: colours that have half the samples are widened
 * as libjpeg-turbo's "fancy" upsampling does it, and mixed by its whole numbers (image/
 * jpeg/kernels.h), so that the host's decoder makes the same bytes of the same planes.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_planes {
    int width, height;         /* as stored */
    int n_components;          /* 1 or 3 */
    int across, down;          /* samples of luma for one of a colour: 1 x 1, 2 x 1 or 2 x 2 */
    int orientation;           /* EXIF's, 1 to 8 */
    const uint8_t *samples[3]; /* luma, blue, red; colours have their sides halved, rounded up */
    int64_t stride_bytes[3];
};

/* pixels: (height, width, 3), sides exchanged by orientations from 5 on. */
int tdmi_cuda_planes_mix(struct CUstream_st *queue, const struct tdmi_cuda_planes *it,
                         uint8_t *pixels);

#ifdef __cplusplus
}
#endif

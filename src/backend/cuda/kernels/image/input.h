/*
 * Bytes of images become numbers, on a GPU; and on the way there, what augmentation does to
 * pixels one by one (image/augment/augment.h): a pixel of y is one pixel of the image, or two
 * where images are mixed, and has no other neighbour.
 */
#pragma once

#include "image/preprocess.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
struct tdmi_augment_change;
struct tdmi_mix;

struct tdmi_cuda_input {
    enum tdmi_dtype type; /* of y */
    int n, h, w, channels;
    struct tdmi_normal normal[3]; /* of channel c: c % 3 */
};
/* pixels: n images, pointers and bytes on the GPU. */
int tdmi_cuda_input_forward(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                            const uint8_t *const *pixels, void *y);

/* The changes of one image, as the GPU reads them. */
struct tdmi_cuda_change {
    int32_t dx, dy, fill, is_flipped;
    int32_t n_colours;
    struct {
        int32_t kind;   /* enum tdmi_augment_colour */
        int32_t factor; /* in 65536ths */
        float turn;     /* of hue: in sixths of the circle, 0 to 6 */
    } colours[4];
    int32_t cut_left, cut_top, cut_right, cut_bottom, cut_fill;
    /* then mixed: with whom (its own number: with nobody), its own part in 256ths, or 256 and the
     * pixels that are the other's */
    int32_t partner, blend, left, top, right, bottom;
};
/* n ints, the mean luma of each image where jitter's contrast asks for it; one or three channels.
 */
int tdmi_cuda_input_means(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                          const uint8_t *const *pixels, const struct tdmi_cuda_change *changes,
                          int32_t *means);
/* As forward, of changed images; means may be NULL where no change has a contrast. */
int tdmi_cuda_input_changed(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                            const uint8_t *const *pixels, const struct tdmi_cuda_change *changes,
                            const int32_t *means, void *y);

#ifdef __cplusplus
}
#endif

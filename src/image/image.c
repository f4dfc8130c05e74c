/*
 * The memory of an image. It only grows, so that a loader thread that reuses one object allocates
 * nothing once it has seen its largest image.
 */
#include "image/image.h"
#include "base/clock.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include <limits.h>

void tdmi_image_release(tdmi_image *image)
{
    if (image == NULL)
        return;
    tdmi_free(image->pixels);
    *image = (tdmi_image){0};
}

tdm_status tdmi_image_reserve(tdmi_image *image, size_t bytes, tdm_error *err)
{
    if (bytes <= image->capacity_bytes)
        return TDM_OK;
    /* The old pixels are not needed: free first, then allocate, so that nothing is copied. */
    tdmi_image_release(image);
    image->pixels = tdmi_alloc(bytes, 1);
    if (image->pixels == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes of image", bytes);
    image->capacity_bytes = bytes;
    return TDM_OK;
}

tdm_status tdmi_image_reshape(tdmi_image *image, int width, int height, tdm_error *err)
{
    if (width < 1 || height < 1 || (size_t)width > SIZE_MAX / 3 / (size_t)height)
        return TDM_FAIL(err, TDM_E_USAGE, "an image of %d x %d pixels cannot be made", width,
                        height);
    TDMI_TRY(tdmi_image_reserve(image, 3 * (size_t)width * (size_t)height, err));
    image->width = width;
    image->height = height;
    return TDM_OK;
}

tdm_status tdmi_codec_check_time(const struct tdmi_codec_source *source, tdm_error *err)
{
    if (tdmi_clock_ns() < source->deadline_ns)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT, "decoding it takes longer than the %.3g s that are allowed",
                    (double)source->max_ns / 1e9);
}

tdm_status tdmi_codec_check_shape(const struct tdmi_codec_source *source, int64_t width,
                                  int64_t height, tdm_error *err)
{
    if (width < 1 || height < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the header says %lld x %lld pixels; both must be 1 or more",
                        (long long)width, (long long)height);
    if (width > INT_MAX || height > INT_MAX || width > source->max_pixels / height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the header says %lld x %lld pixels; at most %lld pixels are decoded",
                        (long long)width, (long long)height, (long long)source->max_pixels);
    return TDM_OK;
}

tdm_status tdmi_codec_shape(const struct tdmi_codec_source *source, int64_t width, int64_t height,
                            tdmi_image *image, tdm_error *err)
{
    TDMI_TRY(tdmi_codec_check_shape(source, width, height, err));
    return tdmi_image_reshape(image, (int)width, (int)height, err);
}

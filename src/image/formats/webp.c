/*
 * WebP through libwebp; of an animation the first frame, laid on the canvas at its place. Where the
 * frame lies in the file is found by our own walk (webp_layout.c), so libwebp only ever sees one
 * image. It is fed in steps, between which the time limit is looked at. Clear pixels and
 * canvas that the frame does not cover are white, as everything is that lies under an image.
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/formats/webp_layout.h"
#include <string.h>
#include <webp/decode.h>

enum { STEP_BYTES = 1 << 16 };

TDMI_POINTER_RELEASE(WebPIDecoder, WebPIDelete)

static tdm_status refuse(VP8StatusCode code, tdm_error *err)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return TDM_FAIL(err, TDM_E_MEMORY, "libwebp ran out of memory");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return TDM_FAIL(err, TDM_E_INPUT, "it is truncated: its image's data ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return TDM_FAIL(err, TDM_E_INPUT, "it uses a feature that libwebp does not know");
    default:
        return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: libwebp cannot read its image's data");
    }
}

/* Decodes one image of known size to rows of RGB or RGBA without padding. */
static tdm_status read_pixels(const struct tdmi_codec_source *source,
                              const struct tdmi_webp_frame *frame, bool has_alpha, uint8_t *pixels,
                              tdm_error *err)
{
    const size_t row_bytes = (size_t)frame->width * (has_alpha ? 4 : 3);
    const size_t picture_bytes = row_bytes * (size_t)frame->height;
    TDMI_AT_END(WebPIDelete_at)
    WebPIDecoder *decoder =
        WebPINewRGB(has_alpha ? MODE_RGBA : MODE_RGB, pixels, picture_bytes, (int)row_bytes);
    if (decoder == NULL)
        return refuse(VP8_STATUS_OUT_OF_MEMORY, err);
    VP8StatusCode code = VP8_STATUS_SUSPENDED;
    for (size_t given = 0; given < frame->length_bytes && code == VP8_STATUS_SUSPENDED;) {
        size_t left = frame->length_bytes - given;
        given += left < STEP_BYTES ? left : STEP_BYTES;
        code = WebPIUpdate(decoder, frame->bytes, given);
        TDMI_TRY(tdmi_codec_check_time(source, err));
    }
    return code == VP8_STATUS_OK ? TDM_OK : refuse(code, err);
}

/* Over the white canvas. */
static void lay(const uint8_t *rgba, const struct tdmi_webp_frame *frame, tdmi_image *image)
{
    for (size_t y = 0; y < (size_t)frame->height; y++) {
        size_t row = (size_t)frame->top + y;
        uint8_t *to = image->pixels + 3 * (row * (size_t)image->width + (size_t)frame->left);
        for (size_t x = 0; x < (size_t)frame->width; x++, rgba += 4, to += 3)
            for (size_t c = 0; c < 3; c++)
                to[c] = tdmi_codec_over_white(rgba[c], rgba[3]);
    }
}

tdm_status tdmi_webp_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                            tdm_error *err)
{
    struct tdmi_webp_layout layout;
    TDMI_TRY(tdmi_webp_walk(source->bytes, source->length_bytes, &layout, err));
    if (layout.is_cut)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: its header says %llu bytes, %zu are there",
                        (unsigned long long)layout.claimed_bytes, source->length_bytes);
    TDMI_TRY(tdmi_codec_shape(source, layout.width, layout.height, image, err));
    const struct tdmi_webp_frame *frame = &layout.first;
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(frame->bytes, frame->length_bytes, &features);
    if (code != VP8_STATUS_OK)
        return refuse(code, err);
    if (features.width != frame->width || features.height != frame->height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its first frame has %d x %d pixels, its data %d x %d",
                        frame->width, frame->height, features.width, features.height);
    const bool is_covered = frame->width == image->width && frame->height == image->height;
    if (is_covered && !features.has_alpha)
        return read_pixels(source, frame, false, image->pixels, err);

    TDMI_AT_END(tdmi_free_at) uint8_t *rgba = NULL;
    TDMI_TRY(TDMI_NEW(rgba, 4 * (size_t)frame->width * (size_t)frame->height, err));
    TDMI_TRY(read_pixels(source, frame, true, rgba, err));
    if (!is_covered)
        memset(image->pixels, 255, 3 * (size_t)image->width * (size_t)image->height);
    lay(rgba, frame, image);
    return TDM_OK;
}

void tdmi_webp_write_decoder(tdmi_text *text)
{
    const unsigned version = (unsigned)WebPGetDecoderVersion(); /* a byte each */
    tdmi_text_printf(text, "libwebp %u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
}

/*
 * One preprocessing for training, evaluation, prediction and export: decode, fit into the network's
 * input, reduce to grey when asked, and later turn bytes into floats. Sizes are rounded as Pillow's
 * thumbnail() (pad) and torchvision's Resize (crop) do, since published accuracies come from there.
 */
#include "image/preprocess.h"
#include "image/resize.h"
#include <math.h>
#include <string.h>

#define WHITE 255
#define MAX_SIDE 65535

void tdmi_preprocess_scratch_release(struct tdmi_preprocess_scratch *scratch)
{
    if (scratch == NULL)
        return;
    tdmi_image_release(&scratch->decoded);
    tdmi_image_release(&scratch->resized);
}

/* ---- geometry -------------------------------------------------------------------------------- */

/* number's floor or ceiling, whichever makes error smaller, the floor when equal; at least 1. */
static int round_side(double number, double (*error)(double side, double other, double aspect),
                      double other, double aspect)
{
    double low = floor(number), high = ceil(number);
    double better = error(high, other, aspect) < error(low, other, aspect) ? high : low;
    return better < 1 ? 1 : (int)better;
}

static double error_of_width(double width, double height, double aspect)
{
    return fabs(aspect - width / height);
}

static double error_of_height(double height, double width, double aspect)
{
    return height == 0 ? 0 : fabs(aspect - width / height);
}

/* The largest size with the picture's aspect inside the target; the picture's own when it fits. */
static void size_inside(const struct tdmi_preprocess *preprocess, const tdmi_image *image,
                        struct tdmi_resize *how)
{
    how->width = preprocess->width;
    how->height = preprocess->height;
    double aspect = (double)image->width / image->height;
    if (how->width >= image->width && how->height >= image->height) {
        how->width = image->width;
        how->height = image->height;
    } else if ((double)how->width / how->height >= aspect) {
        how->width = round_side(how->height * aspect, error_of_width, how->height, aspect);
    } else {
        how->height = round_side(how->width / aspect, error_of_height, how->width, aspect);
    }
}

/* The smallest size with the picture's aspect that covers the target / crop_fraction. */
static void size_around(const struct tdmi_preprocess *preprocess, const tdmi_image *image,
                        struct tdmi_resize *how)
{
    how->width = (int)lround(preprocess->width / preprocess->crop_fraction);
    how->height = (int)lround(preprocess->height / preprocess->crop_fraction);
    if ((int64_t)image->width * how->height >= (int64_t)image->height * how->width)
        how->width = (int)((int64_t)how->height * image->width / image->height);
    else
        how->height = (int)((int64_t)how->width * image->height / image->width);
}

static struct tdmi_resize plan(const struct tdmi_preprocess *preprocess, const tdmi_image *image)
{
    struct tdmi_resize how = {.box = {0, 0, image->width, image->height},
                              .width = preprocess->width,
                              .height = preprocess->height,
                              .filter = preprocess->filter};
    if (preprocess->fit == TDMI_FIT_PAD)
        size_inside(preprocess, image, &how);
    else if (preprocess->fit == TDMI_FIT_CROP)
        size_around(preprocess, image, &how);
    how.part_width = how.width < preprocess->width ? how.width : preprocess->width;
    how.part_height = how.height < preprocess->height ? how.height : preprocess->height;
    how.part_x = (how.width - how.part_width) / 2;
    how.part_y = (how.height - how.part_height) / 2;
    return how;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* Luma in 16 bits of fraction, rounded: Pillow's "L". */
static void to_luma(const uint8_t *pixels, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((pixels[3 * i] * 19595u + pixels[3 * i + 1] * 38470u +
                            pixels[3 * i + 2] * 7471u + 0x8000u) >>
                           16);
}

/* The picture in the middle of (height, width, channels), white around it. */
static void place(const struct tdmi_preprocess *preprocess, const tdmi_image *image, uint8_t *out)
{
    const size_t channels = (size_t)preprocess->channels;
    const size_t row_bytes = channels * (size_t)preprocess->width;
    const size_t left = channels * (size_t)((preprocess->width - image->width) / 2);
    const size_t inner_bytes = channels * (size_t)image->width;
    const int top = (preprocess->height - image->height) / 2;
    for (int y = 0; y < preprocess->height; y++, out += row_bytes) {
        const int from = y - top;
        if (from < 0 || from >= image->height) {
            memset(out, WHITE, row_bytes);
            continue;
        }
        const uint8_t *row = image->pixels + 3 * (size_t)image->width * (size_t)from;
        memset(out, WHITE, left);
        if (channels == 3)
            memcpy(out + left, row, inner_bytes);
        else
            to_luma(row, (size_t)image->width, out + left);
        memset(out + left + inner_bytes, WHITE, row_bytes - left - inner_bytes);
    }
}

static tdm_status check(const struct tdmi_preprocess *preprocess, tdm_error *err)
{
    if (preprocess->width < 1 || preprocess->height < 1 || preprocess->width > MAX_SIDE ||
        preprocess->height > MAX_SIDE)
        return TDM_FAIL(err, TDM_E_USAGE, "an input of %d x %d pixels; 1 to %d a side are possible",
                        preprocess->width, preprocess->height, MAX_SIDE);
    if (preprocess->channels != 1 && preprocess->channels != 3)
        return TDM_FAIL(err, TDM_E_USAGE, "%d channels; 1 (grey) and 3 (RGB) are possible",
                        preprocess->channels);
    if (preprocess->fit == TDMI_FIT_CROP &&
        !(preprocess->crop_fraction >= 0.01 && preprocess->crop_fraction <= 1))
        return TDM_FAIL(err, TDM_E_USAGE, "a crop fraction of %g; 0.01 to 1 are possible",
                        preprocess->crop_fraction);
    return TDM_OK;
}

tdm_status tdmi_preprocess_image(const struct tdmi_preprocess *preprocess, const tdmi_image *image,
                                 struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                 tdm_error *err)
{
    TDM_TRY(check(preprocess, err), err, "cannot preprocess a picture");
    struct tdmi_resize how = plan(preprocess, image);
    if (how.width == image->width && how.height == image->height && how.part_width == how.width &&
        how.part_height == how.height) {
        place(preprocess, image, out);
        return TDM_OK;
    }
    TDM_TRY(tdmi_image_resize_part(image, &how, &scratch->resized, err), err,
            "cannot fit a picture of %d x %d pixels into %d x %d", image->width, image->height,
            preprocess->width, preprocess->height);
    place(preprocess, &scratch->resized, out);
    return TDM_OK;
}

tdm_status tdmi_preprocess_file(const struct tdmi_preprocess *preprocess, const void *bytes,
                                size_t length_bytes, const char *name,
                                struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                tdm_error *err)
{
    tdm_status status = tdmi_image_decode(bytes, length_bytes, name, (struct tdmi_image_limits){0},
                                          &scratch->decoded, err);
    if (status != TDM_OK)
        return status;
    return TDM_WRAP(err, tdmi_preprocess_image(preprocess, &scratch->decoded, scratch, out, err),
                    "cannot preprocess \"%s\"", name);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Divisions, not products with a rounded reciprocal: the same floats as the formulas in the header
 * give in other programs. */
void tdmi_preprocess_normalise(const struct tdmi_preprocess *preprocess, const uint8_t *bytes,
                               int64_t n_pixels, float *out)
{
    static const float mean_rgb[3] = {0.485f, 0.456f, 0.406f},
                       std_rgb[3] = {0.229f, 0.224f, 0.225f};
    static const float mean_grey = 0.449f, std_grey = 0.226f; /* their averages */
    const int64_t n = n_pixels * preprocess->channels;
    switch (preprocess->scale) {
    case TDMI_SCALE_TF:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i] / 127.5f - 1.0f;
        return;
    case TDMI_SCALE_TORCH:
        if (preprocess->channels == 1)
            for (int64_t i = 0; i < n; i++)
                out[i] = ((float)bytes[i] / 255.0f - mean_grey) / std_grey;
        else
            for (int64_t i = 0; i < n_pixels; i++)
                for (int64_t c = 0; c < 3; c++)
                    out[3 * i + c] = ((float)bytes[3 * i + c] / 255.0f - mean_rgb[c]) / std_rgb[c];
        return;
    case TDMI_SCALE_UNIT:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i] / 255.0f;
        return;
    case TDMI_SCALE_RAW:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)bytes[i];
        return;
    }
}

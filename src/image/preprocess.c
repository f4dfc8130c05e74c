/*
 * One preprocessing for training, evaluation, prediction and export: decode, fit into the network's
 * input, reduce to grey when requested; the op `input` converts bytes to floats. Sizes are rounded
 * as Pillow's thumbnail() (pad) does, and to the nearest one (crop), as published logits were made;
 * torchvision's Resize truncates.
 */
#include "image/preprocess.h"
#include "base/scope.h"
#include "base/file/far_copy.h"
#include "image/formats/codec.h"
#include "image/resize/resize.h"
#include <limits.h>
#include <math.h>
#include <string.h>

#define WHITE 255
#define MAX_SIDE 65535
#define REDUCING_GAP 2 /* by how much the last step of a reduction shrinks at least */

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

/* The largest size with the image's aspect inside the target; the image's own when it fits. */
static void size_inside(const struct tdmi_preprocess *preprocess, int width, int height,
                        struct tdmi_resize *how)
{
    how->width = preprocess->width;
    how->height = preprocess->height;
    double aspect = (double)width / height;
    if (how->width >= width && how->height >= height) {
        how->width = width;
        how->height = height;
    } else if ((double)how->width / how->height >= aspect) {
        how->width = round_side(how->height * aspect, error_of_width, how->height, aspect);
    } else {
        how->height = round_side(how->width / aspect, error_of_height, how->width, aspect);
    }
}

/* a / b to the nearest whole number, halves to the even one, as Python's round(). */
static int64_t nearest(int64_t a, int64_t b)
{
    int64_t whole = a / b, twice = 2 * (a % b);
    return whole + (twice > b || (twice == b && whole % 2 != 0));
}

/* The smallest size with the image's aspect that covers the target / crop_fraction. */
static tdm_status size_around(const struct tdmi_preprocess *preprocess, int width, int height,
                              struct tdmi_resize *how, tdm_error *err)
{
    int64_t across = lround(preprocess->width / preprocess->crop_fraction);
    int64_t down = lround(preprocess->height / preprocess->crop_fraction);
    if (width * down >= height * across)
        across = nearest(down * width, height);
    else
        down = nearest(across * height, width);
    if (across > INT_MAX || down > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "an image of %d x %d pixels that covers %d x %d would have %lld x %lld; "
                        "at most %d a side are possible",
                        width, height, preprocess->width, preprocess->height, (long long)across,
                        (long long)down, INT_MAX);
    how->width = (int)across;
    how->height = (int)down;
    return TDM_OK;
}

/* An image as it is, or as a decoder reduced it. */
struct draft {
    int width, height;   /* the whole image's */
    int divisor;         /* how many times smaller its sides were decoded, rounded up */
    struct tdmi_box box; /* the image in those pixels: of the last ones it may fill a part only */
};

/* How much of the last decoded column or row is beyond the image. */
static double excess(int side, int divisor)
{
    return (side + divisor - 1) / divisor - (double)side / divisor;
}

/* The excess lies at the right and at the bottom of the stored image; orientations that rotate or
 * mirror move it to the left or to the top. */
static struct draft draft_of(int width, int height, int divisor, int orientation)
{
    const bool is_left =
        orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool is_top =
        orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    return (struct draft){.width = width,
                          .height = height,
                          .divisor = divisor,
                          .box = {is_left ? excess(width, divisor) : 0,
                                  is_top ? excess(height, divisor) : 0, (double)width / divisor,
                                  (double)height / divisor}};
}

static struct draft whole(int width, int height)
{
    return draft_of(width, height, 1, 1);
}

/* Pillow's int(side / target / reducing_gap). */
static int reduction_of(double side, int target)
{
    return (int)(side / target / REDUCING_GAP);
}

static tdm_status plan(const struct tdmi_preprocess *preprocess, const struct draft *draft,
                       struct tdmi_resize *how, tdm_error *err)
{
    const int width = draft->width, height = draft->height;
    *how = (struct tdmi_resize){.box = draft->box,
                                .width = preprocess->width,
                                .height = preprocess->height,
                                .filter = preprocess->filter};
    if (preprocess->fit == TDMI_FIT_PAD)
        size_inside(preprocess, width, height, how);
    else if (preprocess->fit == TDMI_FIT_CROP)
        TDMI_TRY(size_around(preprocess, width, height, how, err));
    how->part_width = how->width < preprocess->width ? how->width : preprocess->width;
    how->part_height = how->height < preprocess->height ? how->height : preprocess->height;
    how->part_x = (how->width - how->part_width) / 2;
    how->part_y = (how->height - how->part_height) / 2;
    if (preprocess->uses_draft) {
        how->reduce_x = reduction_of(how->box.width, how->width);
        how->reduce_y = reduction_of(how->box.height, how->height);
    }
    return TDM_OK;
}

/* Largest divisor of a JPEG decoder with which both sides stay REDUCING_GAP times the resized ones,
 * as Pillow's draft(); for pad these are the target's sides, whatever part of it is filled. 1 where
 * there is no plan: decoding then reports the reason. */
static int divisor_of(const struct tdmi_preprocess *preprocess, int width, int height)
{
    const struct draft draft = whole(width, height);
    struct tdmi_resize how;
    if (plan(preprocess, &draft, &how, NULL) != TDM_OK)
        return 1;
    if (preprocess->fit == TDMI_FIT_PAD) {
        how.width = preprocess->width;
        how.height = preprocess->height;
    }
    const int64_t across = width / (REDUCING_GAP * (int64_t)how.width);
    const int64_t down = height / (REDUCING_GAP * (int64_t)how.height);
    const int64_t possible = across < down ? across : down;
    return possible >= 8 ? 8 : possible >= 4 ? 4 : possible >= 2 ? 2 : 1;
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

/* Where an image lies in the input: in the middle. */
struct frame {
    int left, top, width, height;
};

static struct frame frame_of(const struct tdmi_preprocess *preprocess, int width, int height)
{
    return (struct frame){(preprocess->width - width) / 2, (preprocess->height - height) / 2, width,
                          height};
}

/* White around the frame of (height, width, channels); the frame itself is left as it is. */
static void surround(const struct tdmi_preprocess *preprocess, const struct frame *frame,
                     uint8_t *out)
{
    const size_t channels = (size_t)preprocess->channels;
    const size_t row_bytes = channels * (size_t)preprocess->width;
    const size_t left = channels * (size_t)frame->left;
    const size_t right = row_bytes - left - channels * (size_t)frame->width;
    const size_t above = (size_t)frame->top, rows = (size_t)frame->height;
    memset(out, WHITE, above * row_bytes);
    out += above * row_bytes;
    for (size_t y = 0; y < rows && left + right > 0; y++) {
        memset(out + y * row_bytes, WHITE, left);
        memset(out + (y + 1) * row_bytes - right, WHITE, right);
    }
    memset(out + rows * row_bytes, WHITE, ((size_t)preprocess->height - above - rows) * row_bytes);
}

/* The frame's rows in (height, width, channels). */
static struct tdmi_rows inside(const struct tdmi_preprocess *preprocess, const struct frame *frame,
                               uint8_t *out)
{
    const size_t channels = (size_t)preprocess->channels;
    const size_t row_bytes = channels * (size_t)preprocess->width;
    return (struct tdmi_rows){out + row_bytes * (size_t)frame->top + channels * (size_t)frame->left,
                              row_bytes};
}

void tdmi_preprocess_place(const struct tdmi_preprocess *preprocess, const uint8_t *pixels,
                           int width, int height, uint8_t *out)
{
    const struct frame frame = frame_of(preprocess, width, height);
    const struct tdmi_rows rows = inside(preprocess, &frame, out);
    const size_t n = (size_t)width;
    surround(preprocess, &frame, out);
    for (size_t y = 0; y < (size_t)height; y++) {
        const uint8_t *from = pixels + 3 * n * y;
        if (preprocess->channels == 3)
            memcpy(rows.pixels + rows.stride_bytes * y, from, 3 * n);
        else
            to_luma(from, n, rows.pixels + rows.stride_bytes * y);
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

/* Nothing is resampled. */
static bool is_as_is(const struct tdmi_resize *how, const struct draft *draft, int width,
                     int height)
{
    return draft->divisor == 1 && how->width == width && how->height == height &&
           how->part_width == how->width && how->part_height == how->height;
}

static tdm_status fit(const struct tdmi_preprocess *preprocess, const struct draft *draft,
                      const tdmi_image *image, struct tdmi_preprocess_scratch *scratch,
                      uint8_t *out, tdm_error *err)
{
    struct tdmi_resize how;
    TDM_TRY(plan(preprocess, draft, &how, err), err, "cannot fit it into %d x %d pixels",
            preprocess->width, preprocess->height);
    if (is_as_is(&how, draft, image->width, image->height)) {
        tdmi_preprocess_place(preprocess, image->pixels, image->width, image->height, out);
        return TDM_OK;
    }
    tdm_status status;
    if (preprocess->channels == 3) { /* the last pass writes where the pixels belong */
        const struct frame frame = frame_of(preprocess, how.part_width, how.part_height);
        surround(preprocess, &frame, out);
        status = tdmi_image_resize_into(image, &how, inside(preprocess, &frame, out),
                                        &scratch->resized, err);
    } else {
        status = tdmi_image_resize_part(image, &how, &scratch->resized, err);
        if (status == TDM_OK)
            tdmi_preprocess_place(preprocess, scratch->resized.pixels, how.part_width,
                                  how.part_height, out);
    }
    return TDM_WRAP(err, status, "cannot fit an image of %d x %d pixels into %d x %d", draft->width,
                    draft->height, preprocess->width, preprocess->height);
}

tdm_status tdmi_preprocess_image(const struct tdmi_preprocess *preprocess, const tdmi_image *image,
                                 struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                 tdm_error *err)
{
    TDM_TRY(check(preprocess, err), err, "cannot preprocess an image");
    const struct draft draft = whole(image->width, image->height);
    return fit(preprocess, &draft, image, scratch, out, err);
}

bool tdmi_preprocess_plan(const struct tdmi_preprocess *preprocess, int width, int height,
                          const struct tdmi_box *box, struct tdmi_resize *how)
{
    const struct draft draft = whole(width, height);
    if (check(preprocess, NULL) != TDM_OK)
        return false;
    if (box != NULL) {
        *how = (struct tdmi_resize){.box = *box,
                                    .width = preprocess->width,
                                    .height = preprocess->height,
                                    .filter = preprocess->filter,
                                    .part_width = preprocess->width,
                                    .part_height = preprocess->height};
        return true;
    }
    return plan(preprocess, &draft, how, NULL) == TDM_OK;
}

/* ---- rows as they are decoded ---------------------------------------------------------------- */

struct stream {
    const struct tdmi_preprocess *preprocess;
    struct tdmi_preprocess_scratch *scratch;
    struct draft draft; /* of no size before the decoder asked */
    struct tdmi_resize how;
    struct tdmi_resampler resampler;
    struct tdmi_rows copied; /* where rows go that are not resampled; NULL: they are */
    size_t copied_bytes;     /* of a row */
    uint8_t *out;
    bool is_used;
};

static int stream_divisor(void *self, int width, int height, int orientation)
{
    struct stream *stream = self;
    const int divisor =
        stream->preprocess->uses_draft ? divisor_of(stream->preprocess, width, height) : 1;
    stream->draft = draft_of(width, height, divisor, orientation);
    return divisor;
}

static tdm_status stream_begin(void *self, int width, int height, bool *is_wanted, tdm_error *err)
{
    struct stream *stream = self;
    TDM_TRY(plan(stream->preprocess, &stream->draft, &stream->how, err), err,
            "cannot fit it into %d x %d pixels", stream->preprocess->width,
            stream->preprocess->height);
    *is_wanted = stream->is_used = false;
    if (stream->preprocess->channels != 3 || stream->how.reduce_x > 1 || stream->how.reduce_y > 1)
        return TDM_OK;
    const struct frame frame =
        frame_of(stream->preprocess, stream->how.part_width, stream->how.part_height);
    const struct tdmi_rows target = inside(stream->preprocess, &frame, stream->out);
    if (is_as_is(&stream->how, &stream->draft, width, height)) {
        stream->copied = target;
        stream->copied_bytes = 3 * (size_t)width;
        *is_wanted = stream->is_used = true;
        surround(stream->preprocess, &frame, stream->out);
        return TDM_OK;
    }
    TDM_TRY(tdmi_resampler_begin(&stream->resampler, width, height, &stream->how,
                                 &stream->scratch->resized, err),
            err, "cannot fit an image of %d x %d pixels into %d x %d", stream->draft.width,
            stream->draft.height, stream->preprocess->width, stream->preprocess->height);
    stream->is_used = tdmi_resampler_takes_rows(&stream->resampler);
    *is_wanted = stream->is_used;
    if (!stream->is_used)
        return TDM_OK;
    surround(stream->preprocess, &frame, stream->out);
    stream->resampler.target = target;
    return TDM_OK;
}

static void copy_rows(struct tdmi_rows target, const uint8_t *rows, size_t stride_bytes,
                      size_t row_bytes, size_t n, bool is_far)
{
    if (stride_bytes == row_bytes && target.stride_bytes == row_bytes) {
        row_bytes *= n;
        n = 1;
    }
    for (size_t y = 0; y < n; y++)
        if (is_far)
            tdmi_far_copy(target.pixels + target.stride_bytes * y, rows + stride_bytes * y,
                          row_bytes);
        else
            memcpy(target.pixels + target.stride_bytes * y, rows + stride_bytes * y, row_bytes);
}

static void stream_feed(void *self, const uint8_t *rows, size_t stride_bytes, const uint8_t *end,
                        int first, int n)
{
    struct stream *stream = self;
    const struct tdmi_rows *copied = &stream->copied;
    if (copied->pixels == NULL)
        tdmi_resampler_feed(&stream->resampler, rows, stride_bytes, end, first, n);
    else
        copy_rows((struct tdmi_rows){copied->pixels + copied->stride_bytes * (size_t)first,
                                     copied->stride_bytes},
                  rows, stride_bytes, stream->copied_bytes, (size_t)n, stream->scratch->is_far);
}

/* Resample rows while they are decoded where possible: the bytes are the same, read while they are
 * in the nearest cache, and the image is never whole in memory. Grey needs all three colours first,
 * and reductions the whole image. */
tdm_status tdmi_preprocess_file(const struct tdmi_preprocess *preprocess, const void *bytes,
                                size_t length_bytes, const char *name,
                                struct tdmi_preprocess_scratch *scratch, uint8_t *out,
                                tdm_error *err)
{
    TDM_TRY(check(preprocess, err), err, "cannot preprocess \"%s\"", name);
    struct stream stream = {.preprocess = preprocess, .scratch = scratch, .out = out};
    const struct tdmi_row_sink sink = {&stream, stream_divisor, stream_begin, stream_feed};
    tdm_status status = tdmi_image_decode_rows(bytes, length_bytes, name, scratch->limits, &sink,
                                               &scratch->decoded, err);
    if (scratch->is_far)
        tdmi_far_copy_end();
    if (status != TDM_OK || stream.is_used)
        return status;
    if (stream.draft.width == 0) /* a decoder that has no drafts */
        stream.draft = whole(scratch->decoded.width, scratch->decoded.height);
    return TDM_WRAP(err, fit(preprocess, &stream.draft, &scratch->decoded, scratch, out, err),
                    "cannot preprocess \"%s\"", name);
}

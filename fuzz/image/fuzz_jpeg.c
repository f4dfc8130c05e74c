/*
 * Any bytes as a JPEG file, for our own decoder: a file that it takes gives the pixels of
 * libjpeg-turbo, whole and row by row.
 */
#include "fuzz.h"
#include "base/memory.h"
#include "image/formats/codec.h"
#include "image/jpeg/plain.h"

enum { MOST_PIXELS = 1 << 16 };

struct taker {
    uint8_t *pixels;
    size_t row_bytes;
};

static tdm_status take_size(void *self, int width, int height, bool *is_wanted, tdm_error *err)
{
    (void)height;
    (void)err;
    ((struct taker *)self)->row_bytes = 3 * (size_t)width;
    *is_wanted = true;
    return TDM_OK;
}

static void take_rows(void *self, const uint8_t *rows, size_t stride_bytes, const uint8_t *end,
                      int first, int n)
{
    struct taker *taker = self;
    if (first % 4 != 0 || rows + stride_bytes * (size_t)n > end)
        abort();
    for (int y = 0; y < n; y++)
        memcpy(taker->pixels + taker->row_bytes * (size_t)(first + y),
               rows + stride_bytes * (size_t)y, taker->row_bytes);
}

static void check_rows(struct tdmi_codec_source source, const tdmi_image *whole)
{
    const size_t n_bytes = 3 * (size_t)whole->width * (size_t)whole->height;
    tdmi_image room = {0};
    struct taker taker = {.pixels = tdmi_alloc(n_bytes, 1)};
    const struct tdmi_row_sink sink = {.self = &taker, .begin = take_size, .feed = take_rows};
    bool is_done = false;
    source.sink = &sink;
    if (taker.pixels != NULL && (tdmi_jpeg_plain_decode(&source, &room, &is_done, NULL) != TDM_OK ||
                                 !is_done || memcmp(taker.pixels, whole->pixels, n_bytes) != 0))
        abort();
    tdmi_free(taker.pixels);
    tdmi_image_release(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    const struct tdmi_codec *codec = tdmi_codec_of(TDMI_IMAGE_JPEG);
    const struct tdmi_codec_source source = {.bytes = bytes,
                                             .length_bytes = length_bytes,
                                             .max_pixels = MOST_PIXELS,
                                             .deadline_ns = INT64_MAX,
                                             .max_ns = INT64_MAX,
                                             .orientation = 1,
                                             .is_strict = true,
                                             .by_library = true};
    tdmi_image ours = {0}, theirs = {0};
    bool is_done = false;
    if (tdmi_jpeg_plain_decode(&source, &ours, &is_done, NULL) != TDM_OK)
        abort();
    if (is_done && codec->decode != NULL) {
        if (codec->decode(&source, &theirs, NULL) != TDM_OK)
            abort();
        if (ours.width != theirs.width || ours.height != theirs.height ||
            memcmp(ours.pixels, theirs.pixels, 3 * (size_t)ours.width * (size_t)ours.height) != 0)
            abort();
        check_rows(source, &theirs);
    }
    tdmi_image_release(&ours);
    tdmi_image_release(&theirs);
    return 0;
}

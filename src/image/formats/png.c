/*
 * PNG through libspng: every bit depth and colour type, palettes, tRNS, interlacing. Checksums are
 * verified: those of the chunks before the pixels and of the inflated pixels always, those of the
 * chunks from the pixels on only for strict callers, as in Pillow. Transparent pixels are laid over
 * white; 16-bit samples are scaled to 8 bits with rounding.
 *
 * Opaque 8-bit images, by far the most, decode straight into the image. The others pass through
 * one row of RGBA (the whole image when it is interlaced).
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include <spng.h>

/* Text, profiles and other side data beyond this are taken for an attack. */
#define MAX_SIDE_BYTES ((size_t)64 << 20)

/* libspng takes its memory from the one place that counts it. */
static void *take(size_t size)
{
    return tdmi_alloc(size, 1);
}

static void *grow(void *block, size_t size)
{
    return tdmi_realloc(block, size, 1);
}

static spng_ctx *new_context(int flags)
{
    struct spng_alloc memory = {
        .malloc_fn = take, .realloc_fn = grow, .calloc_fn = tdmi_alloc, .free_fn = tdmi_free};
    return spng_ctx_new2(&memory, flags);
}

TDMI_POINTER_RELEASE(spng_ctx, spng_ctx_free)

/* zlib's want of memory reaches us as an error of the stream: an image must not be called damaged
 * for it. Whether there is memory for zlib's window is found out by asking. */
static bool is_want_of_memory(int code)
{
    if (code == SPNG_EMEM)
        return true;
    if (code != SPNG_EZLIB_INIT && code != SPNG_EIDAT_STREAM && code != SPNG_EZLIB)
        return false;
    void *window = tdmi_alloc(1 << 16, 1);
    tdmi_free(window);
    return window == NULL;
}

static tdm_status refuse(int code, tdm_error *err)
{
    if (is_want_of_memory(code))
        return TDM_FAIL(err, TDM_E_MEMORY, "libspng ran out of memory");
    bool is_short = code == SPNG_IO_EOF || code == SPNG_EIDAT_TOO_SHORT;
    return TDM_FAIL(err, TDM_E_INPUT, "it is %s: %s", is_short ? "truncated" : "damaged",
                    spng_strerror(code));
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* One 16-bit sample over white, as a byte. */
static uint8_t over_white_16(uint32_t colour, uint32_t alpha)
{
    const uint64_t one = 65535, whole = one * one;
    uint64_t mixed = (uint64_t)colour * alpha + one * (one - alpha); /* times one² */
    return (uint8_t)((mixed * 255 + whole / 2) / whole);
}

/* All rows of an image in the order of the file, each to its place in n_rows rows of memory;
 * interlaced rows come several times. done, if there is one, is called after each. */
static tdm_status read_rows(spng_ctx *context, const struct tdmi_codec_source *source, int format,
                            int flags, uint8_t *rows, size_t row_bytes, size_t n_rows,
                            void (*done)(const void *row, size_t y, tdmi_image *image),
                            tdmi_image *image, tdm_error *err)
{
    int code = spng_decode_image(context, NULL, 0, format, flags | SPNG_DECODE_PROGRESSIVE);
    /* Not earlier: libspng would also leave the sum of the inflated pixels unverified. */
    if (code == 0 && !source->is_strict)
        code = spng_set_crc_action(context, SPNG_CRC_USE, SPNG_CRC_DISCARD);
    while (code == 0) {
        struct spng_row_info info;
        code = spng_get_row_info(context, &info);
        if (code != 0)
            break;
        uint8_t *row = rows + row_bytes * (info.row_num % n_rows);
        code = spng_decode_row(context, row, row_bytes);
        if (done != NULL && (code == 0 || code == SPNG_EOI))
            done(row, info.row_num, image);
        TDMI_TRY(tdmi_codec_check_time(source, err));
    }
    return code == SPNG_EOI ? TDM_OK : refuse(code, err); /* the last row comes with that news */
}

static void flatten_8(const void *row, size_t y, tdmi_image *image)
{
    const size_t width = (size_t)image->width;
    const uint8_t *rgba = row;
    uint8_t *pixels = image->pixels + 3 * width * y;
    for (size_t i = 0; i < width; i++)
        for (size_t c = 0; c < 3; c++)
            pixels[3 * i + c] = tdmi_codec_over_white(rgba[4 * i + c], rgba[4 * i + 3]);
}

static void flatten_16(const void *row, size_t y, tdmi_image *image)
{
    const size_t width = (size_t)image->width;
    const uint16_t *rgba = row;
    uint8_t *pixels = image->pixels + 3 * width * y;
    for (size_t i = 0; i < width; i++)
        for (size_t c = 0; c < 3; c++)
            pixels[3 * i + c] = over_white_16(rgba[4 * i + c], rgba[4 * i + 3]);
}

/* Images with transparency or 16-bit samples. */
static tdm_status decode_flattened(spng_ctx *context, const struct tdmi_codec_source *source,
                                   const struct spng_ihdr *header, tdmi_image *image,
                                   tdm_error *err)
{
    const bool is_deep = header->bit_depth == 16, is_whole = header->interlace_method != 0;
    const size_t width = header->width, height = header->height;
    const size_t row_bytes = width * (is_deep ? 8 : 4), n_rows = is_whole ? height : 1;
    void (*done)(const void *row, size_t y, tdmi_image *image) = is_deep ? flatten_16 : flatten_8;
    TDMI_AT_END(tdmi_free_at) uint8_t *rgba = tdmi_alloc(n_rows, row_bytes);
    if (rgba == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu rows of %zu bytes", n_rows,
                        row_bytes);
    TDMI_TRY(read_rows(context, source, is_deep ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8,
                       SPNG_DECODE_TRNS, rgba, row_bytes, n_rows, is_whole ? NULL : done, image,
                       err));
    for (size_t y = 0; is_whole && y < height; y++)
        done(rgba + row_bytes * y, y, image);
    return TDM_OK;
}

static tdm_status decode_with(spng_ctx *context, const struct tdmi_codec_source *source,
                              tdmi_image *image, tdm_error *err)
{
    struct spng_ihdr header;
    struct spng_trns transparency;
    int code = spng_set_crc_action(context, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    if (code == 0)
        code = spng_set_chunk_limits(context, MAX_SIDE_BYTES, MAX_SIDE_BYTES);
    if (code == 0)
        code = spng_set_png_buffer(context, source->bytes, source->length_bytes);
    if (code == 0)
        code = spng_get_ihdr(context, &header);
    if (code != 0)
        return refuse(code, err);
    TDMI_TRY(tdmi_codec_shape(source, header.width, header.height, image, err));
    code = spng_get_trns(context, &transparency);
    if (code != 0 && code != SPNG_ECHUNKAVAIL)
        return refuse(code, err);
    bool has_alpha = code == 0 || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                     header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    TDMI_TRY(has_alpha || header.bit_depth == 16
                 ? decode_flattened(context, source, &header, image, err)
                 : read_rows(context, source, SPNG_FMT_RGB8, 0, image->pixels,
                             3 * (size_t)header.width, header.height, NULL, image, err));
    code = spng_decode_chunks(context); /* up to IEND, so that a cut tail is noticed */
    return code == 0 ? TDM_OK : refuse(code, err);
}

tdm_status tdmi_png_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    TDMI_AT_END(spng_ctx_free_at) spng_ctx *context = new_context(0);
    return context != NULL ? decode_with(context, source, image, err)
                           : TDM_FAIL(err, TDM_E_MEMORY, "no memory for a PNG decoder");
}

/* ---- encode ---------------------------------------------------------------------------------- */

static int append(spng_ctx *context, void *user, void *bytes, size_t length_bytes)
{
    (void)context;
    tdmi_text_add(user, bytes, length_bytes);
    return 0;
}

/* Level and filters are fixed, not left to libspng's defaults: the same image gives the same
 * bytes wherever zlib is the same. */
tdm_status tdmi_png_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    (void)quality; /* PNG keeps everything */
    TDMI_AT_END(spng_ctx_free_at) spng_ctx *context = new_context(SPNG_CTX_ENCODER);
    if (context == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a PNG encoder");
    struct spng_ihdr header = {.width = (uint32_t)image->width,
                               .height = (uint32_t)image->height,
                               .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    size_t picture_bytes = 3 * (size_t)image->width * (size_t)image->height;
    int code = spng_set_png_stream(context, append, out);
    if (code == 0)
        code = spng_set_ihdr(context, &header);
    if (code == 0)
        code = spng_set_option(context, SPNG_IMG_COMPRESSION_LEVEL, 6);
    if (code == 0)
        code = spng_set_option(context, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_ALL);
    if (code == 0)
        code = spng_encode_image(context, image->pixels, picture_bytes, SPNG_FMT_PNG,
                                 SPNG_ENCODE_FINALIZE);
    return code == 0 ? TDM_OK
                     : TDM_FAIL(err, is_want_of_memory(code) ? TDM_E_MEMORY : TDM_E_FAILED,
                                "libspng stopped: %s", spng_strerror(code));
}

void tdmi_png_write_decoder(tdmi_text *text)
{
    tdmi_text_printf(text, "libspng %s", spng_version_string());
}

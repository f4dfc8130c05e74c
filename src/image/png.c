/*
 * PNG through libspng: every bit depth and colour type, palettes, tRNS, interlacing. Checksum
 * errors are refused in every chunk. Transparent pixels are laid over white; 16-bit samples are
 * scaled to 8 bits with rounding.
 *
 * Opaque 8-bit pictures, by far the most, decode straight into the image. The others pass through
 * one row of RGBA (the whole picture when it is interlaced).
 */
#include "base/memory.h"
#include "image/codec.h"
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

static struct spng_alloc memory_table(void)
{
    return (struct spng_alloc){
        .malloc_fn = take, .realloc_fn = grow, .calloc_fn = tdmi_alloc, .free_fn = tdmi_free};
}

/* zlib's want of memory reaches us as an error of the stream: a picture must not be called damaged
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

/* One sample over white, as a byte; one is the value of full intensity, 255 or 65535. */
static uint8_t over_white(uint32_t colour, uint32_t alpha, uint32_t one)
{
    uint64_t mixed = (uint64_t)colour * alpha + (uint64_t)one * (one - alpha); /* times one² */
    uint64_t whole = (uint64_t)one * one;
    return (uint8_t)((mixed * 255 + whole / 2) / whole);
}

static void flatten_8(const uint8_t *rgba, size_t n, uint8_t *pixels)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            pixels[3 * i + c] = over_white(rgba[4 * i + c], rgba[4 * i + 3], 255);
}

static void flatten_16(const uint16_t *rgba, size_t n, uint8_t *pixels)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            pixels[3 * i + c] = over_white(rgba[4 * i + c], rgba[4 * i + 3], 65535);
}

/* Pictures with transparency or 16-bit samples. */
static tdm_status decode_flattened(spng_ctx *context, const struct spng_ihdr *header,
                                   tdmi_image *image, tdm_error *err)
{
    const bool is_deep = header->bit_depth == 16, is_whole = header->interlace_method != 0;
    const int format = is_deep ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8;
    const size_t width = header->width, height = header->height;
    const size_t row_bytes = width * (is_deep ? 8 : 4), n_rows = is_whole ? height : 1;
    void *rgba = tdmi_alloc(n_rows, row_bytes);
    if (rgba == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu rows of %zu bytes", n_rows,
                        row_bytes);
    int code;
    if (is_whole)
        code = spng_decode_image(context, rgba, n_rows * row_bytes, format, SPNG_DECODE_TRNS);
    else
        code =
            spng_decode_image(context, NULL, 0, format, SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE);
    for (size_t y = 0; y < height && code == 0; y += n_rows) {
        if (!is_whole) {
            code = spng_decode_row(context, rgba, row_bytes);
            if (code == SPNG_EOI && y + 1 == height)
                code = 0; /* the last row comes with the news that it is the last */
        }
        if (is_deep)
            flatten_16(rgba, width * n_rows, image->pixels + 3 * width * y);
        else
            flatten_8(rgba, width * n_rows, image->pixels + 3 * width * y);
    }
    tdmi_free(rgba);
    return code == 0 ? TDM_OK : refuse(code, err);
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
    tdm_status status = tdmi_codec_shape(source, header.width, header.height, image, err);
    if (status != TDM_OK)
        return status;

    code = spng_get_trns(context, &transparency);
    if (code != 0 && code != SPNG_ECHUNKAVAIL)
        return refuse(code, err);
    bool has_alpha = code == 0 || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                     header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    if (has_alpha || header.bit_depth == 16) {
        status = decode_flattened(context, &header, image, err);
    } else {
        code = spng_decode_image(context, image->pixels, 3 * (size_t)header.width * header.height,
                                 SPNG_FMT_RGB8, 0);
        status = code == 0 ? TDM_OK : refuse(code, err);
    }
    if (status != TDM_OK)
        return status;
    code = spng_decode_chunks(context); /* up to IEND, so that a cut tail is noticed */
    return code == 0 ? TDM_OK : refuse(code, err);
}

tdm_status tdmi_png_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    struct spng_alloc memory = memory_table();
    spng_ctx *context = spng_ctx_new2(&memory, 0);
    if (context == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a PNG decoder");
    tdm_status status = decode_with(context, source, image, err);
    spng_ctx_free(context);
    return status;
}

/* ---- encode ---------------------------------------------------------------------------------- */

static int append(spng_ctx *context, void *user, void *bytes, size_t length_bytes)
{
    (void)context;
    tdmi_text_add(user, bytes, length_bytes);
    return 0;
}

/* Level and filters are fixed, not left to libspng's defaults: the same picture gives the same
 * bytes wherever zlib is the same. */
tdm_status tdmi_png_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    (void)quality; /* PNG keeps everything */
    struct spng_alloc memory = memory_table();
    spng_ctx *context = spng_ctx_new2(&memory, SPNG_CTX_ENCODER);
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
    tdm_status status = TDM_OK;
    if (code != 0)
        status = TDM_FAIL(err, is_want_of_memory(code) ? TDM_E_MEMORY : TDM_E_FAILED,
                          "libspng stopped: %s", spng_strerror(code));
    spng_ctx_free(context);
    return status;
}

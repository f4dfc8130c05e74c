/*
 * The first image of a TIFF file through libtiff 4.5 or newer, a strip or tile at a time, so that
 * only one of them is unpacked and the time limit is looked at between them. libtiff makes 8-bit
 * RGBA of all bit depths up to 16, palettes, inks and YCbCr; here it goes over white.
 *
 * libtiff is opened where it is installed. Its error handlers and its memory limit are those of one
 * open file, which came with version 4.5.
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/formats/library.h"
#include "image/formats/tiff_layout.h"
#include <stdarg.h>
#include <stdio.h>

struct functions {
    void *(*new_options)(void);
    void (*free_options)(void *options);
    void (*set_most_memory)(void *options, ptrdiff_t bytes);
    void (*set_errors)(void *options,
                       int (*take)(void *, void *, const char *, const char *, va_list),
                       void *self);
    void (*set_warnings)(void *options,
                         int (*take)(void *, void *, const char *, const char *, va_list),
                         void *self);
    void *(*open)(const char *name, const char *mode, void *self,
                  ptrdiff_t (*read)(void *, void *, ptrdiff_t),
                  ptrdiff_t (*write)(void *, void *, ptrdiff_t),
                  uint64_t (*seek)(void *, uint64_t, int), int (*close)(void *),
                  uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *),
                  void (*unmap)(void *, void *, uint64_t), void *options);
    void (*close)(void *tiff);
    int (*set_field)(void *tiff, uint32_t tag, ...);
    int (*get_field)(void *tiff, uint32_t tag, ...);
    int (*is_tiled)(void *tiff);
    int (*can_convert)(void *tiff, char why[1024]);
    int (*read_strip)(void *tiff, uint32_t row, uint32_t *raster, int stops_at_errors);
    int (*read_tile)(void *tiff, uint32_t x, uint32_t y, uint32_t *raster, int stops_at_errors);
    const char *(*version)(void);
};

static const struct tdmi_image_library_symbol symbols[] = {
    {"TIFFOpenOptionsAlloc", offsetof(struct functions, new_options)},
    {"TIFFOpenOptionsFree", offsetof(struct functions, free_options)},
    {"TIFFOpenOptionsSetMaxSingleMemAlloc", offsetof(struct functions, set_most_memory)},
    {"TIFFOpenOptionsSetErrorHandlerExtR", offsetof(struct functions, set_errors)},
    {"TIFFOpenOptionsSetWarningHandlerExtR", offsetof(struct functions, set_warnings)},
    {"TIFFClientOpenExt", offsetof(struct functions, open)},
    {"TIFFClose", offsetof(struct functions, close)},
    {"TIFFSetField", offsetof(struct functions, set_field)},
    {"TIFFGetFieldDefaulted", offsetof(struct functions, get_field)},
    {"TIFFIsTiled", offsetof(struct functions, is_tiled)},
    {"TIFFRGBAImageOK", offsetof(struct functions, can_convert)},
    {"TIFFReadRGBAStripExt", offsetof(struct functions, read_strip)},
    {"TIFFReadRGBATileExt", offsetof(struct functions, read_tile)},
    {"TIFFGetVersion", offsetof(struct functions, version)},
    {NULL, 0},
};
static const char *const files[] = {"libtiff.so.6", NULL};
static const struct tdmi_image_library library = {"libtiff", files, "libtiff6", symbols};

enum {
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_ORIENTATION = 274,
    TAG_ROWS_PER_STRIP = 278,
    TAG_TILE_WIDTH = 322,
    TAG_TILE_HEIGHT = 323,
    UPRIGHT = 1
};

struct decoding {
    struct functions lib;
    const struct tdmi_codec_source *source;
    const struct tdmi_tiff_layout *layout;
    uint64_t at;
    int64_t most_bytes; /* size limit of a strip, tile or table */
    char problem[200];  /* the first error that libtiff reports */
};

/* ---- what libtiff calls ---------------------------------------------------------------------- */

static ptrdiff_t pass_bytes(void *self, void *to, ptrdiff_t n_wanted)
{
    struct decoding *decoding = self;
    const uint64_t length = decoding->source->length_bytes;
    const uint64_t left = decoding->at < length ? length - decoding->at : 0;
    const size_t n = (uint64_t)n_wanted < left ? (size_t)n_wanted : (size_t)left;
    if (n > 0)
        memcpy(to, decoding->source->bytes + decoding->at, n);
    decoding->at += n;
    return (ptrdiff_t)n;
}

static ptrdiff_t write_nothing(void *self, void *from, ptrdiff_t n)
{
    (void)self, (void)from, (void)n;
    return -1;
}

static uint64_t seek(void *self, uint64_t offset, int whence)
{
    struct decoding *decoding = self;
    decoding->at = offset + (whence == SEEK_CUR   ? decoding->at
                             : whence == SEEK_END ? decoding->source->length_bytes
                                                  : 0);
    return decoding->at;
}

static uint64_t size_of(void *self)
{
    return ((const struct decoding *)self)->source->length_bytes;
}

static int leave_open(void *self)
{
    (void)self;
    return 0;
}

static int take_error(void *tiff, void *self, const char *module, const char *format,
                      va_list arguments)
{
    struct decoding *decoding = self;
    (void)tiff, (void)module;
    if (decoding->problem[0] == '\0')
        vsnprintf(decoding->problem, sizeof decoding->problem, format, arguments);
    return 1; /* handled: nothing is printed */
}

static int take_warning(void *tiff, void *self, const char *module, const char *format,
                        va_list arguments)
{
    (void)tiff, (void)self, (void)module, (void)format, (void)arguments;
    return 1;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static tdm_status refuse(const struct decoding *decoding, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: %s",
                    decoding->problem[0] != '\0' ? decoding->problem : "libtiff gives no reason");
}

/* One row of libtiff's pixels, red in the lowest byte. libtiff multiplies colours by opacity, but
 * for grey. */
static void lay(const struct tdmi_tiff_layout *layout, const uint32_t *from, size_t n, uint8_t *to)
{
    const bool is_grey = tdmi_tiff_colours(layout) == TDMI_COLOURS_GREY;
    for (size_t i = 0; i < n; i++, to += 3) {
        const unsigned alpha = layout->has_alpha ? from[i] >> 24 : 255;
        for (int c = 0; c < 3; c++) {
            const unsigned colour = from[i] >> 8 * c & 255, sum = colour + 255 - alpha;
            to[c] = is_grey && !layout->is_premultiplied ? tdmi_codec_over_white(colour, alpha)
                    : sum < 255                          ? (uint8_t)sum
                                                         : 255;
        }
    }
}

/* A part of the image whose raster is width pixels wide; its rows come last one first. */
static void lay_part(const struct decoding *decoding, const uint32_t *raster, uint32_t width,
                     uint32_t height, uint32_t x, uint32_t y, tdmi_image *image)
{
    const uint32_t left = (uint32_t)image->width - x, below = (uint32_t)image->height - y;
    const uint32_t n = width < left ? width : left;
    for (uint32_t row = 0; row < height && row < below; row++)
        lay(decoding->layout, raster + (size_t)(height - 1 - row) * width, n,
            image->pixels + 3 * ((size_t)(y + row) * (size_t)image->width + x));
}

static tdm_status read_tiles(struct decoding *decoding, void *tiff, tdmi_image *image,
                             tdm_error *err)
{
    const struct functions *lib = &decoding->lib;
    uint32_t width = 0, height = 0;
    TDMI_AT_END(tdmi_free_at) uint32_t *raster = NULL;
    if (!lib->get_field(tiff, TAG_TILE_WIDTH, &width) ||
        !lib->get_field(tiff, TAG_TILE_HEIGHT, &height) || width == 0 || height == 0)
        return refuse(decoding, err);
    if (width > decoding->most_bytes / (int64_t)sizeof *raster / height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its tiles have %u x %u pixels, far more than the image, which has %d x %d",
                        width, height, image->width, image->height);
    TDMI_TRY(TDMI_NEW(raster, (size_t)width * height, err));
    for (uint32_t y = 0; y < (uint32_t)image->height; y += height)
        for (uint32_t x = 0; x < (uint32_t)image->width; x += width) {
            TDMI_TRY(tdmi_codec_check_time(decoding->source, err));
            if (!lib->read_tile(tiff, x, y, raster, 1))
                return refuse(decoding, err);
            lay_part(decoding, raster, width, height, x, y, image);
        }
    return TDM_OK;
}

static tdm_status read_strips(struct decoding *decoding, void *tiff, tdmi_image *image,
                              tdm_error *err)
{
    const struct functions *lib = &decoding->lib;
    const uint32_t width = (uint32_t)image->width, n_rows = (uint32_t)image->height;
    uint32_t step = 0;
    TDMI_AT_END(tdmi_free_at) uint32_t *raster = NULL;
    if (!lib->get_field(tiff, TAG_ROWS_PER_STRIP, &step) || step == 0)
        return refuse(decoding, err);
    step = step < n_rows ? step : n_rows;
    TDMI_TRY(TDMI_NEW(raster, (size_t)width * step, err));
    for (uint32_t y = 0; y < n_rows; y += step) {
        TDMI_TRY(tdmi_codec_check_time(decoding->source, err));
        if (!lib->read_strip(tiff, y, raster, 1))
            return refuse(decoding, err);
        lay_part(decoding, raster, width, step < n_rows - y ? step : n_rows - y, 0, y, image);
    }
    return TDM_OK;
}

static tdm_status decode_with(struct decoding *decoding, void *tiff, tdmi_image *image,
                              tdm_error *err)
{
    const struct functions *lib = &decoding->lib;
    uint32_t width = 0, height = 0;
    char why[1024] = "";
    if (!lib->get_field(tiff, TAG_WIDTH, &width) || !lib->get_field(tiff, TAG_HEIGHT, &height) ||
        width != (uint32_t)image->width || height != (uint32_t)image->height)
        return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: its directory names several sizes");
    if (!lib->can_convert(tiff, why))
        return TDM_FAIL(err, TDM_E_INPUT, "libtiff does not convert it to RGB: %.200s", why);
    /* The caller applies the orientation; libtiff would apply half of it. */
    if (!lib->set_field(tiff, TAG_ORIENTATION, UPRIGHT))
        return refuse(decoding, err);
    return lib->is_tiled(tiff) ? read_tiles(decoding, tiff, image, err)
                               : read_strips(decoding, tiff, image, err);
}

static tdm_status check_layout(const struct tdmi_codec_source *source,
                               const struct tdmi_tiff_layout *layout, tdm_error *err)
{
    if (layout->is_raw)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is a camera's raw file, whose first image is a thumbnail; raw files "
                        "are not read");
    if (!layout->has_all_pixels)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: its pixels do not all lie in its %zu bytes",
                        source->length_bytes);
    if (layout->bits < 1 || layout->bits > 16 || tdmi_tiff_colours(layout) == TDMI_COLOURS_UNKNOWN)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has samples of %d bits and colours of kind %lld; grey, RGB, palette, "
                        "CMYK, YCbCr and Lab of up to 16 bits are read",
                        layout->bits, (long long)layout->photometric);
    return TDM_OK;
}

tdm_status tdmi_tiff_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                            tdm_error *err)
{
    struct tdmi_tiff_layout layout;
    struct decoding decoding = {.source = source, .layout = &layout};
    TDMI_TRY(tdmi_image_library_open(&library, &decoding.lib, err));
    TDMI_TRY(tdmi_tiff_walk(source->bytes, source->length_bytes, &layout, err));
    TDMI_TRY(check_layout(source, &layout, err));
    TDMI_TRY(tdmi_codec_shape(source, layout.width, layout.height, image, err));
    void *options = decoding.lib.new_options();
    if (options == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "libtiff ran out of memory");
    /* Eight samples of 16 bits for every pixel are more than enough. */
    decoding.most_bytes = 16 * layout.width * layout.height + (16 << 20);
    decoding.lib.set_most_memory(options, (ptrdiff_t)decoding.most_bytes);
    decoding.lib.set_errors(options, take_error, &decoding);
    decoding.lib.set_warnings(options, take_warning, &decoding);
    void *tiff = decoding.lib.open("image", "rm", &decoding, pass_bytes, write_nothing, seek,
                                   leave_open, size_of, NULL, NULL, options);
    decoding.lib.free_options(options);
    if (tiff == NULL)
        return refuse(&decoding, err);
    const tdm_status status = decode_with(&decoding, tiff, image, err);
    decoding.lib.close(tiff);
    return status;
}

tdm_status tdmi_tiff_open(tdm_error *err)
{
    struct functions lib;
    return tdmi_image_library_open(&library, &lib, err);
}

/* "LIBTIFF, Version 4.5.0\n…" */
void tdmi_tiff_write_decoder(tdmi_text *text)
{
    struct functions lib;
    if (tdmi_image_library_open(&library, &lib, NULL) != TDM_OK)
        return;
    const char *version = lib.version();
    const char *number = strpbrk(version, "0123456789");
    if (number != NULL)
        tdmi_text_printf(text, "libtiff %.*s", (int)strcspn(number, "\n"), number);
}

/*
 * The primary image of a HEIC or AVIF file through libheif, which applies the rotation, mirroring
 * and cropping that the file's properties ask for; EXIF orientation in such files repeats the
 * rotation and is not applied (the codec has no find_exif).
 *
 * libheif is opened where it is installed and never linked: Debian's brings libx265, which is GPL.
 * It decodes the tiles of a grid in the caller's thread here; libde265 starts one thread for an
 * image all the same and libdav1d one per CPU, for which libheif has no switch.
 */
#include "base/memory.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/formats/heif_layout.h"
#include "image/formats/library.h"

/* The types of libheif/heif.h, as they are since version 1.13. */
struct heif_error {
    int code, subcode;
    const char *message;
};

/* Up to version 3; later ones are longer. libheif makes them. */
struct heif_options {
    uint8_t version, ignores_transformations;
    void (*progress[3])(void);
    void *progress_self;
    uint8_t converts_to_8_bits, is_strict;
};

struct functions {
    uint32_t (*version)(void);
    void *(*new_context)(void);
    void (*free_context)(void *context);
    void (*set_threads)(void *context, int n);
    struct heif_error (*read)(void *context, const void *bytes, size_t n, const void *options);
    struct heif_error (*find_primary)(void *context, void **handle);
    void (*free_handle)(const void *handle);
    int (*has_alpha)(const void *handle);
    int (*is_premultiplied)(const void *handle);
    struct heif_options *(*new_options)(void);
    void (*free_options)(struct heif_options *options);
    struct heif_error (*decode)(const void *handle, void **image, int colours, int layout,
                                const struct heif_options *options);
    int (*width_of)(const void *image, int channel);
    int (*height_of)(const void *image, int channel);
    const uint8_t *(*pixels_of)(const void *image, int channel, int *stride_bytes);
    void (*free_image)(const void *image);
};

static const struct tdmi_image_library_symbol symbols[] = {
    {"heif_get_version_number", offsetof(struct functions, version)},
    {"heif_context_alloc", offsetof(struct functions, new_context)},
    {"heif_context_free", offsetof(struct functions, free_context)},
    {"heif_context_set_max_decoding_threads", offsetof(struct functions, set_threads)},
    {"heif_context_read_from_memory_without_copy", offsetof(struct functions, read)},
    {"heif_context_get_primary_image_handle", offsetof(struct functions, find_primary)},
    {"heif_image_handle_release", offsetof(struct functions, free_handle)},
    {"heif_image_handle_has_alpha_channel", offsetof(struct functions, has_alpha)},
    {"heif_image_handle_is_premultiplied_alpha", offsetof(struct functions, is_premultiplied)},
    {"heif_decoding_options_alloc", offsetof(struct functions, new_options)},
    {"heif_decoding_options_free", offsetof(struct functions, free_options)},
    {"heif_decode_image", offsetof(struct functions, decode)},
    {"heif_image_get_width", offsetof(struct functions, width_of)},
    {"heif_image_get_height", offsetof(struct functions, height_of)},
    {"heif_image_get_plane_readonly", offsetof(struct functions, pixels_of)},
    {"heif_image_release", offsetof(struct functions, free_image)},
    {NULL, 0},
};
static const char *const files[] = {"libheif.so.1", NULL};
static const struct tdmi_image_library library = {"libheif", files, "libheif1", symbols};

enum {
    COLOURS_RGB = 1,
    LAYOUT_RGB = 10,
    LAYOUT_RGBA = 11,
    CHANNEL_INTERLEAVED = 10,
    CODE_UNSUPPORTED_FILE = 3,
    CODE_UNSUPPORTED_FEATURE = 4,
    CODE_MEMORY = 6,
    SUBCODE_END_OF_DATA = 100,
    OPTIONS_WITH_STRICT = 3
};

struct decoding {
    struct functions lib;
    void *context, *handle, *picture;
    struct heif_options *options;
};

static void release(struct decoding *decoding)
{
    const struct functions *lib = &decoding->lib;
    if (decoding->picture != NULL)
        lib->free_image(decoding->picture);
    if (decoding->options != NULL)
        lib->free_options(decoding->options);
    if (decoding->handle != NULL)
        lib->free_handle(decoding->handle);
    if (decoding->context != NULL)
        lib->free_context(decoding->context);
}

static tdm_status check(struct heif_error found, tdm_error *err)
{
    const char *message = found.message != NULL ? found.message : "no reason given";
    switch (found.code) {
    case 0:
        return TDM_OK;
    case CODE_MEMORY:
        return TDM_FAIL(err, TDM_E_MEMORY, "libheif ran out of memory: %s", message);
    case CODE_UNSUPPORTED_FILE:
    case CODE_UNSUPPORTED_FEATURE:
        return TDM_FAIL(err, TDM_E_INPUT, "the libheif of this machine does not read it: %s",
                        message);
    default:
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: %s",
                        found.subcode == SUBCODE_END_OF_DATA ? "truncated" : "damaged", message);
    }
}

/* From rows with padding to the image; RGBA goes over white. */
static void lay(const uint8_t *rows, size_t stride_bytes, bool has_alpha, bool is_premultiplied,
                tdmi_image *image)
{
    const size_t width = (size_t)image->width;
    for (size_t y = 0; y < (size_t)image->height; y++) {
        const uint8_t *from = rows + stride_bytes * y;
        uint8_t *to = image->pixels + 3 * width * y;
        if (!has_alpha) {
            memcpy(to, from, 3 * width);
            continue;
        }
        for (size_t i = 0; i < width; i++, from += 4, to += 3)
            for (size_t c = 0; c < 3; c++) {
                const unsigned sum = from[c] + 255u - from[3];
                to[c] = !is_premultiplied ? tdmi_codec_over_white(from[c], from[3])
                        : sum < 255       ? (uint8_t)sum
                                          : 255;
            }
    }
}

static tdm_status decode_with(struct decoding *decoding, const struct tdmi_codec_source *source,
                              tdmi_image *image, tdm_error *err)
{
    const struct functions *lib = &decoding->lib;
    decoding->context = lib->new_context();
    decoding->options = lib->new_options();
    if (decoding->context == NULL || decoding->options == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "libheif ran out of memory");
    lib->set_threads(decoding->context, 0);
    decoding->options->converts_to_8_bits = 1;
    if (decoding->options->version >= OPTIONS_WITH_STRICT)
        decoding->options->is_strict = 1;
    TDMI_TRY(check(lib->read(decoding->context, source->bytes, source->length_bytes, NULL), err));
    TDMI_TRY(check(lib->find_primary(decoding->context, &decoding->handle), err));
    const bool has_alpha = lib->has_alpha(decoding->handle) != 0;
    TDMI_TRY(check(lib->decode(decoding->handle, &decoding->picture, COLOURS_RGB,
                               has_alpha ? LAYOUT_RGBA : LAYOUT_RGB, decoding->options),
                   err));
    const int width = lib->width_of(decoding->picture, CHANNEL_INTERLEAVED);
    const int height = lib->height_of(decoding->picture, CHANNEL_INTERLEAVED);
    if (width != image->width || height != image->height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its properties say %d x %d pixels, its data %d x %d",
                        image->width, image->height, width, height);
    int stride_bytes = 0;
    const uint8_t *rows = lib->pixels_of(decoding->picture, CHANNEL_INTERLEAVED, &stride_bytes);
    if (rows == NULL || stride_bytes < width * (has_alpha ? 4 : 3))
        return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: libheif gives no RGB of it");
    lay(rows, (size_t)stride_bytes, has_alpha, lib->is_premultiplied(decoding->handle) != 0, image);
    return tdmi_codec_check_time(source, err);
}

tdm_status tdmi_heif_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                            tdm_error *err)
{
    struct tdmi_heif_layout layout;
    TDMI_AT_END(release) struct decoding decoding = {.context = NULL};
    TDMI_TRY(tdmi_image_library_open(&library, &decoding.lib, err));
    TDMI_TRY(tdmi_heif_walk(source->bytes, source->length_bytes, &layout, err));
    if (layout.is_cut)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: its boxes do not end within its %zu bytes",
                        source->length_bytes);
    if (layout.is_tangled)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its boxes refer to each other too often, or cut coded data "
                        "into pieces");
    TDMI_TRY(tdmi_codec_check_shape(source, layout.width, layout.height, err));
    if (layout.has_larger_frames)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its data have frames of %lld pixels, far more than the "
                        "size of their image",
                        (long long)layout.frame_pixels);
    if (layout.coded_pixels > source->max_pixels)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has more than %lld pixels before it is cropped, which is the most that "
                        "is decoded",
                        (long long)source->max_pixels);
    TDMI_TRY(tdmi_codec_check_time(source, err));
    TDMI_TRY(tdmi_codec_shape(source, layout.width, layout.height, image, err));
    /* Its C++ would end the program: planes of up to 16 bits, their RGB, and a turned copy. */
    if (!tdmi_memory_has_room((size_t)(16 * layout.coded_pixels) + (64 << 20)))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for libheif to decode %lld x %lld pixels",
                        (long long)layout.width, (long long)layout.height);
    return decode_with(&decoding, source, image, err);
}

tdm_status tdmi_heif_open(tdm_error *err)
{
    struct functions lib;
    return tdmi_image_library_open(&library, &lib, err);
}

void tdmi_heif_write_decoder(tdmi_text *text)
{
    struct functions lib;
    if (tdmi_image_library_open(&library, &lib, NULL) != TDM_OK)
        return;
    const uint32_t version = lib.version(); /* a byte each, then a 0 */
    tdmi_text_printf(text, "libheif %u.%u.%u", version >> 24, version >> 16 & 255,
                     version >> 8 & 255);
}

/*
 * JPEG XL through libjxl, which applies the orientation of the codestream; EXIF orientation in its
 * boxes repeats it and is not applied (the codec has no find_exif). Of an animation the first
 * frame. Without a runner libjxl decodes in the caller's thread.
 *
 * libjxl is opened where it is installed. Its file name changes with every minor version although
 * the functions and the struct below have stayed the same from 0.7, which Debian 12 has, to 0.11.
 */
#include "base/memory.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/formats/jxl_layout.h"
#include "image/formats/library.h"

/* JxlBasicInfo, up to what is used; libjxl fills in all of its 204 bytes. */
struct info {
    int has_container;
    uint32_t width, height; /* as stored */
    uint32_t bits, exponent_bits;
    float most_light, least_light;
    int is_relative;
    float linear_below;
    int uses_profile, has_preview, has_animation;
    int orientation;
    uint32_t n_colours, n_extra;
    uint32_t alpha_bits, alpha_exponent_bits;
    int is_premultiplied;
    uint8_t rest[256];
};

/* JxlPixelFormat */
struct form {
    uint32_t n_channels;
    int type, byte_order;
    size_t alignment;
};

struct functions {
    uint32_t (*version)(void);
    void *(*new_decoder)(const void *memory);
    void (*free_decoder)(void *decoder);
    int (*subscribe)(void *decoder, int events);
    int (*set_input)(void *decoder, const uint8_t *bytes, size_t n);
    int (*process)(void *decoder);
    int (*get_info)(const void *decoder, struct info *info);
    int (*output_bytes)(const void *decoder, const struct form *form, size_t *n);
    int (*set_output)(void *decoder, const struct form *form, void *pixels, size_t n);
};

static const struct tdmi_image_library_symbol symbols[] = {
    {"JxlDecoderVersion", offsetof(struct functions, version)},
    {"JxlDecoderCreate", offsetof(struct functions, new_decoder)},
    {"JxlDecoderDestroy", offsetof(struct functions, free_decoder)},
    {"JxlDecoderSubscribeEvents", offsetof(struct functions, subscribe)},
    {"JxlDecoderSetInput", offsetof(struct functions, set_input)},
    {"JxlDecoderProcessInput", offsetof(struct functions, process)},
    {"JxlDecoderGetBasicInfo", offsetof(struct functions, get_info)},
    {"JxlDecoderImageOutBufferSize", offsetof(struct functions, output_bytes)},
    {"JxlDecoderSetImageOutBuffer", offsetof(struct functions, set_output)},
    {NULL, 0},
};
static const char *const files[] = {"libjxl.so.0.7",  "libjxl.so.0.8",  "libjxl.so.0.9",
                                    "libjxl.so.0.10", "libjxl.so.0.11", NULL};
static const struct tdmi_image_library library = {"libjxl", files, "libjxl0.7", symbols};

enum {
    DONE = 0,
    MORE_INPUT = 2,
    WANTS_OUTPUT = 5,
    HAS_INFO = 0x40,
    HAS_IMAGE = 0x1000,
    TYPE_BYTE = 2,
    MOST_EXTRA = 16
};

static tdm_status refuse(int code, tdm_error *err)
{
    if (code == MORE_INPUT || code == DONE)
        return TDM_FAIL(err, TDM_E_INPUT, "it is truncated: its image's data ends too early");
    return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: libjxl cannot read its image's data");
}

/* The first image, as bytes of 3 or 4 channels. */
static tdm_status read_pixels(const struct functions *lib, void *decoder, const struct form *form,
                              uint8_t *pixels, size_t n_bytes, tdm_error *err)
{
    size_t wanted_bytes = 0;
    int code = lib->process(decoder);
    if (code != WANTS_OUTPUT)
        return refuse(code, err);
    if (lib->output_bytes(decoder, form, &wanted_bytes) != DONE || wanted_bytes != n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its header and its data are of two sizes");
    if (lib->set_output(decoder, form, pixels, n_bytes) != DONE)
        return refuse(HAS_IMAGE, err);
    code = lib->process(decoder);
    return code == HAS_IMAGE ? TDM_OK : refuse(code, err);
}

static void lay(const uint8_t *rgba, bool is_premultiplied, tdmi_image *image)
{
    const size_t n = (size_t)image->width * (size_t)image->height;
    uint8_t *to = image->pixels;
    for (size_t i = 0; i < n; i++, rgba += 4, to += 3)
        for (size_t c = 0; c < 3; c++) {
            const unsigned sum = rgba[c] + 255u - rgba[3];
            to[c] = !is_premultiplied ? tdmi_codec_over_white(rgba[c], rgba[3])
                    : sum < 255       ? (uint8_t)sum
                                      : 255;
        }
}

/* The input is never closed, which would make libjxl print that it wants more. */
static tdm_status decode_with(const struct functions *lib, void *decoder,
                              const struct tdmi_codec_source *source, tdmi_image *image,
                              tdm_error *err)
{
    struct info info = {0};
    if (lib->subscribe(decoder, HAS_INFO | HAS_IMAGE) != DONE ||
        lib->set_input(decoder, source->bytes, source->length_bytes) != DONE)
        return TDM_FAIL(err, TDM_E_MEMORY, "libjxl does not start");
    const int code = lib->process(decoder);
    if (code != HAS_INFO || lib->get_info(decoder, &info) != DONE)
        return refuse(code, err);
    const size_t n_pixels = (size_t)image->width * (size_t)image->height;
    struct form form = {.n_channels = 3, .type = TYPE_BYTE};
    if (info.alpha_bits == 0)
        return read_pixels(lib, decoder, &form, image->pixels, 3 * n_pixels, err);
    TDMI_AT_END(tdmi_free_at) uint8_t *rgba = NULL;
    form.n_channels = 4;
    TDMI_TRY(TDMI_NEW(rgba, 4 * n_pixels, err));
    TDMI_TRY(read_pixels(lib, decoder, &form, rgba, 4 * n_pixels, err));
    lay(rgba, info.is_premultiplied != 0, image);
    return TDM_OK;
}

tdm_status tdmi_jxl_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    struct functions lib;
    struct tdmi_jxl_layout layout;
    TDMI_TRY(tdmi_image_library_open(&library, &lib, err));
    TDMI_TRY(tdmi_jxl_walk(source->bytes, source->length_bytes, &layout, err));
    if (layout.is_cut)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: its boxes do not end within its %zu bytes",
                        source->length_bytes);
    if (layout.bits < 1 || layout.bits > 32 || layout.n_extra > MOST_EXTRA)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has %lld channels beside its colours, of %d bits; up to %d and 32 bits "
                        "are read",
                        (long long)layout.n_extra, layout.bits, MOST_EXTRA);
    const bool is_turned = layout.orientation >= 5;
    TDMI_TRY(tdmi_codec_check_time(source, err));
    TDMI_TRY(tdmi_codec_shape(source, is_turned ? layout.height : layout.width,
                              is_turned ? layout.width : layout.height, image, err));
    /* It works in floats and may end the program without memory. */
    const size_t n_pixels = (size_t)image->width * (size_t)image->height;
    if (!tdmi_memory_has_room(n_pixels * 4 * (size_t)(8 + layout.n_extra) + (64 << 20)))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for libjxl to decode %d x %d pixels",
                        image->width, image->height);
    void *decoder = lib.new_decoder(NULL);
    if (decoder == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "libjxl ran out of memory");
    tdm_status status = decode_with(&lib, decoder, source, image, err);
    lib.free_decoder(decoder);
    return status == TDM_OK ? tdmi_codec_check_time(source, err) : status;
}

tdm_status tdmi_jxl_open(tdm_error *err)
{
    struct functions lib;
    return tdmi_image_library_open(&library, &lib, err);
}

void tdmi_jxl_write_decoder(tdmi_text *text)
{
    struct functions lib;
    if (tdmi_image_library_open(&library, &lib, NULL) != TDM_OK)
        return;
    const uint32_t version = lib.version(); /* decimal: 0.7.0 is 7000 */
    tdmi_text_printf(text, "libjxl %u.%u.%u", version / 1000000, version / 1000 % 1000,
                     version % 1000);
}

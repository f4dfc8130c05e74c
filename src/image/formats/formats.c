/*
 * The registry of image formats: one table, built from formats.def, and the calls that only look
 * a format up in it. This is the one file that asks which decoders the build has.
 */
#include "base/clock.h"
#include "image/formats/codec.h"
#include "image/image.h"
#include "tandem_features.h"
#include <string.h>
#include <strings.h>

/* Pillow refuses what is larger as a decompression bomb. */
/* As many pixels, three channels of 16 bits, unpacked. */
#define DEFAULT_MAX_BYTES ((int64_t)1 << 30)
/* Far above what the largest image needs, so that a busy machine refuses nothing sound. */
#define DEFAULT_MAX_NS ((int64_t)60 * 1000000000)

static bool is_jpeg(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

static bool is_png(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_gif(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 6 &&
           (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

static bool is_webp(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static bool is_bmp(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 2 && memcmp(bytes, "BM", 2) == 0;
}

static bool is_ppm(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 3 && bytes[0] == 'P' && bytes[1] != 0 &&
           strchr("123456", bytes[1]) != NULL && bytes[2] != 0 &&
           strchr(" \t\r\n#", bytes[2]) != NULL;
}

#if TDM_HAVE_JPEG
#define JPEG_CALLS tdmi_jpeg_decode, tdmi_jpeg_encode
#define JPEG_DECODER tdmi_jpeg_write_decoder
#else
#define JPEG_CALLS NULL, NULL
#define JPEG_DECODER NULL
#endif
#if TDM_HAVE_PNG
#define PNG_CALLS tdmi_png_decode, tdmi_png_encode
#define PNG_DECODER tdmi_png_write_decoder
#else
#define PNG_CALLS NULL, NULL
#define PNG_DECODER NULL
#endif

#if TDM_HAVE_GIF
#define GIF_CALLS tdmi_gif_decode, NULL
#define GIF_DECODER tdmi_gif_write_decoder
#else
#define GIF_CALLS NULL, NULL
#define GIF_DECODER NULL
#endif
#if TDM_HAVE_WEBP
#define WEBP_CALLS tdmi_webp_decode, NULL
#define WEBP_DECODER tdmi_webp_write_decoder
#else
#define WEBP_CALLS NULL, NULL
#define WEBP_DECODER NULL
#endif
#define BMP_CALLS tdmi_bmp_decode, tdmi_bmp_encode
#define PPM_CALLS tdmi_ppm_decode, tdmi_ppm_encode

static const struct tdmi_codec codecs[TDMI_IMAGE_FORMATS] = {
    [TDMI_IMAGE_UNKNOWN] = {"unknown", NULL, NULL, NULL, NULL, NULL, NULL},
    [TDMI_IMAGE_JPEG] = {"JPEG", is_jpeg, JPEG_CALLS, tdmi_jpeg_describe, tdmi_exif_in_jpeg,
                         JPEG_DECODER},
    [TDMI_IMAGE_PNG] = {"PNG", is_png, PNG_CALLS, tdmi_png_describe, tdmi_exif_in_png, PNG_DECODER},
    [TDMI_IMAGE_GIF] = {"GIF", is_gif, GIF_CALLS, tdmi_gif_describe, NULL, GIF_DECODER},
    [TDMI_IMAGE_WEBP] = {"WebP", is_webp, WEBP_CALLS, tdmi_webp_describe, tdmi_exif_in_webp,
                         WEBP_DECODER},
    [TDMI_IMAGE_BMP] = {"BMP", is_bmp, BMP_CALLS, tdmi_bmp_describe, NULL, NULL},
    [TDMI_IMAGE_PPM] = {"PPM", is_ppm, PPM_CALLS, tdmi_ppm_describe, NULL, NULL},
};

static const char *const extensions[TDMI_IMAGE_FORMATS] = {
    [TDMI_IMAGE_UNKNOWN] = "",
#define X(name, extensions_of_it, what_brings_it) [TDMI_IMAGE_##name] = extensions_of_it,
#include "image/formats/formats.def"
#undef X
};

static const char *const prefetched_by[TDMI_IMAGE_FORMATS] = {
    [TDMI_IMAGE_UNKNOWN] = "",
#define X(name, extensions_of_it, what_brings_it) [TDMI_IMAGE_##name] = what_brings_it,
#include "image/formats/formats.def"
#undef X
};

/* ---- look-ups -------------------------------------------------------------------------------- */

const struct tdmi_codec *tdmi_codec_of(enum tdmi_image_format format)
{
    return &codecs[format > TDMI_IMAGE_UNKNOWN && format < TDMI_IMAGE_FORMATS ? format
                                                                              : TDMI_IMAGE_UNKNOWN];
}

enum tdmi_image_format tdmi_image_sniff(const void *bytes, size_t length_bytes)
{
    for (int i = TDMI_IMAGE_UNKNOWN + 1; i < TDMI_IMAGE_FORMATS; i++)
        if (codecs[i].sniff(bytes, length_bytes))
            return (enum tdmi_image_format)i;
    return TDMI_IMAGE_UNKNOWN;
}

const char *tdmi_image_format_name(enum tdmi_image_format format)
{
    return tdmi_codec_of(format)->name;
}

bool tdmi_image_can_decode(enum tdmi_image_format format)
{
    return tdmi_codec_of(format)->decode != NULL;
}

bool tdmi_image_can_encode(enum tdmi_image_format format)
{
    return tdmi_codec_of(format)->encode != NULL;
}

void tdmi_image_write_decoders(tdmi_text *text)
{
    for (int i = TDMI_IMAGE_UNKNOWN + 1, n = 0; i < TDMI_IMAGE_FORMATS; i++) {
        if (codecs[i].write_decoder == NULL)
            continue;
        tdmi_text_printf(text, "%s%s: ", n++ > 0 ? "; " : "", codecs[i].name);
        codecs[i].write_decoder(text);
    }
}

enum tdmi_image_format tdmi_image_format_of_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || dot[1] == '\0')
        return TDMI_IMAGE_UNKNOWN;
    size_t length = strlen(dot);
    for (int i = TDMI_IMAGE_UNKNOWN + 1; i < TDMI_IMAGE_FORMATS; i++)
        for (const char *at = strchr(extensions[i], '.'); at != NULL; at = strchr(at + 1, '.'))
            if (strncasecmp(at, dot, length) == 0 && (at[length] == '.' || at[length] == '\0'))
                return (enum tdmi_image_format)i;
    return TDMI_IMAGE_UNKNOWN;
}

bool tdmi_image_has_extension(const char *path)
{
    return tdmi_image_format_of_name(path) != TDMI_IMAGE_UNKNOWN;
}

/* ---- decode, encode -------------------------------------------------------------------------- */

/* Formats that are common in folders of images but not read: names for the refusal. */
static const char *stranger_of(const uint8_t *bytes, size_t length_bytes)
{
    static const struct {
        const char *name, *start;
        uint8_t at, length;
    } strangers[] = {
        {"a TIFF image", "II*\0", 0, 4},
        {"a TIFF image", "MM\0*", 0, 4},
        {"a HEIC image", "ftyphei", 4, 7},
        {"a HEIC image", "ftypmif1", 4, 8},
        {"an AVIF image", "ftypavi", 4, 7},
        {"a JPEG XL image", "\xff\x0a", 0, 2},
        {"a JPEG XL image", "\0\0\0\x0cJXL ", 0, 8},
        {"a JPEG 2000 image", "\0\0\0\x0cjP  ", 0, 8},
        {"a Photoshop image", "8BPS", 0, 4},
        {"an icon", "\0\0\1\0", 0, 4},
        {"a PDF document", "%PDF", 0, 4},
        {"a zip archive", "PK\3\4", 0, 4},
        {"text in a markup language, such as a web page,", "<", 0, 1},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        const size_t at = strangers[i].at, length = strangers[i].length;
        if (length_bytes >= at + length && memcmp(bytes + at, strangers[i].start, length) == 0)
            return strangers[i].name;
    }
    return NULL;
}

tdm_status tdmi_codec_refuse_unknown(const uint8_t *bytes, size_t length_bytes, tdm_error *err)
{
    if (length_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "there are no bytes in it");
    char shown[3 * 8 + 1] = "";
    size_t n = 0;
    for (size_t i = 0; i < length_bytes && i < 8; i++) {
        static const char hex[] = "0123456789abcdef";
        shown[n++] = hex[bytes[i] >> 4];
        shown[n++] = hex[bytes[i] & 15];
        shown[n++] = ' ';
    }
    shown[n - 1] = '\0';
    const char *stranger = stranger_of(bytes, length_bytes);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "it begins with the bytes %s%s%s%s; JPEG, PNG, GIF, WebP, BMP and PPM images "
                    "are read",
                    shown, stranger != NULL ? ", as " : "", stranger != NULL ? stranger : "",
                    stranger != NULL ? " does" : "");
}

tdm_status tdmi_image_decode(const void *bytes, size_t length_bytes, const char *name,
                             struct tdmi_image_limits limits, tdmi_image *image, tdm_error *err)
{
    return tdmi_image_decode_rows(bytes, length_bytes, name, limits, NULL, image, err);
}

tdm_status tdmi_image_decode_rows(const void *bytes, size_t length_bytes, const char *name,
                                  struct tdmi_image_limits limits, const struct tdmi_row_sink *sink,
                                  tdmi_image *image, tdm_error *err)
{
    enum tdmi_image_format format = tdmi_image_sniff(bytes, length_bytes);
    const struct tdmi_codec *codec = tdmi_codec_of(format);
    if (format == TDMI_IMAGE_UNKNOWN)
        return TDM_WRAP(err, tdmi_codec_refuse_unknown(bytes, length_bytes, err),
                        "cannot read image \"%s\"", name);
    if (codec->decode == NULL)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "cannot read image \"%s\": it is a %s file and this build has no decoder "
                        "for it; install %s and build again",
                        name, codec->name, prefetched_by[format]);
    const int64_t max_bytes = limits.max_bytes > 0 ? limits.max_bytes : DEFAULT_MAX_BYTES;
    if (length_bytes > (uint64_t)max_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "cannot read %s image \"%s\": it has %zu bytes; at most %lld are decoded",
                        codec->name, name, length_bytes, (long long)max_bytes);
    const int64_t max_ns = limits.max_ns > 0 ? limits.max_ns : DEFAULT_MAX_NS;
    const int64_t now_ns = tdmi_clock_ns();
    struct tdmi_codec_source source = {
        .bytes = bytes,
        .length_bytes = length_bytes,
        .max_pixels = limits.max_pixels > 0 ? limits.max_pixels : TDMI_IMAGE_MOST_PIXELS,
        .deadline_ns = max_ns < INT64_MAX - now_ns ? now_ns + max_ns : INT64_MAX,
        .max_ns = max_ns,
        .is_strict = limits.is_strict,
    };
    const int orientation = tdmi_exif_orientation(bytes, length_bytes);
    source.sink = sink;
    source.orientation = orientation;
    TDM_TRY(codec->decode(&source, image, err), err, "cannot read %s image \"%s\"", codec->name,
            name);
    TDM_TRY(tdmi_image_orient(image, orientation, err), err, "cannot rotate %s image \"%s\"",
            codec->name, name);
    return TDM_OK;
}

tdm_status tdmi_image_encode(const tdmi_image *image, enum tdmi_image_format format, int quality,
                             tdmi_text *out, tdm_error *err)
{
    const struct tdmi_codec *codec = tdmi_codec_of(format);
    if (codec->encode == NULL)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "cannot write a %s image: this build has no encoder for it; install %s "
                        "and build again",
                        codec->name, prefetched_by[format]);
    if (image->pixels == NULL || image->width < 1 || image->height < 1)
        return TDM_FAIL(err, TDM_E_USAGE, "cannot write an empty image as %s", codec->name);
    TDM_TRY(codec->encode(image, quality, out, err), err,
            "cannot write an image of %d x %d pixels as %s", image->width, image->height,
            codec->name);
    if (out->is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a %s image of %d x %d pixels",
                        codec->name, image->width, image->height);
    return TDM_OK;
}

int tdmi_exif_orientation(const void *bytes, size_t length_bytes)
{
    const struct tdmi_codec *codec = tdmi_codec_of(tdmi_image_sniff(bytes, length_bytes));
    if (codec->find_exif == NULL)
        return 1;
    size_t exif_bytes = 0;
    const uint8_t *tiff = codec->find_exif(bytes, length_bytes, &exif_bytes);
    return tiff == NULL ? 1 : tdmi_exif_orientation_in(tiff, exif_bytes);
}

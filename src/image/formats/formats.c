/*
 * The registry of image formats: one table, built from formats.def, and the calls that only look
 * a format up in it. This is the one file that asks which decoders the build has.
 */
#include "base/clock.h"
#include "image/formats/codec.h"
#include "image/formats/heif_layout.h"
#include "image/image.h"
#include "tandem_features.h"
#include <string.h>
#include <strings.h>

/* TDMI_IMAGE_MOST_PIXELS pixels of three channels of 16 bits. */
#define DEFAULT_MAX_BYTES ((int64_t)1 << 30)
/* Far above what the largest image needs, so that a busy machine refuses nothing sound. */
#define DEFAULT_MAX_NS ((int64_t)60 * 1000000000)

#define CALL_0(function) NULL
#define CALL_1(function) function
#define CALL_OF(has_library, function) CALL_##has_library(function)
#define CALL(has_library, function) CALL_OF(has_library, function)

static const struct tdmi_codec codecs[TDMI_IMAGE_FORMATS] = {
    [TDMI_IMAGE_UNKNOWN] = {.name = "unknown"},
    [TDMI_IMAGE_JPEG] = {"JPEG", CALL(TDM_HAVE_JPEG, tdmi_jpeg_decode),
                         CALL(TDM_HAVE_JPEG, tdmi_jpeg_encode), tdmi_jpeg_describe,
                         tdmi_exif_in_jpeg, CALL(TDM_HAVE_JPEG, tdmi_jpeg_write_decoder)},
    [TDMI_IMAGE_PNG] = {"PNG", CALL(TDM_HAVE_PNG, tdmi_png_decode),
                        CALL(TDM_HAVE_PNG, tdmi_png_encode), tdmi_png_describe, tdmi_exif_in_png,
                        CALL(TDM_HAVE_PNG, tdmi_png_write_decoder)},
    [TDMI_IMAGE_GIF] = {"GIF", CALL(TDM_HAVE_GIF, tdmi_gif_decode), NULL, tdmi_gif_describe, NULL,
                        CALL(TDM_HAVE_GIF, tdmi_gif_write_decoder)},
    [TDMI_IMAGE_WEBP] = {"WebP", CALL(TDM_HAVE_WEBP, tdmi_webp_decode), NULL, tdmi_webp_describe,
                         tdmi_exif_in_webp, CALL(TDM_HAVE_WEBP, tdmi_webp_write_decoder)},
    [TDMI_IMAGE_BMP] = {"BMP", tdmi_bmp_decode, tdmi_bmp_encode, tdmi_bmp_describe, NULL, NULL},
    [TDMI_IMAGE_PPM] = {"PPM", tdmi_ppm_decode, tdmi_ppm_encode, tdmi_ppm_describe, NULL, NULL},
    [TDMI_IMAGE_TIFF] = {"TIFF", CALL(TDM_HAVE_TIFF, tdmi_tiff_decode), NULL, tdmi_tiff_describe,
                         tdmi_exif_in_tiff, CALL(TDM_HAVE_TIFF, tdmi_tiff_write_decoder),
                         CALL(TDM_HAVE_TIFF, tdmi_tiff_open)},
    [TDMI_IMAGE_HEIC] = {"HEIC", CALL(TDM_HAVE_HEIF, tdmi_heif_decode), NULL, tdmi_heif_describe,
                         NULL, CALL(TDM_HAVE_HEIF, tdmi_heif_write_decoder),
                         CALL(TDM_HAVE_HEIF, tdmi_heif_open)},
    [TDMI_IMAGE_AVIF] = {"AVIF", CALL(TDM_HAVE_HEIF, tdmi_heif_decode), NULL, tdmi_heif_describe,
                         NULL, CALL(TDM_HAVE_HEIF, tdmi_heif_write_decoder),
                         CALL(TDM_HAVE_HEIF, tdmi_heif_open)},
    [TDMI_IMAGE_JXL] = {"JPEG XL", CALL(TDM_HAVE_JXL, tdmi_jxl_decode), NULL, tdmi_jxl_describe,
                        NULL, CALL(TDM_HAVE_JXL, tdmi_jxl_write_decoder),
                        CALL(TDM_HAVE_JXL, tdmi_jxl_open)},
};

static const struct {
    const char *extensions, *package;
} builds[TDMI_IMAGE_FORMATS] = {
    [TDMI_IMAGE_UNKNOWN] = {"", ""},
#define X(name, extensions, package) [TDMI_IMAGE_##name] = {extensions, package},
#include "image/formats/formats.def"
#undef X
};

/* ---- look-ups -------------------------------------------------------------------------------- */

const struct tdmi_codec *tdmi_codec_of(enum tdmi_image_format format)
{
    return &codecs[format > TDMI_IMAGE_UNKNOWN && format < TDMI_IMAGE_FORMATS ? format
                                                                              : TDMI_IMAGE_UNKNOWN];
}

/* Bytes that a file of some kind has at a place. */
struct mark {
    const char *bytes;
    uint8_t at, length;
};

static bool has_mark(struct mark mark, const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= (size_t)mark.at + mark.length &&
           memcmp(bytes + mark.at, mark.bytes, mark.length) == 0;
}

static bool is_ppm(const uint8_t *bytes, size_t length_bytes)
{
    return length_bytes >= 3 && bytes[0] == 'P' && bytes[1] != 0 &&
           strchr("123456", bytes[1]) != NULL && bytes[2] != 0 &&
           strchr(" \t\r\n#", bytes[2]) != NULL;
}

/* Both are HEIF files; the brands in their first box tell the codec. */
static enum tdmi_image_format sniff_heif(const uint8_t *bytes, size_t length_bytes)
{
    static const char *const heic[] = {"heic", "heix", "heim", "heis",
                                       "hevc", "hevx", "mif1", "msf1"};
    if (tdmi_heif_has_brand(bytes, length_bytes, "avif") ||
        tdmi_heif_has_brand(bytes, length_bytes, "avis"))
        return TDMI_IMAGE_AVIF;
    for (size_t i = 0; i < sizeof heic / sizeof heic[0]; i++)
        if (tdmi_heif_has_brand(bytes, length_bytes, heic[i]))
            return TDMI_IMAGE_HEIC;
    return TDMI_IMAGE_UNKNOWN;
}

enum tdmi_image_format tdmi_image_sniff(const void *bytes, size_t length_bytes)
{
    static const struct {
        enum tdmi_image_format format;
        struct mark first, second;
    } known[] = {
        {TDMI_IMAGE_JPEG, {"\xff\xd8\xff", 0, 3}, {"", 0, 0}},
        {TDMI_IMAGE_PNG, {"\x89PNG\r\n\x1a\n", 0, 8}, {"", 0, 0}},
        {TDMI_IMAGE_GIF, {"GIF87a", 0, 6}, {"", 0, 0}},
        {TDMI_IMAGE_GIF, {"GIF89a", 0, 6}, {"", 0, 0}},
        {TDMI_IMAGE_WEBP, {"RIFF", 0, 4}, {"WEBP", 8, 4}},
        {TDMI_IMAGE_BMP, {"BM", 0, 2}, {"", 0, 0}},
        {TDMI_IMAGE_TIFF, {"II*\0", 0, 4}, {"", 0, 0}},
        {TDMI_IMAGE_TIFF, {"MM\0*", 0, 4}, {"", 0, 0}},
        {TDMI_IMAGE_TIFF, {"II+\0", 0, 4}, {"", 0, 0}},
        {TDMI_IMAGE_TIFF, {"MM\0+", 0, 4}, {"", 0, 0}},
        {TDMI_IMAGE_JXL, {"\xff\x0a", 0, 2}, {"", 0, 0}},
        {TDMI_IMAGE_JXL, {"\0\0\0\x0cJXL \r\n\x87\n", 0, 12}, {"", 0, 0}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (has_mark(known[i].first, bytes, length_bytes) &&
            has_mark(known[i].second, bytes, length_bytes))
            return known[i].format;
    return is_ppm(bytes, length_bytes) ? TDMI_IMAGE_PPM : sniff_heif(bytes, length_bytes);
}

const char *tdmi_image_format_name(enum tdmi_image_format format)
{
    return tdmi_codec_of(format)->name;
}

const char *tdmi_image_package(enum tdmi_image_format format)
{
    return builds[format].package;
}

tdm_status tdmi_image_find_decoder(enum tdmi_image_format format, tdm_error *err)
{
    const struct tdmi_codec *codec = tdmi_codec_of(format);
    if (codec->decode == NULL)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "this build has no decoder for %s; install %s and build again", codec->name,
                        builds[format].package);
    return codec->open != NULL ? codec->open(err) : TDM_OK;
}

bool tdmi_image_can_decode(enum tdmi_image_format format)
{
    return tdmi_image_find_decoder(format, NULL) == TDM_OK;
}

bool tdmi_image_can_encode(enum tdmi_image_format format)
{
    return tdmi_codec_of(format)->encode != NULL;
}

void tdmi_image_write_decoders(const bool formats[TDMI_IMAGE_FORMATS], tdmi_text *text)
{
    for (int i = TDMI_IMAGE_UNKNOWN + 1, n = 0; i < TDMI_IMAGE_FORMATS; i++) {
        if (codecs[i].write_decoder == NULL || (codecs[i].open && !formats[i]) ||
            !tdmi_image_can_decode((enum tdmi_image_format)i))
            continue;
        tdmi_text_printf(text, "%s%s: ", n++ > 0 ? "; " : "", codecs[i].name);
        codecs[i].write_decoder(text);
    }
}

/* The ending of a file name with its dot, NULL without one. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot == NULL || dot == name || dot[1] == '\0' ? NULL : dot;
}

/* Is it among endings such as ".jpg.jpeg", in any case? */
static bool is_among(const char *ending, const char *endings)
{
    const size_t length = strlen(ending);
    for (const char *at = strchr(endings, '.'); at != NULL; at = strchr(at + 1, '.'))
        if (strncasecmp(at, ending, length) == 0 && (at[length] == '.' || at[length] == '\0'))
            return true;
    return false;
}

enum tdmi_image_format tdmi_image_format_of_name(const char *path)
{
    const char *ending = ending_of(path);
    for (int i = TDMI_IMAGE_UNKNOWN + 1; ending != NULL && i < TDMI_IMAGE_FORMATS; i++)
        if (is_among(ending, builds[i].extensions))
            return (enum tdmi_image_format)i;
    return TDMI_IMAGE_UNKNOWN;
}

static const struct {
    const char *words, *extensions;
} unread[TDMI_UNREAD_KINDS] = {
#define X(name, words, extensions) [TDMI_UNREAD_##name] = {words, extensions},
#include "image/formats/unread.def"
#undef X
};

enum tdmi_image_unread tdmi_image_unread_of_name(const char *path)
{
    const char *ending = ending_of(path);
    int kind = 0;
    while (kind < TDMI_UNREAD_KINDS &&
           (ending == NULL || !is_among(ending, unread[kind].extensions)))
        kind++;
    return (enum tdmi_image_unread)kind;
}

const char *tdmi_image_unread_words(enum tdmi_image_unread kind)
{
    return unread[kind].words;
}

bool tdmi_image_has_extension(const char *path)
{
    return tdmi_image_format_of_name(path) != TDMI_IMAGE_UNKNOWN;
}

/* ---- decode, encode -------------------------------------------------------------------------- */

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
    TDM_TRY(tdmi_image_find_decoder(format, err), err, "cannot read %s image \"%s\"", codec->name,
            name);
    const int64_t max_bytes = limits.max_bytes > 0 ? limits.max_bytes : DEFAULT_MAX_BYTES;
    if (length_bytes > (uint64_t)max_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "cannot read %s image \"%s\": it has %zu bytes; at most %lld are decoded",
                        codec->name, name, length_bytes, (long long)max_bytes);
    const int64_t max_ns = limits.max_ns > 0 ? limits.max_ns : DEFAULT_MAX_NS;
    const int64_t now_ns = tdmi_clock_ns();
    const struct tdmi_codec_source source = {
        .bytes = bytes,
        .length_bytes = length_bytes,
        .max_pixels = limits.max_pixels > 0 ? limits.max_pixels : TDMI_IMAGE_MOST_PIXELS,
        .deadline_ns = max_ns < INT64_MAX - now_ns ? now_ns + max_ns : INT64_MAX,
        .max_ns = max_ns,
        .sink = sink,
        .orientation = tdmi_exif_orientation(bytes, length_bytes),
        .is_strict = limits.is_strict,
    };
    TDM_TRY(codec->decode(&source, image, err), err, "cannot read %s image \"%s\"", codec->name,
            name);
    TDM_TRY(tdmi_image_orient(image, source.orientation, err), err, "cannot rotate %s image \"%s\"",
            codec->name, name);
    return TDM_OK;
}

bool tdmi_image_is_written(enum tdmi_image_format format)
{
    return format == TDMI_IMAGE_JPEG || format == TDMI_IMAGE_PNG || format == TDMI_IMAGE_BMP ||
           format == TDMI_IMAGE_PPM;
}

tdm_status tdmi_image_encode(const tdmi_image *image, enum tdmi_image_format format, int quality,
                             tdmi_text *out, tdm_error *err)
{
    const struct tdmi_codec *codec = tdmi_codec_of(format);
    if (!tdmi_image_is_written(format))
        return TDM_FAIL(err, TDM_E_ABSENT, "cannot write a %s image: tandem reads them alone",
                        codec->name);
    if (codec->encode == NULL)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "cannot write a %s image: this build has no encoder for it; install %s "
                        "and build again",
                        codec->name, builds[format].package);
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

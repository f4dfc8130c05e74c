/*
 * Windows and OS/2 bitmaps: palettes of 1, 4 and 8 bits (plain or run-length coded), 16, 24 and 32
 * bits with the usual or any other contiguous channel masks, bottom-up and top-down. A file is a
 * 14-byte file header, an information header of 12 to 124 bytes, masks, palette, then rows padded
 * to 4 bytes. Every length the headers claim is compared with the bytes that are there first.
 *
 * An alpha mask is honoured (over white) unless every pixel's alpha is 0: programs that fill the
 * mask but not the channel are common, and nobody stores an invisible image.
 */
#include "base/bytes.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/facts.h"
#include <string.h>

enum { FILE_HEADER_BYTES = 14, CORE_HEADER_BYTES = 12, OS2_HEADER_BYTES = 64 };
enum { RED, GREEN, BLUE, ALPHA, CHANNELS };
enum compression { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, MASKS_WITH_ALPHA = 6 };

struct channel {
    uint32_t mask, maximum; /* maximum: the mask moved down, 0 for an absent channel */
    int shift;
};

struct header {
    int64_t width, height;
    bool is_top_down;
    unsigned bits;
    uint32_t compression;
    size_t n_colours;
    uint8_t palette[256][3];
    struct channel channels[CHANNELS];
    const uint8_t *pixels; /* up to the end of the file */
    size_t pixel_bytes;
};

static uint32_t read_16(const uint8_t *at)
{
    return (uint32_t)tdmi_read_little(at, 2);
}

static uint32_t read_32(const uint8_t *at)
{
    return (uint32_t)tdmi_read_little(at, 4);
}

/* ---- header ---------------------------------------------------------------------------------- */

static bool is_known_header(uint32_t bytes)
{
    static const uint8_t known[] = {CORE_HEADER_BYTES, 40, 52, 56, OS2_HEADER_BYTES, 108, 124};
    for (size_t i = 0; i < sizeof known; i++)
        if (bytes == known[i])
            return true;
    return false;
}

static bool is_known_form(const struct header *header, uint32_t header_bytes)
{
    switch (header->compression) {
    case PLAIN:
        return header->bits == 1 || header->bits == 4 || header->bits == 8 || header->bits == 16 ||
               header->bits == 24 || header->bits == 32;
    case RLE8:
        return header->bits == 8;
    case RLE4:
        return header->bits == 4;
    case MASKS:
    case MASKS_WITH_ALPHA:
        return (header->bits == 16 || header->bits == 32) && header_bytes != OS2_HEADER_BYTES;
    default:
        return false;
    }
}

static tdm_status set_masks(struct header *header, const uint32_t masks[CHANNELS], tdm_error *err)
{
    if ((masks[RED] | masks[GREEN] | masks[BLUE]) == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "its header is damaged: all channel masks are 0");
    for (int c = 0; c < CHANNELS; c++) {
        struct channel *channel = &header->channels[c];
        channel->mask = masks[c];
        channel->maximum = masks[c];
        channel->shift = 0;
        while (channel->maximum != 0 && (channel->maximum & 1) == 0) {
            channel->maximum >>= 1;
            channel->shift++;
        }
        if ((channel->maximum & (channel->maximum + 1)) != 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "its header is damaged: channel mask 0x%08x is not in one piece",
                            masks[c]);
    }
    return TDM_OK;
}

/* Masks stand behind a 40-byte header or inside a longer one; *used is where the header ends. */
static tdm_status read_masks(const struct tdmi_codec_source *source, uint32_t header_bytes,
                             struct header *header, size_t *used, tdm_error *err)
{
    static const uint32_t usual_16[CHANNELS] = {0x7c00, 0x3e0, 0x1f, 0};
    static const uint32_t usual_32[CHANNELS] = {0xff0000, 0xff00, 0xff, 0};
    if (header->compression != MASKS && header->compression != MASKS_WITH_ALPHA)
        return set_masks(header, header->bits == 16 ? usual_16 : usual_32, err);
    size_t at = FILE_HEADER_BYTES + 40;
    int n_masks = header_bytes >= 56 || header->compression == MASKS_WITH_ALPHA ? 4 : 3;
    size_t end = at + 4 * (size_t)n_masks;
    if (end > source->length_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "it is truncated inside its channel masks");
    uint32_t masks[CHANNELS] = {0};
    for (int c = 0; c < n_masks; c++)
        masks[c] = read_32(source->bytes + at + 4 * (size_t)c);
    if (end > *used)
        *used = end;
    return set_masks(header, masks, err);
}

/* The palette lies between header and pixels. A file may leave out its unused tail, and entries
 * that no index can reach are skipped, but a claim that runs into the pixels is damage. */
static tdm_status read_palette(const struct tdmi_codec_source *source, bool is_core,
                               uint32_t n_claimed, size_t start, size_t end, struct header *header,
                               tdm_error *err)
{
    const size_t entry_bytes = is_core ? 3 : 4, n_fitting = (end - start) / entry_bytes;
    const size_t n_reachable = (size_t)1 << header->bits;
    if (n_claimed > n_fitting)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its header is damaged: it claims %u colours and has room for %zu",
                        n_claimed, n_fitting);
    header->n_colours = n_claimed != 0 ? n_claimed : n_fitting;
    if (header->n_colours > n_reachable)
        header->n_colours = n_reachable;
    for (size_t i = 0; i < header->n_colours; i++) {
        const uint8_t *entry = source->bytes + start + i * entry_bytes;
        for (int c = 0; c < 3; c++)
            header->palette[i][c] = entry[2 - c]; /* stored blue, green, red */
    }
    return TDM_OK;
}

static tdm_status read_header(const struct tdmi_codec_source *source, struct header *header,
                              tdm_error *err)
{
    const uint8_t *bytes = source->bytes, *info = bytes + FILE_HEADER_BYTES;
    const uint32_t header_bytes =
        source->length_bytes >= FILE_HEADER_BYTES + CORE_HEADER_BYTES ? read_32(info) : 0;
    if (header_bytes == 0 || source->length_bytes < FILE_HEADER_BYTES + (size_t)header_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "it is truncated: %zu bytes do not hold its header",
                        source->length_bytes);
    if (!is_known_header(header_bytes))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its header is damaged: it has %u bytes; 12, 40, 52, 56, 64, 108 and 124 "
                        "are read",
                        header_bytes);
    const bool is_core = header_bytes == CORE_HEADER_BYTES;
    uint32_t n_claimed = 0;
    if (is_core) {
        header->width = read_16(info + 4);
        header->height = read_16(info + 6);
        header->bits = read_16(info + 10);
    } else {
        header->width = (int32_t)read_32(info + 4);
        header->height = (int32_t)read_32(info + 8);
        header->bits = read_16(info + 14);
        header->compression = read_32(info + 16);
        n_claimed = read_32(info + 32);
    }
    header->is_top_down = header->height < 0;
    if (header->is_top_down)
        header->height = -header->height;
    if (!is_known_form(header, header_bytes))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has %u bits a pixel in compression %u; read are 1, 4, 8, 16, 24 and 32 "
                        "bits in 0, 8 in 1 (RLE8), 4 in 2 (RLE4), 16 and 32 in 3 and 6 (masks)",
                        header->bits, header->compression);

    size_t used = FILE_HEADER_BYTES + header_bytes, start = read_32(bytes + 10);
    TDMI_TRY(read_masks(source, header_bytes, header, &used, err));
    if (start < used || start > source->length_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged or truncated: pixels begin at byte %zu, between "
                        "%zu and %zu are possible",
                        start, used, source->length_bytes);
    header->pixels = bytes + start;
    header->pixel_bytes = source->length_bytes - start;
    return header->bits > 8 ? TDM_OK
                            : read_palette(source, is_core, n_claimed, used, start, header, err);
}

/* Why read_header() refused: do the bytes end before the pixels begin? */
static bool is_header_cut(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < FILE_HEADER_BYTES + 4)
        return true;
    return is_known_header(read_32(bytes + FILE_HEADER_BYTES)) &&
           (length_bytes < FILE_HEADER_BYTES + (size_t)read_32(bytes + FILE_HEADER_BYTES) ||
            length_bytes < read_32(bytes + 10));
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static uint8_t *row_of(const struct header *header, tdmi_image *image, size_t y)
{
    size_t row = header->is_top_down ? y : (size_t)image->height - 1 - y;
    return image->pixels + 3 * (size_t)image->width * row;
}

static void indexed_row(const struct header *header, const uint8_t *from, size_t width,
                        uint8_t *pixels)
{
    const unsigned per_byte = 8 / header->bits, mask = (1u << header->bits) - 1;
    for (size_t x = 0; x < width; x++) {
        unsigned place = (unsigned)(x % per_byte) + 1;
        unsigned byte = from[x / per_byte];
        unsigned index = byte >> (8 - header->bits * place) & mask;
        memcpy(pixels + 3 * x, header->palette[index], 3); /* black past the palette's end */
    }
}

static unsigned channel_value(const struct channel *channel, uint32_t pixel)
{
    uint64_t value = (pixel & channel->mask) >> channel->shift;
    if (channel->maximum == 0 || channel->maximum == 255)
        return (unsigned)value;
    return (unsigned)((value * 255 + channel->maximum / 2) / channel->maximum);
}

static uint32_t masked_pixel(const struct header *header, const uint8_t *from, size_t x)
{
    return header->bits == 16 ? read_16(from + 2 * x) : read_32(from + 4 * x);
}

static void masked_row(const struct header *header, bool has_alpha, const uint8_t *from,
                       size_t width, uint8_t *pixels)
{
    for (size_t x = 0; x < width; x++, pixels += 3) {
        uint32_t pixel = masked_pixel(header, from, x);
        unsigned alpha = has_alpha ? channel_value(&header->channels[ALPHA], pixel) : 255;
        for (int c = 0; c < 3; c++) {
            unsigned colour = channel_value(&header->channels[c], pixel);
            pixels[c] = tdmi_codec_over_white(colour, alpha);
        }
    }
}

static bool is_alpha_used(const struct header *header, const tdmi_image *image, size_t stride)
{
    if (header->channels[ALPHA].mask == 0)
        return false;
    for (size_t y = 0; y < (size_t)image->height; y++)
        for (size_t x = 0; x < (size_t)image->width; x++)
            if ((masked_pixel(header, header->pixels + y * stride, x) &
                 header->channels[ALPHA].mask) != 0)
                return true;
    return false;
}

/* The data after the header must hold all rows; only the padding of the last may be missing. */
static tdm_status check_rows(const struct header *header, size_t *stride, tdm_error *err)
{
    size_t row_bits = (size_t)header->width * header->bits;
    *stride = (row_bits + 31) / 32 * 4;
    size_t needed = *stride * ((size_t)header->height - 1) + (row_bits + 7) / 8;
    if (header->pixel_bytes < needed)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: %zu bytes of pixels follow its header, which says %zu",
                        header->pixel_bytes, needed);
    return TDM_OK;
}

static tdm_status read_rows(const struct header *header, size_t stride,
                            const struct tdmi_codec_source *source, tdmi_image *image,
                            tdm_error *err)
{
    const size_t width = (size_t)image->width;
    const bool has_alpha = is_alpha_used(header, image, stride);
    for (size_t y = 0; y < (size_t)image->height; y++) {
        const uint8_t *from = header->pixels + y * stride;
        uint8_t *pixels = row_of(header, image, y);
        if (header->bits <= 8)
            indexed_row(header, from, width, pixels);
        else if (header->bits != 24)
            masked_row(header, has_alpha, from, width, pixels);
        else
            for (size_t x = 0; x < width; x++)
                for (size_t c = 0; c < 3; c++)
                    pixels[3 * x + c] = from[3 * x + 2 - c];
        TDMI_TRY(tdmi_codec_check_time(source, err));
    }
    return TDM_OK;
}

/* Run-length codes: (n, v) is n pixels of v; (0, 0) ends a row, (0, 1) the image; (0, 2) moves
 * right and up by the next two bytes; (0, n) is n literal pixels, padded to two bytes. With 4 bits
 * a byte holds two pixels that take turns. Pixels that are jumped over get colour 0. Runs
 * are cut at the end of their row, since well-known writers pad rows with them; codes that end
 * before the last row does are no whole image. */
static tdm_status read_runs(const struct header *header, const struct tdmi_codec_source *source,
                            tdmi_image *image, tdm_error *err)
{
    const size_t width = (size_t)image->width, height = (size_t)image->height;
    TDMI_TRY(tdmi_codec_check_time(source, err));
    const uint8_t *at = header->pixels, *end = at + header->pixel_bytes;
    const bool is_rle4 = header->compression == RLE4;
    size_t x = 0, y = 0;
    bool is_ended = false; /* by its own end mark */
    for (size_t i = 0; i < width * height; i++)
        memcpy(image->pixels + 3 * i, header->palette[0], 3);
    while (end - at >= 2) {
        const uint8_t count = at[0], value = at[1];
        at += 2;
        is_ended = count == 0 && value == 1;
        if (is_ended)
            break;
        if (count == 0 && value == 0) {
            x = 0;
            y++;
        } else if (count == 0 && value == 2) {
            if (end - at < 2)
                break;
            x += at[0];
            y += at[1];
            at += 2;
        } else {
            const size_t n = count != 0 ? count : value;
            const size_t literal_bytes = count != 0 ? 0 : is_rle4 ? (n + 1) / 2 : n;
            if ((size_t)(end - at) < literal_bytes)
                break;
            for (size_t i = 0; i < n && x < width && y < height; i++, x++) {
                unsigned byte = count != 0 ? value : at[is_rle4 ? i / 2 : i];
                unsigned index = !is_rle4 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15;
                memcpy(row_of(header, image, y) + 3 * x, header->palette[index], 3);
            }
            size_t padded_bytes = literal_bytes + literal_bytes % 2;
            at += (size_t)(end - at) < padded_bytes ? literal_bytes : padded_bytes;
        }
    }
    if (y >= height || (y == height - 1 && x >= width))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT, "it is %s: its runs end in row %zu of %zu",
                    is_ended ? "damaged" : "truncated", y + 1, height);
}

tdm_status tdmi_bmp_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    struct header header = {0};
    TDMI_TRY(read_header(source, &header, err));
    const bool has_runs = header.compression == RLE8 || header.compression == RLE4;
    size_t stride = 0;
    /* Taken before the memory: a short file must not claim much of it. The multiplication inside
     * cannot overflow once the size was found acceptable. */
    if (header.width >= 1 && header.height >= 1 &&
        header.width <= source->max_pixels / header.height && !has_runs)
        TDMI_TRY(check_rows(&header, &stride, err));
    TDMI_TRY(tdmi_codec_shape(source, header.width, header.height, image, err));
    return has_runs ? read_runs(&header, source, image, err)
                    : read_rows(&header, stride, source, image, err);
}

/* ---- describe -------------------------------------------------------------------------------- */

/* Do the runs stop because the bytes do, and not at an end mark? Nothing is unpacked. */
static bool are_runs_cut(const struct header *header)
{
    const uint8_t *at = header->pixels, *end = at + header->pixel_bytes;
    while (end - at >= 2) {
        const uint8_t count = at[0], value = at[1];
        at += 2;
        if (count != 0 || value == 0)
            continue;
        if (value == 1)
            return false;
        size_t literal_bytes = header->compression == RLE4 ? (value + 1u) / 2 : value;
        size_t skipped = value == 2 ? 2 : literal_bytes + literal_bytes % 2;
        if ((size_t)(end - at) < skipped)
            return true;
        at += skipped;
    }
    return true;
}

tdm_status tdmi_bmp_describe(const uint8_t *bytes, size_t length_bytes,
                             struct tdmi_image_facts *facts, tdm_error *err)
{
    const struct tdmi_codec_source source = {.bytes = bytes, .length_bytes = length_bytes};
    struct header header = {0};
    facts->n_frames = 1;
    tdm_status status = read_header(&source, &header, err);
    facts->width = header.width;
    facts->height = header.height;
    facts->bits = header.bits > 8 ? 0 : (int)header.bits;
    facts->colours = header.bits > 8 ? TDMI_COLOURS_RGB : TDMI_COLOURS_PALETTE;
    for (int c = 0; c < CHANNELS && header.bits > 8; c++)
        for (int bits = 0; bits <= 32; bits++)
            if ((uint64_t)header.channels[c].maximum >> bits != 0 && bits >= facts->bits)
                facts->bits = bits + 1;
    facts->has_alpha = header.channels[ALPHA].mask != 0;
    /* Headers of 124 bytes name an embedded ("MBED") or linked ("LINK") profile. */
    if (length_bytes >= FILE_HEADER_BYTES + 124 && read_32(bytes + FILE_HEADER_BYTES) == 124) {
        uint32_t kind = read_32(bytes + FILE_HEADER_BYTES + 56);
        facts->has_icc = kind == 0x4d424544 || kind == 0x4c494e4b;
    }
    size_t stride;
    if (status != TDM_OK)
        facts->is_cut = is_header_cut(bytes, length_bytes);
    else if (header.compression == RLE8 || header.compression == RLE4)
        facts->is_cut = are_runs_cut(&header);
    else if (facts->width > 0 && facts->width <= INT32_MAX && facts->height > 0)
        facts->is_cut = check_rows(&header, &stride, NULL) != TDM_OK;
    return status;
}

/* ---- encode ---------------------------------------------------------------------------------- */

/* 24 bits, bottom-up, no palette: what every reader knows. */
tdm_status tdmi_bmp_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    (void)quality; /* nothing is lost */
    const size_t width = (size_t)image->width, height = (size_t)image->height;
    const size_t header_bytes = FILE_HEADER_BYTES + 40, row_bytes = 3 * width;
    const size_t padding = (4 - row_bytes % 4) % 4, pixel_bytes = (row_bytes + padding) * height;
    if (pixel_bytes > UINT32_MAX - header_bytes)
        return TDM_FAIL(err, TDM_E_USAGE, "a BMP holds at most 4 GiB; PNG holds more");
    uint8_t header[FILE_HEADER_BYTES + 40] = {'B', 'M'};
    tdmi_write_little(header + 2, header_bytes + pixel_bytes, 4);
    tdmi_write_little(header + 10, header_bytes, 4);
    tdmi_write_little(header + 14, 40, 4);
    tdmi_write_little(header + 18, width, 4);
    tdmi_write_little(header + 22, height, 4);
    header[26] = 1;
    header[28] = 24;
    tdmi_write_little(header + 34, pixel_bytes, 4);
    tdmi_text_add(out, header, sizeof header);
    for (size_t y = height; y-- > 0;) {
        const uint8_t *row = image->pixels + row_bytes * y;
        for (size_t x = 0; x < width; x++) {
            const uint8_t pixel[3] = {row[3 * x + 2], row[3 * x + 1], row[3 * x]};
            tdmi_text_add(out, pixel, sizeof pixel);
        }
        tdmi_text_add(out, "\0\0\0", padding);
    }
    return TDM_OK;
}

/*
 * Describing an image by its bytes: the call that goes through the table of formats, and the walks
 * for JPEG and PNG. BMP and PPM are walked beside their decoders, GIF and WebP in files of their
 * own.
 */
#include "image/facts.h"
#include "base/bytes.h"
#include "image/formats/codec.h"
#include <string.h>

/* ---- JPEG ------------------------------------------------------------------------------------ */

enum { SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1, APP2 = 0xe2, APP14 = 0xee };

static bool is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool has_no_length(uint8_t marker)
{
    return marker <= 0x01 || (marker >= 0xd0 && marker <= SOI);
}

/* State of a walk over the segments. */
struct jpeg {
    int n_components, adobe_transform; /* -1: no Adobe segment */
    int64_t n_scans;
};

/* One segment, behind its marker and length. */
static void take_segment(uint8_t marker, const uint8_t *data, size_t data_bytes, struct jpeg *jpeg,
                         struct tdmi_image_facts *facts)
{
    if (is_frame(marker) && data_bytes >= 6 && jpeg->n_components == 0) {
        facts->bits = data[0];
        facts->height = (uint32_t)tdmi_read_big(data + 1, 2);
        facts->width = (uint32_t)tdmi_read_big(data + 3, 2);
        facts->is_layered = (marker & 3) == 2;
        jpeg->n_components = data[5];
    } else if (marker == APP14 && data_bytes >= 12 && memcmp(data, "Adobe", 5) == 0) {
        jpeg->adobe_transform = data[11];
    } else if (marker == APP2 && data_bytes >= 12 && memcmp(data, "ICC_PROFILE", 12) == 0) {
        facts->has_icc = true;
    }
}

/* The end of the entropy-coded data that begins at `at`: where a marker stands that is neither a
 * stuffed zero nor a restart; length_bytes when there is none. */
static size_t skip_coded(const uint8_t *bytes, size_t length_bytes, size_t at)
{
    while (at < length_bytes) {
        const uint8_t *found = memchr(bytes + at, 0xff, length_bytes - at);
        if (found == NULL || (size_t)(found - bytes) + 1 >= length_bytes)
            return length_bytes;
        at = (size_t)(found - bytes);
        uint8_t next = bytes[at + 1];
        if (next == 0xff)
            at++;
        else if (next == 0 || (next >= 0xd0 && next <= 0xd7))
            at += 2;
        else
            return at;
    }
    return length_bytes;
}

static enum tdmi_colours colours_of(const struct jpeg *jpeg)
{
    switch (jpeg->n_components) {
    case 1:
        return TDMI_COLOURS_GREY;
    case 3:
        return TDMI_COLOURS_RGB;
    case 4:
        return jpeg->adobe_transform == 2 ? TDMI_COLOURS_YCCK : TDMI_COLOURS_CMYK;
    default:
        return TDMI_COLOURS_UNKNOWN;
    }
}

static struct jpeg walk_jpeg(const uint8_t *bytes, size_t length_bytes, bool is_head_enough,
                             struct tdmi_image_facts *facts)
{
    struct jpeg jpeg = {.adobe_transform = -1};
    size_t at = 2;
    facts->is_cut = true;
    while (at < length_bytes && !(is_head_enough && jpeg.n_components > 0)) {
        if (bytes[at] != 0xff) { /* stray bytes between segments, skipped as decoders do */
            at++;
            continue;
        }
        while (at < length_bytes && bytes[at] == 0xff)
            at++;
        if (at == length_bytes)
            break;
        uint8_t marker = bytes[at++];
        if (marker == EOI) {
            facts->is_cut = false;
            break;
        }
        if (has_no_length(marker))
            continue;
        if (length_bytes - at < 2)
            break;
        size_t segment_bytes = tdmi_read_big(bytes + at, 2);
        if (segment_bytes < 2) /* the length counts itself; decoders take less for an empty one */
            segment_bytes = 2;
        if (segment_bytes > length_bytes - at)
            break;
        take_segment(marker, bytes + at + 2, segment_bytes - 2, &jpeg, facts);
        at += segment_bytes;
        if (marker == SOS) {
            jpeg.n_scans++;
            at = skip_coded(bytes, length_bytes, at);
        }
    }
    return jpeg;
}

int64_t tdmi_jpeg_count_scans(const uint8_t *bytes, size_t length_bytes)
{
    struct tdmi_image_facts facts = {0};
    return walk_jpeg(bytes, length_bytes, false, &facts).n_scans;
}

bool tdmi_image_is_jpeg_of(const void *bytes, size_t length_bytes, int width, int height)
{
    struct tdmi_image_facts facts = {0};
    if (tdmi_image_sniff(bytes, length_bytes) != TDMI_IMAGE_JPEG)
        return false;
    (void)walk_jpeg(bytes, length_bytes, true, &facts);
    return facts.width == width && facts.height == height;
}

tdm_status tdmi_jpeg_describe(const uint8_t *bytes, size_t length_bytes,
                              struct tdmi_image_facts *facts, tdm_error *err)
{
    const struct jpeg jpeg = walk_jpeg(bytes, length_bytes, false, facts);
    facts->colours = colours_of(&jpeg);
    facts->n_frames = 1;
    if (jpeg.n_components == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: no frame header lies in its %zu bytes",
                        facts->is_cut ? "truncated" : "damaged", length_bytes);
    return TDM_OK;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

/* One chunk of whose data so many bytes are there. */
static void take_chunk(const uint8_t *chunk, size_t present_bytes, struct tdmi_image_facts *facts)
{
    static const enum tdmi_colours colours[8] = {[0] = TDMI_COLOURS_GREY,
                                                 [2] = TDMI_COLOURS_RGB,
                                                 [3] = TDMI_COLOURS_PALETTE,
                                                 [4] = TDMI_COLOURS_GREY,
                                                 [6] = TDMI_COLOURS_RGB};
    const uint8_t *kind = chunk + 4, *data = chunk + 8;
    if (memcmp(kind, "IHDR", 4) == 0 && present_bytes >= 13 && facts->bits == 0) {
        facts->width = (uint32_t)tdmi_read_big(data, 4);
        facts->height = (uint32_t)tdmi_read_big(data + 4, 4);
        facts->bits = data[8];
        facts->colours = data[9] < 8 ? colours[data[9]] : TDMI_COLOURS_UNKNOWN;
        facts->has_alpha = data[9] == 4 || data[9] == 6;
        facts->is_layered = data[12] != 0;
    } else if (memcmp(kind, "tRNS", 4) == 0) {
        facts->has_alpha = true;
    } else if (memcmp(kind, "iCCP", 4) == 0) {
        facts->has_icc = true;
    } else if (memcmp(kind, "acTL", 4) == 0 && present_bytes >= 8 && tdmi_read_big(data, 4) > 0) {
        facts->n_frames = (uint32_t)tdmi_read_big(data, 4);
    }
}

tdm_status tdmi_png_describe(const uint8_t *bytes, size_t length_bytes,
                             struct tdmi_image_facts *facts, tdm_error *err)
{
    size_t at = 8;
    facts->n_frames = 1;
    facts->is_cut = true;
    while (length_bytes - at >= 8) {
        const size_t chunk_bytes = tdmi_read_big(bytes + at, 4), left = length_bytes - at - 8;
        take_chunk(bytes + at, chunk_bytes < left ? chunk_bytes : left, facts);
        if (chunk_bytes > left || left - chunk_bytes < 4) /* a checksum ends every chunk */
            break;
        if (memcmp(bytes + at + 4, "IEND", 4) == 0) {
            facts->is_cut = false;
            break;
        }
        at += 12 + chunk_bytes;
    }
    if (facts->bits == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: no IHDR chunk lies in its %zu bytes",
                        facts->is_cut ? "truncated" : "damaged", length_bytes);
    return TDM_OK;
}

/* ---- any ------------------------------------------------------------------------------------- */

tdm_status tdmi_image_describe(const void *bytes, size_t length_bytes, const char *name,
                               struct tdmi_image_facts *facts, tdm_error *err)
{
    *facts = (struct tdmi_image_facts){.format = tdmi_image_sniff(bytes, length_bytes),
                                       .orientation = 1};
    const struct tdmi_codec *codec = tdmi_codec_of(facts->format);
    if (codec->describe == NULL)
        return TDM_WRAP(err, tdmi_codec_refuse_unknown(bytes, length_bytes, err),
                        "cannot describe image \"%s\"", name);
    facts->orientation = tdmi_exif_orientation(bytes, length_bytes);
    TDM_TRY(codec->describe(bytes, length_bytes, facts, err), err,
            "cannot describe %s image \"%s\"", codec->name, name);
    if (facts->width < 1 || facts->height < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "cannot describe %s image \"%s\": its header says %lld x %lld pixels",
                        codec->name, name, (long long)facts->width, (long long)facts->height);
    return TDM_OK;
}

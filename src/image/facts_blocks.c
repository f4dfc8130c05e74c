/*
 * Facts of GIF and WebP files; both are walked without their libraries.
 */
#include "image/formats/codec.h"
#include "base/bytes.h"
#include "image/facts.h"
#include "image/formats/webp_layout.h"
#include <string.h>

/* ---- GIF ------------------------------------------------------------------------------------- */

/* Behind blocks that each begin with their length, up to an empty one; beyond length_bytes when
 * they do not end. */
static size_t skip_blocks(const uint8_t *bytes, size_t length_bytes, size_t at)
{
    while (at < length_bytes) {
        size_t block_bytes = bytes[at];
        at += 1 + block_bytes;
        if (block_bytes == 0)
            return at;
    }
    return length_bytes + 1;
}

static size_t palette_bytes(uint8_t flags)
{
    return (flags & 0x80) == 0 ? 0 : (size_t)3 << ((flags & 7) + 1);
}

/* The first frame's header of 9 bytes: place, size, flags. */
static void take_frame(const uint8_t *header, bool has_screen_palette, bool is_clear,
                       struct tdmi_image_facts *facts)
{
    const int64_t right =
        (int64_t)(uint32_t)tdmi_read_little(header, 2) + (uint32_t)tdmi_read_little(header + 4, 2);
    const int64_t bottom = (int64_t)(uint32_t)tdmi_read_little(header + 2, 2) +
                           (uint32_t)tdmi_read_little(header + 6, 2);
    const uint8_t flags = header[8];
    if (right > facts->width)
        facts->width = right;
    if (bottom > facts->height)
        facts->height = bottom;
    if ((flags & 0x80) != 0)
        facts->bits = (flags & 7) + 1;
    else if (!has_screen_palette)
        facts->colours = TDMI_COLOURS_GREY;
    facts->is_layered = (flags & 0x40) != 0;
    facts->has_alpha = is_clear;
}

tdm_status tdmi_gif_describe(const uint8_t *bytes, size_t length_bytes,
                             struct tdmi_image_facts *facts, tdm_error *err)
{
    enum { HEADER_BYTES = 13, EXTENSION = 0x21, FRAME = 0x2c, TRAILER = 0x3b, CONTROL = 0xf9 };
    facts->is_cut = true;
    if (length_bytes < HEADER_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT, "it is truncated: %zu bytes do not hold its header",
                        length_bytes);
    const bool has_palette = (bytes[10] & 0x80) != 0;
    facts->width = (uint32_t)tdmi_read_little(bytes + 6, 2);
    facts->height = (uint32_t)tdmi_read_little(bytes + 8, 2);
    facts->bits = has_palette ? (bytes[10] & 7) + 1 : 8;
    facts->colours = TDMI_COLOURS_PALETTE;
    bool is_clear = false;
    size_t at = HEADER_BYTES + palette_bytes(bytes[10]);
    while (at < length_bytes) {
        const size_t left = length_bytes - at;
        if (bytes[at] == EXTENSION) {
            if (left >= 4 && bytes[at + 1] == CONTROL)
                is_clear = (bytes[at + 3] & 1) != 0;
            at = skip_blocks(bytes, length_bytes, at + 2);
        } else if (bytes[at] == FRAME && left >= 11) {
            if (facts->n_frames++ == 0)
                take_frame(bytes + at + 1, has_palette, is_clear, facts);
            /* behind the header and the palette one byte says how wide the codes are */
            at = skip_blocks(bytes, length_bytes, at + 11 + palette_bytes(bytes[at + 9]));
        } else {
            facts->is_cut = bytes[at] == FRAME; /* anything unknown is no cut but damage */
            break;
        }
    }
    if (facts->n_frames == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: no frame lies in its %zu bytes",
                        facts->is_cut ? "truncated" : "damaged", length_bytes);
    return TDM_OK;
}

/* ---- WebP ------------------------------------------------------------------------------------ */

tdm_status tdmi_webp_describe(const uint8_t *bytes, size_t length_bytes,
                              struct tdmi_image_facts *facts, tdm_error *err)
{
    struct tdmi_webp_layout layout;
    tdm_status status = tdmi_webp_walk(bytes, length_bytes, &layout, err);
    facts->width = layout.width;
    facts->height = layout.height;
    facts->colours = TDMI_COLOURS_RGB;
    facts->bits = 8;
    facts->n_frames = layout.n_frames;
    facts->has_alpha = layout.has_alpha;
    facts->has_icc = layout.has_icc;
    facts->is_cut = layout.is_cut;
    return status;
}

const uint8_t *tdmi_exif_in_webp(const uint8_t *bytes, size_t length_bytes, size_t *exif_bytes)
{
    struct tdmi_webp_layout layout;
    if (tdmi_webp_walk(bytes, length_bytes, &layout, NULL) != TDM_OK)
        return NULL;
    *exif_bytes = layout.exif_bytes;
    return layout.exif;
}

/*
 * Walks the chunks of a WebP file: RIFF, length, WEBP, then chunks of a name, a length and that
 * many bytes, padded to two. A simple file holds "VP8 " (lossy) or "VP8L" (lossless) at once; an
 * extended one begins with "VP8X", the canvas, and may hold frames ("ANMF"), each with chunks of
 * its own. Nothing is believed that does not lie inside the bytes.
 */
#include "image/formats/webp_layout.h"
#include "base/bytes.h"
#include <string.h>

enum { RIFF_BYTES = 12, CHUNK_HEADER_BYTES = 8, FRAME_HEADER_BYTES = 16 };

/* The size in the first bytes of a lossy or lossless image; false when it is not there. */
static bool read_size(const uint8_t *chunk, size_t chunk_bytes, struct tdmi_webp_layout *layout,
                      int *width, int *height)
{
    const uint8_t *data = chunk + CHUNK_HEADER_BYTES;
    if (memcmp(chunk, "VP8 ", 4) == 0) {
        if (chunk_bytes < 10 || memcmp(data + 3, "\x9d\x01\x2a", 3) != 0)
            return false;
        *width = (int)(tdmi_read_little(data + 6, 2) & 0x3fff);
        *height = (int)(tdmi_read_little(data + 8, 2) & 0x3fff);
        return true;
    }
    if (chunk_bytes < 5 || data[0] != 0x2f)
        return false;
    uint32_t bits = (uint32_t)tdmi_read_little(data + 1, 4);
    *width = (int)(bits & 0x3fff) + 1;
    *height = (int)(bits >> 14 & 0x3fff) + 1;
    layout->has_alpha = layout->has_alpha || (bits >> 28 & 1) != 0;
    return true;
}

static void take_frame(const uint8_t *data, size_t data_bytes, struct tdmi_webp_layout *layout)
{
    struct tdmi_webp_frame *first = &layout->first;
    layout->n_frames++;
    if (first->bytes != NULL || data_bytes < FRAME_HEADER_BYTES)
        return;
    first->bytes = data + FRAME_HEADER_BYTES;
    first->length_bytes = data_bytes - FRAME_HEADER_BYTES;
    first->left = 2 * (int)tdmi_read_little(data, 3);
    first->top = 2 * (int)tdmi_read_little(data + 3, 3);
    first->width = 1 + (int)tdmi_read_little(data + 6, 3);
    first->height = 1 + (int)tdmi_read_little(data + 9, 3);
}

/* EXIF data is a bare TIFF block; some writers put JPEG's "Exif\0\0" before it. */
static void take_exif(const uint8_t *data, size_t data_bytes, struct tdmi_webp_layout *layout)
{
    size_t prefix = data_bytes >= 6 && memcmp(data, "Exif\0\0", 6) == 0 ? 6 : 0;
    layout->exif = data + prefix;
    layout->exif_bytes = data_bytes - prefix;
}

/* One chunk whose data, present_bytes of it, lies inside the file. */
static void take_chunk(const uint8_t *chunk, size_t present_bytes, const uint8_t *file,
                       size_t file_bytes, struct tdmi_webp_layout *layout)
{
    const uint8_t *data = chunk + CHUNK_HEADER_BYTES;
    if (memcmp(chunk, "VP8X", 4) == 0 && present_bytes >= 10) {
        layout->has_alpha = (data[0] & 0x10) != 0;
        layout->width = 1 + (int)tdmi_read_little(data + 4, 3);
        layout->height = 1 + (int)tdmi_read_little(data + 7, 3);
    } else if (memcmp(chunk, "VP8", 3) == 0 && (chunk[3] == ' ' || chunk[3] == 'L')) {
        struct tdmi_webp_frame *first = &layout->first;
        if (first->bytes != NULL ||
            !read_size(chunk, present_bytes, layout, &first->width, &first->height))
            return;
        first->bytes = file;
        first->length_bytes = file_bytes;
        layout->n_frames = 1;
        if (layout->width == 0) {
            layout->width = first->width;
            layout->height = first->height;
        }
    } else if (memcmp(chunk, "ANMF", 4) == 0) {
        take_frame(data, present_bytes, layout);
    } else if (memcmp(chunk, "ICCP", 4) == 0) {
        layout->has_icc = true;
    } else if (memcmp(chunk, "EXIF", 4) == 0 && layout->exif == NULL) {
        take_exif(data, present_bytes, layout);
    }
}

tdm_status tdmi_webp_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_webp_layout *layout, tdm_error *err)
{
    *layout = (struct tdmi_webp_layout){0};
    layout->claimed_bytes = tdmi_read_little(bytes + 4, 4) + CHUNK_HEADER_BYTES;
    layout->is_cut = layout->claimed_bytes > length_bytes;
    const size_t end = layout->is_cut ? length_bytes : (size_t)layout->claimed_bytes;
    size_t at = RIFF_BYTES;
    while (at < end && end - at >= CHUNK_HEADER_BYTES) {
        const size_t chunk_bytes = tdmi_read_little(bytes + at + 4, 4);
        const size_t left = end - at - CHUNK_HEADER_BYTES;
        take_chunk(bytes + at, chunk_bytes < left ? chunk_bytes : left, bytes, end, layout);
        if (chunk_bytes >= left)
            break;
        at += CHUNK_HEADER_BYTES + chunk_bytes + chunk_bytes % 2;
    }
    const struct tdmi_webp_frame *first = &layout->first;
    if (first->bytes == NULL || layout->width == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: %zu bytes hold no first image",
                        layout->is_cut ? "truncated" : "damaged", length_bytes);
    if (first->left > layout->width - first->width || first->top > layout->height - first->height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: its first frame of %d x %d pixels at %d, %d lies outside "
                        "its canvas of %d x %d",
                        first->width, first->height, first->left, first->top, layout->width,
                        layout->height);
    return TDM_OK;
}

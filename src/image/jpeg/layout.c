/*
 * One walk over the markers, as strict as possible: a file that is refused here is decoded by
 * libjpeg-turbo. For accepted files libjpeg gives the same pixels and no warning but that of an
 * unknown JFIF version.
 */
#include "image/jpeg/layout.h"
#include "base/bytes.h"
#include <string.h>

enum { MOST_SIDE = 65500 /* libjpeg accepts no larger one */ };

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe
};

struct walk {
    struct tdmi_jpeg_layout *layout;
    const uint8_t *divisors[TDMI_JPEG_TABLES], *codes[2][TDMI_JPEG_TABLES];
    const uint8_t *frame; /* what SOF0 or SOF1 holds of the components */
    int interval;
    bool has_jfif, has_adobe;
    uint8_t adobe_transform;
};

/* ---- one marker each ------------------------------------------------------------------------- */

static bool take_divisors(struct walk *walk, const uint8_t *data, size_t n)
{
    for (; n > TDMI_JPEG_BLOCK; n -= 1 + TDMI_JPEG_BLOCK, data += 1 + TDMI_JPEG_BLOCK) {
        if (data[0] >= TDMI_JPEG_TABLES) /* or of 16 bits */
            return false;
        walk->divisors[data[0]] = data + 1;
    }
    return n == 0;
}

static bool take_codes(struct walk *walk, const uint8_t *data, size_t n)
{
    while (n > TDMI_JPEG_CODE_LENGTHS) {
        const int kind = data[0] >> 4, slot = data[0] & 15;
        size_t n_symbols = 0;
        for (int i = 1; i <= TDMI_JPEG_CODE_LENGTHS; i++)
            n_symbols += data[i];
        const size_t table_bytes = 1 + TDMI_JPEG_CODE_LENGTHS + n_symbols;
        if (kind > TDMI_JPEG_AC || slot >= TDMI_JPEG_TABLES || n_symbols > 256 || table_bytes > n)
            return false;
        walk->codes[kind][slot] = data + 1;
        data += table_bytes;
        n -= table_bytes;
    }
    return n == 0;
}

static bool take_frame(struct walk *walk, const uint8_t *data, size_t n)
{
    struct tdmi_jpeg_layout *layout = walk->layout;
    if (walk->frame != NULL || n < 6 || data[0] != 8)
        return false;
    layout->height = (int)tdmi_read_big(data + 1, 2);
    layout->width = (int)tdmi_read_big(data + 3, 2);
    layout->n_components = data[5];
    walk->frame = data + 6;
    return layout->width > 0 && layout->height > 0 && layout->width <= MOST_SIDE &&
           layout->height <= MOST_SIDE &&
           (layout->n_components == 1 || layout->n_components == 3) &&
           n == 6 + 3 * (size_t)layout->n_components;
}

static bool take_segment(struct walk *walk, uint8_t marker, const uint8_t *data, size_t n)
{
    switch (marker) {
    case DQT:
        return take_divisors(walk, data, n);
    case DHT:
        return take_codes(walk, data, n);
    case SOF0:
    case SOF1:
        return take_frame(walk, data, n);
    case DRI:
        walk->interval = n == 2 ? (int)tdmi_read_big(data, 2) : 0;
        return n == 2;
    case APP0:
        walk->has_jfif = walk->has_jfif || (n >= 14 && memcmp(data, "JFIF", 5) == 0);
        return true;
    case APP14:
        if (n >= 12 && memcmp(data, "Adobe", 5) == 0) {
            walk->has_adobe = true;
            walk->adobe_transform = data[11];
        }
        return true;
    default:
        return (marker > APP0 && marker <= APP15) || marker == COM;
    }
}

/* ---- the scan -------------------------------------------------------------------------------- */

/* As libjpeg decides it: JFIF says YCbCr, Adobe's segment what it says, else names of components
 * do.
 */
static bool is_ycc(const struct walk *walk)
{
    if (walk->has_jfif)
        return true;
    if (walk->has_adobe)
        return walk->adobe_transform == 1;
    return walk->frame[0] != 'R' || walk->frame[3] != 'G' || walk->frame[6] != 'B';
}

/* The first component's blocks in an MCU: 1 x 1, 2 x 1 or 2 x 2. */
static bool take_sampling(struct tdmi_jpeg_layout *layout, const uint8_t *frame)
{
    for (int c = 0; c < layout->n_components; c++) {
        const int across = frame[3 * c + 1] >> 4, down = frame[3 * c + 1] & 15;
        const bool may_be_two = c == 0 && layout->n_components == 3;
        if (across < 1 || across > (may_be_two ? 2 : 1) || down < 1 || down > across)
            return false;
        layout->components[c].across = across;
        layout->components[c].down = down;
    }
    const int mcu_width = 8 * layout->components[0].across;
    const int mcu_height = 8 * layout->components[0].down;
    layout->n_mcus_across = (layout->width + mcu_width - 1) / mcu_width;
    layout->n_mcus_down = (layout->height + mcu_height - 1) / mcu_height;
    return true;
}

static bool take_scan(struct walk *walk, const uint8_t *data, size_t n)
{
    struct tdmi_jpeg_layout *layout = walk->layout;
    const int n_components = layout->n_components;
    if (walk->frame == NULL || n != 4 + 2 * (size_t)n_components || data[0] != n_components ||
        (n_components == 3 && !is_ycc(walk)) || !take_sampling(layout, walk->frame))
        return false;
    const uint8_t *end = data + 1 + 2 * n_components;
    if (end[0] != 0 || end[1] != TDMI_JPEG_BLOCK - 1 || end[2] != 0)
        return false;
    for (int c = 0; c < n_components; c++) {
        struct tdmi_jpeg_component *component = &layout->components[c];
        const uint8_t *frame = walk->frame + 3 * c, *scan = data + 1 + 2 * c;
        const int dc = scan[1] >> 4, ac = scan[1] & 15;
        for (int other = 0; other < c; other++)
            if (walk->frame[3 * other] == frame[0])
                return false;
        if (scan[0] != frame[0] || frame[2] >= TDMI_JPEG_TABLES || dc >= TDMI_JPEG_TABLES ||
            ac >= TDMI_JPEG_TABLES)
            return false;
        component->divisors = walk->divisors[frame[2]];
        component->codes[TDMI_JPEG_DC] = walk->codes[TDMI_JPEG_DC][dc];
        component->codes[TDMI_JPEG_AC] = walk->codes[TDMI_JPEG_AC][ac];
        if (component->divisors == NULL || component->codes[TDMI_JPEG_DC] == NULL ||
            component->codes[TDMI_JPEG_AC] == NULL)
            return false;
    }
    const int64_t n_mcus = (int64_t)layout->n_mcus_across * layout->n_mcus_down;
    layout->interval = walk->interval > 0 ? walk->interval : (int)n_mcus;
    return n_mcus <= INT32_MAX;
}

bool tdmi_jpeg_lay_out(const uint8_t *bytes, size_t length_bytes, struct tdmi_jpeg_layout *layout)
{
    struct walk walk = {.layout = layout};
    *layout = (struct tdmi_jpeg_layout){0};
    if (length_bytes < 2 || bytes[0] != 0xff || bytes[1] != SOI)
        return false;
    for (size_t at = 2; length_bytes - at >= 4;) {
        const uint8_t marker = bytes[at + 1];
        const size_t segment_bytes = tdmi_read_big(bytes + at + 2, 2);
        if (bytes[at] != 0xff || segment_bytes < 2 || segment_bytes > length_bytes - at - 2)
            return false;
        const uint8_t *data = bytes + at + 4;
        at += 2 + segment_bytes;
        if (marker == SOS) {
            layout->scan = bytes + at;
            layout->scan_bytes = length_bytes - at;
            return take_scan(&walk, data, segment_bytes - 2);
        }
        if (!take_segment(&walk, marker, data, segment_bytes - 2))
            return false;
    }
    return false;
}

/* ---- segments -------------------------------------------------------------------------------- */

int64_t tdmi_jpeg_n_segments(const struct tdmi_jpeg_layout *layout)
{
    const int64_t n_mcus = (int64_t)layout->n_mcus_across * layout->n_mcus_down;
    return (n_mcus + layout->interval - 1) / layout->interval;
}

size_t tdmi_jpeg_most_bytes(const struct tdmi_jpeg_layout *layout)
{
    const struct tdmi_jpeg_component *first = &layout->components[0];
    const size_t n_blocks = (size_t)(first->across * first->down + layout->n_components - 1);
    const size_t n_mcus = (size_t)layout->n_mcus_across * (size_t)layout->n_mcus_down;
    const size_t most = n_mcus * n_blocks * TDMI_JPEG_BYTES_A_BLOCK;
    return most < layout->scan_bytes ? most : layout->scan_bytes;
}

bool tdmi_jpeg_unstuff(const struct tdmi_jpeg_layout *layout, uint8_t *out, size_t *starts)
{
    const int64_t n_segments = tdmi_jpeg_n_segments(layout);
    const uint8_t *in = layout->scan, *const end = in + layout->scan_bytes;
    uint8_t *const begin = out, *const full = out + tdmi_jpeg_most_bytes(layout);
    int64_t segment = 0;
    starts[0] = 0;
    for (;;) {
        const uint8_t *found = memchr(in, 0xff, (size_t)(end - in));
        if (found == NULL || end - found < 2 || found - in >= full - out)
            return false;
        const size_t n = (size_t)(found - in);
        memcpy(out, in, n);
        out += n;
        in = found + 2;
        if (found[1] == 0) {
            *out++ = 0xff;
            continue;
        }
        starts[++segment] = (size_t)(out - begin);
        if (segment == n_segments)
            return found[1] == EOI;
        if (found[1] != RST0 + (segment - 1) % 8)
            return false;
    }
}

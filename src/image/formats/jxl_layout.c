/*
 * A JPEG XL file is a codestream, or boxes of which one (jxlc), or several in order (jxlp), hold
 * it. The codestream begins with bits, lowest first: the size, then what differs from the usual
 * image. A number is often one of four kinds, chosen by two bits, each a constant plus bits.
 */
#include "image/formats/jxl_layout.h"
#include "base/bytes.h"
#include "image/facts.h"
#include "image/formats/codec.h"
#include <string.h>

/* ---- bits ------------------------------------------------------------------------------------ */

struct bits {
    const uint8_t *bytes;
    size_t n_bits, at;
    bool is_over; /* was read beyond the end; zeros come from there */
};

static uint32_t take(struct bits *bits, unsigned n)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < n; i++, bits->at++) {
        if (bits->at >= bits->n_bits) {
            bits->is_over = true;
            return 0;
        }
        value |= (uint32_t)(bits->bytes[bits->at / 8] >> bits->at % 8 & 1) << i;
    }
    return value;
}

static bool flag(struct bits *bits)
{
    return take(bits, 1) != 0;
}

/* A kind of number. */
struct kind {
    uint32_t constant;
    uint8_t n_bits;
};

static int64_t choose(struct bits *bits, const struct kind kinds[4])
{
    const struct kind *kind = &kinds[take(bits, 2)];
    return (int64_t)kind->constant + take(bits, kind->n_bits);
}

static const struct kind enumeration[] = {{0, 0}, {1, 0}, {2, 4}, {18, 6}};

/* ---- parts of the header --------------------------------------------------------------------- */

/* A height, and a width that is one of seven ratios of it or stands for itself. */
static void read_size(struct bits *bits, int64_t (*side)(struct bits *bits, bool is_by_8),
                      int64_t *width, int64_t *height)
{
    static const uint8_t ratios[8][2] = {{0, 1}, {1, 1},  {12, 10}, {4, 3},
                                         {3, 2}, {16, 9}, {5, 4},   {2, 1}};
    const bool is_by_8 = flag(bits);
    *height = side(bits, is_by_8);
    const uint32_t ratio = take(bits, 3);
    *width = ratio == 0 ? side(bits, is_by_8) : *height * ratios[ratio][0] / ratios[ratio][1];
}

static int64_t image_side(struct bits *bits, bool is_by_8)
{
    static const struct kind any[] = {{1, 9}, {1, 13}, {1, 18}, {1, 30}};
    return is_by_8 ? 8 * (1 + (int64_t)take(bits, 5)) : choose(bits, any);
}

static int64_t preview_side(struct bits *bits, bool is_by_8)
{
    static const struct kind by_8[] = {{16, 0}, {32, 0}, {1, 5}, {33, 9}};
    static const struct kind any[] = {{1, 6}, {65, 8}, {321, 10}, {1345, 12}};
    return is_by_8 ? 8 * choose(bits, by_8) : choose(bits, any);
}

static void read_animation(struct bits *bits)
{
    static const struct kind ticks[] = {{100, 0}, {1000, 0}, {1, 10}, {1, 30}};
    static const struct kind parts[] = {{1, 0}, {1001, 0}, {1, 8}, {1, 10}};
    static const struct kind loops[] = {{0, 0}, {0, 3}, {0, 16}, {0, 32}};
    (void)choose(bits, ticks);
    (void)choose(bits, parts);
    (void)choose(bits, loops);
    (void)flag(bits);
}

static int read_depth(struct bits *bits)
{
    static const struct kind whole[] = {{8, 0}, {10, 0}, {12, 0}, {1, 6}};
    static const struct kind real[] = {{32, 0}, {16, 0}, {24, 0}, {1, 6}};
    if (!flag(bits))
        return (int)choose(bits, whole);
    const int depth = (int)choose(bits, real);
    (void)take(bits, 4);
    return depth;
}

static void read_extra_channel(struct bits *bits, struct tdmi_jxl_layout *layout)
{
    enum { OPACITY = 0, SPOT_COLOUR = 2, SENSOR = 5 };
    static const struct kind shifts[] = {{0, 0}, {3, 0}, {4, 0}, {1, 3}};
    static const struct kind lengths[] = {{0, 0}, {0, 4}, {16, 5}, {48, 10}};
    static const struct kind sensors[] = {{1, 0}, {0, 2}, {3, 4}, {19, 8}};
    if (flag(bits)) { /* the usual one */
        layout->has_alpha = true;
        return;
    }
    const int64_t use = choose(bits, enumeration);
    (void)read_depth(bits);
    (void)choose(bits, shifts);
    for (int64_t n = choose(bits, lengths); n > 0; n--)
        (void)take(bits, 8);
    layout->has_alpha = layout->has_alpha || use == OPACITY;
    if (use == OPACITY)
        (void)flag(bits);
    else if (use == SPOT_COLOUR)
        for (int i = 0; i < 4; i++)
            (void)take(bits, 16);
    else if (use == SENSOR)
        (void)choose(bits, sensors);
}

static void read_metadata(struct bits *bits, struct tdmi_jxl_layout *layout)
{
    enum { GREY = 1 };
    static const struct kind extras[] = {{0, 0}, {1, 0}, {2, 4}, {1, 12}};
    int64_t width, height;
    if (flag(bits)) /* all as usual */
        return;
    if (flag(bits)) {
        layout->orientation = 1 + (int)take(bits, 3);
        if (flag(bits))
            read_size(bits, image_side, &width, &height);
        if (flag(bits))
            read_size(bits, preview_side, &width, &height);
        layout->is_animated = flag(bits);
        if (layout->is_animated)
            read_animation(bits);
    }
    layout->bits = read_depth(bits);
    (void)flag(bits);
    layout->n_extra = choose(bits, extras);
    for (int64_t i = 0; i < layout->n_extra && !bits->is_over; i++)
        read_extra_channel(bits, layout);
    (void)flag(bits);
    if (flag(bits)) /* sRGB */
        return;
    layout->has_icc = flag(bits);
    layout->is_grey = choose(bits, enumeration) == GREY;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* The beginning of the codestream, up to the first box's end. */
static const uint8_t *find_codestream(const uint8_t *bytes, size_t length_bytes, size_t *n_bytes,
                                      bool *is_cut)
{
    const uint8_t *found = NULL;
    for (size_t at = 0; at < length_bytes;) {
        const size_t left = length_bytes - at;
        uint64_t box_bytes = left < 8 ? 0 : tdmi_read_big(bytes + at, 4);
        size_t header_bytes = 8;
        if (left >= 16 && box_bytes == 1) {
            box_bytes = tdmi_read_big(bytes + at + 8, 8);
            header_bytes = 16;
        } else if (left >= 8 && box_bytes == 0) {
            box_bytes = left; /* up to the end */
        }
        *is_cut = box_bytes < header_bytes || box_bytes > left;
        const size_t present_bytes = *is_cut ? left : (size_t)box_bytes;
        if (left < header_bytes)
            break;
        /* A partial one begins with its number. */
        const bool is_part = memcmp(bytes + at + 4, "jxlp", 4) == 0;
        const size_t skipped = header_bytes + (is_part ? 4 : 0);
        if (found == NULL && present_bytes > skipped &&
            (is_part || memcmp(bytes + at + 4, "jxlc", 4) == 0)) {
            found = bytes + at + skipped;
            *n_bytes = present_bytes - skipped;
        }
        if (*is_cut)
            break;
        at += present_bytes;
    }
    return found;
}

tdm_status tdmi_jxl_walk(const uint8_t *bytes, size_t length_bytes, struct tdmi_jxl_layout *layout,
                         tdm_error *err)
{
    *layout = (struct tdmi_jxl_layout){.orientation = 1, .bits = 8};
    const uint8_t *codestream = bytes;
    size_t n_bytes = length_bytes;
    if (length_bytes < 2 || bytes[0] != 0xff)
        codestream = find_codestream(bytes, length_bytes, &n_bytes, &layout->is_cut);
    if (codestream == NULL || n_bytes < 2 || memcmp(codestream, "\xff\x0a", 2) != 0) {
        layout->is_cut = layout->is_cut || codestream == NULL;
        return TDM_FAIL(err, TDM_E_INPUT, "it is %s: no image header lies in its %zu bytes",
                        layout->is_cut ? "truncated" : "damaged", length_bytes);
    }
    struct bits bits = {.bytes = codestream, .n_bits = 8 * n_bytes, .at = 16};
    read_size(&bits, image_side, &layout->width, &layout->height);
    read_metadata(&bits, layout);
    if (!bits.is_over)
        return TDM_OK;
    layout->is_cut = true;
    return TDM_FAIL(err, TDM_E_INPUT, "it is truncated: its header does not end in its %zu bytes",
                    length_bytes);
}

tdm_status tdmi_jxl_describe(const uint8_t *bytes, size_t length_bytes,
                             struct tdmi_image_facts *facts, tdm_error *err)
{
    struct tdmi_jxl_layout layout;
    const tdm_status status = tdmi_jxl_walk(bytes, length_bytes, &layout, err);
    const bool is_turned = layout.orientation >= 5;
    facts->width = is_turned ? layout.height : layout.width;
    facts->height = is_turned ? layout.width : layout.height;
    facts->colours = layout.is_grey ? TDMI_COLOURS_GREY : TDMI_COLOURS_RGB;
    facts->bits = layout.bits;
    facts->n_frames = layout.is_animated ? 2 : 1;
    facts->has_alpha = layout.has_alpha;
    facts->has_icc = layout.has_icc;
    facts->is_cut = layout.is_cut;
    return status;
}

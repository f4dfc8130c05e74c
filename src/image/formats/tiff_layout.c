/*
 * Walks a TIFF file: byte order, the offset of the first directory; a directory is a count and
 * entries of tag, type, number of values and the values or their offset; then the offset of the
 * next directory. BigTIFF has the same with 64-bit numbers. Nothing is believed that does not lie
 * inside the bytes.
 */
#include "image/formats/tiff_layout.h"
#include "base/bytes.h"
#include "image/formats/codec.h"
#include <string.h>

enum {
    SUBFILE = 254,
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    PHOTOMETRIC = 262,
    STRIP_OFFSETS = 273,
    SAMPLES = 277,
    STRIP_BYTES = 279,
    TILE_WIDTH = 322,
    TILE_HEIGHT = 323,
    TILE_OFFSETS = 324,
    TILE_BYTES = 325,
    SUB_DIRECTORIES = 330,
    EXTRA_SAMPLES = 338,
    ICC = 34675,
    DNG_VERSION = 50706,
    MOST_IMAGES = 1000,
    MOST_BITS_LOOKED_AT = 16
};

struct file {
    const uint8_t *bytes;
    size_t length_bytes;
    bool is_big_endian, is_bigtiff;
};

static uint64_t read_number(const struct file *file, size_t at, size_t n_bytes)
{
    return file->is_big_endian ? tdmi_read_big(file->bytes + at, n_bytes)
                               : tdmi_read_little(file->bytes + at, n_bytes);
}

static bool holds(const struct file *file, uint64_t at, uint64_t n_bytes)
{
    return at <= file->length_bytes && n_bytes <= file->length_bytes - at;
}

/* ---- entries --------------------------------------------------------------------------------- */

struct entry {
    unsigned tag;
    size_t value_bytes; /* size of one value */
    uint64_t n_values, at;
    bool is_cut; /* its values lie beyond the end */
};

static size_t bytes_of_type(unsigned type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

/* False: a type that is not known. */
static bool read_entry(const struct file *file, size_t at, struct entry *entry)
{
    const size_t word = file->is_bigtiff ? 8 : 4, value = at + 4 + word;
    entry->tag = (unsigned)read_number(file, at, 2);
    entry->value_bytes = bytes_of_type((unsigned)read_number(file, at + 2, 2));
    entry->n_values = read_number(file, at + 4, word);
    if (entry->value_bytes == 0 || entry->n_values > UINT64_MAX / 8)
        return false;
    const bool is_inside = entry->n_values * entry->value_bytes <= word;
    entry->at = is_inside ? value : read_number(file, value, word);
    entry->is_cut = !holds(file, entry->at, entry->n_values * entry->value_bytes);
    return true;
}

static uint64_t value_of(const struct file *file, const struct entry *entry, uint64_t index)
{
    if (entry->is_cut || index >= entry->n_values)
        return 0;
    return read_number(file, (size_t)(entry->at + index * entry->value_bytes), entry->value_bytes);
}

static void take_entry(const struct file *file, const struct entry *entry,
                       struct tdmi_tiff_layout *layout)
{
    const uint64_t value = value_of(file, entry, 0);
    switch (entry->tag) {
    case SUBFILE:
        layout->is_reduced = (value & 1) != 0;
        break;
    case WIDTH:
        layout->width = (int64_t)(value & INT64_MAX);
        break;
    case HEIGHT:
        layout->height = (int64_t)(value & INT64_MAX);
        break;
    case TILE_WIDTH:
        layout->tile_width = (int64_t)(value & INT64_MAX);
        break;
    case TILE_HEIGHT:
        layout->tile_height = (int64_t)(value & INT64_MAX);
        break;
    case BITS:
        layout->bits = 0;
        for (uint64_t i = 0; i < entry->n_values && i < MOST_BITS_LOOKED_AT; i++) {
            const uint64_t bits = value_of(file, entry, i);
            if (bits <= 64 && (int)bits > layout->bits)
                layout->bits = (int)bits;
        }
        break;
    case PHOTOMETRIC:
        layout->photometric = (int64_t)(value & INT64_MAX);
        break;
    case SAMPLES:
        layout->n_samples = (int64_t)(value & INT64_MAX);
        break;
    case EXTRA_SAMPLES:
        layout->is_premultiplied = value == 1;
        layout->has_alpha = value == 1 || value == 2;
        break;
    case ICC:
        layout->has_icc = true;
        break;
    case SUB_DIRECTORIES:
        layout->has_layers = true;
        break;
    case DNG_VERSION:
        layout->is_raw = true;
        break;
    default:
        break;
    }
}

/* Does a strip or tile end beyond the file? */
static bool are_pixels_cut(const struct file *file, const struct entry *offsets,
                           const struct entry *counts)
{
    if (offsets->is_cut || counts->is_cut)
        return true;
    for (uint64_t i = 0; i < offsets->n_values && i < counts->n_values; i++) {
        const uint64_t n_bytes = value_of(file, counts, i);
        if (n_bytes > 0 && !holds(file, value_of(file, offsets, i), n_bytes))
            return true;
    }
    return false;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The size of the parts of a directory. */
struct sizes {
    size_t count, entry, word;
};

static struct sizes sizes_of(const struct file *file)
{
    return file->is_bigtiff ? (struct sizes){8, 20, 8} : (struct sizes){2, 12, 4};
}

/* The number of entries of the directory; false: it does not lie inside the file as a whole. */
static bool count_entries(const struct file *file, uint64_t at, uint64_t *n)
{
    const struct sizes sizes = sizes_of(file);
    if (!holds(file, at, sizes.count))
        return false;
    *n = read_number(file, (size_t)at, sizes.count);
    return *n <= file->length_bytes / sizes.entry &&
           holds(file, at + sizes.count, *n * sizes.entry + sizes.word);
}

static int64_t count_images(const struct file *file, uint64_t at)
{
    const struct sizes sizes = sizes_of(file);
    uint64_t n_entries;
    int64_t n = 0;
    while (n < MOST_IMAGES && at != 0 && count_entries(file, at, &n_entries)) {
        n++;
        at = read_number(file, (size_t)(at + sizes.count + n_entries * sizes.entry), sizes.word);
    }
    return n;
}

static void walk_directory(const struct file *file, uint64_t at, uint64_t n_entries,
                           struct tdmi_tiff_layout *layout)
{
    const struct sizes sizes = sizes_of(file);
    struct entry entry, offsets = {0}, counts = {0};
    bool is_cut = false;
    for (uint64_t i = 0; i < n_entries; i++) {
        if (!read_entry(file, (size_t)(at + sizes.count + i * sizes.entry), &entry))
            continue;
        is_cut = is_cut || entry.is_cut;
        take_entry(file, &entry, layout);
        if (entry.tag == STRIP_OFFSETS || entry.tag == TILE_OFFSETS)
            offsets = entry;
        if (entry.tag == STRIP_BYTES || entry.tag == TILE_BYTES)
            counts = entry;
    }
    layout->has_all_pixels = !are_pixels_cut(file, &offsets, &counts);
    layout->is_cut = is_cut || !layout->has_all_pixels;
    layout->is_raw = layout->is_raw || (layout->is_reduced && layout->has_layers) ||
                     (at == 16 && memcmp(file->bytes + 8, "CR\2", 3) == 0);
}

tdm_status tdmi_tiff_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_tiff_layout *layout, tdm_error *err)
{
    *layout =
        (struct tdmi_tiff_layout){.bits = 1, .n_samples = 1, .photometric = -1, .is_cut = true};
    struct file file = {bytes, length_bytes, length_bytes > 0 && bytes[0] == 'M', false};
    uint64_t at = 0, n_entries = 0;
    if (length_bytes >= 16) {
        file.is_bigtiff = read_number(&file, 2, 2) == 43;
        at = file.is_bigtiff ? read_number(&file, 8, 8) : read_number(&file, 4, 4);
    }
    if (at == 0 || !count_entries(&file, at, &n_entries))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: its directory does not lie in its %zu bytes",
                        length_bytes);
    walk_directory(&file, at, n_entries, layout);
    layout->n_images = count_images(&file, at);
    if (layout->width < 1 || layout->height < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: its directory names no size");
    return TDM_OK;
}

enum tdmi_colours tdmi_tiff_colours(const struct tdmi_tiff_layout *layout)
{
    switch (layout->photometric) {
    case 0:
    case 1:
        return TDMI_COLOURS_GREY;
    case 2:
    case 6:
    case 8:
        return TDMI_COLOURS_RGB;
    case 3:
        return TDMI_COLOURS_PALETTE;
    case 5:
        return TDMI_COLOURS_CMYK;
    default:
        return TDMI_COLOURS_UNKNOWN;
    }
}

tdm_status tdmi_tiff_describe(const uint8_t *bytes, size_t length_bytes,
                              struct tdmi_image_facts *facts, tdm_error *err)
{
    struct tdmi_tiff_layout layout;
    const tdm_status status = tdmi_tiff_walk(bytes, length_bytes, &layout, err);
    facts->width = layout.width;
    facts->height = layout.height;
    if (__builtin_mul_overflow(layout.tile_width, layout.tile_height, &facts->coded_pixels))
        facts->coded_pixels = INT64_MAX;
    facts->colours = tdmi_tiff_colours(&layout);
    facts->bits = layout.bits;
    facts->n_frames = layout.n_images;
    facts->has_alpha = layout.has_alpha;
    facts->has_icc = layout.has_icc;
    facts->is_cut = layout.is_cut;
    return status;
}

/* The file is itself a TIFF block. */
const uint8_t *tdmi_exif_in_tiff(const uint8_t *bytes, size_t length_bytes, size_t *exif_bytes)
{
    *exif_bytes = length_bytes;
    return bytes;
}

/*
 * Walks the boxes of a HEIF file: a length, a name of four letters and content, which may be boxes
 * again. Box meta names the primary item (pitm), lists properties (ipco: size, rotation, cropping,
 * depth, colours), says which item has which of them, in the order they apply (ipma), and how items
 * refer to each other (iref: opacity to its image, a grid to its tiles). Nothing is believed that
 * does not lie inside the bytes. The work is paid from a budget of steps, because boxes can refer
 * to each other without end.
 */
#include "image/formats/heif_layout.h"
#include "base/bytes.h"
#include "image/facts.h"
#include "image/formats/codec.h"
#include "image/formats/heif_frames.h"
#include <string.h>

/* ---- boxes ----------------------------------------------------------------------------------- */

struct box {
    const uint8_t *name, *content;
    size_t content_bytes;
    bool is_cut; /* content_bytes are what is there */
};

/* The next box of *at up to end, behind which *at then is; false: no more. */
static bool next_box(const uint8_t **at, const uint8_t *end, struct box *box)
{
    const size_t left = (size_t)(end - *at);
    if (left < 8)
        return false;
    uint64_t length = tdmi_read_big(*at, 4);
    size_t header_bytes = 8;
    if (length == 1) {
        if (left < 16)
            return false;
        length = tdmi_read_big(*at + 8, 8);
        header_bytes = 16;
    } else if (length == 0) {
        length = left; /* up to the end */
    }
    if (length < header_bytes)
        return false;
    box->name = *at + 4;
    box->is_cut = length > left;
    box->content = *at + header_bytes;
    box->content_bytes = (box->is_cut ? left : (size_t)length) - header_bytes;
    *at = box->content + box->content_bytes;
    return true;
}

static bool is_named(const struct box *box, const char *name)
{
    return memcmp(box->name, name, 4) == 0;
}

/* The first box of that name in content; one without a name where there is none. */
static struct box find_box(const uint8_t *content, size_t content_bytes, const char *name)
{
    struct box box;
    for (const uint8_t *at = content, *end = at + content_bytes; next_box(&at, end, &box);)
        if (is_named(&box, name))
            return box;
    return (struct box){.name = NULL};
}

bool tdmi_heif_has_brand(const uint8_t *bytes, size_t length_bytes, const char *brand)
{
    struct box box;
    const uint8_t *at = bytes;
    if (!next_box(&at, bytes + length_bytes, &box) || !is_named(&box, "ftyp"))
        return false;
    for (size_t i = 0; i + 4 <= box.content_bytes; i += 4) /* the second is a version */
        if (i != 4 && memcmp(box.content + i, brand, 4) == 0)
            return true;
    return false;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads numbers from the content of a box; 0 from its end on. */
struct numbers {
    const uint8_t *at, *end;
};

static uint64_t take(struct numbers *numbers, size_t n_bytes)
{
    if ((size_t)(numbers->end - numbers->at) < n_bytes) {
        numbers->at = numbers->end;
        return 0;
    }
    const uint64_t value = tdmi_read_big(numbers->at, n_bytes);
    numbers->at += n_bytes;
    return value;
}

static struct numbers numbers_of(const struct box *box)
{
    if (box->name == NULL)
        return (struct numbers){NULL, NULL};
    return (struct numbers){box->content, box->content + box->content_bytes};
}

/* ---- properties of items --------------------------------------------------------------------- */

enum { MOST_STEPS = 1 << 25 };

struct item_file {
    const uint8_t *bytes;
    size_t length_bytes;
    struct box references, properties, owners, places, data; /* iref, ipco, ipma, iloc, idat */
    uint64_t primary;
    int64_t n_steps; /* that are left */
};

/* May another entry be looked at? */
static bool pay(struct item_file *file)
{
    return file->n_steps > 0 && file->n_steps-- > 0;
}

static struct box property_at(struct item_file *file, uint64_t index)
{
    struct box box;
    uint64_t i = 0;
    if (file->properties.name != NULL)
        for (const uint8_t *at = file->properties.content,
                           *end = at + file->properties.content_bytes;
             pay(file) && next_box(&at, end, &box);)
            if (++i == index)
                return box;
    return (struct box){.name = NULL};
}

/* Pass each property of the item to visit, in order. */
static void visit_properties(struct item_file *file, uint64_t item,
                             void (*visit)(void *self, const struct box *property), void *self)
{
    struct numbers in = numbers_of(&file->owners);
    const uint64_t version = take(&in, 1), flags = take(&in, 3), n = take(&in, 4);
    for (uint64_t i = 0; i < n && in.at < in.end && pay(file); i++) {
        const bool is_it = take(&in, version < 1 ? 2 : 4) == item;
        const uint64_t n_properties = take(&in, 1);
        for (uint64_t k = 0; k < n_properties && in.at < in.end && pay(file); k++) {
            /* The highest bit: the property must be understood. */
            const uint64_t index = (flags & 1) != 0 ? take(&in, 2) & 0x7fff : take(&in, 1) & 0x7f;
            const struct box property = is_it ? property_at(file, index) : (struct box){0};
            if (property.name != NULL)
                visit(self, &property);
        }
        if (is_it) /* further entries for it could only repeat the walk above without end */
            return;
    }
}

/* The first item that `from` refers to in this way or, where from is 0, that refers to `to`; 0:
 * none. */
static uint64_t find_reference(const struct item_file *file, const char *kind, uint64_t from,
                               uint64_t to)
{
    struct numbers in = numbers_of(&file->references);
    const size_t id_bytes = take(&in, 1) == 0 ? 2 : 4;
    struct box box;
    (void)take(&in, 3);
    for (const uint8_t *at = in.at; at != NULL && next_box(&at, in.end, &box);) {
        struct numbers ids = numbers_of(&box);
        const uint64_t its_from = take(&ids, id_bytes), n = take(&ids, 2);
        if (!is_named(&box, kind) || (from != 0 && from != its_from))
            continue;
        for (uint64_t i = 0; i < n && ids.at < ids.end; i++) {
            const uint64_t its_to = take(&ids, id_bytes);
            if (from != 0)
                return its_to;
            if (its_to == to)
                return its_from;
        }
    }
    return 0;
}

/* A piece of an item's data, whose bytes are NULL where they do not all lie in the file. */
struct piece {
    uint64_t item;
    const uint8_t *bytes;
    size_t n_bytes;
    bool is_only;
};

/* In the file, or in the box idat of meta. A piece of no length reaches to the end. */
static void find_piece(const struct item_file *file, bool is_in_file, uint64_t base,
                       uint64_t offset, uint64_t n_bytes, struct piece *piece)
{
    const uint8_t *from = is_in_file ? file->bytes : file->data.content;
    const size_t there = is_in_file                ? file->length_bytes
                         : file->data.name != NULL ? file->data.content_bytes
                                                   : 0;
    piece->bytes = NULL;
    if (base > there || offset > there - base || n_bytes > there - base - offset || from == NULL)
        return;
    piece->bytes = from + base + offset;
    piece->n_bytes = n_bytes > 0 ? (size_t)n_bytes : (size_t)(there - base - offset);
}

/* Pass each piece of data to visit: those of an item one after the other. */
static void visit_data(struct item_file *file, void (*visit)(void *self, const struct piece *piece),
                       void *self)
{
    struct numbers in = numbers_of(&file->places);
    const uint64_t version = take(&in, 4) >> 24, sizes = take(&in, 2);
    const size_t offset_bytes = sizes >> 12 & 15, n_length_bytes = sizes >> 8 & 15,
                 base_bytes = sizes >> 4 & 15, index_bytes = version == 0 ? 0 : sizes & 15;
    const uint64_t n_items = take(&in, version < 2 ? 2 : 4);
    if (offset_bytes > 8 || n_length_bytes > 8 || base_bytes > 8 || index_bytes > 8)
        return;
    for (uint64_t i = 0; i < n_items && in.at < in.end; i++) {
        struct piece piece = {.item = take(&in, version < 2 ? 2 : 4)};
        const uint64_t method = version == 0 ? 0 : take(&in, 2) & 15;
        (void)take(&in, 2);
        const uint64_t base = take(&in, base_bytes), n_pieces = take(&in, 2);
        piece.is_only = n_pieces == 1;
        for (uint64_t k = 0; k < n_pieces && in.at < in.end && pay(file); k++) {
            (void)take(&in, index_bytes);
            const uint64_t offset = take(&in, offset_bytes), n_bytes = take(&in, n_length_bytes);
            if (method > 1) /* made from other items */
                continue;
            find_piece(file, method == 0, base, offset, n_bytes, &piece);
            visit(self, &piece);
        }
    }
}

/* ---- what they say --------------------------------------------------------------------------- */

static void take_depth(void *self, const struct box *property)
{
    struct tdmi_heif_layout *layout = self;
    const uint8_t *content = property->content;
    const size_t n = property->content_bytes;
    if (is_named(property, "hvcC") && n >= 18) {
        layout->bits = (content[17] & 7) + 8;
        layout->is_grey = (content[16] & 3) == 0;
    } else if (is_named(property, "av1C") && n >= 4) {
        layout->bits = (content[2] & 0x40) == 0 ? 8 : (content[2] & 0x20) == 0 ? 10 : 12;
        layout->is_grey = (content[2] & 0x10) != 0;
    }
}

/* A fraction rounded to a whole number, as libheif does. */
static int64_t rounded(const uint8_t *fraction)
{
    const int64_t over = (int32_t)tdmi_read_big(fraction, 4);
    const int64_t under = (int32_t)tdmi_read_big(fraction + 4, 4);
    return under > 0 ? (over + under / 2) / under : 0;
}

/* Pixels that a box ispe says; INT64_MAX: more than can be counted. */
static int64_t pixels_of(const struct box *size)
{
    int64_t pixels = 0;
    if (size->content_bytes >= 12 &&
        __builtin_mul_overflow(tdmi_read_big(size->content + 4, 4),
                               tdmi_read_big(size->content + 8, 4), &pixels))
        return INT64_MAX;
    return pixels;
}

static void take_property(void *self, const struct box *property)
{
    struct tdmi_heif_layout *layout = self;
    const uint8_t *content = property->content;
    const size_t n = property->content_bytes;
    if (is_named(property, "ispe") && n >= 12) {
        layout->width = (int64_t)tdmi_read_big(content + 4, 4);
        layout->height = (int64_t)tdmi_read_big(content + 8, 4);
        layout->coded_pixels = pixels_of(property);
    } else if (is_named(property, "irot") && n >= 1 && (content[0] & 1) != 0) {
        const int64_t width = layout->width;
        layout->width = layout->height;
        layout->height = width;
    } else if (is_named(property, "clap") && n >= 16) {
        layout->width = rounded(content);
        layout->height = rounded(content + 8);
    } else if (is_named(property, "colr") && n >= 4) {
        layout->has_icc =
            layout->has_icc || memcmp(content, "prof", 4) == 0 || memcmp(content, "rICC", 4) == 0;
    } else {
        take_depth(self, property);
    }
}

static void take_opacity(void *self, const struct box *property)
{
    static const char *const names[] = {"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
                                        "urn:mpeg:hevc:2015:auxid:1"};
    bool *is_opacity = self;
    for (size_t i = 0; is_named(property, "auxC") && i < sizeof names / sizeof names[0]; i++)
        if (property->content_bytes >= 4 + strlen(names[i]) &&
            memcmp(property->content + 4, names[i], strlen(names[i])) == 0)
            *is_opacity = true;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct coded {
    int64_t pixels;       /* by its property of size */
    struct box hevc, av1; /* how it is coded; one without a name where it is not */
};

static void take_coded(void *self, const struct box *property)
{
    struct coded *coded = self;
    if (is_named(property, "ispe"))
        coded->pixels = pixels_of(property);
    else if (is_named(property, "hvcC"))
        coded->hevc = *property;
    else if (is_named(property, "av1C"))
        coded->av1 = *property;
}

struct looking {
    struct item_file *file;
    struct tdmi_heif_layout *layout;
};

/* The frames that an item's configuration and a piece of its data announce. Twice its sides, and
 * four times 512 x 512, is more than any encoder pads. */
static void look_at_piece(void *self, const struct piece *piece)
{
    enum { PADDING_PIXELS = 1 << 20 };
    struct looking *it = self;
    struct coded coded = {0};
    struct tdmi_heif_frames frames = {0};
    if (piece->bytes == NULL) {
        it->layout->is_cut = true;
        return;
    }
    visit_properties(it->file, piece->item, take_coded, &coded);
    frames.n_left = it->file->n_steps;
    const struct box *hevc = &coded.hevc, *av1 = &coded.av1;
    if (hevc->name != NULL) {
        tdmi_heif_frames_of_hevc_config(&frames, hevc->content, hevc->content_bytes);
        tdmi_heif_frames_of_hevc(&frames,
                                 tdmi_heif_hevc_length_bytes(hevc->content, hevc->content_bytes),
                                 piece->bytes, piece->n_bytes);
    }
    if (av1->name != NULL) {
        tdmi_heif_frames_of_av1_config(&frames, av1->content, av1->content_bytes);
        tdmi_heif_frames_of_av1(&frames, piece->bytes, piece->n_bytes);
    }
    if (hevc->name == NULL && av1->name == NULL)
        return;
    it->file->n_steps = frames.n_left;
    it->layout->is_tangled = it->layout->is_tangled || (frames.is_unit_cut && !piece->is_only);
    it->layout->has_larger_frames =
        it->layout->has_larger_frames || frames.pixels / 4 - PADDING_PIXELS / 4 > coded.pixels;
    if (frames.pixels > it->layout->frame_pixels)
        it->layout->frame_pixels = frames.pixels;
}

/* The largest of the images that this one is made from, and of its opacity, in steps that end. */
static int64_t largest_input(struct item_file *file, uint64_t item, int depth)
{
    enum { MOST_DEPTH = 4 };
    struct numbers in = numbers_of(&file->references);
    const size_t id_bytes = take(&in, 1) == 0 ? 2 : 4;
    int64_t largest = 0;
    struct box box;
    (void)take(&in, 3);
    for (const uint8_t *at = in.at; at != NULL && pay(file) && next_box(&at, in.end, &box);) {
        struct numbers ids = numbers_of(&box);
        const uint64_t from = take(&ids, id_bytes), n = take(&ids, 2);
        const bool is_made_from = is_named(&box, "dimg") && from == item;
        for (uint64_t i = 0; i < n && ids.at < ids.end && pay(file); i++) {
            const uint64_t to = take(&ids, id_bytes);
            const bool is_aside = is_named(&box, "auxl") && to == item;
            const uint64_t input = is_made_from ? to : from;
            struct coded coded = {0};
            if (!is_made_from && !is_aside)
                continue;
            visit_properties(file, input, take_coded, &coded);
            const int64_t its = depth < MOST_DEPTH ? largest_input(file, input, depth + 1) : 0;
            largest = coded.pixels > largest ? coded.pixels : largest;
            largest = its > largest ? its : largest;
        }
    }
    return largest;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void read_items(const struct box *meta, struct item_file *file)
{
    if (meta->content_bytes < 4)
        return;
    const uint8_t *content = meta->content + 4;
    const size_t n_bytes = meta->content_bytes - 4;
    const struct box primary = find_box(content, n_bytes, "pitm");
    const struct box properties = find_box(content, n_bytes, "iprp");
    struct numbers in = numbers_of(&primary);
    const uint64_t version = take(&in, 1);
    (void)take(&in, 3);
    file->primary = take(&in, version == 0 ? 2 : 4);
    file->references = find_box(content, n_bytes, "iref");
    file->places = find_box(content, n_bytes, "iloc");
    file->data = find_box(content, n_bytes, "idat");
    if (properties.name == NULL)
        return;
    file->properties = find_box(properties.content, properties.content_bytes, "ipco");
    file->owners = find_box(properties.content, properties.content_bytes, "ipma");
}

static void take_largest(int64_t *pixels, int64_t other)
{
    *pixels = other > *pixels ? other : *pixels;
}

tdm_status tdmi_heif_walk(const uint8_t *bytes, size_t length_bytes,
                          struct tdmi_heif_layout *layout, tdm_error *err)
{
    struct item_file file = {.bytes = bytes, .length_bytes = length_bytes, .n_steps = MOST_STEPS};
    struct box box;
    const uint8_t *at = bytes, *end = bytes + length_bytes;
    bool is_opacity = false;
    *layout = (struct tdmi_heif_layout){0};
    while (next_box(&at, end, &box)) {
        layout->is_cut = layout->is_cut || box.is_cut;
        if (is_named(&box, "meta"))
            read_items(&box, &file);
    }
    layout->is_cut = layout->is_cut || at != end;
    visit_properties(&file, file.primary, take_property, layout);
    if (layout->bits == 0) /* a grid: its tiles have it */
        visit_properties(&file, find_reference(&file, "dimg", file.primary, 0), take_depth, layout);
    layout->bits = layout->bits == 0 ? 8 : layout->bits;
    visit_properties(&file, find_reference(&file, "auxl", 0, file.primary), take_opacity,
                     &is_opacity);
    layout->has_alpha = is_opacity;
    visit_data(&file, look_at_piece, &(struct looking){&file, layout});
    take_largest(&layout->coded_pixels, layout->frame_pixels);
    take_largest(&layout->coded_pixels, largest_input(&file, file.primary, 0));
    layout->is_tangled = layout->is_tangled || file.n_steps <= 0;
    if (layout->width < 1 || layout->height < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is %s: no primary image with a size lies in its %zu bytes",
                        layout->is_cut ? "truncated" : "damaged", length_bytes);
    return TDM_OK;
}

tdm_status tdmi_heif_describe(const uint8_t *bytes, size_t length_bytes,
                              struct tdmi_image_facts *facts, tdm_error *err)
{
    struct tdmi_heif_layout layout;
    const tdm_status status = tdmi_heif_walk(bytes, length_bytes, &layout, err);
    facts->width = layout.width;
    facts->height = layout.height;
    facts->coded_pixels = layout.coded_pixels;
    facts->colours = layout.is_grey ? TDMI_COLOURS_GREY : TDMI_COLOURS_RGB;
    facts->bits = layout.bits;
    facts->n_frames = 1;
    facts->has_alpha = layout.has_alpha;
    facts->has_icc = layout.has_icc;
    facts->is_cut = layout.is_cut;
    return status;
}

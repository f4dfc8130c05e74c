/*
 * Decoding goes by rows of MCUs, all of whose data stays in the nearest caches:
 *
 *     bytes ──unstuff──► segments ──decode──► coefficients ──transform──► planes ──colour──► rows
 *
 * A plane holds the samples of one component for a row of MCUs. Where colours have half the rows,
 * each pixel row is made of two rows of theirs, the nearer one three parts, so the last pixel rows
 * have to wait for the next row of MCUs: planes then keep a few rows of the one before.
 *
 * Memory is the image's, behind its pixels or behind a strip of them, so that a caller which
 * decodes into the same object again allocates nothing.
 */
#include "image/jpeg/plain.h"
#include "base/scope.h"
#include "image/jpeg/kernels.h"
#include <string.h>

enum {
    ALIGNMENT = 64,
    MOST_ROWS = 16, /* pixel rows of an MCU; with those that waited, of the last strip */
    LATE_ROWS = 4,  /* pixel rows that wait where colours have half of them; sinks want fours */
    KEPT_ROWS = 3,  /* of their colours: those rows' and what lies above */
    FANCY_WIDTH = 3 /* narrower colours are just doubled, as libjpeg does it */
};

struct plane {
    uint8_t *samples; /* (n_kept + n_rows, stride_bytes) */
    size_t stride_bytes;
    int n_kept, n_rows;
    int first; /* row of the image's plane that samples begins with; below 0 at the top */
};

struct plain {
    const struct tdmi_codec_source *source;
    const struct tdmi_jpeg_kernels *kernels;
    tdmi_image *image;
    bool is_handing;
    bool is_checking; /* no rows are made */
    struct tdmi_jpeg_layout layout;
    struct tdmi_jpeg_codes *codes[2][TDMI_JPEG_COMPONENTS];
    int16_t divisors[TDMI_JPEG_COMPONENTS][TDMI_JPEG_BLOCK];
    struct tdmi_jpeg_band bands[TDMI_JPEG_COMPONENTS];
    struct plane planes[TDMI_JPEG_COMPONENTS];
    int n_ahead;           /* rows of MCUs that are decoded at once */
    size_t n_blocks;       /* of one of them */
    int16_t *coefficients; /* of all of their blocks */
    uint8_t *last;
    int16_t *sums;
    uint8_t *wide[2]; /* a row of the two colours, doubled */
    uint8_t *bytes;   /* unstuffed */
    size_t *starts;
    uint8_t *pixels; /* the image, or a strip of it */
    struct tdmi_jpeg_stream streams[TDMI_JPEG_STREAMS];
    int64_t segment; /* the next one */
    int left;        /* MCUs of the one before */
    int n_done;      /* pixel rows */
};

const struct tdmi_jpeg_kernels *tdmi_jpeg_kernels_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        return &tdmi_jpeg_avx2;
#endif
    return NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Set *at aside in memory of which *used bytes are taken; only counts when base is NULL. */
static void *carve(uint8_t *base, size_t *used, size_t count, size_t item_bytes)
{
    const size_t start = (*used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *used = start + count * item_bytes;
    return base == NULL ? NULL : base + start;
}

static bool is_half_high(const struct plain *plain)
{
    return plain->layout.components[0].down == 2;
}

static void carve_planes(struct plain *plain, uint8_t *base, size_t *used)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    size_t first[TDMI_JPEG_COMPONENTS] = {0}, n_blocks = 0;
    for (int c = 0; c < layout->n_components; c++) {
        const struct tdmi_jpeg_component *component = &layout->components[c];
        struct plane *plane = &plain->planes[c];
        const size_t n_pairs = ((size_t)layout->n_mcus_across * (size_t)component->across + 1) / 2;
        first[c] = n_blocks;
        n_blocks += 2 * n_pairs * (size_t)component->down;
        plain->bands[c] = (struct tdmi_jpeg_band){.codes = {plain->codes[0][c], plain->codes[1][c]},
                                                  .across = component->across,
                                                  .down = component->down,
                                                  .n_pairs = n_pairs};
        plane->n_rows = 8 * component->down;
        plane->n_kept = is_half_high(plain) ? (c == 0 ? LATE_ROWS : KEPT_ROWS) : 0;
        plane->first = -plane->n_kept;
        plane->stride_bytes = 16 * n_pairs;
        plane->samples = carve(base, used, (size_t)(plane->n_kept + plane->n_rows) + 1,
                               plane->stride_bytes + TDMI_JPEG_SLACK);
    }
    plain->n_blocks = n_blocks;
    const size_t n_all = n_blocks * (size_t)plain->n_ahead;
    plain->coefficients = carve(base, used, n_all * TDMI_JPEG_BLOCK, sizeof(int16_t));
    plain->last = carve(base, used, n_all, 1);
    for (int c = 0; base != NULL && c < layout->n_components; c++) {
        plain->bands[c].coefficients = plain->coefficients + first[c] * TDMI_JPEG_BLOCK;
        plain->bands[c].last = plain->last + first[c];
        plain->bands[c].ahead = n_blocks;
    }
}

/* Everything that is set aside, in one order for counting and for taking. */
static void carve_all(struct plain *plain, uint8_t *base, size_t *used)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    const size_t row_bytes = 3 * (size_t)layout->width;
    const size_t n_rows = plain->is_checking  ? 0
                          : plain->is_handing ? MOST_ROWS + LATE_ROWS
                                              : (size_t)layout->height;
    plain->pixels = carve(base, used, row_bytes * n_rows + 3 * TDMI_JPEG_SLACK, 1);
    for (int c = 0; c < layout->n_components; c++)
        for (int kind = 0; kind < 2; kind++) {
            int same = 0;
            while (layout->components[same].codes[kind] != layout->components[c].codes[kind])
                same++;
            plain->codes[kind][c] = same < c ? plain->codes[kind][same]
                                             : carve(base, used, 1, sizeof(struct tdmi_jpeg_codes));
        }
    carve_planes(plain, base, used);
    const size_t wide_bytes = (size_t)layout->width + 2 * TDMI_JPEG_SLACK;
    plain->sums = carve(base, used, wide_bytes, sizeof(int16_t));
    plain->wide[0] = carve(base, used, wide_bytes, 1);
    plain->wide[1] = carve(base, used, wide_bytes, 1);
    plain->starts = carve(base, used, (size_t)tdmi_jpeg_n_segments(layout) + 1, sizeof(size_t));
    plain->bytes = carve(base, used, tdmi_jpeg_most_bytes(layout) + 2 * TDMI_JPEG_BYTES_A_BLOCK, 1);
}

static tdm_status make_room(struct plain *plain, tdm_error *err)
{
    tdmi_image *image = plain->image;
    size_t used = 0;
    carve_all(plain, NULL, &used);
    /* The image itself begins where its memory does, wherever that is. */
    TDMI_TRY(tdmi_image_reserve(image, used + ALIGNMENT, err));
    if (!plain->is_handing && !plain->is_checking)
        TDMI_TRY(tdmi_image_reshape(image, plain->layout.width, plain->layout.height, err));
    used = 0;
    carve_all(plain, image->pixels + -(uintptr_t)image->pixels % ALIGNMENT, &used);
    plain->pixels = image->pixels;
    return TDM_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool make_tables(struct plain *plain)
{
    static const uint8_t natural[TDMI_JPEG_BLOCK] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
        41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
        30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    for (int c = 0; c < plain->layout.n_components; c++) {
        const struct tdmi_jpeg_component *component = &plain->layout.components[c];
        for (int i = 0; i < TDMI_JPEG_BLOCK; i++)
            plain->divisors[c][natural[i]] = component->divisors[i];
        for (int kind = 0; kind < 2; kind++) {
            bool is_made = false;
            for (int other = 0; other < c; other++)
                is_made |= plain->codes[kind][other] == plain->codes[kind][c];
            if (is_made)
                continue;
            if (!tdmi_jpeg_codes_make(component->codes[kind], kind, plain->codes[kind][c]))
                return false;
            if (kind == TDMI_JPEG_AC)
                plain->kernels->pair(plain->codes[kind][c]);
        }
    }
    memset(plain->last, 0, plain->n_blocks * (size_t)plain->n_ahead);
    return true;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void begin_segment(struct plain *plain, struct tdmi_jpeg_stream *stream)
{
    const size_t *starts = plain->starts + plain->segment++;
    *stream =
        (struct tdmi_jpeg_stream){.at = plain->bytes + starts[0], .end = plain->bytes + starts[1]};
}

/* The last segment may have fewer than the others. */
static int n_mcus_of(const struct plain *plain, int64_t segment)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    const int64_t n_mcus = (int64_t)layout->n_mcus_across * layout->n_mcus_down;
    const int64_t left = n_mcus - segment * layout->interval;
    return (int)(left < layout->interval ? left : layout->interval);
}

/* Less than a byte is left of the segment, and none was read beyond it. */
static bool is_segment_whole(const struct tdmi_jpeg_stream *stream)
{
    const int64_t unread_bits = 8 * (stream->end - stream->at) + (int64_t)(stream->n_bits & 63);
    return unread_bits >= 0 && unread_bits < 8;
}

static void clear_blocks(struct plain *plain, int n_rows)
{
    memset(plain->coefficients, 0,
           plain->n_blocks * (size_t)n_rows * TDMI_JPEG_BLOCK * sizeof *plain->coefficients);
}

/* A row of MCUs, of one segment or several. */
static bool decode_row(struct plain *plain)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    struct tdmi_jpeg_stream *stream = &plain->streams[0];
    clear_blocks(plain, 1);
    for (int at = 0, n; at < layout->n_mcus_across; at += n) {
        if (plain->left == 0) {
            begin_segment(plain, stream);
            plain->left = n_mcus_of(plain, plain->segment - 1);
        }
        n = layout->n_mcus_across - at;
        n = n < plain->left ? n : plain->left;
        if (!plain->kernels->decode(stream, 1, plain->bands, layout->n_components, at, n))
            return false;
        plain->left -= n;
        if (plain->left == 0 && !is_segment_whole(stream))
            return false;
    }
    return true;
}

/* Two rows of MCUs, each of which is a segment. */
static bool decode_two_rows(struct plain *plain)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    struct tdmi_jpeg_stream *streams = plain->streams;
    clear_blocks(plain, 2);
    begin_segment(plain, &streams[0]);
    begin_segment(plain, &streams[1]);
    return plain->kernels->decode(streams, 2, plain->bands, layout->n_components, 0,
                                  layout->n_mcus_across) &&
           is_segment_whole(&streams[0]) && is_segment_whole(&streams[1]);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* at: 0, or 1 for the second of two rows that were decoded at once. */
static bool transform_row(struct plain *plain, int mcu_row, int at)
{
    for (int c = 0; c < plain->layout.n_components; c++) {
        struct plane *plane = &plain->planes[c];
        const struct tdmi_jpeg_band *band = &plain->bands[c];
        const size_t kept_bytes = plane->stride_bytes * (size_t)plane->n_kept;
        if (mcu_row > 0)
            memmove(plane->samples, plane->samples + plane->stride_bytes * (size_t)plane->n_rows,
                    kept_bytes);
        plane->first = plane->n_rows * mcu_row - plane->n_kept;
        const size_t first = band->ahead * (size_t)at;
        for (int y = 0; y < band->down; y++)
            if (!plain->kernels->transform(band->coefficients + TDMI_JPEG_BLOCK * first +
                                               TDMI_JPEG_PAIR * band->n_pairs * (size_t)y,
                                           band->last + first + 2 * band->n_pairs * (size_t)y,
                                           band->n_pairs, plain->divisors[c],
                                           plane->samples + kept_bytes +
                                               plane->stride_bytes * 8 * (size_t)y,
                                           plane->stride_bytes))
                return false;
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const uint8_t *row_of(const struct plane *plane, int y)
{
    return plane->samples + plane->stride_bytes * (size_t)(y - plane->first);
}

/* A row of colour, as wide as the image. */
static const uint8_t *colour_row(struct plain *plain, int c, int y)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    const struct plane *plane = &plain->planes[c];
    const int across = layout->components[0].across, down = layout->components[0].down;
    if (across == 1)
        return row_of(plane, y);
    const int width = (layout->width + 1) / 2, height = (layout->height + down - 1) / down;
    const int near = y / down;
    const uint8_t *row = row_of(plane, near);
    uint8_t *wide = plain->wide[c - 1];
    if (width < FANCY_WIDTH) {
        for (int x = 0; x < layout->width; x++)
            wide[x] = row[x / 2];
    } else if (down == 1) {
        plain->kernels->widen(row, (size_t)width, plain->sums, wide);
    } else {
        int other = y % 2 == 0 ? near - 1 : near + 1;
        other = other < 0 ? 0 : other < height ? other : height - 1;
        plain->kernels->widen_between(row, row_of(plane, other), (size_t)width, plain->sums, wide);
    }
    return wide;
}

/* Pixel rows up to `end`. */
static void make_rows(struct plain *plain, int end)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    const struct tdmi_row_sink *sink = plain->source->sink;
    const size_t width = (size_t)layout->width, row_bytes = 3 * width;
    const int first = plain->n_done;
    uint8_t *pixels = plain->pixels;
    if (!plain->is_handing)
        pixels += row_bytes * (size_t)first;
    for (int y = first; y < end; y++) {
        uint8_t *row = pixels + row_bytes * (size_t)(y - first);
        const uint8_t *luma = row_of(&plain->planes[0], y);
        if (layout->n_components == 1)
            plain->kernels->grey(luma, width, row);
        else
            plain->kernels->colour(luma, colour_row(plain, 1, y), colour_row(plain, 2, y), width,
                                   row);
    }
    plain->n_done = end;
    if (plain->is_handing && end > first)
        sink->feed(sink->self, pixels, row_bytes,
                   plain->image->pixels + plain->image->capacity_bytes, first, end - first);
}

static bool decode_all(struct plain *plain)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    const int mcu_rows = plain->planes[0].n_rows, late = plain->planes[0].n_kept;
    for (int row = 0, at = 0, n_ready = 0; row < layout->n_mcus_down; row++) {
        const bool is_last = row + 1 == layout->n_mcus_down;
        if (row % 16 == 0 && tdmi_codec_check_time(plain->source, NULL) != TDM_OK)
            return false;
        if (++at >= n_ready) {
            at = 0;
            n_ready = is_last ? 1 : plain->n_ahead;
            if (!(n_ready == 2 ? decode_two_rows(plain) : decode_row(plain)))
                return false;
        }
        if (!transform_row(plain, row, at))
            return false;
        if (!plain->is_checking)
            make_rows(plain, is_last ? layout->height : mcu_rows * (row + 1) - late);
    }
    return true;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static tdm_status work(struct plain *plain, bool *is_done, tdm_error *err)
{
    const struct tdmi_jpeg_layout *layout = &plain->layout;
    plain->n_ahead = layout->interval == layout->n_mcus_across ? TDMI_JPEG_STREAMS : 1;
    TDMI_TRY(make_room(plain, err));
    *is_done = make_tables(plain) && tdmi_jpeg_unstuff(layout, plain->bytes, plain->starts) &&
               decode_all(plain);
    return TDM_OK;
}

/* Drafts are left to libjpeg-turbo. */
static bool is_wanted_small(const struct tdmi_codec_source *source, int width, int height)
{
    const struct tdmi_row_sink *sink = source->sink;
    const bool is_lying = source->orientation >= 5;
    return sink != NULL && sink->divisor != NULL &&
           sink->divisor(sink->self, is_lying ? height : width, is_lying ? width : height,
                         source->orientation) > 1;
}

tdm_status tdmi_jpeg_plain_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                                  bool *is_done, tdm_error *err)
{
    struct plain plain = {.source = source, .kernels = tdmi_jpeg_kernels_best(), .image = image};
    const struct tdmi_jpeg_layout *layout = &plain.layout;
    *is_done = false;
    if (plain.kernels == NULL ||
        !tdmi_jpeg_lay_out(source->bytes, source->length_bytes, &plain.layout) ||
        tdmi_codec_check_shape(source, layout->width, layout->height, NULL) != TDM_OK ||
        is_wanted_small(source, layout->width, layout->height))
        return TDM_OK;
    if (source->sink != NULL && source->orientation == 1)
        TDMI_TRY(source->sink->begin(source->sink->self, layout->width, layout->height,
                                     &plain.is_handing, err));
    return work(&plain, is_done, err);
}

tdm_status tdmi_jpeg_plain_check(const struct tdmi_codec_source *source, tdmi_image *room,
                                 bool *is_sound, tdm_error *err)
{
    struct plain plain = {
        .source = source, .kernels = tdmi_jpeg_kernels_best(), .image = room, .is_checking = true};
    *is_sound = false;
    if (plain.kernels == NULL ||
        !tdmi_jpeg_lay_out(source->bytes, source->length_bytes, &plain.layout) ||
        tdmi_codec_check_shape(source, plain.layout.width, plain.layout.height, NULL) != TDM_OK)
        return TDM_OK;
    return work(&plain, is_sound, err);
}

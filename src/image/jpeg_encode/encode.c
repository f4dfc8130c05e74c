/*
 * A row of MCUs at a time: colours become planes of samples; of a few MCUs at once, these become
 * blocks of divided coefficients and then coded bits; and the row's bytes go out, stuffed.
 *
 * From quality 95 on an MCU is a block of each component. Below (4:2:0) it has 2 x 2 blocks of luma
 * and one of each difference, which are halved in both directions. Samples beyond an edge are those
 * of the edge; blocks of luma that lie wholly beyond it have nothing but the mean of the block
 * before them. All this is as libjpeg has it.
 */
#include "image/jpeg_encode/encode.h"

#include "base/memory.h"
#include "image/formats/codec.h"
#include "image/jpeg_encode/head.h"
#include <string.h>

enum {
    CHUNK = 8, /* MCUs that are transformed before they are coded */
    LEAST_FULL_QUALITY = 95
};

struct writer {
    struct tdmi_jpeg_values luma[2][2 * CHUNK], differences[2][CHUNK]; /* of a chunk */
    const struct tdmi_jpeg_write_kernels *kernels;
    const tdmi_image *image;
    tdmi_text *out;
    int sampling;                          /* blocks of luma in an MCU, across and down */
    int n_across, n_down;                  /* MCUs */
    size_t stride;                         /* samples */
    int16_t *planes[TDMI_JPEG_COMPONENTS]; /* (8 * sampling, stride), (8, stride) */
    int16_t *pair[2];                      /* two rows of a difference before they are halved */
    uint8_t *coded;                        /* a row of MCUs */
    struct tdmi_jpeg_sink sink;
    int means[TDMI_JPEG_COMPONENTS];
    struct tdmi_jpeg_divisors divisors[TDMI_JPEG_SETS];
    struct tdmi_jpeg_coding codings[TDMI_JPEG_SETS];
};

/* ---- samples --------------------------------------------------------------------------------- */

static void extend(int16_t *row, size_t n, size_t wanted)
{
    for (size_t i = n; i < wanted; i++)
        row[i] = row[n - 1];
}

static void convert(const struct writer *writer, size_t y, int16_t *luma, int16_t *blue,
                    int16_t *red)
{
    const size_t width = (size_t)writer->image->width;
    const size_t wanted = 8 * (size_t)writer->sampling * (size_t)writer->n_across;
    writer->kernels->colour(writer->image->pixels + 3 * width * y, width, luma, blue, red);
    extend(luma, width, wanted);
    extend(blue, width, wanted);
    extend(red, width, wanted);
}

/* Means of 2 x 2 samples; every other one is rounded up where it lies in the middle. */
static void halve(const int16_t *row, const int16_t *below, size_t n, int16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const int sum = row[2 * i] + row[2 * i + 1] + below[2 * i] + below[2 * i + 1];
        out[i] = (int16_t)((sum + 1 + (int)(i & 1)) >> 2);
    }
}

static void fill_whole(const struct writer *writer, size_t first)
{
    const size_t stride = writer->stride;
    int16_t *const *planes = writer->planes;
    for (size_t y = 0; y < 8; y++)
        if (first + y < (size_t)writer->image->height)
            convert(writer, first + y, planes[0] + stride * y, planes[1] + stride * y,
                    planes[2] + stride * y);
        else
            for (int c = 0; c < TDMI_JPEG_COMPONENTS; c++)
                memcpy(planes[c] + stride * y, planes[c] + stride * (y - 1),
                       stride * sizeof *planes[c]);
}

static void fill_halved(const struct writer *writer, size_t first)
{
    const size_t stride = writer->stride, height = (size_t)writer->image->height;
    const size_t row_bytes = stride * sizeof(int16_t);
    int16_t *const *planes = writer->planes;
    for (size_t y = 0; y < 8; y++) {
        int16_t *luma = planes[0] + stride * 2 * y;
        const size_t at = first + 2 * y;
        for (size_t i = 0; i < 2; i++)
            if (at + i < height)
                convert(writer, at + i, luma + stride * i, writer->pair[0] + stride * i,
                        writer->pair[1] + stride * i);
            else
                memcpy(luma + stride * i, luma + stride * i - stride, row_bytes);
        for (int c = 0; c < 2; c++) {
            int16_t *out = planes[1 + c] + stride * y;
            const int16_t *row = writer->pair[c];
            if (at < height)
                halve(row, at + 1 < height ? row + stride : row, 8 * (size_t)writer->n_across, out);
            else
                memcpy(out, out - stride, row_bytes);
        }
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void put_mean(struct tdmi_jpeg_values *block, const struct tdmi_jpeg_values *before)
{
    *block = (struct tdmi_jpeg_values){.values[0] = before->values[0]};
    for (int i = 0; i < TDMI_JPEG_BLOCK; i++)
        block->keys[i] = (uint16_t)(TDMI_JPEG_SIZES * i);
}

/* Blocks of luma behind the right edge and below the lower one. */
static void fill_beyond(struct writer *writer, int row, int first, int n)
{
    const int across = (writer->image->width + 7) / 8, down = (writer->image->height + 7) / 8;
    const bool is_below = 2 * row + 1 >= down;
    if (2 * (first + n) > across)
        for (int y = 0; y < 2; y++)
            put_mean(&writer->luma[y][2 * n - 1], &writer->luma[y][2 * n - 2]);
    for (int i = 0; is_below && i < 2 * n; i++)
        put_mean(&writer->luma[1][i], &writer->luma[0][i | 1]);
}

static size_t groups_of(int n_blocks)
{
    return (size_t)(n_blocks + TDMI_JPEG_GROUP - 1) / TDMI_JPEG_GROUP;
}

static struct tdmi_jpeg_slot slot_of(struct writer *writer, const struct tdmi_jpeg_values *first,
                                     int step, int component)
{
    const int set = component == 0 ? TDMI_JPEG_LUMA : TDMI_JPEG_CHROMA;
    return (struct tdmi_jpeg_slot){first, step, &writer->codings[set], &writer->means[component]};
}

/* MCUs first … first + n of a row, to coded bits. */
static void write_chunk(struct writer *writer, int row, int first, int n)
{
    const int sampling = writer->sampling;
    const size_t stride = writer->stride, at = 8 * (size_t)first;
    struct tdmi_jpeg_slot slots[TDMI_JPEG_MOST_SLOTS];
    int n_slots = 0;
    for (int y = 0; y < sampling; y++) {
        writer->kernels->transform(
            writer->planes[0] + stride * 8 * (size_t)y + at * (size_t)sampling, stride,
            groups_of(sampling * n), &writer->divisors[TDMI_JPEG_LUMA], writer->luma[y]);
        for (int x = 0; x < sampling; x++)
            slots[n_slots++] = slot_of(writer, writer->luma[y] + x, sampling, 0);
    }
    for (int c = 0; c < 2; c++) {
        writer->kernels->transform(writer->planes[1 + c] + at, stride, groups_of(n),
                                   &writer->divisors[TDMI_JPEG_CHROMA], writer->differences[c]);
        slots[n_slots++] = slot_of(writer, writer->differences[c], 1, 1 + c);
    }
    if (sampling == 2)
        fill_beyond(writer, row, first, n);
    writer->kernels->code(&writer->sink, slots, n_slots, n);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* What is complete of the coded bytes. */
static void hand_out(struct writer *writer)
{
    tdmi_text *out = writer->out;
    const size_t n = (size_t)(writer->sink.at - writer->coded);
    const size_t most = 2 * n + TDMI_JPEG_WRITE_SLACK;
    char *room = tdmi_text_room(out, most);
    if (room != NULL) {
        out->length_bytes -= most - writer->kernels->stuff(writer->coded, n, (uint8_t *)room);
        out->bytes[out->length_bytes] = '\0';
    }
    writer->sink.at = writer->coded;
}

/* The last byte is filled up with ones. */
static void end_segment(struct writer *writer)
{
    struct tdmi_jpeg_sink *sink = &writer->sink;
    if (sink->n_bits > 0) {
        const unsigned left = 8 - sink->n_bits;
        *sink->at++ = (uint8_t)(sink->window << left | ((1u << left) - 1));
    }
    hand_out(writer);
    *sink = (struct tdmi_jpeg_sink){.at = writer->coded};
    memset(writer->means, 0, sizeof writer->means);
}

static void write_rows(struct writer *writer)
{
    for (int row = 0; row < writer->n_down; row++) {
        const size_t first_line = 8 * (size_t)writer->sampling * (size_t)row;
        if (writer->sampling == 1)
            fill_whole(writer, first_line);
        else
            fill_halved(writer, first_line);
        for (int first = 0; first < writer->n_across; first += CHUNK) {
            const int left = writer->n_across - first;
            write_chunk(writer, row, first, left < CHUNK ? left : CHUNK);
        }
        const bool is_last = row == writer->n_down - 1;
        if (writer->sampling == 1 || is_last)
            end_segment(writer);
        else
            hand_out(writer);
        if (writer->sampling == 1 && !is_last) {
            const uint8_t restart[2] = {0xff, (uint8_t)(0xd0 + row % 8)};
            tdmi_text_add(writer->out, restart, sizeof restart);
        }
    }
    tdmi_text_add(writer->out, "\xff\xd9", 2);
}

/* ---- together -------------------------------------------------------------------------------- */

/* Planes, then the coded row. */
static void *reserve(struct writer *writer)
{
    const size_t n_chunks = ((size_t)writer->n_across + CHUNK - 1) / CHUNK;
    const size_t sampling = (size_t)writer->sampling;
    const size_t n_blocks = (sampling * sampling + 2) * n_chunks * CHUNK;
    writer->stride = 8 * sampling * CHUNK * n_chunks;
    const size_t n_rows = 8 * sampling + 2 * 8 + 2 * 2;
    const size_t sample_bytes = n_rows * writer->stride * sizeof(int16_t);
    uint8_t *memory = tdmi_alloc_aligned(sample_bytes + n_blocks * TDMI_JPEG_BYTES_A_BLOCK +
                                         TDMI_JPEG_WRITE_SLACK);
    if (memory == NULL)
        return NULL;
    int16_t *samples = (int16_t *)memory;
    writer->planes[0] = samples;
    writer->planes[1] = samples + writer->stride * 8 * sampling;
    writer->planes[2] = writer->planes[1] + writer->stride * 8;
    writer->pair[0] = writer->planes[2] + writer->stride * 8;
    writer->pair[1] = writer->pair[0] + writer->stride * 2;
    writer->coded = memory + sample_bytes;
    writer->sink.at = writer->coded;
    return memory;
}

tdm_status tdmi_jpeg_write(const tdmi_image *image, int quality,
                           const struct tdmi_jpeg_write_kernels *kernels, tdmi_text *out,
                           tdm_error *err)
{
    struct writer writer = {.kernels = kernels, .image = image, .out = out};
    writer.sampling = quality >= LEAST_FULL_QUALITY ? 1 : 2;
    writer.n_across = (image->width + 8 * writer.sampling - 1) / (8 * writer.sampling);
    writer.n_down = (image->height + 8 * writer.sampling - 1) / (8 * writer.sampling);
    for (int set = 0; set < TDMI_JPEG_SETS; set++) {
        tdmi_jpeg_divisors_make(set, quality, &writer.divisors[set]);
        tdmi_jpeg_coding_make(set, &writer.codings[set]);
    }
    void *memory = reserve(&writer);
    if (memory == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to encode it");
    /* Prepared pictures are read again and again: a row of MCUs that can be decoded by itself lets
     * jpeg/plain.h take two at once, for three bytes a row. */
    tdmi_jpeg_head_write(
        &(struct tdmi_jpeg_head){.width = image->width,
                                 .height = image->height,
                                 .sampling = writer.sampling,
                                 .interval = writer.sampling == 1 ? writer.n_across : 0,
                                 .divisors = writer.divisors},
        out);
    write_rows(&writer);
    tdmi_free(memory);
    return TDM_OK;
}

tdm_status tdmi_jpeg_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    if (quality < 1 || quality > 100)
        return TDM_FAIL(err, TDM_E_USAGE, "a JPEG quality of %d was asked for; 1 to 100 exist",
                        quality);
    if (image->width > TDMI_JPEG_LONGEST_SIDE || image->height > TDMI_JPEG_LONGEST_SIDE)
        return TDM_FAIL(err, TDM_E_USAGE, "a JPEG holds at most %d pixels a side; PNG holds more",
                        TDMI_JPEG_LONGEST_SIDE);
    return tdmi_jpeg_write(image, quality, tdmi_jpeg_write_kernels_best(), out, err);
}

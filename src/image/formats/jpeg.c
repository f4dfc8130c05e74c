/*
 * JPEG through libjpeg-turbo: writing, and reading the files that jpeg/plain.h leaves to it. Both
 * use the slow integer transform and the default sampling filters, as Pillow does, so that both
 * programs see the same pixels and write the same bytes.
 *
 * libjpeg reports errors by a callback that must not return. All state lives in one struct that
 * outlives the jump; trap_run() is the only place with setjmp and has no local variables that could
 * be clobbered. A warning is refused where it means that part of the image is missing or was
 * invented (early end, broken Huffman codes); warnings about harmless oddities pass. A segment that
 * ends early passes unless the caller is strict, as long as no row of blocks is missing: libjpeg
 * fills what lacks with grey, or leaves it coarse in a progressive pass that only refines.
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include "image/jpeg/plain.h"
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h> /* jpeglib.h needs FILE before it */
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* ---- errors of libjpeg as values ------------------------------------------------------------- */

struct trap {
    struct jpeg_error_mgr manager; /* first, so that the callbacks find the trap */
    jmp_buf escape;
    bool is_strict;             /* a segment that ends early is refused wherever it is */
    bool is_complete;           /* when it was refused: no row of blocks is missing */
    int code;                   /* what libjpeg stopped at; 0 for a stop of our own */
    char text[JMSG_LENGTH_MAX]; /* in its own words */
};

static struct trap *trap_of(j_common_ptr codec)
{
    return (struct trap *)codec->err;
}

_Noreturn static void stop(j_common_ptr codec)
{
    struct trap *trap = trap_of(codec);
    trap->code = trap->manager.msg_code;
    trap->manager.format_message(codec, trap->text);
    longjmp(trap->escape, 1);
}

/* A pass of a progressive file that adds detail to coefficients of an earlier one. */
static bool is_refining(j_common_ptr codec)
{
    j_decompress_ptr decoder = (j_decompress_ptr)codec;
    return codec->is_decompressor && decoder->progressive_mode &&
           (decoder->Ss > 0 || decoder->Ah > 0);
}

/*
 * Does each row of MCUs after the current one have data? The current segment ended early, at
 * unread_marker; decoding continues after a restart marker. The marker has the segment's number
 * modulo 8, which is enough: before a row that lies inside one segment, at most one segment ends.
 */
static bool has_later_rows(j_decompress_ptr decoder)
{
    const int64_t row = decoder->input_iMCU_row;
    const int64_t interval = decoder->restart_interval;
    const int number = decoder->unread_marker - JPEG_RST0;
    if (row + 1 == (int64_t)decoder->total_iMCU_rows)
        return true;
    if (interval == 0 || number < 0 || number > 7)
        return false;
    int64_t mcus = decoder->MCUs_per_row;
    if (decoder->comps_in_scan == 1) /* its MCUs are blocks */
        mcus *= decoder->cur_comp_info[0]->v_samp_factor;
    int64_t segment = row * mcus / interval;
    segment += (number - segment) & 7;
    return (segment + 1) * interval < (row + 2) * mcus;
}

/* libjpeg sends warnings here with level -1, traces with 0 and more. A file that is cut anywhere
 * ends in JWRN_JPEG_EOF, whatever the pass. */
static void hear(j_common_ptr codec, int level)
{
    if (level >= 0)
        return;
    switch (codec->err->msg_code) {
    case JWRN_HIT_MARKER:
        trap_of(codec)->is_complete = is_refining(codec) || has_later_rows((j_decompress_ptr)codec);
        if (trap_of(codec)->is_complete && !trap_of(codec)->is_strict)
            return;
        stop(codec);
    case JWRN_JPEG_EOF:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
        stop(codec);
    default:
        return;
    }
}

static void keep_silent(j_common_ptr codec)
{
    (void)codec;
}

static struct jpeg_error_mgr *trap_set(struct trap *trap)
{
    jpeg_std_error(&trap->manager);
    trap->manager.error_exit = stop;
    trap->manager.emit_message = hear;
    trap->manager.output_message = keep_silent;
    return &trap->manager;
}

/* false when work was stopped; self is then in the state that work left it in. */
static bool trap_run(struct trap *trap, void (*work)(void *self), void *self)
{
    if (setjmp(trap->escape) != 0)
        return false;
    work(self);
    return true;
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* A file may announce any number of passes over an image, of a few bytes each; real ones use about
 * ten. A pass takes one or two nanoseconds a pixel, however few bytes it has. */
#define MAX_SCANS 500
#define MAX_SCANNED_PIXELS ((int64_t)1 << 32)

enum {
    STRIP_ROWS = 16, /* what most files decode at once */
    SLACK = 64
};

struct reader {
    struct jpeg_decompress_struct decoder;
    struct jpeg_progress_mgr progress;
    struct trap trap;
    const struct tdmi_codec_source *source;
    tdmi_image *image;
    unsigned n_watched;
    int divisor;     /* of both sides, 1 but for drafts */
    bool is_late;    /* stopped for the time limit */
    bool is_handing; /* rows go to the sink, the image is a strip of them */
};

/* libjpeg calls this between rows of blocks, in every pass; the clock is only asked now and then.
 */
static void watch_scans(j_common_ptr codec)
{
    struct reader *reader = codec->client_data;
    if (((j_decompress_ptr)codec)->input_scan_number > MAX_SCANS)
        snprintf(reader->trap.text, sizeof reader->trap.text, "more than %d scans", MAX_SCANS);
    else if (reader->n_watched++ % 16 == 0 && tdmi_codec_check_time(reader->source, NULL) != TDM_OK)
        reader->is_late = true;
    else
        return;
    longjmp(reader->trap.escape, 1);
}

static void read_header(void *self)
{
    struct reader *reader = self;
    jpeg_create_decompress(&reader->decoder);
    reader->progress.progress_monitor = watch_scans;
    reader->decoder.progress = &reader->progress;
    reader->decoder.client_data = reader;
    jpeg_mem_src(&reader->decoder, reader->source->bytes,
                 (unsigned long)reader->source->length_bytes);
    (void)jpeg_read_header(&reader->decoder, TRUE);
}

/* a * b / 255, rounded. */
static unsigned multiply_255(unsigned a, unsigned b)
{
    unsigned product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

/* Files store ink inverted (Adobe's convention, the only one in use), so a stored value is the
 * light that the ink lets through. The rounding is Pillow's. */
static void cmyk_to_rgb(const uint8_t *inks, int width, uint8_t *pixels)
{
    for (int x = 0; x < width; x++, inks += 4, pixels += 3)
        for (int c = 0; c < 3; c++)
            pixels[c] = (uint8_t)(inks[3] - multiply_255(255u - inks[c], inks[3]));
}

static void read_pixels(void *self)
{
    struct reader *reader = self;
    j_decompress_ptr decoder = &reader->decoder;
    const bool has_inks = decoder->num_components == 4;
    decoder->out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
    decoder->dct_method = JDCT_ISLOW;
    decoder->scale_num = 1;
    decoder->scale_denom = (unsigned)reader->divisor;
    (void)jpeg_start_decompress(decoder);

    const JDIMENSION width = decoder->output_width, height = decoder->output_height;
    const JDIMENSION strip_rows = reader->is_handing ? STRIP_ROWS : height;
    const size_t row_bytes = 3 * (size_t)width;
    uint8_t *pixels = reader->image->pixels;
    JSAMPARRAY inks = NULL;
    if (has_inks)
        inks = decoder->mem->alloc_sarray((j_common_ptr)decoder, JPOOL_IMAGE, width * 4, 1);
    for (JDIMENSION first = 0; first < height; first += strip_rows) {
        const JDIMENSION end = strip_rows < height - first ? first + strip_rows : height;
        while (decoder->output_scanline < end) {
            uint8_t *row = pixels + row_bytes * (decoder->output_scanline - first);
            JDIMENSION n = end - decoder->output_scanline;
            JSAMPROW rows[STRIP_ROWS];
            if (has_inks) {
                (void)jpeg_read_scanlines(decoder, inks, 1);
                cmyk_to_rgb(inks[0], (int)width, row);
                continue;
            }
            n = n < STRIP_ROWS ? n : STRIP_ROWS;
            for (JDIMENSION i = 0; i < n; i++)
                rows[i] = row + row_bytes * i;
            (void)jpeg_read_scanlines(decoder, rows, n);
        }
        if (reader->is_handing) {
            const struct tdmi_row_sink *sink = reader->source->sink;
            sink->feed(sink->self, pixels, row_bytes, pixels + reader->image->capacity_bytes,
                       (int)first, (int)(end - first));
        }
    }
    (void)jpeg_finish_decompress(decoder);
}

/* Allocate the image, or a strip of it when a sink takes the rows. */
static tdm_status make_room(struct reader *reader, tdm_error *err)
{
    int64_t width = reader->decoder.image_width, height = reader->decoder.image_height;
    const struct tdmi_row_sink *sink = reader->source->sink;
    const int orientation = reader->source->orientation;
    TDMI_TRY(tdmi_codec_check_shape(reader->source, width, height, err));
    reader->divisor = 1;
    if (sink != NULL && sink->divisor != NULL) {
        const bool is_lying = orientation >= 5;
        reader->divisor = sink->divisor(sink->self, (int)(is_lying ? height : width),
                                        (int)(is_lying ? width : height), orientation);
        width = (width + reader->divisor - 1) / reader->divisor;
        height = (height + reader->divisor - 1) / reader->divisor;
    }
    if (sink != NULL && orientation == 1)
        TDMI_TRY(sink->begin(sink->self, (int)width, (int)height, &reader->is_handing, err));
    if (!reader->is_handing)
        return tdmi_image_reshape(reader->image, (int)width, (int)height, err);
    /* Behind the last row of a strip there is room for readers that take more than they need. */
    return tdmi_image_reserve(reader->image, 3 * (size_t)width * (STRIP_ROWS + 1) + SLACK, err);
}

static tdm_status refuse(const struct reader *reader, tdm_error *err)
{
    const struct trap *trap = &reader->trap;
    j_decompress_ptr decoder = (j_decompress_ptr)&reader->decoder;
    if (reader->is_late)
        return tdmi_codec_check_time(reader->source, err);
    if (trap->code == JERR_OUT_OF_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "%s", trap->text);
    bool is_short =
        trap->code == JWRN_JPEG_EOF || (trap->code == JWRN_HIT_MARKER && !trap->is_complete);
    if (decoder->output_height == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "its header %s: %s",
                        is_short ? "is truncated" : "cannot be read", trap->text);
    /* Rows of the whole image, also when fewer are made of them. */
    const unsigned row = decoder->output_scanline * (unsigned)reader->divisor;
    return TDM_FAIL(err, TDM_E_INPUT, "it is %s at row %u of %u: %s",
                    is_short ? "truncated" : "damaged",
                    row < decoder->image_height ? row : decoder->image_height,
                    decoder->image_height, trap->text);
}

/* Count the passes from the markers before the first; the count while decoding catches the
 * others. */
static tdm_status check_scans(struct reader *reader, tdm_error *err)
{
    const int64_t pixels = (int64_t)reader->decoder.image_width * reader->decoder.image_height;
    if (!jpeg_has_multiple_scans(&reader->decoder) || pixels > reader->source->max_pixels)
        return TDM_OK; /* too many pixels are refused next, by their own sentence */
    const int64_t n = tdmi_jpeg_count_scans(reader->source->bytes, reader->source->length_bytes);
    const int64_t affordable = MAX_SCANNED_PIXELS / pixels;
    const int64_t allowed = affordable < MAX_SCANS ? affordable : MAX_SCANS;
    if (n > allowed)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it passes over its %u x %u pixels in %lld scans; at most %lld are decoded",
                        reader->decoder.image_width, reader->decoder.image_height, (long long)n,
                        (long long)allowed);
    return TDM_OK;
}

static void release(struct reader *reader)
{
    jpeg_destroy_decompress(&reader->decoder);
}

static tdm_status decode_any(const struct tdmi_codec_source *source, tdmi_image *image,
                             tdm_error *err)
{
    TDMI_AT_END(release) struct reader reader;
    memset(&reader, 0, sizeof reader);
    reader.source = source;
    reader.image = image;
    reader.decoder.err = trap_set(&reader.trap);
    reader.trap.is_strict = source->is_strict;
    if (!trap_run(&reader.trap, read_header, &reader))
        return refuse(&reader, err);
    int n_components = reader.decoder.num_components;
    if (n_components != 1 && n_components != 3 && n_components != 4)
        return TDM_FAIL(err, TDM_E_INPUT, "it has %d colour components; 1, 3 or 4 are read",
                        n_components);
    TDMI_TRY(check_scans(&reader, err));
    TDMI_TRY(make_room(&reader, err));
    return trap_run(&reader.trap, read_pixels, &reader) ? TDM_OK : refuse(&reader, err);
}

tdm_status tdmi_jpeg_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                            tdm_error *err)
{
    bool is_done = false;
    if (!source->by_library)
        TDMI_TRY(tdmi_jpeg_plain_decode(source, image, &is_done, err));
    return is_done ? TDM_OK : decode_any(source, image, err);
}

/* ---- encode ---------------------------------------------------------------------------------- */

enum { FULL_QUALITY = 95 }; /* from here on: no subsampling, and restart markers */

struct writer {
    struct jpeg_compress_struct encoder;
    struct jpeg_destination_mgr destination;
    struct trap trap;
    const tdmi_image *image;
    int quality;
    tdmi_text *out;
    uint8_t buffer[16384];
};

static void start_output(j_compress_ptr encoder)
{
    struct writer *writer = encoder->client_data;
    writer->destination.next_output_byte = writer->buffer;
    writer->destination.free_in_buffer = sizeof writer->buffer;
}

/* libjpeg calls this when the buffer is full, whatever free_in_buffer says. */
static boolean flush_output(j_compress_ptr encoder)
{
    struct writer *writer = encoder->client_data;
    tdmi_text_add(writer->out, writer->buffer, sizeof writer->buffer);
    start_output(encoder);
    return TRUE;
}

static void finish_output(j_compress_ptr encoder)
{
    struct writer *writer = encoder->client_data;
    tdmi_text_add(writer->out, writer->buffer,
                  sizeof writer->buffer - writer->destination.free_in_buffer);
}

static void write_image(void *self)
{
    struct writer *writer = self;
    j_compress_ptr encoder = &writer->encoder;
    const tdmi_image *image = writer->image;
    const bool is_full = writer->quality >= FULL_QUALITY;
    jpeg_create_compress(encoder);
    encoder->client_data = writer;
    writer->destination.init_destination = start_output;
    writer->destination.empty_output_buffer = flush_output;
    writer->destination.term_destination = finish_output;
    encoder->dest = &writer->destination;
    encoder->image_width = (JDIMENSION)image->width;
    encoder->image_height = (JDIMENSION)image->height;
    encoder->input_components = 3;
    encoder->in_color_space = JCS_RGB;
    jpeg_set_defaults(encoder);
    jpeg_set_quality(encoder, writer->quality, TRUE);
    encoder->dct_method = JDCT_ISLOW;
    encoder->comp_info[0].h_samp_factor = is_full ? 1 : 2; /* 4:4:4, else 4:2:0 */
    encoder->comp_info[0].v_samp_factor = is_full ? 1 : 2;
    /* jpeg/plain.h decodes two segments at once. A marker takes three bytes a row of blocks. */
    encoder->restart_in_rows = is_full ? 1 : 0;
    jpeg_start_compress(encoder, TRUE);
    while (encoder->next_scanline < encoder->image_height) {
        JSAMPROW rows[STRIP_ROWS];
        const JDIMENSION left = encoder->image_height - encoder->next_scanline;
        const JDIMENSION n = left < STRIP_ROWS ? left : STRIP_ROWS;
        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = image->pixels + 3 * (size_t)image->width * (encoder->next_scanline + i);
        (void)jpeg_write_scanlines(encoder, rows, n);
    }
    jpeg_finish_compress(encoder);
}

tdm_status tdmi_jpeg_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    if (quality < 1 || quality > 100)
        return TDM_FAIL(err, TDM_E_USAGE, "the JPEG quality is %d; it must be 1 to 100", quality);
    if (image->width > JPEG_MAX_DIMENSION || image->height > JPEG_MAX_DIMENSION)
        return TDM_FAIL(err, TDM_E_USAGE, "a JPEG holds at most %ld pixels a side; PNG holds more",
                        JPEG_MAX_DIMENSION);
    struct writer writer;
    memset(&writer, 0, offsetof(struct writer, buffer));
    writer.image = image;
    writer.quality = quality;
    writer.out = out;
    writer.encoder.err = trap_set(&writer.trap);
    tdm_status status = TDM_OK;
    if (!trap_run(&writer.trap, write_image, &writer))
        status = TDM_FAIL(err, writer.trap.code == JERR_OUT_OF_MEMORY ? TDM_E_MEMORY : TDM_E_FAILED,
                          "libjpeg stopped: %s", writer.trap.text);
    jpeg_destroy_compress(&writer.encoder);
    return status;
}

/* ---- version --------------------------------------------------------------------------------- */

#define TEXT_OF(name) #name
#define AS_TEXT(name) TEXT_OF(name)
#ifdef LIBJPEG_TURBO_VERSION
#define LIBRARY "libjpeg-turbo " AS_TEXT(LIBJPEG_TURBO_VERSION)
#else
#define LIBRARY "libjpeg " AS_TEXT(JPEG_LIB_VERSION)
#endif

/* The library has no version function, but a copyright with years, which differs between versions.
 * Our own decoder makes the same pixels, so it needs no name here. */
void tdmi_jpeg_write_decoder(tdmi_text *text)
{
    struct jpeg_error_mgr manager;
    jpeg_std_error(&manager);
    const char *years = JMSG_COPYRIGHT <= manager.last_jpeg_message
                            ? manager.jpeg_message_table[JMSG_COPYRIGHT]
                            : "";
    tdmi_text_printf(text, LIBRARY " (%s)", years);
}

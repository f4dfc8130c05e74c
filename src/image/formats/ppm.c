/*
 * The portable maps of Netpbm: P1 and P4 (bits), P2 and P5 (grey), P3 and P6 (RGB), as text or as
 * bytes, with up to 16 bits a sample and comments between the numbers of the header. The format of
 * last resort: every build reads and writes it.
 */
#include "image/formats/codec.h"
#include "base/scope.h"
#include "image/facts.h"
#include <string.h>

struct reader {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end) {
        if (*reader->at == '#')
            while (reader->at < reader->end && *reader->at != '\n')
                reader->at++;
        else if (is_space(*reader->at))
            reader->at++;
        else
            return;
    }
}

/* The next decimal number of at most nine digits; false when something else stands there. */
static bool read_number(struct reader *reader, uint32_t *value)
{
    skip_blanks(reader);
    const uint8_t *start = reader->at;
    *value = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' &&
           reader->at - start < 9)
        *value = *value * 10 + (uint32_t)(*reader->at++ - '0');
    bool is_ended = reader->at == reader->end || is_space(*reader->at) || *reader->at == '#';
    return reader->at > start && is_ended;
}

struct header {
    uint8_t kind; /* the digit behind P */
    bool is_text, is_bits, is_grey;
    uint32_t width, height, maximum;
};

/* The next sample of a text; bits need no blank between them, and 1 is black. */
static bool read_sample(struct reader *reader, const struct header *header, uint32_t *value)
{
    if (!header->is_bits)
        return read_number(reader, value);
    skip_blanks(reader);
    if (reader->at == reader->end || (*reader->at != '0' && *reader->at != '1'))
        return false;
    *value = *reader->at++ == '0';
    return true;
}

/* One sample as a byte at *pixels; grey ones fill three. */
static inline tdm_status put_sample(const struct header *header, uint32_t sample, uint8_t **pixels,
                                    tdm_error *err)
{
    const uint32_t maximum = header->maximum;
    if (sample > maximum)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is damaged: a sample is %u, above the maximum of %u in its header",
                        sample, maximum);
    uint8_t byte = (uint8_t)sample;
    if (maximum != 255)
        byte = (uint8_t)((sample * 255 + maximum / 2) / maximum);
    for (int c = 0; c < (header->is_grey ? 3 : 1); c++)
        *(*pixels)++ = byte;
    return TDM_OK;
}

/* So many samples are read between two looks at the clock. */
enum { SAMPLES_A_LOOK = 4096 };

static tdm_status read_text(struct reader *reader, size_t n, const struct header *header,
                            const struct tdmi_codec_source *source, uint8_t *pixels, tdm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t sample;
        if (i % SAMPLES_A_LOOK == 0)
            TDMI_TRY(tdmi_codec_check_time(source, err));
        if (!read_sample(reader, header, &sample))
            return TDM_FAIL(err, TDM_E_INPUT, "it is %s: sample %zu of %zu is no number",
                            reader->at == reader->end ? "truncated" : "damaged", i + 1, n);
        TDMI_TRY(put_sample(header, sample, &pixels, err));
    }
    return TDM_OK;
}

static tdm_status read_binary(struct reader *reader, size_t n, const struct header *header,
                              const struct tdmi_codec_source *source, uint8_t *pixels,
                              tdm_error *err)
{
    const size_t sample_bytes = header->maximum > 255 ? 2 : 1;
    const size_t left = (size_t)(reader->end - reader->at);
    if (left / sample_bytes < n)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: %zu samples of %zu bytes follow the header; it says %zu",
                        left / sample_bytes, sample_bytes, n);
    for (size_t i = 0; i < n; i++) {
        if (i % SAMPLES_A_LOOK == 0)
            TDMI_TRY(tdmi_codec_check_time(source, err));
        uint32_t sample = *reader->at++;
        if (sample_bytes == 2)
            sample = sample << 8 | *reader->at++;
        TDMI_TRY(put_sample(header, sample, &pixels, err));
    }
    return TDM_OK;
}

static size_t bit_row_bytes(const struct header *header)
{
    return ((size_t)header->width + 7) / 8;
}

/* Rows of whole bytes, the highest bit first. */
static tdm_status read_bits(struct reader *reader, const struct header *header,
                            const struct tdmi_codec_source *source, uint8_t *pixels, tdm_error *err)
{
    const size_t row_bytes = bit_row_bytes(header);
    const size_t n_rows = (size_t)(reader->end - reader->at) / row_bytes;
    if (n_rows < header->height)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is truncated: %zu rows of %zu bytes follow the header; it says %u",
                        n_rows, row_bytes, header->height);
    for (uint32_t y = 0; y < header->height; y++, reader->at += row_bytes) {
        TDMI_TRY(tdmi_codec_check_time(source, err));
        for (uint32_t x = 0; x < header->width; x++, pixels += 3)
            memset(pixels, reader->at[x / 8] >> (7 - x % 8) & 1 ? 0 : 255, 3);
    }
    return TDM_OK;
}

/* Leaves the reader at the first sample. */
static tdm_status read_header(const uint8_t *bytes, size_t length_bytes, struct header *header,
                              struct reader *reader, tdm_error *err)
{
    header->kind = bytes[1];
    header->is_text = header->kind <= '3';
    header->is_bits = header->kind == '1' || header->kind == '4';
    header->is_grey = header->kind != '3' && header->kind != '6';
    header->maximum = 1;
    *reader = (struct reader){bytes + 2, bytes + length_bytes};
    if (!read_number(reader, &header->width) || !read_number(reader, &header->height) ||
        (!header->is_bits && !read_number(reader, &header->maximum)))
        return TDM_FAIL(err, TDM_E_INPUT, "its header is %s: width%s must follow P%c",
                        reader->at == reader->end ? "truncated" : "damaged",
                        header->is_bits ? " and height" : ", height and maximum", header->kind);
    if (header->maximum < 1 || header->maximum > 65535)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its header is damaged: the maximum is %u; 1 to 65535 are read",
                        header->maximum);
    if (!header->is_text && reader->at < reader->end)
        reader->at++; /* exactly one blank stands before binary samples */
    return TDM_OK;
}

tdm_status tdmi_ppm_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    struct header header;
    struct reader reader;
    TDMI_TRY(read_header(source->bytes, source->length_bytes, &header, &reader, err));
    TDMI_TRY(tdmi_codec_shape(source, header.width, header.height, image, err));
    size_t n = (size_t)header.width * header.height * (header.is_grey ? 1 : 3);
    if (header.is_text)
        return read_text(&reader, n, &header, source, image->pixels, err);
    if (header.is_bits)
        return read_bits(&reader, &header, source, image->pixels, err);
    return read_binary(&reader, n, &header, source, image->pixels, err);
}

/* Are fewer samples there than the header says, with nothing but numbers up to the end? */
static bool is_cut(const struct header *header, struct reader *reader)
{
    const uint64_t n = (uint64_t)header->width * header->height * (header->is_grey ? 1 : 3);
    if (header->is_bits && !header->is_text)
        return (size_t)(reader->end - reader->at) < bit_row_bytes(header) * header->height;
    if (!header->is_text)
        return (size_t)(reader->end - reader->at) / (header->maximum > 255 ? 2 : 1) < n;
    uint32_t sample;
    uint64_t n_found = 0;
    while (n_found < n && read_sample(reader, header, &sample))
        n_found++;
    return n_found < n && reader->at == reader->end;
}

tdm_status tdmi_ppm_describe(const uint8_t *bytes, size_t length_bytes,
                             struct tdmi_image_facts *facts, tdm_error *err)
{
    struct header header;
    struct reader reader;
    tdm_status status = read_header(bytes, length_bytes, &header, &reader, err);
    facts->colours = header.is_grey ? TDMI_COLOURS_GREY : TDMI_COLOURS_RGB;
    facts->n_frames = 1;
    if (status != TDM_OK) {
        facts->is_cut = reader.at == reader.end;
        return status;
    }
    facts->width = header.width;
    facts->height = header.height;
    while (header.maximum >> facts->bits != 0)
        facts->bits++;
    facts->is_cut = is_cut(&header, &reader);
    return TDM_OK;
}

tdm_status tdmi_ppm_encode(const tdmi_image *image, int quality, tdmi_text *out, tdm_error *err)
{
    (void)quality; /* nothing is lost */
    (void)err;     /* a failed growth is kept in out and found by the caller */
    tdmi_text_printf(out, "P6\n%d %d\n255\n", image->width, image->height);
    tdmi_text_add(out, image->pixels, 3 * (size_t)image->width * (size_t)image->height);
    return TDM_OK;
}

/*
 * HEVC (ITU-T H.265, 7.3.2.2) states the size in its sequence parameter sets, AV1 (5.5) in its
 * sequence headers; both may stand in the file's configuration box and again in the data. Only the
 * bits up to the size are read.
 */
#include "image/formats/heif_frames.h"
#include "base/bytes.h"

/* ---- bits ------------------------------------------------------------------------------------ */

/* Reads bits, highest first; 0 from the end on. HEVC puts a 3 behind two zeros that the data would
 * have, which is left out here. */
struct bits {
    const uint8_t *at, *end;
    bool has_threes, is_over;
    int n_zeros, n_left;
    unsigned byte;
};

static void load_byte(struct bits *bits)
{
    if (bits->has_threes && bits->n_zeros >= 2 && bits->at < bits->end && *bits->at == 3) {
        bits->at++;
        bits->n_zeros = 0;
    }
    bits->is_over = bits->is_over || bits->at == bits->end;
    bits->byte = bits->is_over ? 0 : *bits->at++;
    bits->n_zeros = bits->byte == 0 ? bits->n_zeros + 1 : 0;
    bits->n_left = 8;
}

static uint64_t take(struct bits *bits, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++) {
        if (bits->n_left == 0)
            load_byte(bits);
        bits->n_left--;
        value = value << 1 | (bits->byte >> bits->n_left & 1);
    }
    return value;
}

/* Exponential-Golomb: as many zeros as bits follow the first 1; one less than their number. */
static uint64_t take_golomb(struct bits *bits)
{
    int n = 0;
    while (n < 32 && !bits->is_over && take(bits, 1) == 0)
        n++;
    return ((uint64_t)1 << n) - 1 + take(bits, n);
}

static void note_size(struct tdmi_heif_frames *frames, const struct bits *bits, uint64_t width,
                      uint64_t height)
{
    int64_t pixels;
    if (bits->is_over)
        return;
    if (__builtin_mul_overflow(width, height, &pixels))
        pixels = INT64_MAX;
    frames->pixels = pixels > frames->pixels ? pixels : frames->pixels;
}

/* Parameter sets are read bit by bit; a step is about a unit. */
static void pay_for_bits(struct tdmi_heif_frames *frames)
{
    enum { STEPS = 1024 };
    frames->n_left -= STEPS;
}

/* ---- HEVC ------------------------------------------------------------------------------------ */

/* profile_tier_level: the general one has 96 bits, and each sub-layer may have its own. */
static void skip_profiles(struct bits *bits, int n_sub_layers)
{
    enum { PROFILE_BITS = 88, LEVEL_BITS = 8, MOST_SUB_LAYERS = 8 };
    bool has_profile[MOST_SUB_LAYERS], has_level[MOST_SUB_LAYERS];
    (void)take(bits, PROFILE_BITS + LEVEL_BITS);
    for (int i = 0; i < n_sub_layers; i++) {
        has_profile[i] = take(bits, 1) != 0;
        has_level[i] = take(bits, 1) != 0;
    }
    for (int i = n_sub_layers; n_sub_layers > 0 && i < MOST_SUB_LAYERS; i++)
        (void)take(bits, 2);
    for (int i = 0; i < n_sub_layers; i++)
        (void)take(bits, (has_profile[i] ? PROFILE_BITS : 0) + (has_level[i] ? LEVEL_BITS : 0));
}

/* A unit: two bytes of header, of a 0, six bits of type, six of layer and three more. Units of
 * other layers than the first, such as the second eye of spatial photos, are left out by decoders,
 * and their parameter sets are written otherwise. */
static void look_at_unit(struct tdmi_heif_frames *frames, const uint8_t *bytes, size_t n_bytes)
{
    enum { PARAMETER_SET = 33, THREE_PLANES = 3 };
    const uint64_t header = n_bytes < 2 ? 0 : tdmi_read_big(bytes, 2);
    if ((header >> 9 & 63) != PARAMETER_SET || (header >> 3 & 63) != 0)
        return;
    pay_for_bits(frames);
    struct bits bits = {.at = bytes + 2, .end = bytes + n_bytes, .has_threes = true};
    (void)take(&bits, 4);
    const int n_sub_layers = (int)take(&bits, 3);
    (void)take(&bits, 1);
    skip_profiles(&bits, n_sub_layers);
    (void)take_golomb(&bits);
    if (take_golomb(&bits) == THREE_PLANES)
        (void)take(&bits, 1);
    const uint64_t width = take_golomb(&bits), height = take_golomb(&bits);
    note_size(frames, &bits, width, height);
}

/* The unit that stands behind its length; how far the next one is, 0: there is none. */
static size_t take_unit(struct tdmi_heif_frames *frames, size_t length_bytes, const uint8_t *bytes,
                        size_t n_bytes)
{
    if (n_bytes == 0 || frames->n_left <= 0)
        return 0;
    frames->n_left--;
    const uint64_t n = n_bytes < length_bytes ? UINT64_MAX : tdmi_read_big(bytes, length_bytes);
    frames->is_unit_cut = n_bytes < length_bytes || n > n_bytes - length_bytes;
    if (frames->is_unit_cut)
        return 0;
    look_at_unit(frames, bytes + length_bytes, (size_t)n);
    return length_bytes + (size_t)n;
}

void tdmi_heif_frames_of_hevc(struct tdmi_heif_frames *frames, size_t length_bytes,
                              const uint8_t *bytes, size_t n_bytes)
{
    frames->is_unit_cut = false;
    for (size_t n; (n = take_unit(frames, length_bytes, bytes, n_bytes)) > 0; n_bytes -= n)
        bytes += n;
}

enum { HEVC_LENGTHS_AT = 21, HEVC_ARRAYS_AT = 22, HEVC_HEADER_BYTES = 23 };

size_t tdmi_heif_hevc_length_bytes(const uint8_t *config, size_t n_bytes)
{
    return n_bytes > HEVC_LENGTHS_AT ? (config[HEVC_LENGTHS_AT] & 3u) + 1 : 4;
}

/* Arrays of units of one type: a byte, their number in two, and units behind lengths of two. */
void tdmi_heif_frames_of_hevc_config(struct tdmi_heif_frames *frames, const uint8_t *bytes,
                                     size_t n_bytes)
{
    const unsigned n_arrays = n_bytes >= HEVC_HEADER_BYTES ? bytes[HEVC_ARRAYS_AT] : 0;
    const uint8_t *at = bytes + HEVC_HEADER_BYTES, *end = bytes + n_bytes;
    for (unsigned i = 0; i < n_arrays && end - at >= 3; i++) {
        uint64_t n_units = tdmi_read_big(at + 1, 2);
        at += 3;
        for (size_t n; n_units > 0 && (n = take_unit(frames, 2, at, (size_t)(end - at))) > 0;
             n_units--)
            at += n;
        if (n_units > 0)
            return;
    }
}

/* ---- AV1 ------------------------------------------------------------------------------------- */

/* Bits of a buffer's delay; 0: there is no model of the decoder. */
static int skip_timing(struct bits *bits)
{
    (void)take(bits, 64);
    if (take(bits, 1) != 0)
        (void)take_golomb(bits);
    if (take(bits, 1) == 0)
        return 0;
    const int delay_bits = (int)take(bits, 5) + 1;
    (void)take(bits, 32 + 5 + 5);
    return delay_bits;
}

static void skip_points(struct bits *bits)
{
    enum { LAST_LEVEL_WITHOUT_TIER = 7 };
    const int delay_bits = take(bits, 1) != 0 ? skip_timing(bits) : 0;
    const bool has_display_delay = take(bits, 1) != 0;
    const int n_points = (int)take(bits, 5) + 1;
    for (int i = 0; i < n_points; i++) {
        (void)take(bits, 12);
        if (take(bits, 5) > LAST_LEVEL_WITHOUT_TIER)
            (void)take(bits, 1);
        if (delay_bits > 0 && take(bits, 1) != 0)
            (void)take(bits, 2 * delay_bits + 1);
        if (has_display_delay && take(bits, 1) != 0)
            (void)take(bits, 4);
    }
}

static void look_at_sequence(struct tdmi_heif_frames *frames, const uint8_t *bytes, size_t n_bytes)
{
    pay_for_bits(frames);
    struct bits bits = {.at = bytes, .end = bytes + n_bytes};
    (void)take(&bits, 3 + 1);
    if (take(&bits, 1) != 0)
        (void)take(&bits, 5); /* a still image's short header */
    else
        skip_points(&bits);
    const int width_bits = (int)take(&bits, 4) + 1, height_bits = (int)take(&bits, 4) + 1;
    const uint64_t width = take(&bits, width_bits) + 1, height = take(&bits, height_bits) + 1;
    note_size(frames, &bits, width, height);
}

/* Seven bits a byte, the lowest first; false: it does not end. */
static bool take_length(const uint8_t **at, const uint8_t *end, uint64_t *length)
{
    *length = 0;
    for (int i = 0; i < 8 && *at < end; i++) {
        const uint8_t byte = *(*at)++;
        *length |= (uint64_t)(byte & 127) << 7 * i;
        if (byte < 128)
            return true;
    }
    return false;
}

void tdmi_heif_frames_of_av1(struct tdmi_heif_frames *frames, const uint8_t *bytes, size_t n_bytes)
{
    enum { SEQUENCE_HEADER = 1 };
    const uint8_t *at = bytes, *end = bytes + n_bytes;
    frames->is_unit_cut = false;
    for (; at < end && frames->n_left > 0; frames->n_left--) {
        const unsigned type = *at >> 3 & 15, has_extension = *at >> 2 & 1;
        const bool has_length = (*at >> 1 & 1) != 0;
        uint64_t length = 0;
        frames->is_unit_cut = (size_t)(end - at) < 1 + has_extension;
        if (frames->is_unit_cut)
            return;
        at += 1 + has_extension;
        frames->is_unit_cut = has_length && !take_length(&at, end, &length);
        length = has_length ? length : (uint64_t)(end - at);
        if (frames->is_unit_cut || length > (uint64_t)(end - at)) {
            frames->is_unit_cut = true;
            return;
        }
        if (type == SEQUENCE_HEADER)
            look_at_sequence(frames, at, (size_t)length);
        at += length;
    }
}

void tdmi_heif_frames_of_av1_config(struct tdmi_heif_frames *frames, const uint8_t *bytes,
                                    size_t n_bytes)
{
    enum { HEADER_BYTES = 4 };
    if (n_bytes > HEADER_BYTES)
        tdmi_heif_frames_of_av1(frames, bytes + HEADER_BYTES, n_bytes - HEADER_BYTES);
}

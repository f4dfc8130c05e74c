/*
 * The specification: number by number, as libjpeg-turbo computes them.
 */
#include "image/jpeg/transform.h"
#include "image/jpeg_encode/stream.h"

static void colour(const uint8_t *pixels, size_t n, int16_t *luma, int16_t *blue, int16_t *red)
{
    for (size_t i = 0; i < n; i++, pixels += 3) {
        const int32_t r = pixels[0], g = pixels[1], b = pixels[2];
        const int32_t y = r * TDMI_JPEG_LUMA_RED + g * TDMI_JPEG_LUMA_GREEN +
                          b * TDMI_JPEG_LUMA_BLUE + TDMI_JPEG_HALF;
        const int32_t to_blue = b * TDMI_JPEG_HALF - r * TDMI_JPEG_BLUE_LESS_RED -
                                g * TDMI_JPEG_BLUE_LESS_GREEN + TDMI_JPEG_HALF - 1;
        const int32_t to_red = r * TDMI_JPEG_HALF - g * TDMI_JPEG_RED_LESS_GREEN -
                               b * TDMI_JPEG_RED_LESS_BLUE + TDMI_JPEG_HALF - 1;
        luma[i] = (int16_t)((y >> 16) - TDMI_JPEG_CENTRE);
        blue[i] = (int16_t)(to_blue >> 16);
        red[i] = (int16_t)(to_red >> 16);
    }
}

/* ---- transform ------------------------------------------------------------------------------- */

/* Eight numbers, `step` apart, in place. Positive bits: the sums keep so many bits of fraction;
 * negative ones: they lose them. */
static void transform_line(int32_t *line, int step, int bits, int shift)
{
#define X(i, a, b, c, d) {a, b, c, d},
    static const int32_t odd[4][4] = { TDMI_JPEG_ODD(X) };
#undef X
    int32_t s[4], d[4];
    for (int i = 0; i < 4; i++) {
        s[i] = line[step * i] + line[step * (7 - i)];
        d[i] = line[step * i] - line[step * (7 - i)];
    }
    const int32_t half = 1 << (shift - 1);
    const int32_t outer = s[0] + s[3], inner = s[1] + s[2];
    const int32_t far = s[0] - s[3], near = s[1] - s[2];
    const int32_t ends[2] = {outer + inner, outer - inner};
    for (int i = 0; i < 2; i++)
        line[step * 4 * i] =
            bits > 0 ? ends[i] * (1 << bits) : (ends[i] + (1 << (-bits - 1))) >> -bits;
    line[step * 2] = (far * TDMI_JPEG_C2A + near * TDMI_JPEG_C2B + half) >> shift;
    line[step * 6] = (far * TDMI_JPEG_C6A + near * TDMI_JPEG_C6B + half) >> shift;
    for (int j = 0; j < 4; j++)
        line[step * (2 * j + 1)] =
            (d[0] * odd[j][0] + d[1] * odd[j][1] + d[2] * odd[j][2] + d[3] * odd[j][3] + half) >>
            shift;
}

static unsigned bits_of(int32_t value)
{
    unsigned bits = 0;
    for (uint32_t left = (uint32_t)(value < 0 ? -value : value); left > 0; left >>= 1)
        bits++;
    return bits;
}

static void transform_block(const int16_t *samples, size_t stride,
                            const struct tdmi_jpeg_divisors *divisors,
                            struct tdmi_jpeg_values *block)
{
    int32_t numbers[TDMI_JPEG_BLOCK];
    for (int y = 0; y < 8; y++) {
        for (int x = 0; x < 8; x++)
            numbers[8 * y + x] = samples[stride * (size_t)y + (size_t)x];
        transform_line(numbers + (ptrdiff_t)8 * y, 1, TDMI_JPEG_ALONG_BITS, TDMI_JPEG_ALONG_SHIFT);
    }
    for (int x = 0; x < 8; x++)
        transform_line(numbers + x, 8, -TDMI_JPEG_ALONG_BITS, TDMI_JPEG_UPRIGHT_SHIFT);
    block->set = 0;
    for (int i = 0; i < TDMI_JPEG_BLOCK; i++) {
        const int place = tdmi_jpeg_zigzag[i];
        const int32_t number = numbers[place], divisor = 8 * divisors->steps[place];
        const int32_t rounded = ((number < 0 ? -number : number) + divisor / 2) / divisor;
        const int32_t value = number < 0 ? -rounded : rounded;
        block->values[i] = (int16_t)value;
        block->keys[i] = (uint16_t)(TDMI_JPEG_SIZES * i + 2 * (int)bits_of(value) + (value < 0));
        block->set |= (uint64_t)(value != 0) << i;
    }
}

static void transform(const int16_t *samples, size_t stride, size_t n_groups,
                      const struct tdmi_jpeg_divisors *divisors, struct tdmi_jpeg_values *blocks)
{
    for (size_t i = 0; i < TDMI_JPEG_GROUP * n_groups; i++)
        transform_block(samples + 8 * i, stride, divisors, &blocks[i]);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void code(struct tdmi_jpeg_sink *sink, const struct tdmi_jpeg_slot *slots, int n_slots,
                 int n)
{
    tdmi_jpeg_code_mcus(sink, slots, n_slots, n);
}

static size_t stuff(const uint8_t *bytes, size_t n, uint8_t *out)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        out[length++] = bytes[i];
        if (bytes[i] == 0xff)
            out[length++] = 0;
    }
    return length;
}

const struct tdmi_jpeg_write_kernels tdmi_jpeg_write_scalar = {
    .name = "scalar", .colour = colour, .transform = transform, .code = code, .stuff = stuff};

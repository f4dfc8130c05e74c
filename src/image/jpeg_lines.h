/*
 * The parts of decoding that a compiler turns into vectors by itself, written once and compiled for
 * each set of instructions by the kernels that include them: reading MCUs, and making two samples
 * of one.
 */
#ifndef TANDEM_IMAGE_JPEG_LINES_H
#define TANDEM_IMAGE_JPEG_LINES_H

#include "image/jpeg_stream.h"

TDMI_INLINE bool tdmi_jpeg_decode_run(struct tdmi_jpeg_stream *stream,
                                      const struct tdmi_jpeg_band *bands, int n_components,
                                      int first, int n)
{
    struct tdmi_jpeg_bits bits = {stream->window, stream->n_bits, stream->at};
    const uint8_t *latest = stream->end + sizeof bits.window;
    for (int mcu = first; mcu < first + n; mcu++) {
        for (int c = 0; c < n_components; c++) {
            const struct tdmi_jpeg_band *band = &bands[c];
            for (int y = 0; y < band->down; y++) {
                for (int x = 0; x < band->across; x++) {
                    const size_t block = (size_t)(mcu * band->across + x);
                    const size_t pair = (size_t)y * band->n_pairs + block / 2;
                    if (!tdmi_jpeg_block(&bits, band->codes[TDMI_JPEG_DC],
                                         band->codes[TDMI_JPEG_AC], &stream->means[c],
                                         band->coefficients + TDMI_JPEG_PAIR * pair +
                                             8 * (block % 2),
                                         band->last + 2 * pair + block % 2) ||
                        bits.at > latest)
                        return false;
                }
            }
        }
    }
    stream->window = bits.window;
    stream->n_bits = bits.n;
    stream->at = bits.at;
    return true;
}

/* Three parts of the near sample, one of the far one, in both directions; what is beyond an edge is
 * the edge. sums[-1] and sums[n] are set here. Left and right halves are rounded differently, so
 * that no step becomes brighter or darker on average. */
TDMI_INLINE void tdmi_jpeg_widen_sums(int16_t *sums, size_t n, int left, int right, int shift,
                                      uint8_t *out)
{
    sums[-1] = sums[0];
    sums[n] = sums[n - 1];
    for (size_t i = 0; i < n; i++) {
        const unsigned low = (unsigned)(3 * sums[i] + sums[i - 1] + left) >> shift;
        const unsigned high = (unsigned)(3 * sums[i] + sums[i + 1] + right) >> shift;
        const uint16_t both = (uint16_t)(low | high << 8);
        memcpy(out + 2 * i, &both, sizeof both);
    }
}

TDMI_INLINE void tdmi_jpeg_widen_row(const uint8_t *row, size_t n, int16_t *sums, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = row[i];
    tdmi_jpeg_widen_sums(sums + 1, n, 1, 2, 2, out);
}

TDMI_INLINE void tdmi_jpeg_widen_two(const uint8_t *row, const uint8_t *other, size_t n,
                                     int16_t *sums, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = (int16_t)(3 * row[i] + other[i]);
    tdmi_jpeg_widen_sums(sums + 1, n, 8, 7, 4, out);
}

#endif

/*
 * The parts of decoding that a compiler turns into vectors by itself, written once and compiled for
 * each set of instructions by the kernels that include them: reading MCUs, and making two samples
 * of one.
 */
#ifndef TANDEM_IMAGE_JPEG_LINES_H
#define TANDEM_IMAGE_JPEG_LINES_H

#include "image/jpeg/stream.h"

/* n_streams is a constant; the second one goes into `ahead` more rows of MCUs, in memory behind the
 * first one's. */
TDMI_INLINE bool tdmi_jpeg_decode_runs(struct tdmi_jpeg_stream *streams, int n_streams,
                                       const struct tdmi_jpeg_band *bands, int n_components,
                                       int first, int n)
{
    struct tdmi_jpeg_bits bits[2] = {{0}};
    const uint8_t *latest[2] = {0};
    for (int i = 0; i < n_streams; i++) {
        const struct tdmi_jpeg_stream *stream = &streams[i];
        bits[i] = (struct tdmi_jpeg_bits){stream->window, stream->n_bits, stream->at};
        latest[i] = stream->end + sizeof bits->window;
    }
    for (int mcu = first; mcu < first + n; mcu++)
        for (int c = 0; c < n_components; c++) {
            const struct tdmi_jpeg_band *band = &bands[c];
            const struct tdmi_jpeg_codes *dc = band->codes[TDMI_JPEG_DC],
                                         *ac = band->codes[TDMI_JPEG_AC];
            for (int y = 0; y < band->down; y++)
                for (int x = 0; x < band->across; x++) {
                    const size_t column = (size_t)(mcu * band->across + x);
                    const size_t pair = (size_t)y * band->n_pairs + column / 2;
                    int16_t *block = band->coefficients + TDMI_JPEG_PAIR * pair + 8 * (column % 2);
                    uint8_t *last = band->last + 2 * pair + column % 2;
                    if (n_streams == 2
                            ? !tdmi_jpeg_two_blocks(&bits[0], &bits[1], dc, ac,
                                                    &streams[0].means[c], &streams[1].means[c],
                                                    block, block + band->ahead * TDMI_JPEG_BLOCK,
                                                    last, last + band->ahead)
                            : !tdmi_jpeg_block(&bits[0], dc, ac, &streams[0].means[c], block, last))
                        return false;
                    if (bits[0].at > latest[0] || (n_streams == 2 && bits[1].at > latest[1]))
                        return false;
                }
        }
    for (int i = 0; i < n_streams; i++) {
        streams[i].window = bits[i].window;
        streams[i].n_bits = bits[i].n;
        streams[i].at = bits[i].at;
    }
    return true;
}

TDMI_INLINE bool tdmi_jpeg_decode_run(struct tdmi_jpeg_stream *streams, int n_streams,
                                      const struct tdmi_jpeg_band *bands, int n_components,
                                      int first, int n)
{
    return n_streams == 2 ? tdmi_jpeg_decode_runs(streams, 2, bands, n_components, first, n)
                          : tdmi_jpeg_decode_runs(streams, 1, bands, n_components, first, n);
}

/* Three parts of the near sample, one of the far one, in both directions; what is beyond an edge is
 * the edge. sums[-1] and sums[n] are set here. Left and right halves are rounded differently, so
 * that no step becomes brighter or darker on average. */
TDMI_INLINE void tdmi_jpeg_widen_sums(int16_t *sums, size_t n, int left, int right, int shift,
                                      uint8_t *out)
{
    int16_t *before = sums - 1, *behind = sums + 1;
    before[0] = sums[0];
    sums[n] = sums[n - 1];
    for (size_t i = 0; i < n; i++) {
        const unsigned low = (unsigned)(3 * sums[i] + before[i] + left) >> shift;
        const unsigned high = (unsigned)(3 * sums[i] + behind[i] + right) >> shift;
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

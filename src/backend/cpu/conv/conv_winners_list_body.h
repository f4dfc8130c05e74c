/*
 * The winners of one image, in a list for each channel, in the order of the pool; a window whose
 * activation let nothing pass has none. Which windows are listed is unpredictable, so nothing here
 * branches on it.
 */
#pragma once

#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/transpose.h"

/* Where windows of the convolution begin in the frame: the first of each window of the pool, and
 * from there to the winner's. */
static void find_starts(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame)
{
    const int pool = desc->pool, row = frame->columns * frame->pixel;
    for (int y = 0, at = 0; y < frame->pooled_h; y++)
        for (int x = 0; x < frame->pooled_w; x++, at++)
            frame->starts[at] = pool * (y * row + x * frame->pixel);
    for (int tap = 0; tap < pool * pool; tap++)
        frame->taps[tap] = tap / pool * row + tap % pool * frame->pixel;
    frame->taps[pool * pool] = 0;
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)

/* Up to 16 windows of up to 16 channels, transposed, so that a vector is the windows of a channel;
 * those with a winner are compressed. */
static void list_block(const struct tdmi_winners_frame *frame, int out, int windows, int channels,
                       int at, const float *g, const uint8_t *winners, int first)
{
    const __mmask16 wanted = (__mmask16)((1U << channels) - 1);
    const __m512i starts = _mm512_loadu_si512(frame->starts + at);
    const __m512i taps = _mm512_loadu_si512(frame->taps);
    const __m512i no_one = _mm512_set1_epi32(frame->no_one);
    lanes gs[LANES], taken[LANES];
    for (int i = 0; i < LANES; i++) {
        const __mmask16 mask = i < windows ? wanted : 0;
        gs[i] = _mm512_maskz_loadu_ps(mask, g + (int64_t)i * out);
        taken[i] = _mm512_castsi512_ps(
            _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, winners + (int64_t)i * out)));
    }
    lanes_transpose(gs);
    lanes_transpose(taken);
    for (int k = 0; k < channels; k++) {
        const __m512i winner = _mm512_castps_si512(taken[k]);
        const __mmask16 mask =
            _mm512_mask_cmpneq_epi32_mask((__mmask16)((1U << windows) - 1), winner, no_one);
        const int64_t to = (first + k) * frame->length + frame->counts[first + k];
        _mm512_storeu_si512(
            frame->at + to,
            _mm512_maskz_compress_epi32(
                mask, _mm512_add_epi32(starts, _mm512_permutexvar_epi32(winner, taps))));
        _mm512_storeu_ps(frame->g + to, _mm512_maskz_compress_ps(mask, gs[k]));
        frame->counts[first + k] += __builtin_popcount(mask);
    }
}

static void list_winners(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                         const float *g, const uint8_t *winners)
{
    const int out = desc->out, n = frame->pooled_h * frame->pooled_w;
    memset(frame->counts, 0, sizeof *frame->counts * (size_t)out);
    for (int at = 0; at < n; at += LANES)
        for (int k = 0; k < out; k += LANES)
            list_block(frame, out, n - at < LANES ? n - at : LANES,
                       out - k < LANES ? out - k : LANES, at, g + (int64_t)at * out + k,
                       winners + (int64_t)at * out + k, k);
}

#else

static void list_winners(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                         const float *g, const uint8_t *winners)
{
    const int out = desc->out, n = frame->pooled_h * frame->pooled_w, no_one = frame->no_one;
    const int32_t *starts = frame->starts, *taps = frame->taps;
    for (int k = 0; k < out; k++) {
        int32_t *at = frame->at + k * frame->length;
        float *to = frame->g + k * frame->length;
        int count = 0;
        for (int i = 0; i < n; i++) {
            const int winner = winners[(int64_t)i * out + k];
            at[count] = starts[i] + taps[winner];
            to[count] = g[(int64_t)i * out + k];
            count += winner != no_one;
        }
        frame->counts[k] = count;
    }
}

#endif

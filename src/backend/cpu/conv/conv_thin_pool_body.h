/*
 * A max pool behind a thin convolution, while its results still are vectors of pictures. The number
 * of the window's pixel that won is kept for the gradient (conv_winners.h), as bytes; pool · pool
 * says that the activation lets nothing through.
 */
#pragma once

#include "backend/cpu/conv/conv_thin.h"
#include "backend/cpu/transpose.h"

#include <math.h>

/* The largest of one window, `row` floats from row to row of it; *winner: its number. */
LANES_INLINE lanes largest_of(const float *at, int64_t pixel, int64_t row, const int pool,
                              lanes *winner)
{
    lanes best = lanes_load(at);
    *winner = lanes_all(0.0f);
    for (int tap = 1; tap < pool * pool; tap++)
        best = lanes_larger(best, lanes_load(at + tap / pool * row + tap % pool * pixel), winner,
                            lanes_all((float)tap));
    return best;
}

LANES_INLINE void pool_values(const struct tdmi_conv_thin *desc, const float *rows, float *to,
                              float *winners, const int pool)
{
    const int64_t pixel = (int64_t)desc->out * LANES, row = desc->out_w * pixel;
    const int n = desc->out_w / pool;
    for (int x = 0; x < n; x++, rows += pool * pixel)
        for (int k = 0; k < desc->out; k++, to += LANES, winners += LANES) {
            lanes winner, passing = lanes_all((float)(pool * pool));
            lanes best = largest_of(rows + (int64_t)k * LANES, pixel, row, pool, &winner);
            if (desc->act == TDMI_ACT_RELU) {
                (void)lanes_larger(lanes_all(0.0f), best, &passing, winner);
                winner = passing;
                best = lanes_clamp(best, lanes_all(0.0f), lanes_all(INFINITY));
            }
            lanes_store(to, best);
            lanes_store(winners, winner);
        }
}

/* Rows of a convolution to one row of the pool. */
static void pool_rows(const struct tdmi_conv_thin *desc, const float *rows, float *to,
                      float *winners)
{
    if (desc->pool == 2)
        pool_values(desc, rows, to, winners, 2);
    else
        pool_values(desc, rows, to, winners, desc->pool);
}

/* As transpose_out, for whole numbers of a byte. */
static void transpose_out_bytes(const float *from, int values, uint8_t *to, int64_t picture, int n)
{
    int v = 0;
    for (; v + LANES <= values; v += LANES) {
        lanes rows[LANES];
        for (int i = 0; i < LANES; i++)
            rows[i] = lanes_load(from + (int64_t)(v + i) * LANES);
        lanes_transpose(rows);
        for (int i = 0; i < LANES; i++)
            if (i < n)
                lanes_store_bytes(to + v + i * picture, rows[i]);
    }
    for (int i = 0; i < n; i++)
        for (int rest = v; rest < values; rest++)
            to[i * picture + rest] = (uint8_t)from[(int64_t)rest * LANES + i];
}

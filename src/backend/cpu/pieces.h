/*
 * Sums of columns (channels) that several threads take. Sums are f32 inside a block of rows and
 * double across blocks, in the order of the blocks. A thread of a team has only some of the blocks,
 * so it stores the sums of each as a piece; when all are there, each thread adds up the pieces of
 * some columns, in the same order.
 *
 *     pieces (blocks, 2, columns rounded up to whole lines of the cache)
 */
#pragma once

#include "base/team.h"

enum {
    TDMI_PIECE_LINE = 16, /* floats */
    TDMI_STRETCH = 16     /* pixels of a pass over a tensor that are a block, at least */
};

static inline int64_t tdmi_pieces_columns(int64_t columns)
{
    return (columns + TDMI_PIECE_LINE - 1) / TDMI_PIECE_LINE * TDMI_PIECE_LINE;
}

static inline int64_t tdmi_pieces_floats(int64_t blocks, int64_t columns)
{
    return blocks * 2 * tdmi_pieces_columns(columns);
}

/* The member's columns: whole lines, and the last ones may be past the end. */
static inline struct tdmi_share tdmi_pieces_share(const struct tdmi_member *member, int64_t columns)
{
    const struct tdmi_share lines =
        tdmi_member_small_share(member, tdmi_pieces_columns(columns) / TDMI_PIECE_LINE);
    return (struct tdmi_share){lines.first * TDMI_PIECE_LINE, lines.end * TDMI_PIECE_LINE};
}

/* sum and square of columns first to end - 1 += the pieces of n blocks. */
void tdmi_pieces_add(const float *pieces, int64_t n, int64_t columns, struct tdmi_share of,
                     double *sum, double *square);

/* Add n arrays of size floats, `step` apart, one after the other. adds: to what is there; else the
 * sum replaces it. A member of a team adds its share of the elements. */
void tdmi_pieces_add_arrays(const float *arrays, int64_t n, int64_t step, int64_t size, bool adds,
                            const struct tdmi_member *member, float *to);

/* Additions of pieces, column by column. */
#include "backend/cpu/pieces.h"
#include "base/system/multiversion.h"

TDMI_MULTIVERSION
void tdmi_pieces_add(const float *pieces, int64_t n, int64_t columns, struct tdmi_share of,
                     double *sum, double *square)
{
    const int64_t row = tdmi_pieces_columns(columns);
    const int64_t end = of.end < columns ? of.end : columns;
    for (int64_t i = 0; i < n; i++, pieces += 2 * row)
        for (int64_t c = of.first; c < end; c++) {
            sum[c] += (double)pieces[c];
            square[c] += (double)pieces[row + c];
        }
}

TDMI_MULTIVERSION
static void add_part(const float *arrays, int64_t n, int64_t step, struct tdmi_share part,
                     bool adds, float *to)
{
    for (int64_t a = 0; a < n; a++, arrays += step)
        for (int64_t i = part.first; i < part.end; i++)
            to[i] = a > 0 || adds ? to[i] + arrays[i] : arrays[i];
}

void tdmi_pieces_add_arrays(const float *arrays, int64_t n, int64_t step, int64_t size, bool adds,
                            const struct tdmi_member *member, float *to)
{
    struct tdmi_share part = tdmi_pieces_share(member, size);
    part.end = part.end < size ? part.end : size;
    add_part(arrays, n, step, part, adds, to);
}

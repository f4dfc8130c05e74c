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

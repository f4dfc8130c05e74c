/* Packing, and which instruction set's products a processor runs. */
#include "backend/cpu/gemm/gemm.h"

TDMI_TABLE_OF(const struct tdmi_gemm_kernels *tdmi_gemm_kernels_of, tdmi_gemm)

/* A panel is (depth, vectors of the panel · lanes), zero behind the last column; one and a half
 * vectors have the half twice (gemm_half_body.h). */
void tdmi_gemm_pack(const struct tdmi_gemm_matrix *matrix, int lanes, int wide, int depth,
                    int first, float *packed)
{
    int left = (matrix->columns + lanes - 1) / lanes, column = 0;
    while (left > 0) {
        int vectors = tdmi_gemm_panel(left, wide), width = vectors * lanes;
        const bool is_half = vectors == 2 && matrix->columns - column == lanes + lanes / 2;
        float *to = packed + (int64_t)first * width;
        for (int row = 0; row < matrix->rows; row++, to += width) {
            const float *from =
                matrix->from + row * matrix->row_step + column * matrix->column_step;
            int n = matrix->columns - column < width ? matrix->columns - column : width;
            for (int i = 0; i < n; i++)
                to[i] = from[i * matrix->column_step] *
                        (matrix->scale ? matrix->scale[column + i] : 1.0f);
            for (int i = n; i < width; i++)
                to[i] = is_half ? to[i - lanes / 2] : 0.0f;
        }
        packed += (int64_t)depth * width;
        column += width;
        left -= vectors;
    }
}

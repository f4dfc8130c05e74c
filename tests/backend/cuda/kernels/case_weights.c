/* weights.cu: turning there and back, whole and ragged tiles, and folding a batch norm. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/conv/weights.h"

static void turn(enum tdmi_dtype type, int64_t rows, int columns, bool has_factor)
{
    const struct tdmi_cuda_weights it = {type, rows, columns};
    const int64_t n = rows * columns;
    void *blocks[4];
    float *weights = tensor(TDMI_DTYPE_F32, n, 1, 1, &blocks[0]);
    float *factor = tensor(TDMI_DTYPE_F32, columns, 3, 2, &blocks[1]);
    void *turned = tensor(type, n, 0, 0, &blocks[2]);
    float *back = tensor(TDMI_DTYPE_F32, n, 1, 0, &blocks[3]);
    assert_int_equal(tdmi_cuda_weights_turn(NULL, &it, weights, has_factor ? factor : NULL, turned),
                     0);
    for (int64_t i = 0; i < n; i++) {
        const double wanted = (double)weights[i] * (has_factor ? (double)factor[i % columns] : 1.0);
        const int64_t at = i % columns * rows + i / columns;
        expect_near(value_at(turned, type, at), wanted,
                    has_factor ? step_of(type, fabs(wanted)) : 0.0, "turned", i);
    }
    assert_int_equal(tdmi_cuda_weights_turn_back(NULL, &it, turned, back), 0);
    for (int64_t i = 0; i < n; i++)
        expect_near((double)back[i], value_at(turned, type, i % columns * rows + i / columns), 0.0,
                    "turned back", i);
    for (int i = 0; i < 4; i++)
        tdmi_free(blocks[i]);
}

static void fold(int channels, bool has_norm, bool has_bias)
{
    void *blocks[7];
    float *values[7];
    for (int i = 0; i < 7; i++)
        values[i] = tensor(TDMI_DTYPE_F32, channels, 0, i < 5 ? 20 + (uint32_t)i : 0, &blocks[i]);
    for (int c = 0; c < channels; c++)
        values[4][c] = fabsf(values[4][c]);
    const struct tdmi_cuda_weights_fold it = {
        .channels = channels,
        .old_bias = has_bias ? values[0] : NULL,
        .scale = has_norm ? values[1] : NULL,
        .shift = has_norm ? values[2] : NULL,
        .mean = has_norm ? values[3] : NULL,
        .variance = has_norm ? values[4] : NULL,
        .epsilon = 0.001,
        .factor = values[5],
        .bias = values[6],
    };
    assert_int_equal(tdmi_cuda_weights_fold(NULL, &it), 0);
    for (int c = 0; c < channels; c++) {
        const double old = has_bias ? (double)values[0][c] : 0.0;
        double factor = 1.0, bias = old;
        if (has_norm) {
            factor = (double)values[1][c] / sqrt((double)values[4][c] + 0.001);
            bias = (old - (double)values[3][c]) * factor + (double)values[2][c];
        }
        expect_near((double)values[5][c], factor, fabs(factor) * 0x1p-23, "factor", c);
        expect_near((double)values[6][c], bias, fabs(bias) * 0x1p-23, "bias", c);
    }
    for (int i = 0; i < 7; i++)
        tdmi_free(blocks[i]);
}

void case_weights(void **state)
{
    (void)state;
    tdmi_shim_use((struct tdmi_shim_way){0});
    for (int t = 0; t < n_float_types; t++) {
        turn(float_types[t], 1, 1, false);
        turn(float_types[t], 27, 32, true);
        turn(float_types[t], 64, 64, false);
        turn(float_types[t], 33, 65, true);
        turn(float_types[t], 130, 7, false);
    }
    fold(1, true, false);
    fold(300, true, true);
    fold(129, false, true);
    fold(5, false, false);
    const struct tdmi_cuda_weights bad = {TDMI_DTYPE_U8, 1, 1};
    assert_true(tdmi_cuda_weights_turn(NULL, &bad, NULL, NULL, NULL) != 0);
}

/* channels.cu: scale, shift, residual and activation by channel, and the gradient of a bias. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/columns.h"

static void scale(enum tdmi_dtype type, int64_t pixels, int channels, int off, bool has_all)
{
    const int64_t n = pixels * channels;
    void *blocks[5];
    void *x = tensor(type, n, off, 1, &blocks[0]), *residual = tensor(type, n, off, 2, &blocks[1]);
    void *y = tensor(type, n, off, 0, &blocks[2]);
    float *factor = tensor(TDMI_DTYPE_F32, channels, 0, 3, &blocks[3]);
    float *offset = tensor(TDMI_DTYPE_F32, channels, 0, 4, &blocks[4]);
    const struct tdmi_cuda_channels call = {.type = type,
                                            .act = has_all ? TDMI_ACT_RELU : TDMI_ACT_NONE,
                                            .x = x,
                                            .residual = has_all ? residual : NULL,
                                            .y = y,
                                            .scale = has_all ? factor : NULL,
                                            .shift = offset,
                                            .pixels = pixels,
                                            .channels = channels};
    assert_int_equal(tdmi_cuda_scale_shift(NULL, &call), 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i % channels;
        double wanted = value_at(x, type, i) * (has_all ? (double)factor[c] : 1.0);
        wanted += (double)offset[c] + (has_all ? value_at(residual, type, i) : 0.0);
        wanted = has_all && wanted < 0.0 ? 0.0 : wanted;
        expect_near(value_at(y, type, i), wanted, step_of(type, fabs(wanted)), "y", i);
    }
    for (int i = 0; i < 5; i++)
        tdmi_free(blocks[i]);
}

/* The same bits whatever runs first. */
static void add_up(enum tdmi_dtype type, int64_t pixels, int channels, int off)
{
    const int64_t n = pixels * channels;
    void *blocks[4];
    void *dy = tensor(type, n, off, 1, &blocks[0]);
    float *sums = tensor(TDMI_DTYPE_F32, channels, 0, 0, &blocks[1]);
    float *again = tensor(TDMI_DTYPE_F32, channels, 0, 0, &blocks[2]);
    blocks[3] = tdmi_alloc_aligned(tdmi_cuda_columns_sum_bytes(pixels, channels));
    assert_non_null(blocks[3]);
    tdmi_shim_use((struct tdmi_shim_way){0});
    assert_int_equal(tdmi_cuda_channel_sum(NULL, type, dy, pixels, channels, sums, blocks[3]), 0);
    tdmi_shim_use((struct tdmi_shim_way){.is_reversed = true});
    assert_int_equal(tdmi_cuda_channel_sum(NULL, type, dy, pixels, channels, again, blocks[3]), 0);
    for (int c = 0; c < channels; c++) {
        double wanted = 0.0;
        for (int64_t p = 0; p < pixels; p++)
            wanted += value_at(dy, type, p * channels + c);
        /* values are multiples of 1/32, and few: f32 adds them without rounding */
        expect_near((double)sums[c], wanted, 0.0, "sum", c);
    }
    assert_memory_equal(sums, again, sizeof(float) * (size_t)channels);
    for (int i = 0; i < 4; i++)
        tdmi_free(blocks[i]);
}

void case_channels(void **state)
{
    static const struct {
        int64_t pixels;
        int channels, off;
    } sizes[] = {{1, 1, 0},    {5, 3, 0},    {300, 8, 0}, {33, 24, 0},  {9, 728, 0},
                 {3, 2056, 0}, {2, 4103, 0}, {7, 16, 1},  {20011, 8, 0}};
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            tdmi_shim_use((struct tdmi_shim_way){0});
            scale(float_types[t], sizes[s].pixels, sizes[s].channels, sizes[s].off, false);
            scale(float_types[t], sizes[s].pixels, sizes[s].channels, sizes[s].off, true);
            add_up(float_types[t], sizes[s].pixels, sizes[s].channels, sizes[s].off);
        }
}

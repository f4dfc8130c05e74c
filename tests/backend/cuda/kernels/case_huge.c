/*
 * Tensors of more values than 32 bits count. Only blocks at both ends run, so that most of the
 * memory that is reserved is never there.
 */
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/kernels/copies.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/values.h"

#include <sys/mman.h>

static void *reserve(int64_t bytes)
{
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void use_edges(int64_t blocks)
{
    tdmi_shim_use((struct tdmi_shim_order){.edge_blocks = blocks});
}

static void run_activation(void)
{
    const int64_t n = ((int64_t)5 << 30) + 3;
    uint16_t *x = reserve(2 * n), *y = reserve(2 * n);
    put_value(x, TDMI_DTYPE_BF16, 5, 3.0f);
    put_value(x, TDMI_DTYPE_BF16, n - 9, 5.0f); /* in the last whole vector */
    put_value(x, TDMI_DTYPE_BF16, n - 1, 7.0f);
    use_edges(2);
    assert_int_equal(tdmi_cuda_act(NULL, TDMI_DTYPE_BF16, TDMI_ACT_RELU6, x, y, n), 0);
    assert_true(value_at(y, TDMI_DTYPE_BF16, 5) == 3.0);
    assert_true(value_at(y, TDMI_DTYPE_BF16, n - 9) == 5.0);
    assert_true(value_at(y, TDMI_DTYPE_BF16, n - 1) == 6.0);
    assert_int_equal(tdmi_shim_facts().largest_grid, n / 8 / 256);
    munmap(x, (size_t)(2 * n));
    munmap(y, (size_t)(2 * n));
}

static void run_conv(void)
{
    static const float w[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    const struct tdmi_cuda_conv conv = {
        TDMI_DTYPE_F32, {1024, 1024, 3}, {1024, 1024, 3}, 1024, 1, 1, 1, 1, 0, 0};
    const int64_t n = conv.n * tdmi_shape_values(conv.in);
    float *x = reserve(4 * n), *y = reserve(4 * n);
    x[0] = 3.0f;
    x[n - 1] = 5.0f;
    use_edges(2);
    assert_int_equal(tdmi_cuda_conv_forward(NULL, &conv, x, w, NULL, y), 0);
    assert_true(y[0] == 6.0f && y[n - 1] == 10.0f);
    munmap(x, (size_t)(4 * n));
    munmap(y, (size_t)(4 * n));
}

static void run_depthwise(int channels, int kernel)
{
    struct tdmi_cuda_window s = {TDMI_DTYPE_BF16, 0, 512, 512,        channels,   512,  512,
                                 kernel,          1, 1,   kernel / 2, kernel / 2, false};
    s.n = ((int64_t)5 << 30) / ((int64_t)s.h * s.w * channels);
    const int64_t n = s.n * s.h * s.w * channels;
    const int taps = kernel * kernel;
    const double middle = (double)(taps + 1) / 2.0;
    uint16_t *x = reserve(2 * n), *y = reserve(2 * n);
    float weights[49 * 8];
    for (int i = 0; i < taps * channels; i++)
        weights[i] = (float)(1 + i / channels);
    put_value(x, TDMI_DTYPE_BF16, 1, 3.0f);
    put_value(x, TDMI_DTYPE_BF16, n - 1, 2.0f);
    use_edges(2);
    const struct tdmi_cuda_depthwise_forward call = {.x = x, .weights = weights, .y = y};
    assert_int_equal(tdmi_cuda_depthwise_forward(NULL, &s, &call), 0);
    assert_true(value_at(y, TDMI_DTYPE_BF16, 1) == 3.0 * middle);
    assert_true(value_at(y, TDMI_DTYPE_BF16, n - 1) == 2.0 * middle);
    munmap(x, (size_t)(2 * n));
    munmap(y, (size_t)(2 * n));
}

static void run_copy(void)
{
    const int64_t pixels = ((int64_t)1 << 32) + 5;
    const struct tdmi_cuda_channels_copy copy = {.type = TDMI_DTYPE_BF16,
                                                 .pixels = pixels,
                                                 .channels = 1,
                                                 .from_channels = 1,
                                                 .to_channels = 2,
                                                 .to_first = 1};
    uint16_t *x = reserve(6 * pixels);
    x[pixels - 1] = 7;
    use_edges(1);
    assert_int_equal(tdmi_cuda_copy_channels(NULL, &copy, x, x + pixels), 0);
    assert_int_equal(x[3 * pixels - 1], 7);
    munmap(x, (size_t)(6 * pixels));
}

void case_huge(void **state)
{
    (void)state;
    run_activation();
    run_conv();
    run_depthwise(8, 3);
    run_depthwise(8, 7);
    run_depthwise(5, 3);
    run_copy();
}

/* copies.cu: channels beside each other and frames around pictures, there and back, in vectors or
 * not; and more pixels than 32 bits count. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/copies.h"

#include <sys/mman.h>

static void beside(enum tdmi_dtype type, int64_t pixels, const int channels[2], int off)
{
    const int all = channels[0] + channels[1];
    void *blocks[3];
    void *x[2], *y = tensor(type, pixels * all, off, 0, &blocks[2]);
    for (int k = 0; k < 2; k++) {
        const struct tdmi_cuda_channels_copy copy = {.type = type,
                                                     .pixels = pixels,
                                                     .channels = channels[k],
                                                     .from_channels = channels[k],
                                                     .to_channels = all,
                                                     .to_first = k * channels[0]};
        x[k] = tensor(type, pixels * channels[k], off, 1 + (uint32_t)k, &blocks[k]);
        assert_int_equal(tdmi_cuda_copy_channels(NULL, &copy, x[k], y), 0);
    }
    for (int64_t i = 0; i < pixels * all; i++) {
        const int64_t p = i / all, c = i % all;
        const int k = c >= channels[0];
        expect_near(value_at(y, type, i),
                    value_at(x[k], type, p * channels[k] + c - k * channels[0]), 0.0, "beside", i);
    }
    for (int k = 0; k < 2; k++) {
        const struct tdmi_cuda_channels_copy back = {.type = type,
                                                     .pixels = pixels,
                                                     .channels = channels[k],
                                                     .from_channels = all,
                                                     .to_channels = channels[k],
                                                     .from_first = k * channels[0]};
        memset(x[k], 0xff, (size_t)(pixels * channels[k]) * tdmi_dtype_bytes(type));
        assert_int_equal(tdmi_cuda_copy_channels(NULL, &back, y, x[k]), 0);
        for (int64_t i = 0; i < pixels * channels[k]; i++)
            expect_near(value_at(x[k], type, i), (double)plain_value(1 + (uint32_t)k, i), 0.0,
                        "back", i);
    }
    for (int i = 0; i < 3; i++)
        tdmi_free(blocks[i]);
}

static void around(struct tdmi_cuda_frame it, int off)
{
    const int64_t n_x = it.n * it.h * it.w * it.channels;
    const int64_t n_y = it.n * it.out_h * it.out_w * it.out_channels;
    void *blocks[2];
    void *x = tensor(it.type, n_x, off, 1, &blocks[0]);
    void *y = tensor(it.type, n_y, off, 0, &blocks[1]);
    assert_int_equal(tdmi_cuda_frame_put(NULL, &it, x, y), 0);
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t c = i % it.out_channels - it.front, pixel = i / it.out_channels;
        const int64_t column = pixel % it.out_w - it.left;
        const int64_t row = pixel / it.out_w % it.out_h - it.top;
        const int64_t picture = pixel / it.out_w / it.out_h;
        const bool is_inside =
            c >= 0 && c < it.channels && column >= 0 && column < it.w && row >= 0 && row < it.h;
        const int64_t at = ((picture * it.h + row) * it.w + column) * it.channels + c;
        expect_near(value_at(y, it.type, i), is_inside ? value_at(x, it.type, at) : 0.0, 0.0,
                    "framed", i);
    }
    memset(x, 0xff, (size_t)n_x * tdmi_dtype_bytes(it.type));
    assert_int_equal(tdmi_cuda_frame_take(NULL, &it, y, x), 0);
    for (int64_t i = 0; i < n_x; i++)
        expect_near(value_at(x, it.type, i), (double)plain_value(1, i), 0.0, "taken out", i);
    for (int i = 0; i < 2; i++)
        tdmi_free(blocks[i]);
}

/* 2^32 pixels and some: only blocks at both ends run. */
static void run_huge(void)
{
    const int64_t pixels = ((int64_t)1 << 32) + 5;
    const struct tdmi_cuda_channels_copy copy = {.type = TDMI_DTYPE_BF16,
                                                 .pixels = pixels,
                                                 .channels = 1,
                                                 .from_channels = 1,
                                                 .to_channels = 2,
                                                 .to_first = 1};
    const size_t bytes = (size_t)pixels * 6;
    uint16_t *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED)
        return;
    x[pixels - 1] = 7;
    tdmi_shim_use((struct tdmi_shim_way){.edge_blocks = 1});
    assert_int_equal(tdmi_cuda_copy_channels(NULL, &copy, x, x + pixels), 0);
    assert_int_equal(x[pixels + 2 * pixels - 1], 7);
    munmap(x, bytes);
}

void case_copies(void **state)
{
    static const int channels[][2] = {{3, 5}, {8, 16}, {16, 4}, {1, 2056}};
    static const struct tdmi_cuda_frame frames[] = {
        {0, 3, 4, 5, 3, 7, 8, 6, 1, 3, 2},     {0, 2, 5, 6, 8, 6, 7, 8, 0, 1, 0},
        {0, 2, 3, 3, 8, 3, 3, 24, 0, 0, 8},    {0, 2, 3, 3, 8, 3, 3, 16, 0, 0, 2},
        {0, 300, 1, 1, 16, 2, 1, 16, 1, 0, 0}, {0, 1, 70, 2, 16, 71, 3, 16, 0, 0, 0},
        {0, 1, 1, 2, 4, 1, 2, 4, 0, 0, 0},
    };
    (void)state;
    for (int t = 0; t < n_float_types; t++)
        for (int off = 0; off < 2; off++) {
            tdmi_shim_use((struct tdmi_shim_way){.is_reversed = off == 1});
            for (size_t k = 0; k < sizeof channels / sizeof *channels; k++)
                beside(float_types[t], k == 3 ? 3 : 67, channels[k], off);
            for (size_t k = 0; k < sizeof frames / sizeof *frames; k++) {
                struct tdmi_cuda_frame frame = frames[k];
                frame.type = float_types[t];
                around(frame, off);
            }
        }
    run_huge();
}

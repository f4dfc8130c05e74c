/* The geometry of sums and passes by channel: every pixel and channel once, and nothing that no
 * card can launch, for odd and for huge shapes. */
#include "backend/cuda/kernels/conv/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void look_at(int64_t pixels, int channels, int lanes, int64_t most)
{
    const struct tdmi_cuda_columns it = tdmi_cuda_columns_of(pixels, channels, lanes, 1, most);
    assert_true(it.lanes == 1 || it.lanes == lanes);
    assert_int_equal(channels % it.lanes, 0);
    assert_in_range(it.width * it.rows, 1, 256);
    assert_true((int64_t)it.parts * it.width * it.lanes >= channels);
    assert_true((int64_t)(it.parts - 1) * it.width * it.lanes < channels);
    assert_in_range(it.parts, 1, 65535); /* of a grid's y */
    assert_in_range(it.chunks, 1, INT32_MAX);
    assert_true(it.chunk % it.rows == 0 && it.chunks * it.chunk >= pixels);
    assert_true((it.chunks - 1) * it.chunk < pixels); /* no block without work */
    if (most > 0) {
        assert_true(it.chunks <= most);
        assert_true(tdmi_cuda_columns_sum_bytes(pixels, channels) >=
                    (size_t)it.chunks * 2 * (size_t)channels * sizeof(double));
    }
}

static void all_is_covered_and_can_be_launched(void **state)
{
    static const int64_t pixels[] = {1,     2,    7,      255,     256,     257,
                                     12544, 3137, 200704, 3211264, 1 << 24, (int64_t)5 << 30};
    static const int channels[] = {1,   2,   3,    8,    24,   32,     96,
                                   255, 728, 1000, 2048, 4103, 100003, 16000001};
    (void)state;
    for (size_t p = 0; p < sizeof pixels / sizeof *pixels; p++)
        for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
            for (int lanes = 1; lanes <= 8; lanes *= 2) {
                look_at(pixels[p], channels[c], lanes, 0);
                look_at(pixels[p], channels[c], lanes, TDMI_CUDA_SUM_CHUNKS);
            }
}

static void what_is_not_aligned_goes_one_by_one(void **state)
{
    (void)state;
    assert_int_equal(tdmi_cuda_columns_of(100, 64, 8, 0, 0).lanes, 1);
    assert_int_equal(tdmi_cuda_columns_of(100, 64, 8, 1, 0).lanes, 8);
    assert_int_equal(tdmi_cuda_columns_of(100, 63, 8, 1, 0).lanes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_covered_and_can_be_launched),
        cmocka_unit_test(what_is_not_aligned_goes_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

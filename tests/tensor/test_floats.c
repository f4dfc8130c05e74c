/* bf16 and f16: every value comes back as itself, others go to the nearest, ties to even; and
 * arrays of floats are stored as them and loaded in place. */
#include "tensor/floats.h"
#include "tensor/half.h"
#include "unit.h"

#include <math.h>

TEST(every_bf16_comes_back_as_itself)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float value = tdmi_float_of_bf16((uint16_t)bits);
        if (isnan(value))
            assert_true(isnan(tdmi_float_of_bf16(tdmi_bf16_of_float(value))));
        else
            assert_int_equal(tdmi_bf16_of_float(value), bits);
    }
}

TEST(values_between_two_bf16_go_to_the_nearer_and_the_middle_to_the_even)
{
    for (uint32_t bits = 1; bits < 0x7f7fu; bits++) {
        const float middle = tdmi_float_of_bits(bits << 16 | 0x8000u);
        const uint32_t even = bits & 1u ? bits + 1 : bits;
        assert_int_equal(tdmi_bf16_of_float(middle), even);
        assert_int_equal(tdmi_bf16_of_float(-middle), even | 0x8000u);
        assert_int_equal(tdmi_bf16_of_float(tdmi_float_of_bits((bits << 16 | 0x8000u) - 1)), bits);
        assert_int_equal(tdmi_bf16_of_float(tdmi_float_of_bits((bits << 16 | 0x8000u) + 1)),
                         bits + 1);
    }
    assert_int_equal(tdmi_bf16_of_float(3.4e38f), 0x7f80); /* above the largest: infinity */
}

/* Values at the end of a buffer of floats are converted in place. */
TEST(values_become_floats_in_their_own_room)
{
    static const enum tdmi_dtype types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
    enum { most = 9 };
    for (int t = 0; t < 3; t++)
        for (int n = 0; n <= most; n++) {
            float values[most], room[most + 1];
            for (int i = 0; i < n; i++)
                values[i] = (float)(i - 4) * 0.375f;
            room[n] = 77.0f;
            const size_t bytes = tdmi_dtype_bytes(types[t]) * (size_t)n;
            char *end = (char *)(room + n) - bytes;
            tdmi_floats_store(types[t], end, values, n);
            tdmi_floats_load(types[t], room, end, n);
            assert_memory_equal(room, values, sizeof(float) * (size_t)n);
            assert_true(room[n] == 77.0f);
        }
}

TEST(every_f16_comes_back_as_itself)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float value = tdmi_float_of_f16((uint16_t)bits);
        if (isnan(value)) /* stays one, of its sign */
            assert_int_equal(tdmi_f16_of_float(value), (bits & 0x8000u) | 0x7e00u);
        else
            assert_int_equal(tdmi_f16_of_float(value), bits);
    }
}

/* Between two neighbours lie the middle and what is next to it on both sides; doubles hold the
 * middle of any two exactly, and so do floats. */
TEST(values_between_two_f16_go_to_the_nearer_and_the_middle_to_the_even)
{
    for (uint32_t bits = 0; bits < 0x7bffu; bits++) {
        const float low = tdmi_float_of_f16((uint16_t)bits);
        const float high = tdmi_float_of_f16((uint16_t)(bits + 1));
        const float middle = (low + high) / 2;
        const uint32_t even = bits & 1u ? bits + 1 : bits;
        assert_int_equal(tdmi_f16_of_float(middle), even);
        assert_int_equal(tdmi_f16_of_float(nextafterf(middle, 0)), bits);
        assert_int_equal(tdmi_f16_of_float(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(tdmi_f16_of_float(-middle), even | 0x8000u);
    }
}

TEST(f16_overflow_is_an_infinity_and_underflow_zero)
{
    assert_int_equal(tdmi_f16_of_float(65504), 0x7bff);
    assert_int_equal(tdmi_f16_of_float(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(tdmi_f16_of_float(65520), 0x7c00);
    assert_int_equal(tdmi_f16_of_float(65536), 0x7c00);
    assert_int_equal(tdmi_f16_of_float(-1e30f), 0xfc00);
    assert_int_equal(tdmi_f16_of_float(INFINITY), 0x7c00);
    assert_int_equal(tdmi_f16_of_float(0x1p-25f), 0);
    assert_int_equal(tdmi_f16_of_float(nextafterf(0x1p-25f, 1)), 1);
    assert_int_equal(tdmi_f16_of_float(-0x1p-149f), 0x8000);
}

TEST_MAIN(NULL, NULL)

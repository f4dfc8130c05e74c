/*
 * f16: every one of them is an f32 and comes back as itself, and what lies between two goes to the
 * nearer, of two equally near the even one.
 */
#include "tensor/half.h"
#include "unit.h"

#include <math.h>

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
TEST(what_lies_between_goes_to_the_nearer_and_the_middle_to_the_even)
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

TEST(what_is_too_large_is_an_infinity_and_what_is_too_small_zero)
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

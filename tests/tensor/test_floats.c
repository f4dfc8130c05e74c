/* Floats as other types store them: to the nearest, and back in the same room. */
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

TEST(what_lies_between_goes_to_the_nearer_and_the_middle_to_the_even)
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

TEST_MAIN(NULL, NULL)

/*
 * The two 16-bit floats as bits: f16 (5 bits of exponent, 10 of mantissa) and bf16 (the upper half
 * of an f32). Every value of theirs is an f32.
 */
#ifndef TANDEM_TENSOR_HALF_H
#define TANDEM_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline float tdmi_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float tdmi_float_of_bf16(uint16_t bits)
{
    return tdmi_float_of_bits((uint32_t)bits << 16);
}

static inline float tdmi_float_of_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u;
    uint32_t mantissa = bits & 1023u;
    if (exponent == 31) /* infinities and NaN */
        return tdmi_float_of_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return tdmi_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 0x1p-24f; /* subnormal, or zero */
    return sign ? -small : small;
}

#endif

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

static inline uint32_t tdmi_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* To the nearest f16, of two equally near the even one. From 65520 on that is an infinity; a NaN
 * stays one. */
static inline uint16_t tdmi_f16_of_float(float value)
{
    const uint32_t all = tdmi_bits_of_float(value), sign = all >> 16 & 0x8000u;
    const uint32_t bits = all & 0x7fffffffu;
    uint32_t half;
    if (bits >= 0x47800000u) /* 65536 and more, infinities, NaN */
        half = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    else if (bits < 0x38800000u) /* below 2^-14: beside 1/2 an f32 has the steps of an f16 here */
        half = tdmi_bits_of_float(tdmi_float_of_bits(bits) + 0.5f) - 0x3f000000u;
    else /* 13 bits less; a carry out of the mantissa belongs in the exponent */
        half = (bits + 0x0fffu + (bits >> 13 & 1u) - (112u << 23)) >> 13;
    return (uint16_t)(sign | half);
}

#endif

/*
 * The two 16-bit floats as bits: f16 (5 bits of exponent, 10 of mantissa) and bf16 (the upper half
 * of an f32). Every value of theirs is an f32.
 */
#pragma once

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

static inline uint32_t tdmi_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* To the nearest bf16, of two equally near the even one; a NaN stays one. */
static inline uint16_t tdmi_bf16_of_float(float value)
{
    const uint32_t bits = tdmi_bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Bit by bit: where mask is -1 the first, where it is 0 the second. */
static inline int32_t tdmi_bits_chosen(int32_t mask, int32_t first, int32_t second)
{
    return (first & mask) | (second & ~mask);
}

/* Both directions compute all cases and choose by masks, so that compilers make vectors of a loop:
 * they would keep a branch around arithmetic on floats. No f32 on the way is denormal, so threads
 * that flush those get the same. */
static inline float tdmi_float_of_f16(uint16_t bits)
{
    const int32_t rest = bits & 0x7fff, more = 112 << 23; /* what exponents differ by */
    const int32_t infinite = -(rest >= 0x7c00);           /* NaN too */
    const int32_t wide = (rest << 13) + more + (more & infinite);
    const int32_t small = (int32_t)tdmi_bits_of_float((float)rest * 0x1p-24f); /* or zero */
    const int32_t chosen = tdmi_bits_chosen(-(rest < 0x400), small, wide);
    return tdmi_float_of_bits((uint32_t)(bits & 0x8000) << 16 | (uint32_t)chosen);
}

/* To the nearest f16, of two equally near the even one. From 65520 on that is an infinity; a NaN
 * stays one. */
static inline uint16_t tdmi_f16_of_float(float value)
{
    const uint32_t all = tdmi_bits_of_float(value);
    const int32_t bits = (int32_t)(all & 0x7fffffffu);
    /* 13 bits less; a carry out of the mantissa belongs in the exponent. */
    const int32_t normal = (bits - (112 << 23) + 0x0fff + (bits >> 13 & 1)) >> 13;
    /* Below 2^-14: beside 1/2 an f32 has the steps of an f16 there. */
    const int32_t small =
        (int32_t)tdmi_bits_of_float(tdmi_float_of_bits((uint32_t)bits) + 0.5f) - 0x3f000000;
    const int32_t large = 0x7c00 | (0x0200 & -(bits > 0x7f800000)); /* from 65536 on */
    const int32_t finite = tdmi_bits_chosen(-(bits < 0x38800000), small, normal);
    const int32_t half = tdmi_bits_chosen(-(bits >= 0x47800000), large, finite);
    return (uint16_t)((all >> 16 & 0x8000u) | (uint32_t)half);
}

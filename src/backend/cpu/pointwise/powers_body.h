/*
 * exp of a run of doubles with the bits of libm's exp. Only in kernels (isa.h).
 *
 * glibc's exp (from 2.28 on, by Szabolcs Nagy) is a short formula without branches up to ±512, and
 * its form with fused products is what runs wherever these kernels run with AVX2 and more. The same
 * operations in the same order on a vector give the same doubles:
 *
 *     exp(x) = 2^(k/128) · exp(r)    k = x · 128 / ln 2 to the nearest integer,  r = x - k · ln 2 /
 * 128
 *
 * with a table of 2^(j/128) for the fraction and a polynomial in r. Everything else is left to
 * libm: values further out, NaN, other libraries and other instruction sets.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Values that fit the first cache. */
enum { POWERS_MOST = 256 };

#if defined(__x86_64__) && defined(__FMA__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 28)
#define POWERS_OF_GLIBC
#endif
#endif

#if defined(POWERS_OF_GLIBC)

/* 2^(j/128) as H · (1 + T) for j < 128: bits of T, then bits of H less j << 45. */
extern const uint64_t tdmi_powers_of_two[256];

static inline double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double power_of(double x)
{
    const double to_integer = 0x1.8p52; /* the sum's last bit is worth 1 */
    const double shifted = 0x1.71547652b82fep0 * 128 * x + to_integer, k = shifted - to_integer;
    const uint64_t bits = bits_of(shifted), at = 2 * (bits % 128);
    const double tail = double_of(tdmi_powers_of_two[at]);
    const double scale = double_of(tdmi_powers_of_two[at + 1] + (bits << 45));
    const double r = fma(k, -0x1.cf79abc9e3b39p-47, fma(k, -0x1.62e42fefa0000p-8, x)), r2 = r * r;
    const double low = fma(r2, fma(r, 0x1.555555555543cp-3, 0x1.ffffffffffdbdp-2), tail + r);
    const double rest = fma(r2 * r2, fma(r, 0x1.1111167a4d017p-7, 0x1.55555cf172b91p-5), low);
    return fma(scale, rest, scale);
}

/* values[i] = exp(values[i]) for i < n */
static void powers(double *values, int n)
{
    int64_t n_far = 0;
    for (int i = 0; i < n; i++)
        n_far += !(fabs(values[i]) < 512.0);
    if (n_far == 0)
        for (int i = 0; i < n; i++)
            values[i] = power_of(values[i]);
    else
        for (int i = 0; i < n; i++)
            values[i] = exp(values[i]);
}

#else

static void powers(double *values, int n)
{
    for (int i = 0; i < n; i++)
        values[i] = exp(values[i]);
}

#endif

/*
 * Tensors of any type for cases of kernels: random numbers that the type holds exactly, and results
 * as floats; and memory for more values than there is memory for.
 */
#pragma once

#include "backend/cuda/shim/shim_run.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "unit.h"

#include <math.h>

/* Cases of test_kernels.c, each in kernels/case_<name>.c */
#define KERNEL_CASES(X) \
    X(gather)           \
    X(huge)             \
    X(input)            \
    X(planes)           \
    X(resize)           \
    X(tail)             \
    X(update)
#define X(name) void case_##name(void **state);
KERNEL_CASES(X)
#undef X

static const enum tdmi_dtype float_types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
enum { n_float_types = 3 };

static inline double value_at(const void *memory, enum tdmi_dtype type, int64_t i)
{
    if (type == TDMI_DTYPE_F32)
        return (double)((const float *)memory)[i];
    const uint16_t bits = ((const uint16_t *)memory)[i];
    return (double)(type == TDMI_DTYPE_BF16 ? tdmi_float_of_bf16(bits) : tdmi_float_of_f16(bits));
}

/* A value that bf16 and f16 hold exactly: up to ±8, seven bits long. */
static inline float plain_value(uint32_t stream, int64_t i)
{
    tdmi_rng rng = tdmi_rng_at(7, TDMI_RNG_TEST, stream, (uint64_t)i);
    return ((float)tdmi_rng_below(&rng, 256) - 127.5f) / 16.0f;
}

static inline void put_value(void *memory, enum tdmi_dtype type, int64_t i, float value)
{
    if (type == TDMI_DTYPE_F32)
        ((float *)memory)[i] = value;
    else if (type == TDMI_DTYPE_BF16)
        ((uint16_t *)memory)[i] = (uint16_t)(tdmi_bits_of_float(value) >> 16);
    else
        ((uint16_t *)memory)[i] = tdmi_f16_of_float(value);
}

/* n values that begin `off` values after 64 bytes; NaN, or plain values of a stream from 1 on. What
 * tdmi_free takes is *block. */
static inline void *tensor(enum tdmi_dtype type, int64_t n, int off, uint32_t stream, void **block)
{
    const size_t bytes = tdmi_dtype_bytes(type);
    *block = tdmi_alloc_aligned((size_t)(n + off) * bytes);
    assert_non_null(*block);
    char *memory = (char *)*block + (size_t)off * bytes;
    memset(*block, 0xff, (size_t)(n + off) * bytes);
    for (int64_t i = 0; stream > 0 && i < n; i++)
        put_value(memory, type, i, plain_value(stream, i));
    return memory;
}

/* Allowed error of a stored value: half a step of the type, and some of f32. */
static inline double step_of(enum tdmi_dtype type, double size)
{
    const double part = type == TDMI_DTYPE_F32    ? 0x1p-21
                        : type == TDMI_DTYPE_BF16 ? 0x1.01p-8
                                                  : 0x1.01p-11;
    return part * (size > 0x1p-10 ? size : 0x1p-10);
}

static inline void expect_near(double got, double wanted, double limit, const char *what, int64_t i)
{
    if (!(fabs(got - wanted) <= limit))
        fail_msg("%s[%lld] is %.9g, wanted %.9g (within %.2g)", what, (long long)i, got, wanted,
                 limit);
}

/* One loop a type. */
#include "tensor/floats.h"
#include "tensor/half.h"

#include <string.h>

void tdmi_floats_store(enum tdmi_dtype type, void *to, const float *from, int64_t n)
{
    uint16_t *halves = to;
    if (type == TDMI_DTYPE_F32) {
        memcpy(to, from, sizeof *from * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        halves[i] =
            type == TDMI_DTYPE_BF16 ? tdmi_bf16_of_float(from[i]) : tdmi_f16_of_float(from[i]);
}

void tdmi_floats_load(enum tdmi_dtype type, float *to, const void *from, int64_t n)
{
    const char *at = from;
    if (type == TDMI_DTYPE_F32) {
        memmove(to, from, sizeof *to * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) { /* what is written lies before what is still to be read */
        uint16_t half;
        memcpy(&half, at + sizeof half * (size_t)i, sizeof half);
        const float value =
            type == TDMI_DTYPE_BF16 ? tdmi_float_of_bf16(half) : tdmi_float_of_f16(half);
        memcpy((char *)to + sizeof value * (size_t)i, &value, sizeof value);
    }
}

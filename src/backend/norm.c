/* The arrays that a batch norm and its neighbours share. */
#include "backend/op.h"

enum { double_arrays = 4, float_arrays = 7 };

size_t tdmi_norm_bytes(int channels)
{
    return (size_t)channels * (double_arrays * sizeof(double) + float_arrays * sizeof(float));
}

struct tdmi_norm tdmi_norm_at(void *memory, int channels)
{
    double *sums = memory;
    float *floats = (float *)(sums + (ptrdiff_t)double_arrays * channels);
    return (struct tdmi_norm){
        .sums = sums,
        .total = sums + (ptrdiff_t)2 * channels,
        .mean = floats,
        .rstd = floats + channels,
        .scale = floats + (ptrdiff_t)2 * channels,
        .shift = floats + (ptrdiff_t)3 * channels,
        .of_g = floats + (ptrdiff_t)4 * channels,
        .of_x = floats + (ptrdiff_t)5 * channels,
        .one = floats + (ptrdiff_t)6 * channels,
    };
}

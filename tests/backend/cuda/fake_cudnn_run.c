/* Graphs of the fake cuDNN, by loops in double. */
#include "fake_cudnn_run.h"
#include "tensor/half.h"

#include <stdlib.h>

static uint16_t bf16_of(float value)
{
    const uint32_t bits = tdmi_bits_of_float(value);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to the nearest, ties to even */
}

static int64_t offset_of(const struct flat_tensor *it, const int64_t where[4])
{
    int64_t offset = 0;
    for (int d = 0; d < 4; d++)
        offset += (it->dims[d] == 1 ? 0 : where[d]) * it->strides[d];
    return offset;
}

static double get(const struct fake_run *run, int tensor, const int64_t where[4])
{
    const struct flat_tensor *it = &run->flat->tensors[tensor];
    const int64_t i = offset_of(it, where);
    if (it->is_virtual)
        return ((const double *)run->at[tensor])[i];
    if (it->type == TDMI_CUDNN_V_F32)
        return (double)((const float *)run->at[tensor])[i];
    const uint16_t bits = ((const uint16_t *)run->at[tensor])[i];
    return (double)(it->type == TDMI_CUDNN_V_BF16 ? tdmi_float_of_bf16(bits)
                                                  : tdmi_float_of_f16(bits));
}

static void put(const struct fake_run *run, int tensor, const int64_t where[4], double value)
{
    const struct flat_tensor *it = &run->flat->tensors[tensor];
    const int64_t i = offset_of(it, where);
    if (it->is_virtual)
        ((double *)run->at[tensor])[i] = value;
    else if (it->type == TDMI_CUDNN_V_F32)
        ((float *)run->at[tensor])[i] = (float)value;
    else
        ((uint16_t *)run->at[tensor])[i] =
            it->type == TDMI_CUDNN_V_BF16 ? bf16_of((float)value) : tdmi_f16_of_float((float)value);
}

int64_t fake_values_of(const struct flat_tensor *it)
{
    return it->dims[0] * it->dims[1] * it->dims[2] * it->dims[3];
}

/* The place of value i, counted through. */
static void place_of(const struct flat_tensor *it, int64_t i, int64_t where[4])
{
    for (int d = 3; d >= 0; d--) {
        where[d] = i % it->dims[d];
        i /= it->dims[d];
    }
}

/* Every product once: sums[to] += a · b, where to is any of the three. */
static void multiply(const struct fake_run *run, const struct flat_operation *o)
{
    const struct flat_tensor *tensors = run->flat->tensors;
    const bool is_forward = o->kind == TDMI_CUDNN_OF_FORWARD;
    const bool is_of_data = o->kind == TDMI_CUDNN_OF_DATA;
    const int x = is_of_data ? o->to : o->a;
    const int w = is_forward || is_of_data ? o->b : o->to;
    const int y = is_forward ? o->to : is_of_data ? o->a : o->b;
    const int64_t deep = tensors[w].dims[1];
    const int64_t wide = tensors[y].dims[1] / (tensors[x].dims[1] / deep);
    const struct flat_tensor *to = &tensors[o->to];
    const int64_t n = fake_values_of(to);
    double *sums = calloc((size_t)n, sizeof *sums);
    int64_t at_x[4], at_w[4], at_y[4];
    for (int64_t i = 0; i < fake_values_of(&tensors[y]); i++) {
        place_of(&tensors[y], i, at_y);
        for (int64_t k = 0; k < fake_values_of(&tensors[w]) / tensors[w].dims[0]; k++) {
            place_of(&tensors[w], k, at_w);
            at_w[0] = at_y[1];
            at_x[0] = at_y[0];
            at_x[1] = at_y[1] / wide * deep + at_w[1];
            bool is_inside = true;
            for (int d = 0; d < 2; d++) {
                at_x[2 + d] =
                    at_y[2 + d] * o->stride[d] - o->before[d] + at_w[2 + d] * o->dilation[d];
                is_inside = is_inside && at_x[2 + d] >= 0 && at_x[2 + d] < tensors[x].dims[2 + d];
            }
            if (!is_inside)
                continue;
            const int64_t *at = is_forward ? at_y : is_of_data ? at_x : at_w;
            const double product = is_forward   ? get(run, x, at_x) * get(run, w, at_w)
                                   : is_of_data ? get(run, y, at_y) * get(run, w, at_w)
                                                : get(run, x, at_x) * get(run, y, at_y);
            sums[((at[0] * to->dims[1] + at[1]) * to->dims[2] + at[2]) * to->dims[3] + at[3]] +=
                product;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t where[4];
        place_of(to, i, where);
        put(run, o->to, where, sums[i]);
    }
    free(sums);
}

static void work_pointwise(const struct fake_run *run, const struct flat_operation *o)
{
    const struct flat_tensor *to = &run->flat->tensors[o->to];
    for (int64_t i = 0; i < fake_values_of(to); i++) {
        int64_t where[4];
        place_of(to, i, where);
        double value = get(run, o->a, where);
        if (o->mode == TDMI_CUDNN_V_ADD)
            value += get(run, o->b, where);
        else
            value = value < o->lower ? o->lower : value > o->upper ? o->upper : value;
        put(run, o->to, where, value);
    }
}

void fake_run_all(const struct fake_run *run)
{
    for (int i = 0; i < run->flat->n_operations; i++) {
        const struct flat_operation *operation = &run->flat->operations[i];
        if (operation->kind == TDMI_CUDNN_OF_POINTWISE)
            work_pointwise(run, operation);
        else
            multiply(run, operation);
    }
}

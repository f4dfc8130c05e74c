/* Graphs of the fake cuDNN, by loops in double. */
#include "backend/cuda/fakes/fake_cudnn_run.h"
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

/* A product: x, w and y by their dimensions, whichever of them is its result. */
struct window {
    const struct fake_run *run;
    const struct flat_operation *o;
    int x, w, y;
    int64_t deep, wide; /* channels of x and of y that a group has */
    double *sums;       /* of the result, as if it lay by n, c, h, w */
};

static int64_t place_in(const struct flat_tensor *it, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return ((n * it->dims[1] + c) * it->dims[2] + h) * it->dims[3] + w;
}

/* One value of y with all that it is made of. */
static void multiply_one(const struct window *it, const int64_t at_y[4])
{
    const struct flat_tensor *tensors = it->run->flat->tensors, *x = &tensors[it->x],
                             *w = &tensors[it->w];
    const struct flat_operation *o = it->o;
    const bool is_forward = o->kind == TDMI_CUDNN_OF_FORWARD;
    const bool is_of_data = o->kind == TDMI_CUDNN_OF_DATA;
    const int64_t to_y = place_in(&tensors[it->y], at_y[0], at_y[1], at_y[2], at_y[3]);
    const double of_y = is_forward ? 0.0 : get(it->run, it->y, at_y);
    int64_t at_x[4] = {at_y[0], 0, 0, 0}, at_w[4] = {at_y[1], 0, 0, 0};
    for (at_w[2] = 0; at_w[2] < w->dims[2]; at_w[2]++)
        for (at_w[3] = 0; at_w[3] < w->dims[3]; at_w[3]++) {
            for (int d = 2; d < 4; d++)
                at_x[d] =
                    at_y[d] * o->stride[d - 2] - o->before[d - 2] + at_w[d] * o->dilation[d - 2];
            if (at_x[2] < 0 || at_x[2] >= x->dims[2] || at_x[3] < 0 || at_x[3] >= x->dims[3])
                continue;
            for (at_w[1] = 0; at_w[1] < it->deep; at_w[1]++) {
                at_x[1] = at_y[1] / it->wide * it->deep + at_w[1];
                const int64_t to_x = place_in(x, at_x[0], at_x[1], at_x[2], at_x[3]);
                const int64_t to_w = place_in(w, at_w[0], at_w[1], at_w[2], at_w[3]);
                if (is_forward)
                    it->sums[to_y] += get(it->run, it->x, at_x) * get(it->run, it->w, at_w);
                else if (is_of_data)
                    it->sums[to_x] += of_y * get(it->run, it->w, at_w);
                else
                    it->sums[to_w] += get(it->run, it->x, at_x) * of_y;
            }
        }
}

static void multiply(const struct fake_run *run, const struct flat_operation *o)
{
    const struct flat_tensor *tensors = run->flat->tensors, *to = &tensors[o->to];
    const bool is_forward = o->kind == TDMI_CUDNN_OF_FORWARD;
    const bool is_of_data = o->kind == TDMI_CUDNN_OF_DATA;
    struct window it = {.run = run,
                        .o = o,
                        .x = is_of_data ? o->to : o->a,
                        .w = is_forward || is_of_data ? o->b : o->to,
                        .y = is_forward   ? o->to
                             : is_of_data ? o->a
                                          : o->b};
    it.deep = tensors[it.w].dims[1];
    it.wide = tensors[it.y].dims[1] / (tensors[it.x].dims[1] / it.deep);
    it.sums = calloc((size_t)fake_values_of(to), sizeof *it.sums);
    for (int64_t i = 0; i < fake_values_of(&tensors[it.y]); i++) {
        int64_t at_y[4];
        place_of(&tensors[it.y], i, at_y);
        multiply_one(&it, at_y);
    }
    for (int64_t i = 0; i < fake_values_of(to); i++) {
        int64_t where[4];
        place_of(to, i, where);
        put(run, o->to, where, it.sums[i]);
    }
    free(it.sums);
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

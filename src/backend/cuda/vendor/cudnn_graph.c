/*
 * Operation graphs. Tensors are dimensions (n, c, h, w) with the strides of NHWC, so the order in
 * memory is ours; weights likewise are (out, in, kernel, kernel) with the strides of KRSC.
 */
#include "backend/cuda/vendor/cudnn_graph.h"

#include <assert.h>
#include <stdio.h>

/* ---- descriptors ---------------------------------------------------------------------------- */

static bool note(struct tdmi_cudnn_builder *builder, int code)
{
    if (code == 0 || builder->failure != 0)
        return code == 0;
    builder->failure = code;
    builder->calls->last_error(builder->why, sizeof builder->why);
    builder->why[sizeof builder->why - 1] = '\0';
    return false;
}

tdmi_cudnn_descriptor tdmi_cudnn_make(struct tdmi_cudnn_builder *builder, enum tdmi_cudnn_kind kind)
{
    tdmi_cudnn_descriptor made = NULL;
    if (builder->failure != 0)
        return NULL;
    if (builder->n == TDMI_CUDNN_MOST_DESCRIPTORS) {
        builder->failure = -1;
        snprintf(builder->why, sizeof builder->why, "more than %d descriptors", builder->n);
        return NULL;
    }
    if (!note(builder, builder->calls->create((int)kind, &made)))
        return NULL;
    builder->made[builder->n++] = made;
    return made;
}

void tdmi_cudnn_set(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor to,
                    enum tdmi_cudnn_attribute attribute, enum tdmi_cudnn_type type, int64_t n,
                    const void *values)
{
    if (builder->failure == 0)
        (void)note(builder, builder->calls->set(to, (int)attribute, (int)type, n, values));
}

void tdmi_cudnn_finish(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor descriptor)
{
    if (builder->failure == 0)
        (void)note(builder, builder->calls->finalize(descriptor));
}

void tdmi_cudnn_builder_release(struct tdmi_cudnn_builder *builder)
{
    while (builder->n > 0)
        (void)builder->calls->destroy(builder->made[--builder->n]);
}

static void set_number(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor to,
                       enum tdmi_cudnn_attribute attribute, enum tdmi_cudnn_type type, int value)
{
    tdmi_cudnn_set(builder, to, attribute, type, 1, &value); /* enumerations are ints */
}

static void set_pair(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor to,
                     enum tdmi_cudnn_attribute attribute, int64_t of_y, int64_t of_x)
{
    const int64_t values[2] = {of_y, of_x};
    tdmi_cudnn_set(builder, to, attribute, TDMI_CUDNN_T_INT64, 2, values);
}

static void set_descriptor(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor to,
                           enum tdmi_cudnn_attribute attribute, tdmi_cudnn_descriptor value)
{
    tdmi_cudnn_set(builder, to, attribute, TDMI_CUDNN_T_DESCRIPTOR, 1, &value);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static int type_of(enum tdmi_dtype type)
{
    return type == TDMI_DTYPE_BF16  ? TDMI_CUDNN_V_BF16
           : type == TDMI_DTYPE_F16 ? TDMI_CUDNN_V_F16
                                    : TDMI_CUDNN_V_F32;
}

struct tensor {
    int number; /* of enum tdmi_cudnn_tensor; beyond: between two operations, never in memory */
    enum tdmi_dtype type;
    int64_t n;
    struct tdmi_shape shape;
};

static tdmi_cudnn_descriptor tensor_of(struct tdmi_cudnn_builder *builder, struct tensor it)
{
    const int64_t alignment = 16, number = it.number;
    const int64_t h = it.shape.h, w = it.shape.w, c = it.shape.c;
    const int64_t dims[4] = {it.n, c, h, w}, strides[4] = {h * w * c, 1, w * c, c};
    const bool is_virtual = it.number >= TDMI_CUDNN_TENSORS;
    const tdmi_cudnn_descriptor made = tdmi_cudnn_make(builder, TDMI_CUDNN_TENSOR);
    set_number(builder, made, TDMI_CUDNN_A_TENSOR_TYPE, TDMI_CUDNN_T_DATA_TYPE, type_of(it.type));
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_TENSOR_DIMS, TDMI_CUDNN_T_INT64, 4, dims);
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_TENSOR_STRIDES, TDMI_CUDNN_T_INT64, 4, strides);
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_TENSOR_NUMBER, TDMI_CUDNN_T_INT64, 1, &number);
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_TENSOR_ALIGNMENT, TDMI_CUDNN_T_INT64, 1, &alignment);
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_TENSOR_VIRTUAL, TDMI_CUDNN_T_BOOLEAN, 1,
                   &is_virtual);
    tdmi_cudnn_finish(builder, made);
    return made;
}

/* ---- operations ----------------------------------------------------------------------------- */

static tdmi_cudnn_descriptor window_of(struct tdmi_cudnn_builder *builder,
                                       const struct tdmi_cudnn_conv *it)
{
    const int64_t dims = 2;
    const tdmi_cudnn_descriptor made = tdmi_cudnn_make(builder, TDMI_CUDNN_CONVOLUTION);
    set_number(builder, made, TDMI_CUDNN_A_CONV_TYPE, TDMI_CUDNN_T_DATA_TYPE, TDMI_CUDNN_V_F32);
    set_number(builder, made, TDMI_CUDNN_A_CONV_MODE, TDMI_CUDNN_T_CONV_MODE,
               TDMI_CUDNN_V_CROSS_CORRELATION);
    tdmi_cudnn_set(builder, made, TDMI_CUDNN_A_CONV_DIMS, TDMI_CUDNN_T_INT64, 1, &dims);
    set_pair(builder, made, TDMI_CUDNN_A_CONV_DILATIONS, it->dilation, it->dilation);
    set_pair(builder, made, TDMI_CUDNN_A_CONV_STRIDES, it->stride, it->stride);
    set_pair(builder, made, TDMI_CUDNN_A_CONV_BEFORE, it->top, it->left);
    set_pair(builder, made, TDMI_CUDNN_A_CONV_AFTER, it->bottom, it->right);
    tdmi_cudnn_finish(builder, made);
    return made;
}

static tdmi_cudnn_descriptor product_of(struct tdmi_cudnn_builder *builder,
                                        const struct tdmi_cudnn_conv *it, tdmi_cudnn_descriptor x,
                                        tdmi_cudnn_descriptor w, tdmi_cudnn_descriptor y)
{
    static const struct {
        enum tdmi_cudnn_kind kind;
        enum tdmi_cudnn_attribute x, w, y, conv, alpha, beta;
    } of[] = {
        [TDMI_CUDNN_FORWARD] = {TDMI_CUDNN_OF_FORWARD, TDMI_CUDNN_A_FORWARD_X,
                                TDMI_CUDNN_A_FORWARD_W, TDMI_CUDNN_A_FORWARD_Y,
                                TDMI_CUDNN_A_FORWARD_CONV, TDMI_CUDNN_A_FORWARD_ALPHA,
                                TDMI_CUDNN_A_FORWARD_BETA},
        [TDMI_CUDNN_OF_INPUT] = {TDMI_CUDNN_OF_DATA, TDMI_CUDNN_A_DATA_DX, TDMI_CUDNN_A_DATA_W,
                                 TDMI_CUDNN_A_DATA_DY, TDMI_CUDNN_A_DATA_CONV,
                                 TDMI_CUDNN_A_DATA_ALPHA, TDMI_CUDNN_A_DATA_BETA},
        [TDMI_CUDNN_OF_WEIGHTS] = {TDMI_CUDNN_OF_FILTER, TDMI_CUDNN_A_WEIGHTS_X,
                                   TDMI_CUDNN_A_WEIGHTS_DW, TDMI_CUDNN_A_WEIGHTS_DY,
                                   TDMI_CUDNN_A_WEIGHTS_CONV, TDMI_CUDNN_A_WEIGHTS_ALPHA,
                                   TDMI_CUDNN_A_WEIGHTS_BETA},
    };
    const float alpha = 1.0F, beta = 0.0F;
    const tdmi_cudnn_descriptor window = window_of(builder, it);
    const tdmi_cudnn_descriptor made = tdmi_cudnn_make(builder, of[it->direction].kind);
    set_descriptor(builder, made, of[it->direction].x, x);
    set_descriptor(builder, made, of[it->direction].w, w);
    set_descriptor(builder, made, of[it->direction].y, y);
    set_descriptor(builder, made, of[it->direction].conv, window);
    tdmi_cudnn_set(builder, made, of[it->direction].alpha, TDMI_CUDNN_T_FLOAT, 1, &alpha);
    tdmi_cudnn_set(builder, made, of[it->direction].beta, TDMI_CUDNN_T_FLOAT, 1, &beta);
    tdmi_cudnn_finish(builder, made);
    return made;
}

/* other NULL: an activation of x alone. */
static tdmi_cudnn_descriptor pointwise_of(struct tdmi_cudnn_builder *builder, enum tdmi_act act,
                                          tdmi_cudnn_descriptor x, tdmi_cudnn_descriptor other,
                                          tdmi_cudnn_descriptor y)
{
    const double lower = 0.0, upper = 6.0;
    const tdmi_cudnn_descriptor how = tdmi_cudnn_make(builder, TDMI_CUDNN_POINTWISE);
    set_number(builder, how, TDMI_CUDNN_A_POINTWISE_MODE, TDMI_CUDNN_T_POINTWISE_MODE,
               other ? TDMI_CUDNN_V_ADD : TDMI_CUDNN_V_RELU);
    set_number(builder, how, TDMI_CUDNN_A_POINTWISE_TYPE, TDMI_CUDNN_T_DATA_TYPE, TDMI_CUDNN_V_F32);
    if (!other)
        tdmi_cudnn_set(builder, how, TDMI_CUDNN_A_RELU_LOWER, TDMI_CUDNN_T_DOUBLE, 1, &lower);
    if (!other && act == TDMI_ACT_RELU6)
        tdmi_cudnn_set(builder, how, TDMI_CUDNN_A_RELU_UPPER, TDMI_CUDNN_T_DOUBLE, 1, &upper);
    tdmi_cudnn_finish(builder, how);
    const tdmi_cudnn_descriptor made = tdmi_cudnn_make(builder, TDMI_CUDNN_OF_POINTWISE);
    set_descriptor(builder, made, TDMI_CUDNN_A_POINTWISE_OP, how);
    set_descriptor(builder, made, TDMI_CUDNN_A_POINTWISE_X, x);
    if (other)
        set_descriptor(builder, made, TDMI_CUDNN_A_POINTWISE_B, other);
    set_descriptor(builder, made, TDMI_CUDNN_A_POINTWISE_Y, y);
    tdmi_cudnn_finish(builder, made);
    return made;
}

/* ---- the graph ------------------------------------------------------------------------------ */

enum { most_operations = 4 };

/* Operations in a row: each writes what the next reads, and only the last one's is in memory. */
struct row {
    struct tdmi_cudnn_builder *builder;
    struct tensor written; /* by the last */
    tdmi_cudnn_descriptor last, operations[most_operations];
    int n, left; /* that are still to come */
};

static tdmi_cudnn_descriptor next_tensor(struct row *row)
{
    struct tensor it = row->written;
    if (row->left > 0) {
        it.number = TDMI_CUDNN_TENSORS + row->left;
        it.type = TDMI_DTYPE_F32; /* nothing is rounded in between */
    }
    row->left--;
    return tensor_of(row->builder, it);
}

static void add_pointwise(struct row *row, enum tdmi_act act, tdmi_cudnn_descriptor other)
{
    const tdmi_cudnn_descriptor from = row->last;
    row->last = next_tensor(row);
    row->operations[row->n++] = pointwise_of(row->builder, act, from, other, row->last);
}

static void add_product(struct row *row, const struct tdmi_cudnn_conv *it)
{
    const bool is_forward = it->direction == TDMI_CUDNN_FORWARD;
    const bool is_of_weights = it->direction == TDMI_CUDNN_OF_WEIGHTS;
    const struct tdmi_shape window = {it->kernel, it->kernel, it->in.c / it->groups};
    tdmi_cudnn_descriptor x, w, y;
    w = tensor_of(row->builder, (struct tensor){TDMI_CUDNN_W, it->type, it->out.c, window});
    row->last = is_of_weights ? w : next_tensor(row);
    x = is_of_weights || is_forward
            ? tensor_of(row->builder, (struct tensor){TDMI_CUDNN_X, it->type, it->n, it->in})
            : row->last;
    y = is_forward
            ? row->last
            : tensor_of(row->builder, (struct tensor){TDMI_CUDNN_Y, it->type, it->n, it->out});
    row->operations[row->n++] = product_of(row->builder, it, x, w, y);
}

tdm_status tdmi_cudnn_graph_of(struct tdmi_cudnn_builder *builder, const struct tdmi_cudnn_conv *it,
                               tdmi_cudnn_descriptor *graph, tdm_error *err)
{
    const bool is_forward = it->direction == TDMI_CUDNN_FORWARD;
    struct row row = {.builder = builder};
    row.written = is_forward ? (struct tensor){TDMI_CUDNN_Y, it->type, it->n, it->out}
                             : (struct tensor){TDMI_CUDNN_X, it->type, it->n, it->in};
    row.left = it->has_bias + it->adds + (it->act != TDMI_ACT_NONE);
    assert(is_forward || row.left == 0);
    add_product(&row, it);
    if (it->has_bias) {
        const struct tdmi_shape one = {1, 1, it->out.c};
        add_pointwise(&row, TDMI_ACT_NONE,
                      tensor_of(builder, (struct tensor){TDMI_CUDNN_BIAS, TDMI_DTYPE_F32, 1, one}));
    }
    if (it->adds) {
        struct tensor added = row.written;
        added.number = TDMI_CUDNN_ADDED;
        add_pointwise(&row, TDMI_ACT_NONE, tensor_of(builder, added));
    }
    if (it->act != TDMI_ACT_NONE)
        add_pointwise(&row, it->act, NULL);
    *graph = tdmi_cudnn_make(builder, TDMI_CUDNN_GRAPH);
    tdmi_cudnn_set(builder, *graph, TDMI_CUDNN_A_GRAPH_OPS, TDMI_CUDNN_T_DESCRIPTOR, row.n,
                   row.operations);
    tdmi_cudnn_finish(builder, *graph);
    if (builder->failure != 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "describing a convolution to cuDNN: it says %d, %s",
                        builder->failure, builder->why);
    return TDM_OK;
}

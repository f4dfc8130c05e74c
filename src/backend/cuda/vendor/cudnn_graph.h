/*
 * A convolution as an operation graph of cuDNN: what is computed, without saying how. Forward: conv
 * ▸ bias ▸ add ▸ activation; gradient of the input; gradient of the weights.
 */
#pragma once

#include "backend/cuda/vendor/cudnn_api.h"
#include "backend/op.h"
#include "tandem/error.h"
#include "tensor/dtype.h"

enum tdmi_cudnn_direction {
    TDMI_CUDNN_FORWARD,
    TDMI_CUDNN_OF_INPUT,
    TDMI_CUDNN_OF_WEIGHTS,
    TDMI_CUDNN_DIRECTIONS
};

/* Numbers of the tensors that an execution gets pointers for. */
enum tdmi_cudnn_tensor {
    TDMI_CUDNN_X = 1, /* x; of the gradient of the input: dx */
    TDMI_CUDNN_W,     /* weights (out, kernel, kernel, in / groups), or their gradient */
    TDMI_CUDNN_Y,     /* y or dy */
    TDMI_CUDNN_BIAS,  /* one a channel, f32 */
    TDMI_CUDNN_ADDED, /* like y */
    TDMI_CUDNN_TENSORS
};

struct tdmi_cudnn_conv {
    enum tdmi_cudnn_direction direction;
    enum tdmi_dtype type; /* of all tensors but the bias, which is f32 */
    struct tdmi_shape in, out;
    bool allows_tf32; /* of f32: what is multiplied may be rounded */
    bool may_vary;    /* sums may be added in another order on every run */
    int n, kernel, stride, dilation, groups, top, bottom, left, right;
    bool has_bias;         /* forward */
    bool adds;             /* forward: a residual */
    enum tdmi_act act;     /* forward: NONE, RELU, RELU6 */
    size_t most_workspace; /* of an engine; 0: the usual limit */
};

/* Descriptors, destroyed together in reverse order. The first call that fails is kept. */
enum { TDMI_CUDNN_MOST_DESCRIPTORS = 32 };
struct tdmi_cudnn_builder {
    const struct tdmi_cudnn_calls *calls;
    tdmi_cudnn_descriptor made[TDMI_CUDNN_MOST_DESCRIPTORS];
    int n, failure;
    char why[256]; /* cuDNN's own words */
};
void tdmi_cudnn_builder_release(struct tdmi_cudnn_builder *builder);

/* *graph belongs to the builder. TDM_E_ABSENT: cuDNN does not take it. */
tdm_status tdmi_cudnn_graph_of(struct tdmi_cudnn_builder *builder, const struct tdmi_cudnn_conv *it,
                               tdmi_cudnn_descriptor *graph, tdm_error *err) TDM_MUST_USE;

/* For plans and packs: a descriptor that is not finished, its attributes, its end. After a failure
 * they do nothing. */
tdmi_cudnn_descriptor tdmi_cudnn_make(struct tdmi_cudnn_builder *builder,
                                      enum tdmi_cudnn_kind kind);
void tdmi_cudnn_set(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor to,
                    enum tdmi_cudnn_attribute attribute, enum tdmi_cudnn_type type, int64_t n,
                    const void *values);
void tdmi_cudnn_finish(struct tdmi_cudnn_builder *builder, tdmi_cudnn_descriptor descriptor);

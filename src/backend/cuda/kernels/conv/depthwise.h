/*
 * Depthwise convolution on a GPU: weights (kernel, kernel, 1, channels), f32 whatever the tensors'
 * type is. Like all launchers of this folder: pointers of the GPU, work queued on a stream of it,
 * and 0 or the runtime's code returned.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/cuda/kernels/conv/window.h"

TDMI_C_BEGIN

struct tdmi_cuda_depthwise_forward {
    const void *x;
    enum tdmi_act x_act; /* what x is read through: NONE, RELU, RELU6 */
    const float *weights;
    const float *bias; /* NULL: none */
    enum tdmi_act act; /* of y, likewise */
    void *y;
};
/* y = act(convolution of x_act(x) + bias) */
int tdmi_cuda_depthwise_forward(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                                const struct tdmi_cuda_depthwise_forward *call);

struct tdmi_cuda_depthwise_data {
    const void *dy;
    const float *weights;
    const void *x; /* whose sign x_act's gradient asks for; unused with NONE */
    enum tdmi_act x_act;
    const void *add; /* like dx, may be dx; NULL: nothing */
    void *dx;        /* of what x_act is applied to: gradient where it lets through, then + add */
};
int tdmi_cuda_depthwise_data(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                             const struct tdmi_cuda_depthwise_data *call);
/* Is there an unrolled kernel for this shape, in memory that begins on 16 bytes? */
static inline bool tdmi_cuda_depthwise_is_usual(const struct tdmi_cuda_window *shape)
{
    return (shape->kernel == 3 || shape->kernel == 5) &&
           (shape->stride == 1 || shape->stride == 2) && shape->dilation == 1 &&
           shape->channels % 4 == 0;
}

/* Does depthwise_spread.cu take it: a usual shape with a stride of 2? */
int tdmi_cuda_depthwise_spread(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                               const struct tdmi_cuda_depthwise_data *call);

struct tdmi_cuda_depthwise_weights {
    const void *x, *dy;
    enum tdmi_act x_act;
    float *dweights;
    void *workspace; /* of tdmi_cuda_depthwise_workspace_bytes, aligned to 16 */
};
/* In two stages: blocks add up their cells (geometry.h), then the blocks' sums are added up. */
int tdmi_cuda_depthwise_weights(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                                const struct tdmi_cuda_depthwise_weights *call);
/* Workspace of the weights' gradient and of the bias's (channels.h), for shape->n images or fewer.
 */
size_t tdmi_cuda_depthwise_workspace_bytes(const struct tdmi_cuda_window *shape);

/* Weights and bias as a batch norm behind them leaves them: packed is (kernel² · channels) weights,
 * then (channels) bias. */
struct tdmi_cuda_depthwise_fold {
    int taps, channels;                           /* taps: kernel² */
    const float *weights, *bias;                  /* bias NULL: none */
    const float *scale, *shift, *mean, *variance; /* of the norm; scale NULL: there is none */
    double epsilon;
    float *packed;
};
int tdmi_cuda_depthwise_fold(struct CUstream_st *queue,
                             const struct tdmi_cuda_depthwise_fold *call);

TDMI_C_END

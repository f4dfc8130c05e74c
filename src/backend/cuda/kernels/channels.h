/*
 * One pass over a tensor with numbers for each channel: bias, the folded or the training form of a
 * batch norm, residual and activation. And batch norm in training: sums in a fixed order, then such
 * a pass; backward the same way round. Formulas: backend/ref/batch_norm.c; arrays of a norm:
 * tdmi_norm in backend/op.h.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/op.h"
#include "tensor/dtype.h"

TDMI_C_BEGIN

struct tdmi_cuda_channels {
    enum tdmi_dtype type;       /* of x, residual and y */
    enum tdmi_act act;          /* NONE, RELU, RELU6 */
    const void *x, *residual;   /* (pixels, channels); residual NULL: none */
    void *y;                    /* may be x or residual */
    const float *scale, *shift; /* one a channel; scale NULL: 1, shift NULL: 0 */
    int64_t pixels;
    int channels;
};
/* y = act(scale · x + shift + residual) */
int tdmi_cuda_scale_shift(struct CUstream_st *queue, const struct tdmi_cuda_channels *call);

/* sums[c] = Σ over pixels of dy: the gradient of a bias. workspace: of
 * tdmi_cuda_columns_sum_bytes. */
int tdmi_cuda_channel_sum(struct CUstream_st *queue, enum tdmi_dtype type, const void *dy,
                          int64_t pixels, int channels, float *sums, void *workspace);

/* ---- batch norm ------------------------------------------------------------------------------ */

struct tdmi_cuda_norm {
    enum tdmi_dtype type; /* element type of x, y, dy, dx and g */
    enum tdmi_act act;    /* that followed: NONE, RELU, RELU6 */
    const void *x;        /* (pixels, channels): what is normalised */
    const void *y, *dy;   /* backward: output after act and its gradient; y NULL: nothing was added
                             before act, so its input is computed again as scale · x + shift */
    void *dx;             /* NULL: not computed */
    void *g;              /* NULL, or where dy goes as act lets it through: a residual's gradient */
    int64_t pixels;       /* pixels in this call */
    int channels;
    struct tdmi_norm norm;
    double total_pixels; /* pixels of all groups that share statistics */
    void *workspace;     /* tdmi_cuda_norm_workspace_bytes */
};
size_t tdmi_cuda_norm_workspace_bytes(int64_t pixels, int channels);

/* norm.sums = Σ(x - centre), Σ(x - centre)² */
int tdmi_cuda_norm_sums(struct CUstream_st *queue, const struct tdmi_cuda_norm *call);
/* norm.sums = Σg, Σg·(x - mean) */
int tdmi_cuda_norm_gradient_sums(struct CUstream_st *queue, const struct tdmi_cuda_norm *call);

struct tdmi_cuda_norm_finish {
    struct tdmi_norm norm;
    int channels;
    double total_pixels, epsilon;
    int n;          /* images of this call */
    bool is_biased; /* the running variance */
    bool is_kept;   /* running statistics instead of totals, which stay */
    const float *scale, *shift, *running_mean, *running_variance;
    float *sum_of_means, *sum_of_variances;
};
/* mean, rstd, scale and shift of the norm from its totals; what running statistics move towards. */
int tdmi_cuda_norm_finish(struct CUstream_st *queue, const struct tdmi_cuda_norm_finish *call);
/* Without training: factor and offset of each channel, from running statistics. */
int tdmi_cuda_norm_fold(struct CUstream_st *queue, const struct tdmi_cuda_norm_finish *call,
                        float *factor, float *offset);

/* dscale and dshift from norm.sums, dx and g from norm.total. is_kept: mean and rstd do not depend
 * on x. */
int tdmi_cuda_norm_backward(struct CUstream_st *queue, const struct tdmi_cuda_norm *call,
                            bool is_kept, float *dscale, float *dshift);

TDMI_C_END

/*
 * Time of a library's plan: the best of a few rounds of runs in a row, measured by events of the
 * GPU, on a stream and on memory of its own, full of random values.
 */
#pragma once

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/cudnn_plan.h"

/* Tensors of a product. */
enum { TDMI_PRODUCT_A, TDMI_PRODUCT_B, TDMI_PRODUCT_BIAS, TDMI_PRODUCT_D, TDMI_PRODUCT_TENSORS };

struct tdmi_cuda_timing {
    tdmi_device *device;
    tdmi_stream *stream;
    struct CUevent_st *begun, *ended;
    void *placed[TDMI_CUDNN_TENSORS]; /* for both what a product calls a, b and d is x, w and y */
    void *of_conv[TDMI_CUDNN_TENSORS], *of_product[TDMI_PRODUCT_TENSORS]; /* of it */
    bool is_ready;    /* false: there is no room for it, so nothing can be timed */
    bool lacked_room; /* for all or for a workspace: with more, another might have been taken */
};

/* For one of both, the other NULL, or for both, which compute the same then and share memory. To be
 * closed in any case. */
void tdmi_cuda_timing_open(struct tdmi_cuda_timing *it, tdmi_device *device,
                           const struct tdmi_cudnn_conv *conv,
                           const struct tdmi_cublaslt_product *product);
void tdmi_cuda_timing_close(struct tdmi_cuda_timing *it);

/* Seconds of a few runs; below 0: it cannot be run. self: the timing (cudnn_plan.h, cublaslt.h). */
double tdmi_cuda_time_conv(void *self, const struct tdmi_cudnn_plan *plan);
double tdmi_cuda_time_product(void *self, const struct tdmi_cublaslt_plan *plan);

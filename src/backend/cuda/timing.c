/* Timing plans of cuDNN and cuBLASLt. */
#include "backend/cuda/timing.h"
#include "backend/cuda/libraries.h"
#include "base/clock.h"

#include <float.h>

static void size_conv(const struct tdmi_cudnn_conv *conv, size_t bytes[TDMI_CUDNN_TENSORS])
{
    const size_t value = tdmi_dtype_bytes(conv->type), n = (size_t)conv->n;
    const size_t weights = (size_t)conv->kernel * (size_t)conv->kernel *
                           (size_t)(conv->in.c / conv->groups) * (size_t)conv->out.c;
    const size_t of_x = n * (size_t)tdmi_shape_values(conv->in);
    const size_t of_y = n * (size_t)tdmi_shape_values(conv->out);
    bytes[TDMI_CUDNN_X] = of_x * value;
    bytes[TDMI_CUDNN_W] = weights * value;
    bytes[TDMI_CUDNN_Y] = of_y * value;
    if (conv->has_bias)
        bytes[TDMI_CUDNN_BIAS] = (size_t)conv->out.c * sizeof(float);
    if (conv->adds)
        bytes[TDMI_CUDNN_ADDED] = (conv->way == TDMI_CUDNN_FORWARD ? of_y : of_x) * value;
}

static void size_product(const struct tdmi_cublaslt_product *it, size_t bytes[TDMI_PRODUCT_TENSORS])
{
    const size_t value = tdmi_dtype_bytes(it->type), result = tdmi_dtype_bytes(it->result);
    bytes[TDMI_PRODUCT_A] = (size_t)it->rows * (size_t)it->depth * value;
    bytes[TDMI_PRODUCT_B] = (size_t)it->depth * (size_t)it->columns * value;
    if (it->has_bias)
        bytes[TDMI_PRODUCT_BIAS] = (size_t)it->columns * result;
    bytes[TDMI_PRODUCT_D] = (size_t)it->rows * (size_t)it->columns * result;
}

static bool place(tdmi_device *device, int n, const size_t *bytes, void **tensors)
{
    bool is_placed = true;
    for (int i = 0; i < n && is_placed; i++)
        if (bytes[i])
            is_placed = (tensors[i] = tdmi_cuda_alloc(device, bytes[i])) != NULL;
    return is_placed;
}

void tdmi_cuda_timing_open(struct tdmi_cuda_timing *it, tdmi_device *device,
                           const struct tdmi_cudnn_conv *conv,
                           const struct tdmi_cublaslt_product *product)
{
    size_t of_conv[TDMI_CUDNN_TENSORS] = {0}, of_product[TDMI_PRODUCT_TENSORS] = {0};
    *it = (struct tdmi_cuda_timing){.device = device};
    if (conv)
        size_conv(conv, of_conv);
    if (product)
        size_product(product, of_product);
    it->is_ready = tdmi_cuda_stream_open(device, &it->stream, NULL) == TDM_OK &&
                   place(device, TDMI_CUDNN_TENSORS, of_conv, it->of_conv) &&
                   place(device, TDMI_PRODUCT_TENSORS, of_product, it->of_product);
    it->lacked_room = !it->is_ready;
}

static void give_back(tdmi_device *device, int n, void **tensors)
{
    for (int i = 0; i < n; i++)
        if (tensors[i])
            tdmi_cuda_free(device, tensors[i]);
}

void tdmi_cuda_timing_close(struct tdmi_cuda_timing *it)
{
    give_back(it->device, TDMI_CUDNN_TENSORS, it->of_conv);
    give_back(it->device, TDMI_PRODUCT_TENSORS, it->of_product);
    if (it->stream)
        tdmi_cuda_stream_close(it->stream);
    *it = (struct tdmi_cuda_timing){0};
}

/* What is timed: one of both. */
struct candidate {
    const struct tdmi_cudnn_plan *conv;
    const struct tdmi_cublaslt_plan *product;
    void *workspace;
};

static bool run_some(struct tdmi_cuda_timing *it, const struct candidate *candidate, int n)
{
    const struct tdmi_cublaslt_call call = {.a = it->of_product[TDMI_PRODUCT_A],
                                            .b = it->of_product[TDMI_PRODUCT_B],
                                            .bias = it->of_product[TDMI_PRODUCT_BIAS],
                                            .d = it->of_product[TDMI_PRODUCT_D],
                                            .workspace = candidate->workspace};
    for (int i = 0; i < n; i++) {
        const int code =
            candidate->conv
                ? tdmi_cuda_conv_run(it->stream, candidate->conv, it->of_conv, candidate->workspace)
                : tdmi_cuda_product_run(it->stream, candidate->product, &call);
        if (code != 0)
            return false;
    }
    return tdmi_cuda_stream_wait(it->stream, NULL) == TDM_OK;
}

static double seconds_of(struct tdmi_cuda_timing *it, struct candidate *candidate,
                         size_t workspace_bytes)
{
    enum { rounds = 3, in_a_row = 4 };
    double best = DBL_MAX;
    candidate->workspace = tdmi_cuda_alloc(it->device, tdmi_cuda_workspace_room(workspace_bytes));
    it->lacked_room = it->lacked_room || !candidate->workspace;
    bool is_run = candidate->workspace && run_some(it, candidate, 1);
    for (int i = 0; i < rounds && is_run; i++) {
        const int64_t begin = tdmi_clock_ns();
        is_run = run_some(it, candidate, in_a_row);
        const double took = tdmi_clock_seconds_since(begin);
        if (took < best)
            best = took;
    }
    if (candidate->workspace)
        tdmi_cuda_free(it->device, candidate->workspace);
    return is_run ? best : -1.0;
}

double tdmi_cuda_time_conv(void *self, const struct tdmi_cudnn_plan *plan)
{
    return seconds_of(self, &(struct candidate){.conv = plan}, plan->workspace_bytes);
}

double tdmi_cuda_time_product(void *self, const struct tdmi_cublaslt_plan *plan)
{
    return seconds_of(self, &(struct candidate){.product = plan}, plan->workspace_bytes);
}

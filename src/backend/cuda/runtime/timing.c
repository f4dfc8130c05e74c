/* Timing of plans of cuDNN and cuBLASLt. */
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/runtime/timing.h"
#include "backend/cuda/vendor/libraries.h"

#include <cuda_runtime_api.h>
#include <float.h>
#include <string.h>

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
        bytes[TDMI_CUDNN_ADDED] = of_y * value;
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

/* The tensor of a convolution that a product's tensor is, if both compute the same. */
static enum tdmi_cudnn_tensor place_of(enum tdmi_cudnn_direction direction, int tensor)
{
    static const enum tdmi_cudnn_tensor places[][TDMI_PRODUCT_TENSORS] = {
        [TDMI_CUDNN_FORWARD] = {TDMI_CUDNN_X, TDMI_CUDNN_W, TDMI_CUDNN_BIAS, TDMI_CUDNN_Y},
        [TDMI_CUDNN_OF_INPUT] = {TDMI_CUDNN_Y, TDMI_CUDNN_W, TDMI_CUDNN_BIAS, TDMI_CUDNN_X},
        [TDMI_CUDNN_OF_WEIGHTS] = {TDMI_CUDNN_X, TDMI_CUDNN_Y, TDMI_CUDNN_BIAS, TDMI_CUDNN_W},
    };
    return places[direction][tensor];
}

/* Memory of these sizes, full of random values of the type. */
static bool place(struct tdmi_cuda_timing *it, enum tdmi_dtype type,
                  const size_t bytes[TDMI_CUDNN_TENSORS])
{
    bool is_placed = true;
    for (int i = 0; i < TDMI_CUDNN_TENSORS && is_placed; i++) {
        if (!bytes[i])
            continue;
        is_placed = (it->placed[i] = tdmi_cuda_alloc(it->device, bytes[i])) != NULL;
        if (is_placed)
            TDMI_CUDA_LAUNCH(it->stream, "filling memory", tdmi_cuda_fill_random, type,
                             it->placed[i], (int64_t)(bytes[i] / tdmi_dtype_bytes(type)));
    }
    return is_placed;
}

static bool open_events(struct tdmi_cuda_timing *it)
{
    const bool is_open = cudaEventCreateWithFlags(&it->begun, cudaEventDefault) == cudaSuccess &&
                         cudaEventCreateWithFlags(&it->ended, cudaEventDefault) == cudaSuccess;
    if (!is_open)
        (void)cudaGetLastError();
    return is_open;
}

void tdmi_cuda_timing_open(struct tdmi_cuda_timing *it, tdmi_device *device,
                           const struct tdmi_cudnn_conv *conv,
                           const struct tdmi_cublaslt_product *product)
{
    const enum tdmi_cudnn_direction direction = conv ? conv->direction : TDMI_CUDNN_FORWARD;
    size_t of_conv[TDMI_CUDNN_TENSORS] = {0}, of_product[TDMI_PRODUCT_TENSORS] = {0};
    size_t bytes[TDMI_CUDNN_TENSORS];
    *it = (struct tdmi_cuda_timing){.device = device};
    if (conv)
        size_conv(conv, of_conv);
    if (product)
        size_product(product, of_product);
    memcpy(bytes, of_conv, sizeof bytes);
    for (int i = 0; i < TDMI_PRODUCT_TENSORS; i++)
        if (of_product[i] > bytes[place_of(direction, i)]) /* a gradient of weights in f32 */
            bytes[place_of(direction, i)] = of_product[i];
    it->is_ready = tdmi_cuda_stream_open(device, &it->stream, NULL) == TDM_OK && open_events(it) &&
                   place(it, conv ? conv->type : product->type, bytes) &&
                   tdmi_cuda_stream_wait(it->stream, NULL) == TDM_OK;
    it->lacked_room = !it->is_ready;
    for (int i = 0; i < TDMI_CUDNN_TENSORS; i++)
        it->of_conv[i] = of_conv[i] ? it->placed[i] : NULL;
    for (int i = 0; i < TDMI_PRODUCT_TENSORS; i++)
        it->of_product[i] = of_product[i] ? it->placed[place_of(direction, i)] : NULL;
}

void tdmi_cuda_timing_close(struct tdmi_cuda_timing *it)
{
    for (int i = 0; i < TDMI_CUDNN_TENSORS; i++)
        if (it->placed[i])
            tdmi_cuda_free(it->device, it->placed[i]);
    if (it->begun)
        (void)cudaEventDestroy(it->begun);
    if (it->ended)
        (void)cudaEventDestroy(it->ended);
    if (it->stream)
        tdmi_cuda_stream_close(it->stream);
    *it = (struct tdmi_cuda_timing){0};
}

/* The plan that is timed: one of both. */
struct candidate {
    const struct tdmi_cudnn_plan *conv;
    const struct tdmi_cublaslt_plan *product;
    void *workspace;
};

/* Milliseconds of n runs in a row, by events of the GPU; below 0: it cannot be run. */
static float time_runs(struct tdmi_cuda_timing *it, const struct candidate *candidate, int n)
{
    struct CUstream_st *queue = tdmi_cuda_queue(it->stream);
    float milliseconds = -1.0f;
    const struct tdmi_cublaslt_call call = {.a = it->of_product[TDMI_PRODUCT_A],
                                            .b = it->of_product[TDMI_PRODUCT_B],
                                            .bias = it->of_product[TDMI_PRODUCT_BIAS],
                                            .d = it->of_product[TDMI_PRODUCT_D],
                                            .workspace = candidate->workspace};
    int code = (int)cudaEventRecord(it->begun, queue);
    for (int i = 0; i < n && code == 0; i++)
        code = candidate->conv ? tdmi_cuda_conv_run(it->stream, candidate->conv, it->of_conv,
                                                    candidate->workspace)
                               : tdmi_cuda_product_run(it->stream, candidate->product, &call);
    if (code == 0)
        code = (int)cudaEventRecord(it->ended, queue);
    const bool is_run = tdmi_cuda_stream_wait(it->stream, NULL) == TDM_OK && code == 0;
    if (!is_run || cudaEventElapsedTime(&milliseconds, it->begun, it->ended) != cudaSuccess) {
        (void)cudaGetLastError();
        return -1.0f;
    }
    return milliseconds;
}

static double seconds_of(struct tdmi_cuda_timing *it, struct candidate *candidate,
                         size_t workspace_bytes)
{
    enum { rounds = 3, in_a_row = 4 };
    float best = FLT_MAX;
    candidate->workspace = tdmi_cuda_alloc(it->device, tdmi_cuda_workspace_room(workspace_bytes));
    it->lacked_room = it->lacked_room || !candidate->workspace;
    bool is_run = candidate->workspace && time_runs(it, candidate, 1) >= 0.0f; /* not counted */
    for (int i = 0; i < rounds && is_run; i++) {
        const float took = time_runs(it, candidate, in_a_row);
        is_run = took >= 0.0f;
        if (is_run && took < best)
            best = took;
    }
    if (candidate->workspace)
        tdmi_cuda_free(it->device, candidate->workspace);
    return is_run ? 1e-3 * (double)best : -1.0;
}

double tdmi_cuda_time_conv(void *self, const struct tdmi_cudnn_plan *plan)
{
    return seconds_of(self, &(struct candidate){.conv = plan}, plan->workspace_bytes);
}

double tdmi_cuda_time_product(void *self, const struct tdmi_cublaslt_plan *plan)
{
    return seconds_of(self, &(struct candidate){.product = plan}, plan->workspace_bytes);
}

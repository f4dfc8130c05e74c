/*
 * GPUs, their memory, and the table of backend cuda, which is all that libtandem_cuda.so exports
 * (base/system/plugin.h). CUDA's runtime is linked in and opens the driver (libcuda.so.1) with the
 * first call, so a machine without a driver only has no GPUs.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/image.h"
#include "backend/cuda/vendor/libraries.h"
#include "base/scope.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { oldest_major = 8 }; /* bf16 and asynchronous copies */

/* ---- GPUs ------------------------------------------------------------------------------------ */

static int count(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess)
        return n;
    (void)cudaGetLastError(); /* or the next call would report it again */
    return 0;
}

/* Why there is no GPU number index. */
static tdm_status absent(int index, tdm_error *err)
{
    int n = 0, driver = 0, runtime = 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    (void)cudaGetLastError();
    (void)cudaRuntimeGetVersion(&runtime);
    if (code == cudaSuccess && n > 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "opening GPU %d: CUDA sees %d of them, counted from 0",
                        index, n);
    char why[200] = "there is no NVIDIA driver (libcuda.so.1 is not installed)";
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0)
        snprintf(why, sizeof why,
                 "the NVIDIA driver, which serves CUDA up to %d.%d, gives no GPU to this process "
                 "(%s)",
                 driver / 1000, driver % 1000 / 10,
                 code == cudaSuccess ? "it sees none" : cudaGetErrorString(code));
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "opening GPU %d: %s; --device cuda needs a driver for CUDA %d.%d and a GPU of "
                    "compute capability %d.0 or newer, --device cpu needs neither",
                    index, why, runtime / 1000, runtime % 1000 / 10, oldest_major);
}

static tdm_status look_at(tdmi_device *device, tdm_error *err)
{
    struct cudaDeviceProp facts;
    cudaError_t code = cudaGetDeviceProperties(&facts, device->index);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return TDM_FAIL(err, TDM_E_ABSENT, "opening GPU %d: CUDA says %d, %s", device->index,
                        (int)code, cudaGetErrorString(code));
    }
    snprintf(device->name, sizeof device->name, "%s", facts.name);
    for (int i = 0; i < 16; i++)
        snprintf(device->uuid + 2 * i, 3, "%02x", (unsigned char)facts.uuid.bytes[i]);
    device->compute_major = facts.major;
    device->compute_minor = facts.minor;
    (void)cudaRuntimeGetVersion(&device->runtime_version);
    (void)cudaDriverGetVersion(&device->driver_version);
    if (facts.major < oldest_major)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening GPU %d: %s has compute capability %d.%d; %d.0 or newer is needed",
                        device->index, device->name, facts.major, facts.minor, oldest_major);
    code = cudaSetDevice(device->index); /* begins to use it, which others may not allow */
    if (code == cudaSuccess)
        return TDM_OK;
    (void)cudaGetLastError();
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "opening GPU %d: %s gives this process no room to compute: CUDA says %d, %s; "
                    "nvidia-smi shows who else uses it",
                    device->index, device->name, (int)code, cudaGetErrorString(code));
}

static tdm_status open_device(int index, tdmi_device **device, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) tdmi_device *made = NULL;
    *device = NULL;
    if (index >= count())
        return absent(index, err);
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->index = index;
    TDMI_TRY(look_at(made, err));
    TDMI_TRY(tdmi_cuda_libraries_new(made, NULL, &made->libraries, err));
    *device = tdmi_take(&made);
    return TDM_OK;
}

static void close_device(tdmi_device *device)
{
    if (device) {
        tdmi_cuda_make_current(device);
        tdmi_cuda_libraries_free(device->libraries);
    }
    tdmi_free(device); /* the GPU's context stays: others of this process may use it */
}

static bool memory_of(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    size_t free_now = 0, total = 0;
    if (cudaSetDevice(device->index) != cudaSuccess ||
        cudaMemGetInfo(&free_now, &total) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    *free_bytes = (int64_t)free_now;
    *total_bytes = (int64_t)total;
    return true;
}

static void describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    char libraries[512];
    tdmi_cuda_libraries_describe(device->libraries, libraries, sizeof libraries);
    snprintf(text, text_bytes, "%s, compute %d.%d, CUDA %d.%d, driver for %d.%d, %s", device->name,
             device->compute_major, device->compute_minor, device->runtime_version / 1000,
             device->runtime_version % 1000 / 10, device->driver_version / 1000,
             device->driver_version % 1000 / 10, libraries);
}

static bool library_at(int index, struct tdmi_backend_library *library)
{
    int version = 0;
    if (index > 0)
        return tdmi_cuda_library_at(index - 1, NULL, library);
    (void)cudaRuntimeGetVersion(&version);
    *library = (struct tdmi_backend_library){.name = "CUDA", .is_found = true};
    snprintf(library->version, sizeof library->version, "%d.%d", version / 1000,
             version % 1000 / 10);
    return true;
}

static void keep(tdmi_device *device, const char *folder)
{
    tdmi_cuda_libraries_keep(device->libraries, folder);
}

static const char *identify(const tdmi_device *device)
{
    return device->uuid;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *tdmi_cuda_alloc(tdmi_device *device, size_t bytes)
{
    void *memory = NULL;
    if (cudaSetDevice(device->index) == cudaSuccess &&
        cudaMalloc(&memory, bytes ? bytes : 1) == cudaSuccess &&
        cudaMemset(memory, 0, bytes ? bytes : 1) == cudaSuccess &&
        cudaStreamSynchronize(NULL) == cudaSuccess)
        return memory;
    (void)cudaGetLastError(); /* the caller says what it was for */
    if (memory)
        (void)cudaFree(memory);
    return NULL;
}

void tdmi_cuda_free(tdmi_device *device, void *memory)
{
    if (!memory) /* perhaps no GPU was opened */
        return;
    tdmi_cuda_make_current(device);
    (void)cudaFree(memory); /* after all work that was queued */
}

static tdm_status copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind, const char *direction, tdm_error *err)
{
    const cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, tdmi_cuda_queue(stream));
    if (code == cudaSuccess)
        return TDM_OK;
    (void)cudaGetLastError();
    tdmi_cuda_note(stream, (int)code, direction); /* a caller may leave it to the next wait */
    return TDM_FAIL(err, TDM_E_SYSTEM, "%s GPU %d, %zu bytes: %s", direction, stream->device->index,
                    bytes, cudaGetErrorString(code));
}

tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyHostToDevice, "copying to", err);
}

static tdm_status download(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                           tdm_error *err)
{
    return copy(stream, to, from, bytes, cudaMemcpyDeviceToHost, "copying from", err);
}

void tdmi_cuda_clear(tdmi_stream *stream, void *memory, size_t bytes)
{
    tdmi_cuda_note(stream, (int)cudaMemsetAsync(memory, 0, bytes, tdmi_cuda_queue(stream)),
                   "clearing memory");
}

static void *alloc_pinned(tdmi_device *device, size_t bytes)
{
    void *memory = NULL;
    if (cudaSetDevice(device->index) == cudaSuccess &&
        cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    return NULL;
}

static void free_pinned(tdmi_device *device, void *memory)
{
    if (!memory)
        return;
    tdmi_cuda_make_current(device);
    (void)cudaFreeHost(memory);
}

static void gather(tdmi_stream *stream, const void *table, size_t row_bytes, const int64_t *numbers,
                   int n, void *to)
{
    TDMI_CUDA_LAUNCH(stream, "gathering rows", tdmi_cuda_gather, table, row_bytes, numbers, n, to);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct tdmi_kernel *const kernels[TDMI_OP_KINDS] = {
    [TDMI_OP_RELU] = &tdmi_cuda_activation,   [TDMI_OP_RELU6] = &tdmi_cuda_activation,
    [TDMI_OP_HSWISH] = &tdmi_cuda_activation, [TDMI_OP_SIGMOID] = &tdmi_cuda_activation,
    [TDMI_OP_ADD] = &tdmi_cuda_add,           [TDMI_OP_BATCH_NORM] = &tdmi_cuda_batch_norm,
    [TDMI_OP_SOFTMAX] = &tdmi_cuda_loss,      [TDMI_OP_LOGISTIC] = &tdmi_cuda_loss,
    [TDMI_OP_CONV] = &tdmi_cuda_conv,         [TDMI_OP_DENSE] = &tdmi_cuda_dense,
    [TDMI_OP_INPUT] = &tdmi_cuda_input,       [TDMI_OP_MAX_POOL] = &tdmi_cuda_max_pool,
    [TDMI_OP_AVG_POOL] = &tdmi_cuda_avg_pool, [TDMI_OP_GLOBAL_POOL] = &tdmi_cuda_global_pool,
    [TDMI_OP_CONCAT] = &tdmi_cuda_concat,     [TDMI_OP_PAD] = &tdmi_cuda_pad,
    [TDMI_OP_LRN] = &tdmi_cuda_lrn,           [TDMI_OP_DROPOUT] = &tdmi_cuda_dropout,
};

static const struct tdmi_backend backend = {
    .name = "cuda",
    .summary = "NVIDIA GPUs: kernels of our own, cuDNN and cuBLASLt where they are",
    .device = {count, open_device, close_device, describe, false, memory_of, keep, library_at,
               identify, tdmi_cuda_write_choices, tdmi_cuda_read_choices},
    .memory = {tdmi_cuda_alloc, tdmi_cuda_free, tdmi_cuda_upload, download, tdmi_cuda_clear,
               alloc_pinned, free_pinned, gather},
    .stream = {tdmi_cuda_stream_open, tdmi_cuda_stream_close, tdmi_cuda_stream_wait,
               tdmi_cuda_event_open, tdmi_cuda_event_close, tdmi_cuda_event_record,
               tdmi_cuda_event_wait, tdmi_cuda_capture_begin, tdmi_cuda_capture_end,
               tdmi_cuda_replay, tdmi_cuda_recording_close},
    .kernels = kernels,
    .storages = 1u << TDMI_DTYPE_BF16 | 1u << TDMI_DTYPE_F16,
    .update = &tdmi_cuda_update_table,
    .changes = &tdmi_cuda_changes,
    .pictures = &tdmi_cuda_pictures,
    .peers = &tdmi_cuda_peers,
};

const void *tdmi_plugin_table(size_t *table_bytes);

const void *tdmi_plugin_table(size_t *table_bytes)
{
    *table_bytes = sizeof backend;
    return &backend;
}

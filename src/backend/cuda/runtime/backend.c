/*
 * The table of backend cuda, which is all that libtandem_cuda.so gives out (base/system/plugin.h).
 */
#include "backend/cuda/cuda.h"

static const struct tdmi_backend backend = {
    .name = "cuda",
    .summary = "NVIDIA GPUs: kernels of our own, cuDNN and cuBLASLt where they are",
    .device = {tdmi_cuda_count, tdmi_cuda_device_open, tdmi_cuda_device_close,
               tdmi_cuda_device_describe, false, tdmi_cuda_device_memory, tdmi_cuda_device_keep,
               tdmi_cuda_device_library},
    .memory = {.alloc = tdmi_cuda_alloc,
               .free = tdmi_cuda_free,
               .upload = tdmi_cuda_upload,
               .download = tdmi_cuda_download,
               .clear = tdmi_cuda_clear,
               .alloc_pinned = tdmi_cuda_alloc_pinned,
               .free_pinned = tdmi_cuda_free_pinned,
               .gather = tdmi_cuda_gather_rows},
    .stream = {.open = tdmi_cuda_stream_open,
               .close = tdmi_cuda_stream_close,
               .wait = tdmi_cuda_stream_wait,
               .event_open = tdmi_cuda_event_open,
               .event_close = tdmi_cuda_event_close,
               .event_record = tdmi_cuda_event_record,
               .event_wait = tdmi_cuda_event_wait,
               .capture_begin = tdmi_cuda_capture_begin,
               .capture_end = tdmi_cuda_capture_end,
               .replay = tdmi_cuda_replay,
               .recording_close = tdmi_cuda_recording_close},
    .kernels = tdmi_cuda_kernels,
    .storages = 1u << TDMI_DTYPE_BF16 | 1u << TDMI_DTYPE_F16,
    .update = &tdmi_cuda_update_table,
    .changes = &tdmi_cuda_changes,
    .pictures = &tdmi_cuda_pictures,
};

const void *tdmi_plugin_table(size_t *table_bytes);

const void *tdmi_plugin_table(size_t *table_bytes)
{
    *table_bytes = sizeof backend;
    return &backend;
}

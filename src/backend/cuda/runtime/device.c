/*
 * GPUs, through CUDA's runtime, which is linked in and opens the driver (libcuda.so.1) by itself
 * with the first call: a machine without one is nothing special, only without GPUs.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/libraries.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { oldest_major = 8 }; /* bf16 and asynchronous copies */

int tdmi_cuda_count(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess)
        return n;
    (void)cudaGetLastError(); /* or the next call would tell it again */
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
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening GPU %d: there is no NVIDIA driver (libcuda.so.1 is not "
                        "installed); a driver for CUDA %d.%d and a GPU of compute capability %d.0 "
                        "or newer are wanted, --device cpu needs neither",
                        index, runtime / 1000, runtime % 1000 / 10, oldest_major);
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "opening GPU %d: the NVIDIA driver, which serves CUDA up to %d.%d, gives no "
                    "GPU to this process (%s); a driver for CUDA %d.%d and a GPU of compute "
                    "capability %d.0 or newer are wanted, --device cpu needs neither",
                    index, driver / 1000, driver % 1000 / 10,
                    code == cudaSuccess ? "it sees none" : cudaGetErrorString(code), runtime / 1000,
                    runtime % 1000 / 10, oldest_major);
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
    device->multiprocessors = facts.multiProcessorCount;
    device->compute_major = facts.major;
    device->compute_minor = facts.minor;
    (void)cudaRuntimeGetVersion(&device->runtime_version);
    (void)cudaDriverGetVersion(&device->driver_version);
    if (facts.major < oldest_major)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening GPU %d: %s has compute capability %d.%d, and %d.0 or newer is "
                        "wanted",
                        device->index, device->name, facts.major, facts.minor, oldest_major);
    code = cudaSetDevice(device->index); /* begins to use it, which others may not allow */
    if (code == cudaSuccess)
        return TDM_OK;
    (void)cudaGetLastError();
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "opening GPU %d: %s gives this process no room to compute: CUDA says %d, %s; "
                    "who else uses it is told by nvidia-smi",
                    device->index, device->name, (int)code, cudaGetErrorString(code));
}

tdm_status tdmi_cuda_device_open(int index, tdmi_device **device, tdm_error *err)
{
    *device = NULL;
    if (index >= tdmi_cuda_count())
        return absent(index, err);
    tdmi_device *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening GPU %d: out of memory", index);
    made->index = index;
    tdm_status status = look_at(made, err);
    if (status == TDM_OK && !(made->libraries = tdmi_cuda_libraries_new(made, NULL)))
        status = TDM_FAIL(err, TDM_E_MEMORY, "opening GPU %d: out of memory", index);
    if (status != TDM_OK) {
        tdmi_free(made);
        return status;
    }
    *device = made;
    return TDM_OK;
}

void tdmi_cuda_device_close(tdmi_device *device)
{
    if (device) {
        tdmi_cuda_make_current(device);
        tdmi_cuda_libraries_free(device->libraries);
    }
    tdmi_free(device); /* the GPU's context stays: others of this process may use it */
}

bool tdmi_cuda_device_memory(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
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

void tdmi_cuda_device_describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    char libraries[512];
    tdmi_cuda_libraries_describe(device->libraries, libraries, sizeof libraries);
    snprintf(text, text_bytes, "%s, compute %d.%d, CUDA %d.%d, driver for %d.%d, %s", device->name,
             device->compute_major, device->compute_minor, device->runtime_version / 1000,
             device->runtime_version % 1000 / 10, device->driver_version / 1000,
             device->driver_version % 1000 / 10, libraries);
}

bool tdmi_cuda_device_library(int index, struct tdmi_backend_library *library)
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

void tdmi_cuda_device_keep(tdmi_device *device, const char *folder)
{
    tdmi_cuda_libraries_keep(device->libraries, folder);
}

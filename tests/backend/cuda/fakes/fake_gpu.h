/* A GPU of the shim whose libraries are those that look like NVIDIA's (fake_cudnn, fake_cublaslt).
 */
#pragma once

#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/shim/shim_backend.h"
#include "base/folder.h"
#include "unit.h"

static struct fake_cudnn *convs;
static struct fake_cublaslt *products;

/* Set-up of a program. */
static int open_fakes(void **state)
{
    (void)state;
    convs = tdmi_shim_fake(FAKE_CUDNN, "fake_cudnn");
    products = tdmi_shim_fake(FAKE_CUBLASLT, "fake_cublaslt");
    return convs && products ? 0 : -1;
}

static inline tdmi_device *open_gpu_with(const char *cudnn, const struct folder *home)
{
    tdmi_device *device;
    tdmi_shim_libraries(cudnn, FAKE_CUBLASLT, home->path);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    return device;
}

/* GPUs keep choices below home; run: the folder of a run that keeps them too, or NULL. */
static inline tdmi_device *open_gpu(const struct folder *home, const char *run)
{
    tdmi_device *device = open_gpu_with(FAKE_CUDNN, home);
    if (run)
        tdmi_backend_shim.device.keep(device, run);
    return device;
}

static inline void close_gpu(tdmi_device *device)
{
    tdmi_backend_shim.device.close(device);
    assert_int_equal(convs->alive + convs->handles + products->alive, 0);
}

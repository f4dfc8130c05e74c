/* A GPU of the shim whose libraries are those that look like NVIDIA's (fake_cudnn, fake_cublaslt).
 */
#pragma once

#include "backend/cuda/shim/shim_backend.h"
#include "base/folder.h"
#include "unit.h"

/* GPUs keep choices below home; run: the folder of a run that keeps them too, or NULL. */
static inline tdmi_device *open_gpu(const struct folder *home, const char *run)
{
    tdmi_device *device;
    tdmi_shim_libraries(FAKE_CUDNN, FAKE_CUBLASLT, home->path);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    if (run)
        tdmi_backend_shim.device.keep(device, run);
    return device;
}

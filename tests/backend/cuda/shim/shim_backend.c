/* The backend, with libraries where tests put them: NVIDIA's own, were they here, would want a
 * driver. */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/fakes/fake_cublaslt.h"
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/fakes/fake_nccl.h"
#include "backend/cuda/fakes/fake_nvjpeg.h"
#include "backend/cuda/fakes/include/cuda_runtime_api.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/shim/shim_run.h"

#include <dlfcn.h>
#include <string.h>

static const struct tdmi_cuda_places nowhere = {
    "/nowhere/libcudnn.so.9", "/nowhere/libcublasLt.so.13", "/nowhere/libnvjpeg.so.13",
    "/nowhere/libnccl.so.2", "/nowhere"};
static struct tdmi_cuda_places places;

static int launch(struct CUstream_st *queue, void (*run)(void *self), void *self, size_t self_bytes,
                  long ns)
{
    const struct tdmi_shim_launch it = {queue, {1, 1, 1}, {1, 1, 1}, run, self, self_bytes, ns};
    return tdmi_shim_launch(&it);
}

void *tdmi_shim_fake(const char *file, const char *name)
{
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    return library ? dlsym(library, name) : NULL;
}

void tdmi_shim_libraries(const char *cudnn, const char *cublaslt, const char *home)
{
    struct fake_cudnn *convs = tdmi_shim_fake(cudnn, "fake_cudnn");
    struct fake_cublaslt *products = tdmi_shim_fake(cublaslt, "fake_cublaslt");
    if (convs)
        convs->launch = launch;
    if (products)
        products->launch = launch;
    places.cudnn = home ? cudnn : nowhere.cudnn;
    places.cublaslt = home ? cublaslt : nowhere.cublaslt;
    places.home = home ? home : nowhere.home;
}

void tdmi_shim_nvjpeg(const char *file)
{
    struct fake_nvjpeg *pictures = tdmi_shim_fake(file, "fake_nvjpeg");
    if (pictures)
        pictures->launch = launch;
    places.nvjpeg = file ? file : nowhere.nvjpeg;
}

static const struct tdmi_backend *real; /* the table that the plugin exports */
struct tdmi_backend tdmi_backend_shim;

static int synchronize(struct CUstream_st *queue)
{
    return (int)cudaStreamSynchronize(queue);
}

void tdmi_shim_nccl(const char *file)
{
    struct fake_nccl *peers = tdmi_shim_fake(file, "fake_nccl");
    if (peers) {
        peers->launch = launch;
        peers->synchronize = synchronize;
    }
    places.nccl = file ? file : nowhere.nccl;
}

/* No library has been looked for yet. */
static tdm_status open_gpu(int index, tdmi_device **device, tdm_error *err)
{
    tdmi_device *gpu = NULL;
    *device = NULL;
    TDM_TRY(real->device.open(index, &gpu, err), err, "on the fake runtime");
    tdmi_cuda_libraries_free(gpu->libraries);
    gpu->libraries = NULL;
    const tdm_status status = tdmi_cuda_libraries_new(gpu, &places, &gpu->libraries, err);
    if (status == TDM_OK)
        *device = gpu;
    else
        real->device.close(gpu);
    return status;
}

/* The first is part of the backend itself. */
static bool library(int index, struct tdmi_backend_library *found)
{
    return index == 0 ? real->device.library(0, found)
                      : tdmi_cuda_library_at(index - 1, &places, found);
}

const void *tdmi_plugin_table(size_t *table_bytes);

/* The table of backend.c is no constant that another could begin with. */
__attribute__((constructor)) static void fill(void)
{
    size_t bytes = 0;
    real = tdmi_plugin_table(&bytes);
    tdmi_backend_shim = *real;
    tdmi_backend_shim.device.open = open_gpu;
    tdmi_backend_shim.device.library = library;
    places = nowhere;
}

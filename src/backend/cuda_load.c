/* Opens libtandem_cuda.so; a build without the CUDA toolkit has cuda_absent.c in place of this
 * file.
 */
#include "backend/backend.h"
#include "base/system/plugin.h"

tdm_status tdmi_cuda_backend(const struct tdmi_backend **backend, tdm_error *err)
{
    const void *found = NULL;
    tdm_status status = tdmi_plugin_open("cuda", "the part of tandem that computes on NVIDIA GPUs",
                                         sizeof **backend, 0, &found, err);
    *backend = found;
    return status;
}

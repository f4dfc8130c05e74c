/* In place of cuda_load.c in a build without the CUDA toolkit. */
#include "backend/backend.h"
#include "tandem_features.h"

tdm_status tdmi_cuda_backend(const struct tdmi_backend **backend, tdm_error *err)
{
    *backend = NULL;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "this build has no cuda backend: " TDM_CUDA_ABSENT
                    "; --device cpu and ref are there");
}

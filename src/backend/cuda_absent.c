/* In place of cuda_load.c where the build found no CUDA toolkit. */
#include "backend/backend.h"

tdm_status tdmi_cuda_backend(const struct tdmi_backend **backend, tdm_error *err)
{
    *backend = NULL;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "this build has no cuda backend, since no CUDA toolkit was found when it was "
                    "made ('make cuda' says what is missing); --device cpu and ref are there");
}

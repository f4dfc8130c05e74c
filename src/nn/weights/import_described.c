/* A network that a Keras model_config describes. */
#include "nn/weights/import_internal.h"

tdm_status tdmi_import_described(struct tdmi_importing *it, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_USAGE,
                    "importing %s: networks that a file describes are not read yet; --model NAME "
                    "takes one of ours",
                    tdmi_weights_path(it->weights));
}

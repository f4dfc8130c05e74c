/*
 * Values of a weights file as floats. Wider and narrower floats are converted; whole numbers are
 * not weights, so they are refused by name.
 */
#include "weights/weights.h"
#include "tensor/half.h"

#include <string.h>
#include "base/banned.h"

tdm_status tdmi_weights_floats(const tdmi_weights *weights,
                               const struct tdmi_weights_tensor *tensor, float *out, tdm_error *err)
{
    const uint8_t *from = tensor->data;
    if (tensor->n_values == 0)
        return TDM_OK;
    switch (tensor->dtype) {
    case TDMI_DTYPE_F32:
        return TDM_WRAP(err, tdmi_weights_bytes(weights, tensor, out, err),
                        "reading tensor '%.200s'", tensor->name);
    case TDMI_DTYPE_F64:
        for (int64_t i = 0; i < tensor->n_values; i++) {
            double value;
            memcpy(&value, from + 8 * i, sizeof value);
            out[i] = (float)value;
        }
        return TDM_OK;
    case TDMI_DTYPE_F16:
    case TDMI_DTYPE_BF16:
        for (int64_t i = 0; i < tensor->n_values; i++) {
            uint16_t bits;
            memcpy(&bits, from + 2 * i, sizeof bits);
            out[i] = tensor->dtype == TDMI_DTYPE_F16 ? tdmi_float_of_f16(bits)
                                                     : tdmi_float_of_bf16(bits);
        }
        return TDM_OK;
    default:
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s: tensor '%.200s' is of type %s; weights are F32, F16, BF16 or F64",
                        tdmi_weights_path(weights), tensor->name, tdmi_dtype_name(tensor->dtype));
    }
}

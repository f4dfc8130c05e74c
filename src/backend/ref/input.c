/* Bytes of the pictures to numbers, by the model's own preprocessing. */
#include "backend/ref/ref.h"

TDMI_KERNEL_RUN(forward)
{
    int64_t n_pixels = tdmi_shape_pixels(desc->out);
    for (int i = 0; i < call->n; i++)
        tdmi_preprocess_normalise(&desc->attrs.preprocess, call->pixels[i], n_pixels,
                                  call->y + i * tdmi_shape_values(desc->out));
}

const struct tdmi_kernel tdmi_ref_input = {.forward = forward,
                                           .shares_forward = TDMI_SHARING_IMAGES};

/* Bytes of pictures become numbers, on a card. */
#ifndef TANDEM_BACKEND_CUDA_INPUT_H
#define TANDEM_BACKEND_CUDA_INPUT_H

#include "image/preprocess.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_input {
    enum tdmi_dtype type; /* of y */
    int n, channels;
    int64_t values;               /* of a picture */
    struct tdmi_normal normal[3]; /* of channel c: c % 3 */
};
/* pixels: n pictures, pointers and bytes on the card. */
int tdmi_cuda_input_forward(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                            const uint8_t *const *pixels, void *y);

#ifdef __cplusplus
}
#endif

#endif

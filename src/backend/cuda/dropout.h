/* Dropout, on a card: the draws of backend/ref/dropout.c. */
#ifndef TANDEM_BACKEND_CUDA_DROPOUT_H
#define TANDEM_BACKEND_CUDA_DROPOUT_H

#include "tensor/dtype.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_dropout {
    enum tdmi_dtype type;
    int n;                  /* samples */
    int64_t values;         /* of a sample */
    const int64_t *samples; /* of the draws, on the card; NULL: the positions */
    uint32_t key[2];        /* of the generator (base/rng.h) */
    uint32_t first, epoch;  /* its first two words of counter: those of the first four draws */
    float rate, scale;      /* a value stays when its draw is at least the rate, and is scaled */
};
/* to = from where it stays, else 0; from: x or dy. to may be from. */
int tdmi_cuda_dropout_apply(struct CUstream_st *queue, const struct tdmi_cuda_dropout *it,
                            const void *from, void *to);

#ifdef __cplusplus
}
#endif

#endif

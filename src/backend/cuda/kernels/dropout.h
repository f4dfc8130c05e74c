/* Dropout, on a GPU: the draws of backend/ref/dropout.c. */
#pragma once

#include "backend/op.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_dropout {
    enum tdmi_dtype type;
    int n;                   /* samples */
    int64_t values;          /* of a sample */
    struct tdmi_draws draws; /* of the generator (base/hash/rng.h) */
    uint32_t first;          /* number of the first four draws */
    float rate, scale;       /* a value stays when its draw is at least the rate, and is scaled */
};
/* to = from where it stays, else 0; from: x or dy. to may be from. */
int tdmi_cuda_dropout_apply(struct CUstream_st *queue, const struct tdmi_cuda_dropout *it,
                            const void *from, void *to);

#ifdef __cplusplus
}
#endif

/*
 * Speed of matrix products on one thread. A method is a table, so that builds without oneDNN use
 * another one (src/tune/registry.c). Each thread has its own product: like the training step, a
 * machine is filled by one-thread primitives side by side.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>

struct tdmi_matmul_method {
    const char *name; /* "oneDNN" */
    bool can_bf16;
    /* A product of two n x n matrices of f32, or of bf16 with an f32 result, memory included.
     * TDM_E_ABSENT when the method has none for this CPU. */
    tdm_status (*make)(int n, bool is_bf16, void **product, tdm_error *err);
    /* Multiply once, 2 n^3 operations, on the calling thread alone. */
    tdm_status (*run)(void *product, tdm_error *err);
    void (*release)(void *product); /* accepts NULL */
};

/* Only where oneDNN is built in; TDM_E_SYSTEM when its part of tandem cannot be opened. */
tdm_status tdmi_matmul_onednn(const struct tdmi_matmul_method **method,
                              tdm_error *err) TDM_MUST_USE;

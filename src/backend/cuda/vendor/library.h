/*
 * Libraries of NVIDIA's that are opened on first use: found by the loader, in CUDA's own folder, or
 * in those of Python environments.
 */
#pragma once

#include "backend/backend.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

struct tdmi_cuda_library {
    const char *name;           /* "cuDNN" */
    const char *without;        /* "convolutions are computed by …" */
    const char *const *files;   /* file names, the first that opens is used; ends with NULL */
    const char *const *folders; /* inside site-packages: "nvidia/cudnn/lib"; ends with NULL */
    const char *const *symbols; /* its functions; ends with NULL */
    int (*version)(const void *calls); /* 91900 for 9.19.0 */
    int oldest;
};

enum { TDMI_CUDA_MOST_CALLS = 16 };

/* Open the library and fill calls, pointers to the functions in the order of the symbols. file
 * NULL: search for it. TDM_E_ABSENT: it is missing, cannot be opened, lacks a function or is too
 * old. *opened is the caller's to close, even then. */
tdm_status tdmi_cuda_library_open(const struct tdmi_cuda_library *library, const char *file,
                                  void *calls, void **opened, int *version,
                                  tdm_error *err) TDM_MUST_USE;
void tdmi_cuda_library_close(void *opened); /* NULL is accepted */

/* Describe a library; no GPU is needed. */
void tdmi_cuda_library_look(const struct tdmi_cuda_library *library, const char *file,
                            struct tdmi_backend_library *found);

/* The places below root ("" but in tests) in order of the search: visit returns true to end. */
void tdmi_cuda_library_places(const struct tdmi_cuda_library *library, const char *root,
                              bool (*visit)(void *self, const char *path), void *self);

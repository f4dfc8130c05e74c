/*
 * Libraries of NVIDIA's that are opened when something first asks for them: by the loader, then in
 * CUDA's own folder, then in those of Python environments, where they lie as often.
 */
#ifndef TANDEM_BACKEND_CUDA_LIBRARY_H
#define TANDEM_BACKEND_CUDA_LIBRARY_H

#include "backend/backend.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

struct tdmi_cuda_library {
    const char *what;           /* "cuDNN 9" */
    const char *const *names;   /* file names, the first that opens is taken; ends with NULL */
    const char *const *folders; /* inside site-packages: "nvidia/cudnn/lib"; ends with NULL */
};

/* file NULL: looked for. TDM_E_ABSENT: it is nowhere, or cannot be opened. */
tdm_status tdmi_cuda_library_open(const struct tdmi_cuda_library *library, const char *file,
                                  void **opened, tdm_error *err) TDM_MUST_USE;
/* The path of the file that has this function; "" where that is not known. */
void tdmi_cuda_library_file(void *opened, const char *symbol, char *path, size_t path_bytes);
/* NULL is accepted. */
void tdmi_cuda_library_close(void *opened);

/* Describe a library; no GPU is needed. */
struct tdmi_cuda_library_facts {
    const char *name;    /* "cuDNN" */
    const char *without; /* "convolutions are computed by …" */
    const char *symbol;  /* a function of it */
    /* *library is closed by who called; *version: 91900 for 9.19.0. */
    tdm_status (*load)(const char *file, void **library, int *version, tdm_error *err);
};
void tdmi_cuda_library_look(const struct tdmi_cuda_library_facts *facts, const char *file,
                            struct tdmi_backend_library *found);

/* False where the library has no such function. */
bool tdmi_cuda_library_call(void *opened, const char *symbol, void *function,
                            size_t function_bytes);

/* The places below root ("" but in tests), for one name, in order: visit returns true to end. */
void tdmi_cuda_library_places(const struct tdmi_cuda_library *library, const char *root,
                              bool (*visit)(void *self, const char *path), void *self);

#endif

/*
 * Image libraries that are opened at run time where they are installed, by functions whose binary
 * form has not changed for years, so that a build needs neither their headers nor the libraries.
 */
#pragma once

#include "tandem/error.h"
#include <stddef.h>

struct tdmi_image_library_symbol {
    const char *name;
    size_t offset; /* where the caller's struct keeps the function's pointer */
};

struct tdmi_image_library {
    const char *title;        /* "libtiff" */
    const char *const *files; /* names that the loader knows, first choice first, then NULL */
    const char *package;      /* Debian's */
    const struct tdmi_image_library_symbol *symbols; /* then one without a name */
};

/* Fill the functions. The loader keeps what it has opened, and nothing is closed: asking again is a
 * look at its lists. TDM_E_ABSENT: the library is not installed, or is too old. Any thread. */
tdm_status tdmi_image_library_open(const struct tdmi_image_library *library, void *functions,
                                   tdm_error *err) TDM_MUST_USE;

/* The type of a tensor's elements: its size and its name, both from dtype.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum tdmi_dtype {
#define X(name, bytes) TDMI_DTYPE_##name,
#include "tensor/dtype.def"
#undef X
    TDMI_DTYPES
};

/* Bytes of one element; 0 for a value that is no type. */
size_t tdmi_dtype_bytes(enum tdmi_dtype dtype);
/* "F32", as safetensors files write it; "?" for a value that is no type. Static storage. */
const char *tdmi_dtype_name(enum tdmi_dtype dtype);
/* All names, one space between them. Static storage. */
const char *tdmi_dtype_names(void);
/* False, and *dtype untouched, when no type has that name. */
bool tdmi_dtype_of_name(const char *name, enum tdmi_dtype *dtype);

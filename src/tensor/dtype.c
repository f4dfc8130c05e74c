/* The element types of dtype.def as one table. */
#include "tensor/dtype.h"
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[TDMI_DTYPES] = {
#define X(name, bytes) {#name, bytes},
#include "tensor/dtype.def"
#undef X
};

size_t tdmi_dtype_bytes(enum tdmi_dtype dtype)
{
    return (unsigned)dtype < TDMI_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *tdmi_dtype_name(enum tdmi_dtype dtype)
{
    return (unsigned)dtype < TDMI_DTYPES ? dtypes[dtype].name : "?";
}

const char *tdmi_dtype_names(void)
{
    static const char names[] = ""
#define X(name, bytes) " " #name
#include "tensor/dtype.def"
#undef X
        ;
    return names + 1;
}

bool tdmi_dtype_of_name(const char *name, enum tdmi_dtype *dtype)
{
    for (size_t i = 0; name != NULL && i < TDMI_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = (enum tdmi_dtype)i;
            return true;
        }
    return false;
}

/* Floats as they are stored, and back: F32, BF16 and F16. */
#pragma once

#include "tensor/dtype.h"

#include <stdint.h>

/* To the nearest value of the type. */
void tdmi_floats_store(enum tdmi_dtype type, void *to, const float *from, int64_t n);
/* from may be the end of the room for the n floats that it becomes. */
void tdmi_floats_load(enum tdmi_dtype type, float *to, const void *from, int64_t n);

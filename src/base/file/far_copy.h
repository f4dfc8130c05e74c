/*
 * Copies into memory that will not be read before the caches have forgotten it, such as a ring of
 * large batches. An ordinary store first fetches the line that it then overwrites whole; these do
 * not, and leave the caches to those who use them.
 */
#pragma once

#include <stddef.h>

/* As memcpy. Another thread may look only after tdmi_far_copy_end of this one. */
void tdmi_far_copy(void *to, const void *from, size_t n_bytes);
void tdmi_far_copy_end(void);

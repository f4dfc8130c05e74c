/* Shared by all targets: the function that each defines, and the check that ends it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

/* abort() is a finding to a fuzzer. */
static inline void require(bool is_true)
{
    if (!is_true)
        abort();
}

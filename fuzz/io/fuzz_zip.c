/* The bytes as a file named x.zip. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    fuzz_archive("x.zip", bytes, length_bytes);
    return 0;
}

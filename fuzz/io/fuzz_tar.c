/* The bytes as a file named x.tar. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    fuzz_archive("x.tar", bytes, length_bytes);
    return 0;
}

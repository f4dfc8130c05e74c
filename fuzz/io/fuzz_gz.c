/* The bytes as a file named x.tar.gz. */
#include "fuzz_archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    fuzz_archive("x.tar.gz", bytes, length_bytes);
    return 0;
}

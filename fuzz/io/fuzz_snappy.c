/*
 * Blocks of Snappy: any bytes, unpacked whole and in part. Input: two bytes of the block's length
 * (little endian), then what is packed. Whatever comes out whole must come out in part as well.
 */
#include "fuzz.h"
#include "io/compress/snappy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < 2)
        return 0;
    const size_t n_bytes = (size_t)bytes[0] | (size_t)bytes[1] << 8, half = n_bytes / 2;
    int64_t length;
    uint8_t *whole = malloc(n_bytes + 1), *part = malloc(half + 1);
    if (whole == NULL || part == NULL)
        abort();
    (void)tdmi_snappy_length(bytes + 2, length_bytes - 2, &length);
    const int64_t n = tdmi_snappy_block(bytes + 2, length_bytes - 2, n_bytes, whole, n_bytes);
    if (n > (int64_t)length_bytes - 2)
        abort();
    if (n >= 0 && (tdmi_snappy_block(bytes + 2, length_bytes - 2, n_bytes, part, half) < 0 ||
                   memcmp(whole, part, half) != 0))
        abort();
    free(whole);
    free(part);
    return 0;
}

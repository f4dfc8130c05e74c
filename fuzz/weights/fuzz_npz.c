/* Any bytes as a file of NumPy's: an array, or a zip of arrays. The first byte says: 0 a file, 1
 * the one array of a zip (whose checksum a fuzzer would hardly guess). */
#include "../../tests/data/pack.h"
#include "fuzz_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct pack_zip zip = {0};
    if (length_bytes == 0)
        return 0;
    if (bytes[0] != 1) {
        fuzz_weights(bytes + 1, length_bytes - 1);
        return 0;
    }
    pack_zip_add(&zip, "w.npy", bytes + 1, length_bytes - 1);
    pack_zip_end(&zip, "");
    fuzz_weights((const uint8_t *)zip.bytes.bytes, zip.bytes.length_bytes);
    tdmi_text_release(&zip.bytes);
    return 0;
}

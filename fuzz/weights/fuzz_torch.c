/* Any bytes as a PyTorch file, zip or legacy. The first byte is the kind of the rest: 0 a file, 1
 * the pickle of a zip with one storage (whose checksums a fuzzer would hardly guess). */
#include "../../tests/data/pack.h"
#include "fuzz_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static const uint8_t values[64] = {0, 0, 128, 63};
    struct pack_zip zip = {0};
    if (length_bytes == 0)
        return 0;
    if (bytes[0] != 1) {
        fuzz_weights(bytes + 1, length_bytes - 1);
        return 0;
    }
    pack_zip_add(&zip, "x/data.pkl", bytes + 1, length_bytes - 1);
    pack_zip_add(&zip, "x/data/0", values, sizeof values);
    pack_zip_end(&zip, "");
    fuzz_weights((const uint8_t *)zip.bytes.bytes, zip.bytes.length_bytes);
    tdmi_text_release(&zip.bytes);
    return 0;
}

/*
 * IDX pairs: whatever bytes stand in the two files, opening ends with a listing or a sentence, and
 * what was listed can be read. Input: two bytes with the length of the labels file (little endian),
 * its bytes, then those of the images file.
 */
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < 2)
        return 0;
    size_t labels_bytes = (size_t)bytes[0] | (size_t)bytes[1] << 8;
    bytes += 2;
    length_bytes -= 2;
    if (labels_bytes > length_bytes)
        labels_bytes = length_bytes;
    char folder[64];
    fuzz_folder(folder);
    fuzz_file(folder, "train-labels-idx1-ubyte", bytes, labels_bytes);
    fuzz_file(folder, "train-images-idx3-ubyte", bytes + labels_bytes, length_bytes - labels_bytes);
    fuzz_source(folder);
    fuzz_remove(folder, "train-labels-idx1-ubyte");
    fuzz_remove(folder, "train-images-idx3-ubyte");
    fuzz_remove_folder(folder);
    return 0;
}

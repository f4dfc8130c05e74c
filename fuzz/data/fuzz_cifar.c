/*
 * Binary CIFAR: any records beside any class names. Input: a byte whose lowest bit chooses
 * CIFAR-100 and whose next one a names file, two bytes with the length of the names (little
 * endian), the names, then the records.
 */
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < 3)
        return 0;
    bool is_hundred = bytes[0] & 1, has_names = bytes[0] & 2;
    size_t names_bytes = (size_t)bytes[1] | (size_t)bytes[2] << 8;
    bytes += 3;
    length_bytes -= 3;
    if (names_bytes > length_bytes)
        names_bytes = length_bytes;
    char folder[64];
    fuzz_folder(folder);
    const char *names = is_hundred ? "fine_label_names.txt" : "batches.meta.txt";
    const char *records = is_hundred ? "train.bin" : "data_batch_1.bin";
    if (has_names)
        fuzz_file(folder, names, bytes, names_bytes);
    fuzz_file(folder, records, bytes + names_bytes, length_bytes - names_bytes);
    fuzz_source(folder);
    fuzz_remove(folder, names);
    fuzz_remove(folder, records);
    fuzz_remove_folder(folder);
    return 0;
}

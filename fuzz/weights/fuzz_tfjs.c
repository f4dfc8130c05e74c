/* Any text as a TensorFlow.js model.json, in a folder with shards of 8 and 24 bytes. */
#include "fuzz_files.h"
#include "fuzz_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static const uint8_t values[24] = {1, 2, 3};
    char folder[64], path[256];
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    fuzz_folder(folder);
    fuzz_file(folder, "a.bin", values, 8);
    fuzz_file(folder, "b.bin", values, sizeof values);
    snprintf(path, sizeof path, "%s/model.json", folder);
    if (tdmi_weights_open_bytes(bytes, length_bytes, path, &weights, &err) == TDM_OK)
        fuzz_list(weights);
    else if (err.n_frames == 0)
        abort();
    tdmi_weights_close(weights);
    fuzz_remove(folder, "a.bin");
    fuzz_remove(folder, "b.bin");
    fuzz_remove_folder(folder);
    return 0;
}

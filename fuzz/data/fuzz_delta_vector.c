/*
 * Deletion vectors: two bytes say how many rows are deleted and two how many the file has, then
 * comes the bitmap. What is taken is ascending and within the file.
 */
#include "fuzz.h"
#include "base/memory.h"
#include "data/delta/vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 4)
        return 0;
    int64_t n_wanted = bytes[0] | bytes[1] << 8, n_rows = (bytes[2] | bytes[3] << 8) * 4;
    int64_t *rows = NULL;
    tdm_error err = {0};
    if (tdmi_delta_vector_decode(bytes + 4, length - 4, "input", n_wanted, n_rows, &rows, &err) !=
        TDM_OK) {
        if (err.n_frames == 0 || err.code != TDM_E_INPUT || rows != NULL)
            abort();
        return 0;
    }
    for (int64_t i = 0; i < n_wanted; i++)
        if (rows[i] < 0 || rows[i] >= n_rows || (i > 0 && rows[i] <= rows[i - 1]))
            abort();
    tdmi_free(rows);
    return 0;
}

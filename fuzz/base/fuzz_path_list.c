/* Lists of paths: what comes out is as long as what went in, in order, and never empty. */
#include "fuzz.h"
#include "base/memory.h"
#include "base/file/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    char *copy = malloc(length_bytes + 1);
    if (!copy)
        return 0;
    memcpy(copy, bytes, length_bytes);
    copy[length_bytes] = 'x'; /* to be overwritten where the last path ends there */
    const char **paths = NULL;
    size_t n = 0;
    tdm_error err = {0};
    tdm_status status = tdmi_path_list_cut(copy, length_bytes, "list", &paths, &n, &err);
    if ((status == TDM_OK) != (n > 0))
        abort();
    const char *end = copy;
    for (size_t i = 0; i < n; i++) {
        if (paths[i] < end || *paths[i] == '\0')
            abort();
        end = paths[i] + strlen(paths[i]) + 1;
        if (end > copy + length_bytes + 1)
            abort();
    }
    tdmi_free(paths);
    free(copy);
    return 0;
}

/*
 * Lists of paths. No path holds a zero byte, so a single one shows that the list is of the kind
 * that find -print0 writes.
 */
#include "base/file/path_list.h"
#include "base/memory.h"

#include <string.h>

/* Walks the list and stores what it finds, unless paths is NULL; returns how many. */
static size_t walk(char *bytes, size_t length_bytes, char end, const char **paths)
{
    size_t n = 0;
    for (size_t at = 0; at < length_bytes;) {
        const char *found = memchr(bytes + at, end, length_bytes - at);
        const size_t stop = found ? (size_t)(found - bytes) : length_bytes;
        size_t length = stop - at;
        if (end == '\n' && length > 0 && bytes[stop - 1] == '\r')
            length--;
        if (length > 0 && paths) {
            bytes[at + length] = '\0';
            paths[n] = bytes + at;
        }
        n += length > 0;
        at = stop + 1;
    }
    return n;
}

tdm_status tdmi_path_list_cut(char *bytes, size_t length_bytes, const char *name,
                              const char ***paths, size_t *n_paths, tdm_error *err)
{
    const char end = length_bytes > 0 && memchr(bytes, '\0', length_bytes) ? '\0' : '\n';
    const size_t n = walk(bytes, length_bytes, end, NULL);
    *paths = NULL;
    *n_paths = n;
    if (n == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "there is no path in %s; one a line is accepted", name);
    *paths = tdmi_alloc(n, sizeof **paths);
    if (!*paths)
        return TDM_FAIL(err, TDM_E_MEMORY, "reading the %zu paths of %s: out of memory", n, name);
    walk(bytes, length_bytes, end, *paths);
    return TDM_OK;
}

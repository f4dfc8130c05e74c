/* Sentences about files, and growing arrays in arenas. */
#include "weights/errors.h"
#include "base/text/quote.h"

#include <limits.h>
#include <stdarg.h>

tdm_status tdmi_bad_file(tdm_error *err, const char *file, int line, const char *path,
                         const char *format, ...)
{
    char text[TDM_ERROR_TEXT_BYTES / 2]; /* so that a path fits beside it */
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote(text, sizeof text, format, arguments);
    va_end(arguments);
    return tdm_error_start(err, TDM_E_INPUT, file, line, "%s: %s", path, text);
}

int tdmi_precision(size_t length_bytes)
{
    return length_bytes < INT_MAX ? (int)length_bytes : INT_MAX;
}

tdm_status tdmi_arena_room(tdmi_arena *arena, void *items, size_t *capacity, size_t n,
                           size_t item_bytes, tdm_error *err)
{
    if (n < *capacity)
        return TDM_OK;
    const size_t needed = n < 8 ? 8 : 2 * n;
    void *old, *more = tdmi_arena_alloc(arena, needed, item_bytes);
    TDMI_CHECK_MEMORY(more, err);
    memcpy(&old, items, sizeof old);
    if (n > 0)
        memcpy(more, old, n * item_bytes);
    memcpy(items, &more, sizeof more);
    *capacity = needed;
    return TDM_OK;
}

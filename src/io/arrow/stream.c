/* The part that needs no Arrow: reading rows from a stream, telling a URI from a path. */
#include "io/arrow/bridge.h"
#include "io/arrow/storage.h"

#include <errno.h>
#include <string.h>

tdm_status tdmi_arrow_stream_next(struct ArrowArrayStream *stream, const char *path,
                                  struct ArrowArray *array, tdm_error *err)
{
    *array = (struct ArrowArray){0};
    int code = stream->get_next(stream, array);
    if (code == 0)
        return TDM_OK;
    const char *why = stream->get_last_error(stream);
    return TDM_FAIL(err, code == ENOMEM ? TDM_E_MEMORY : TDM_E_INPUT,
                    "cannot read the rows of '%s': %s", path, why != NULL ? why : strerror(code));
}

bool tdmi_arrow_is_uri(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return n > 0 && strncmp(text + n, "://", 3) == 0;
}

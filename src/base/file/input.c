/*
 * All of a file, a pipe or standard input. Pipes may stay silent for hours, and a named one may be
 * without a writer, so nothing waits but short steps of poll, with a look at the stop flag between.
 */
#include "base/file/input.h"
#include "base/text/text.h"
#include "tandem/event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { limit_bytes = 1 << 30, step_bytes = 1 << 16, step_ms = 100 };

struct tdmi_input {
    tdmi_text bytes;
    const char **paths;
    const char *name;
};

/* *got: bytes that came, 0 at the end. */
static tdm_status read_step(int descriptor, char *bytes, const char *name, size_t *got,
                            tdm_error *err)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};
    while (!tdm_stop_is_requested()) {
        const int n = poll(&ready, 1, step_ms);
        const ssize_t step = n > 0 ? read(descriptor, bytes, step_bytes) : -1;
        *got = step > 0 ? (size_t)step : 0;
        if (step >= 0)
            return TDM_OK;
        if (n != 0 && errno != EINTR && errno != EAGAIN)
            return TDM_FAIL(err, TDM_E_INPUT, "reading %s: %s", name, strerror(errno));
    }
    return TDM_FAIL(err, TDM_E_STOPPED, "reading %s: stopped on request", name);
}

static tdm_status read_all(int descriptor, struct tdmi_input *input, tdm_error *err)
{
    size_t got = 0;
    do {
        char *room = tdmi_text_room(&input->bytes, step_bytes);
        TDMI_CHECK_MEMORY(room, err);
        TDMI_TRY(read_step(descriptor, room, input->name, &got, err));
        input->bytes.length_bytes -= step_bytes - got;
        if (input->bytes.length_bytes > limit_bytes)
            return TDM_FAIL(err, TDM_E_INPUT, "reading %s: more than %d bytes, which is the most",
                            input->name, limit_bytes);
    } while (got > 0);
    input->bytes.bytes[input->bytes.length_bytes] = '\0';
    return TDM_OK;
}

/* ---- lists of paths ------------------------------------------------------------------------ */

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
    TDMI_TRY(TDMI_NEW(*paths, n, err));
    walk(bytes, length_bytes, end, *paths);
    return TDM_OK;
}

/* ---- the input ----------------------------------------------------------------------------- */

tdm_status tdmi_input_open(const char *path, tdmi_input **input, tdm_error *err)
{
    const bool is_standard = strcmp(path, "-") == 0;
    TDMI_AT_END(tdmi_close_at)
    const int opened = is_standard ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    TDMI_AT_END(tdmi_input_close_at) tdmi_input *made = NULL;
    if (opened < 0 && !is_standard)
        return TDM_FAIL(err, TDM_E_INPUT, "reading %s: %s", path, strerror(errno));
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->name = is_standard ? "standard input" : path;
    TDMI_TRY(read_all(is_standard ? STDIN_FILENO : opened, made, err));
    *input = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_input_close(tdmi_input *input)
{
    if (!input)
        return;
    tdmi_text_release(&input->bytes);
    tdmi_free(input->paths);
    tdmi_free(input);
}

const void *tdmi_input_bytes(const tdmi_input *input, size_t *length_bytes)
{
    *length_bytes = input->bytes.length_bytes;
    return tdmi_text_string(&input->bytes);
}

tdm_status tdmi_input_paths(tdmi_input *input, const char *const **paths, size_t *n_paths,
                            tdm_error *err)
{
    tdm_status status = tdmi_path_list_cut(input->bytes.bytes, input->bytes.length_bytes,
                                           input->name, &input->paths, n_paths, err);
    *paths = (const char *const *)input->paths;
    return status;
}

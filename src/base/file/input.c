/*
 * All of a file, a pipe or standard input. Pipes may stay silent for hours, and a named one may be
 * without a writer, so nothing waits but short steps of poll, with a look at the stop flag between.
 */
#include "base/file/input.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/file/path_list.h"
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

/* Bytes that came, 0 at the end, -1: errno says why. */
static ssize_t read_step(int descriptor, char *bytes, const char *name, tdm_error *err)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};
    for (;;) {
        if (tdm_stop_is_requested()) {
            (void)TDM_FAIL(err, TDM_E_STOPPED, "reading %s: stopped on request", name);
            return -1;
        }
        int n = poll(&ready, 1, step_ms);
        ssize_t got = n > 0 ? read(descriptor, bytes, step_bytes) : -1;
        if (got >= 0)
            return got;
        if (n != 0 && errno != EINTR && errno != EAGAIN) {
            (void)TDM_FAIL(err, TDM_E_INPUT, "reading %s: %s", name, strerror(errno));
            return -1;
        }
    }
}

static tdm_status read_all(int descriptor, struct tdmi_input *input, tdm_error *err)
{
    for (;;) {
        char *room = tdmi_text_room(&input->bytes, step_bytes);
        if (!room)
            return TDM_FAIL(err, TDM_E_MEMORY, "reading %s: out of memory after %zu bytes",
                            input->name, input->bytes.length_bytes);
        tdm_error problem = {0};
        ssize_t got = read_step(descriptor, room, input->name, &problem);
        input->bytes.length_bytes -= (size_t)(step_bytes - (got > 0 ? got : 0));
        if (got < 0) {
            if (err)
                *err = problem;
            return problem.code;
        }
        if (input->bytes.length_bytes > limit_bytes)
            return TDM_FAIL(err, TDM_E_INPUT, "reading %s: more than %d bytes, which is the most",
                            input->name, limit_bytes);
        if (got == 0) {
            input->bytes.bytes[input->bytes.length_bytes] = '\0';
            return TDM_OK;
        }
    }
}

tdm_status tdmi_input_open(const char *path, tdmi_input **input, tdm_error *err)
{
    const bool is_standard = strcmp(path, "-") == 0;
    const int descriptor =
        is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "reading %s: %s", path, strerror(errno));
    tdmi_input *made = tdmi_alloc(1, sizeof *made);
    tdm_status status;
    if (!made) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "reading %s: out of memory", path);
    } else {
        made->name = is_standard ? "standard input" : path;
        status = read_all(descriptor, made, err);
    }
    if (!is_standard)
        close(descriptor);
    if (status != TDM_OK) {
        tdmi_input_close(made);
        return status;
    }
    *input = made;
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

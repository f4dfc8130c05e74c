/*
 * The error chain. Frames are kept innermost first in a fixed array, so reporting a failure can
 * neither allocate nor fail, even when the failure is that memory has run out.
 */
#include "tandem/error.h"
#include "base/text/quote.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_status;
    const char *text;
    const char *advice;
} codes[] = {
    {"OK", 0, "fine", "nothing to do"},
#define X(name, exit_status, text, advice) {#name, exit_status, text, advice},
#include "tandem/error.def"
#undef X
};

enum { n_codes = sizeof codes / sizeof codes[0] };

static int code_index(tdm_status status)
{
    return (int)status >= 0 && (int)status < n_codes ? (int)status : TDM_E_BUG;
}

const char *tdm_status_text(tdm_status status)
{
    return codes[code_index(status)].text;
}

const char *tdm_status_name(tdm_status status)
{
    return codes[code_index(status)].name;
}

const char *tdm_status_advice(tdm_status status)
{
    return codes[code_index(status)].advice;
}

int tdm_status_exit(tdm_status status)
{
    return codes[code_index(status)].exit_status;
}

void tdm_error_clear(tdm_error *err)
{
    if (err) {
        err->code = TDM_OK;
        err->rank = 0;
        err->n_frames = 0;
    }
}

static void write_frame(tdm_error *err, const char *file, int line, const char *format,
                        va_list arguments)
{
    int at = err->n_frames < TDM_ERROR_FRAMES ? err->n_frames++ : TDM_ERROR_FRAMES - 1;
    struct tdm_error_frame *frame = &err->frames[at];
    frame->file = file;
    frame->line = line;
    tdmi_quote(frame->text, sizeof frame->text, format, arguments);
}

tdm_status tdm_error_start(tdm_error *err, tdm_status code, const char *file, int line,
                           const char *format, ...)
{
    if (err) {
        va_list arguments;
        err->code = code;
        err->n_frames = 0;
        va_start(arguments, format);
        write_frame(err, file, line, format, arguments);
        va_end(arguments);
    }
    return code;
}

tdm_status tdm_error_add(tdm_error *err, tdm_status status, const char *file, int line,
                         const char *format, ...)
{
    if (err && status != TDM_OK) {
        va_list arguments;
        err->code = status;
        va_start(arguments, format);
        write_frame(err, file, line, format, arguments);
        va_end(arguments);
    }
    return status;
}

size_t tdm_error_format(const tdm_error *err, char *buffer, size_t buffer_bytes)
{
    size_t length = 0;
    if (buffer_bytes > 0)
        buffer[0] = '\0';
    for (int i = err->n_frames - 1; i >= 0; i--) {
        size_t room = length < buffer_bytes ? buffer_bytes - length : 0;
        int depth = err->n_frames - 1 - i;
        int written = snprintf(room ? buffer + length : NULL, room, "%*s%s%s\n", 2 * depth, "",
                               depth ? "because: " : "", err->frames[i].text);
        if (written > 0)
            length += (size_t)written;
    }
    return length;
}

size_t tdm_error_line(const tdm_error *err, char *buffer, size_t buffer_bytes)
{
    size_t length = 0;
    if (buffer_bytes > 0)
        buffer[0] = '\0';
    for (int i = err->n_frames - 1; i >= 0; i--) {
        size_t room = length < buffer_bytes ? buffer_bytes - length : 0;
        int written = snprintf(room ? buffer + length : NULL, room, "%s%s", err->frames[i].text,
                               i ? ": " : "");
        if (written > 0)
            length += (size_t)written;
    }
    return length;
}

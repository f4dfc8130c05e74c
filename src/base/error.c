/*
 * The error chain. Frames are kept innermost first in a fixed array, and their sentences behind
 * each other in one text, so reporting a failure can neither allocate nor fail, even when memory
 * has run out.
 */
#include "tandem/error.h"
#include "base/text/quote.h"

#include <stdbool.h>
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

_Static_assert(sizeof(tdm_error) <= 1024, "errors lie on many stacks");

/* Bytes of each sentence that fit into the text: the longest ones are cut first. */
static void share_room(const char *const *sentences, int n, size_t *room_bytes)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += room_bytes[i] = strlen(sentences[i]) + 1;
    for (; total > TDM_ERROR_TEXT_BYTES; total--) {
        int longest = 0;
        for (int i = 1; i < n; i++)
            if (room_bytes[i] > room_bytes[longest])
                longest = i;
        room_bytes[longest]--;
    }
}

static void add_frame(tdm_error *err, const char *file, int line, const char *format,
                      va_list arguments)
{
    const int last = err->n_frames < TDM_ERROR_FRAMES ? err->n_frames++ : TDM_ERROR_FRAMES - 1;
    const char *sentences[TDM_ERROR_FRAMES];
    size_t room_bytes[TDM_ERROR_FRAMES], used = 0;
    char added[TDM_ERROR_TEXT_BYTES], text[TDM_ERROR_TEXT_BYTES];
    tdmi_quote(added, sizeof added, format, arguments);
    for (int i = 0; i < last; i++)
        sentences[i] = err->text + err->frames[i].at;
    sentences[last] = added;
    share_room(sentences, last + 1, room_bytes);
    err->frames[last] = (struct tdm_error_frame){.file = file, .line = line};
    for (int i = 0; i <= last; i++) {
        err->frames[i].at = (unsigned)used;
        used += tdmi_quote_text(text + used, room_bytes[i], "%s", sentences[i]) + 1;
    }
    memcpy(err->text, text, used);
}

const char *tdm_error_sentence(const tdm_error *err, int frame)
{
    return err && frame >= 0 && frame < err->n_frames ? err->text + err->frames[frame].at : "";
}

tdm_status tdm_error_start(tdm_error *err, tdm_status code, const char *file, int line,
                           const char *format, ...)
{
    if (err) {
        va_list arguments;
        err->code = code;
        err->n_frames = 0;
        va_start(arguments, format);
        add_frame(err, file, line, format, arguments);
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
        add_frame(err, file, line, format, arguments);
        va_end(arguments);
    }
    return status;
}

/* The sentences, outermost first, in a line or one a line. */
static size_t join(const tdm_error *err, bool is_line, char *buffer, size_t buffer_bytes)
{
    size_t length = 0;
    if (buffer_bytes > 0)
        buffer[0] = '\0';
    for (int i = err->n_frames - 1; i >= 0; i--) {
        const size_t room = length < buffer_bytes ? buffer_bytes - length : 0;
        const int depth = is_line ? 0 : err->n_frames - 1 - i;
        const int written = snprintf(room ? buffer + length : NULL, room, "%*s%s%s%s", 2 * depth,
                                     "", depth ? "because: " : "", tdm_error_sentence(err, i),
                                     !is_line ? "\n"
                                     : i      ? ": "
                                              : "");
        if (written > 0)
            length += (size_t)written;
    }
    return length;
}

size_t tdm_error_format(const tdm_error *err, char *buffer, size_t buffer_bytes)
{
    return join(err, false, buffer, buffer_bytes);
}

size_t tdm_error_line(const tdm_error *err, char *buffer, size_t buffer_bytes)
{
    return join(err, true, buffer, buffer_bytes);
}

/*
 * Messages for people on standard error. A line is composed on the stack and leaves in one write
 * call, so lines of several threads or processes do not mix.
 */
#include "tandem/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { line_bytes = 1000 };

static _Atomic int level_now = TDM_LOG_WARNING;

void tdm_log_set_level(tdm_log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

tdm_log_level tdm_log_level_now(void)
{
    return (tdm_log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

/* Where to cut at most limit bytes without halving a UTF-8 character. */
static size_t cut_at(const char *line, size_t limit)
{
    size_t at = limit;
    while (at > 0 && limit - at < 3 && ((unsigned char)line[at] & 0xc0) == 0x80)
        at--;
    return at;
}

void tdm_log(tdm_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = {"", "error: ", "warning: ", "", "debug: "};
    int saved_errno = errno;
    char line[line_bytes + 1];
    if (level <= TDM_LOG_SILENT || level > TDM_LOG_DEBUG || level > tdm_log_level_now())
        return;

    int prefix = snprintf(line, sizeof line, "tandem: %s", prefixes[level]);
    size_t length = prefix > 0 ? (size_t)prefix : 0;
    va_list arguments;
    va_start(arguments, format);
    int needed = vsnprintf(line + length, sizeof line - length, format, arguments);
    va_end(arguments);
    if (needed > 0)
        length += (size_t)needed;
    if (length > line_bytes - 1)
        length = cut_at(line, line_bytes - 1);
    /* File names reach this line: a control byte must neither break it nor steer a terminal. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[length++] = '\n';

    size_t written = 0;
    while (written < length) {
        ssize_t step = write(STDERR_FILENO, line + written, length - written);
        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0)
            break; /* nobody reads: a message is no reason to fail */
        written += (size_t)step;
    }
    errno = saved_errno;
}

/*
 * Messages for people on standard error. A line is composed on the stack and leaves in one write
 * call, so lines of several threads or processes do not mix.
 */
#include "tandem/log.h"
#include "base/text/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { line_bytes = 1000 };

/* The level, and a bit for colour. */
enum { IN_COLOR = 0x100 };
static _Atomic int setting = TDM_LOG_WARNING;

static int setting_now(void)
{
    return atomic_load_explicit(&setting, memory_order_relaxed);
}

void tdm_log_set_level(tdm_log_level level)
{
    atomic_store_explicit(&setting, (setting_now() & IN_COLOR) | (int)level, memory_order_relaxed);
}

tdm_log_level tdm_log_level_now(void)
{
    return (tdm_log_level)(setting_now() & ~IN_COLOR);
}

void tdm_log_set_color(bool has_color)
{
    atomic_store_explicit(&setting, (int)tdm_log_level_now() | (has_color ? IN_COLOR : 0),
                          memory_order_relaxed);
}

void tdm_log(tdm_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = {"", " error:", " warning:", "", " debug:"};
    static const char *const colors[] = {"", "\033[1;31m", "\033[33m", "", ""};
    int saved_errno = errno;
    char line[line_bytes];
    if (level <= TDM_LOG_SILENT || level > TDM_LOG_DEBUG || level > tdm_log_level_now())
        return;

    const char *color = (setting_now() & IN_COLOR) != 0 ? colors[level] : "";
    int prefix = snprintf(line, sizeof line, "%standem:%s%s ", color, prefixes[level],
                          *color ? "\033[0m" : "");
    size_t length = prefix > 0 ? (size_t)prefix : 0;
    va_list arguments;
    va_start(arguments, format);
    length += tdmi_quote(line + length, sizeof line - length, format, arguments);
    va_end(arguments);
    line[length++] = '\n'; /* in the place of the zero */

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

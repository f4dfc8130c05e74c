/*
 * Messages for people on standard error, unless the program listens. A line is composed on the
 * stack and leaves in one write call, so lines of several threads or processes do not mix.
 */
#include "tandem/log.h"
#include "base/text/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { line_bytes = 1000 };

static _Atomic int level_now = TDM_LOG_WARNING;
static _Atomic bool has_color_now;

/* The listener and the one before it, each with the number of messages that use it. */
static struct {
    _Atomic(const struct tdm_log_listener *) listener;
    _Atomic int n_messages;
} listeners[2];
static _Atomic int listener_now; /* its index */

void tdm_log_set_level(tdm_log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

tdm_log_level tdm_log_level_now(void)
{
    return (tdm_log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

void tdm_log_set_color(bool has_color)
{
    atomic_store_explicit(&has_color_now, has_color, memory_order_relaxed);
}

void tdm_log_set_listener(const struct tdm_log_listener *listener)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const int before = atomic_load(&listener_now);
    atomic_store(&listeners[1 - before].listener, listener);
    atomic_store(&listener_now, 1 - before);
    while (atomic_load(&listeners[before].n_messages) > 0)
        nanosleep(&pause, NULL);
}

/* Returns the index of the listener, which stays until n_messages is counted down. */
static int use_listener(void)
{
    for (;;) {
        const int i = atomic_load(&listener_now);
        atomic_fetch_add(&listeners[i].n_messages, 1);
        if (atomic_load(&listener_now) == i)
            return i;
        atomic_fetch_sub(&listeners[i].n_messages, 1); /* replaced meanwhile */
    }
}

/* Write the first words of a line on standard error. */
static size_t begin_line(char *line, size_t capacity, tdm_log_level level)
{
    static const char *const words[] = {"", " error:", " warning:", "", " debug:"};
    static const char *const colors[] = {"", "\033[1;31m", "\033[33m", "", ""};
    const bool has_color = atomic_load_explicit(&has_color_now, memory_order_relaxed);
    const char *color = has_color ? colors[level] : "";
    int length =
        snprintf(line, capacity, "%standem:%s%s ", color, words[level], *color ? "\033[0m" : "");
    return length > 0 ? (size_t)length : 0;
}

static void write_line(const char *line, size_t length)
{
    size_t written = 0;
    while (written < length) {
        ssize_t step = write(STDERR_FILENO, line + written, length - written);
        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0)
            break; /* nobody reads: a message is no reason to fail */
        written += (size_t)step;
    }
}

void tdm_log(tdm_log_level level, const char *format, ...)
{
    int saved_errno = errno;
    char line[line_bytes];
    if (level <= TDM_LOG_SILENT || level > TDM_LOG_DEBUG || level > tdm_log_level_now())
        return;

    const int used = use_listener();
    const struct tdm_log_listener *listener = atomic_load(&listeners[used].listener);
    size_t length = listener ? 0 : begin_line(line, sizeof line, level);
    va_list arguments;
    va_start(arguments, format);
    length += tdmi_quote(line + length, sizeof line - length, format, arguments);
    va_end(arguments);
    if (listener) {
        listener->message(listener->self, level, line);
    } else {
        line[length++] = '\n'; /* in the place of the zero */
        write_line(line, length);
    }
    atomic_fetch_sub(&listeners[used].n_messages, 1);
    errno = saved_errno;
}

/*
 * Progress for people. Any thread reports; whoever comes a tenth of a second after the last drawing
 * draws, the others only leave their number behind. The rate is an average in which what happened
 * fifteen seconds ago weighs a third: it follows a change, and does not jump.
 */
#include "base/progress.h"
#include "base/clock.h"
#include "base/system/env.h"
#include "base/memory.h"
#include "base/text/quote.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * ---- how progress looks
 *
 *     training epoch 3 [=========>          ] 48% 864/1800 images 412/s 0:02 left loss 0.41
 *
 * The bar takes the columns that the words leave; where too few are left it goes, and then the line
 * is cut at its end.
 */

enum { bar_least = 8, bar_most = 40 };

/* Text that stops growing when it is full. */
struct line {
    char *text;
    size_t length;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    size_t room = TDMI_PROGRESS_BYTES - line->length;
    va_list arguments;
    va_start(arguments, format);
    line->length += tdmi_quote(line->text + line->length, room, format, arguments);
    va_end(arguments);
}

/* Characters, not bytes; every character is taken for one column. */
static int n_columns(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void cut(char *text, int columns)
{
    int n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
        if (n > columns) {
            *text = '\0';
            return;
        }
    }
}

/* "0:07", "12:34", "3:04:05", "2 days 03:04" */
static void add_duration(struct line *line, double seconds)
{
    int64_t s = seconds < 0.0 ? 0 : seconds > 1e9 ? 1000000000 : (int64_t)(seconds + 0.5);
    int minutes = (int)(s / 60 % 60), rest = (int)(s % 60);
    int64_t hours = s / 3600;
    if (hours >= 48)
        add(line, "%lld days %02d:%02d", (long long)(hours / 24), (int)(hours % 24), minutes);
    else if (hours > 0)
        add(line, "%lld:%02d:%02d", (long long)hours, minutes, rest);
    else
        add(line, "%d:%02d", minutes, rest);
}

static void add_rate(struct line *line, double per_s)
{
    add(line, per_s >= 99.5 ? "%.0f" : per_s >= 9.95 ? "%.1f" : "%.2f", per_s);
}

static bool time_left(const struct tdmi_progress_view *view, double *seconds)
{
    if (view->total <= 0 || view->per_s <= 0.0 || view->done >= view->total)
        return false;
    *seconds = (double)(view->total - view->done) / view->per_s;
    return true;
}

static int percent_of(const struct tdmi_progress_view *view)
{
    double part = (double)view->done / (double)view->total;
    /* Rounded down: 100 % means done. */
    return part >= 1.0 ? 100 : part <= 0.0 ? 0 : (int)floor(part * 100.0);
}

void tdmi_progress_bar(const struct tdmi_progress_view *view, int columns,
                       char text[TDMI_PROGRESS_BYTES])
{
    char words[TDMI_PROGRESS_BYTES] = "";
    struct line line = {.text = words};
    double seconds;
    if (view->total > 0)
        add(&line, " %3d%% %lld/%lld %s", percent_of(view), (long long)view->done,
            (long long)view->total, view->unit);
    else
        add(&line, " %lld %s", (long long)view->done, view->unit);
    if (view->per_s > 0.0) {
        add(&line, " ");
        add_rate(&line, view->per_s);
        add(&line, "/s");
    }
    add(&line, " ");
    if (time_left(view, &seconds)) {
        add_duration(&line, seconds);
        add(&line, " left");
    } else {
        add_duration(&line, view->seconds);
    }
    if (view->note[0])
        add(&line, " %s", view->note);

    line = (struct line){.text = text};
    text[0] = '\0';
    add(&line, "%.200s", view->title);
    int room = columns - n_columns(text) - n_columns(words) - 3;
    if (view->total > 0 && room >= bar_least) {
        char bar[bar_most + 1];
        int width = room < bar_most ? room : bar_most;
        int filled = (int)((double)width * fmin(1.0, (double)view->done / (double)view->total));
        memset(bar, ' ', (size_t)width);
        if (filled > 0)
            memset(bar, '=', (size_t)filled);
        if (filled >= 0 && filled < width)
            bar[filled] = '>';
        bar[width] = '\0';
        add(&line, " [%s]", bar);
    }
    add(&line, "%s", words);
    cut(text, columns > 0 ? columns : 0);
}

void tdmi_progress_line(const struct tdmi_progress_view *view, int is_last,
                        char text[TDMI_PROGRESS_BYTES])
{
    struct line line = {.text = text};
    double seconds;
    text[0] = '\0';
    add(&line, "%.200s: %lld", view->title, (long long)view->done);
    if (view->total > 0)
        add(&line, " of %lld %s (%d%%)", (long long)view->total, view->unit, percent_of(view));
    else
        add(&line, " %s", view->unit);
    if (is_last)
        add(&line, " in %.1f s", view->seconds);
    if (view->per_s > 0.0) {
        add(&line, ", ");
        add_rate(&line, view->per_s);
        add(&line, " %s/s", view->unit);
    }
    if (!is_last && time_left(view, &seconds)) {
        add(&line, ", ");
        add_duration(&line, seconds);
        add(&line, " left");
    }
    if (view->note[0])
        add(&line, ", %s", view->note);
}

/* ---- the display --------------------------------------------------------------------------- */

static const int64_t bar_every_ns = 100000000, line_every_ns = 10000000000;
static const int64_t last_line_after_ns = 1000000000; /* what is over sooner needs no line */
static const double rate_memory_s = 15.0;

struct tdmi_progress_display {
    pthread_mutex_t lock;
    FILE *stream;
    tdmi_progress_style style; /* never AUTO */
    char title[200], unit[40], note[200];
    int64_t total, done;
    int64_t start_ns, drawn_ns;
    /* Decaying sums of what was done and how long it took, up to sampled_ns. */
    double sum_done, sum_seconds;
    int64_t sampled_done, sampled_ns;
};

static bool is_terminal(FILE *stream)
{
    const char *terminal = tdmi_env("TERM");
    return isatty(fileno(stream)) && !(terminal && strcmp(terminal, "dumb") == 0);
}

/* COLUMNS is a person's word; the terminal's own follows its window. */
static int columns_of(FILE *stream)
{
    const char *request = tdmi_env("COLUMNS");
    long columns = request ? strtol(request, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns > 0 && columns < 1000 ? (int)columns : 80;
}

tdmi_progress_display *tdmi_progress_start(FILE *stream, tdmi_progress_style style,
                                           const char *title, const char *unit, int64_t total)
{
    tdmi_progress_display *progress = tdmi_alloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    if (style == TDMI_PROGRESS_AUTO)
        style = is_terminal(stream) ? TDMI_PROGRESS_BAR : TDMI_PROGRESS_LINES;
    pthread_mutex_init(&progress->lock, NULL);
    progress->stream = stream;
    progress->style = style;
    tdmi_quote_text(progress->title, sizeof progress->title, "%s", title);
    tdmi_quote_text(progress->unit, sizeof progress->unit, "%s", unit);
    progress->total = total > 0 ? total : 0;
    progress->start_ns = progress->sampled_ns = tdmi_clock_ns();
    /* A first bar soon; a first line only when it lasts. */
    progress->drawn_ns = progress->start_ns;
    return progress;
}

static struct tdmi_progress_view look(tdmi_progress_display *progress, int64_t now_ns)
{
    double seconds = (double)(now_ns - progress->sampled_ns) * 1e-9;
    if (seconds > 0.0) {
        double kept = exp(-seconds / rate_memory_s);
        progress->sum_done =
            progress->sum_done * kept + (double)(progress->done - progress->sampled_done);
        progress->sum_seconds = progress->sum_seconds * kept + seconds;
        progress->sampled_done = progress->done;
        progress->sampled_ns = now_ns;
    }
    return (struct tdmi_progress_view){
        .title = progress->title,
        .unit = progress->unit,
        .note = progress->note,
        .done = progress->done,
        .total = progress->total,
        .seconds = (double)(now_ns - progress->start_ns) * 1e-9,
        .per_s = progress->sum_seconds > 0.0 ? progress->sum_done / progress->sum_seconds : 0.0,
    };
}

static void draw(tdmi_progress_display *progress, int64_t now_ns)
{
    char text[TDMI_PROGRESS_BYTES];
    struct tdmi_progress_view view = look(progress, now_ns);
    progress->drawn_ns = now_ns;
    if (progress->style == TDMI_PROGRESS_BAR) {
        /* The last column stays free: some terminals wrap when it is written. */
        tdmi_progress_bar(&view, columns_of(progress->stream) - 1, text);
        fprintf(progress->stream, "\r%s\x1b[K", text);
    } else {
        tdmi_progress_line(&view, 0, text);
        fprintf(progress->stream, "%s\n", text);
    }
    fflush(progress->stream);
}

void tdmi_progress_update(tdmi_progress_display *progress, int64_t done, const char *note)
{
    if (!progress)
        return;
    int64_t every_ns = progress->style == TDMI_PROGRESS_BAR ? bar_every_ns : line_every_ns;
    pthread_mutex_lock(&progress->lock);
    /* Threads report in any order: an older number must not move the bar back. */
    if (done > progress->done)
        progress->done = done;
    int64_t now_ns = tdmi_clock_ns();
    if (note)
        tdmi_quote_text(progress->note, sizeof progress->note, "%s", note);
    if (now_ns - progress->drawn_ns >= every_ns)
        draw(progress, now_ns);
    pthread_mutex_unlock(&progress->lock);
}

void tdmi_progress_stop(tdmi_progress_display *progress)
{
    if (!progress)
        return;
    if (progress->style == TDMI_PROGRESS_BAR) {
        fputs("\r\x1b[K", progress->stream);
        fflush(progress->stream);
    } else if (tdmi_clock_ns() - progress->start_ns >= last_line_after_ns) {
        char text[TDMI_PROGRESS_BYTES];
        struct tdmi_progress_view view = look(progress, tdmi_clock_ns());
        view.per_s = view.seconds > 0.0 ? (double)view.done / view.seconds : 0.0;
        tdmi_progress_line(&view, 1, text);
        fprintf(progress->stream, "%s\n", text);
        fflush(progress->stream);
    }
    pthread_mutex_destroy(&progress->lock);
    tdmi_free(progress);
}

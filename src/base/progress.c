/*
 * Progress for people. Any thread reports; whoever comes a tenth of a second after the last drawing
 * draws, the others only leave their number behind. The rate is an average in which what happened
 * fifteen seconds ago weighs a third: it follows a change, and does not jump.
 */
#include "base/progress.h"
#include "base/clock.h"
#include "base/system/env.h"
#include "base/memory.h"
#include "base/progress_form.h"
#include "base/text/quote.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

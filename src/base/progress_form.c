/*
 * How progress looks.
 *
 *     training epoch 3 [=========>          ] 48% 864/1800 images 412/s 0:02 left loss 0.41
 *
 * The bar takes the columns that the words leave; where too few are left it goes, and then the line
 * is cut at its end.
 */
#include "base/progress_form.h"
#include "base/text/quote.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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
static int columns_of(const char *text)
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
    int room = columns - columns_of(text) - columns_of(words) - 3;
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

/*
 * Events for people. A bar may stand on the line when a note or an epoch arrives; on a terminal the
 * line is cleared first and the bar draws itself again below.
 */
#include "cli/watch.h"
#include "base/text/quote.h"
#include "tandem/metrics.h"

#include <stdio.h>
#include <unistd.h>

static void clear_line(const struct tdmi_watch *watch)
{
    if (watch->progress && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* A note may name files; longer ones than this are cut, as errors are. */
static void print_note(const char *text)
{
    char line[2 * TDM_ERROR_TEXT_BYTES];
    tdmi_quote_text(line, sizeof line, "%s", text);
    fprintf(stderr, "%s\n", line);
}

static void print_epoch(struct tdmi_watch *watch, const tdm_event *event)
{
    if (!watch->has_header)
        fprintf(stderr, "%5s %8s %10s %10s %9s %10s %9s  %-16s %8s\n", "epoch", "step", "rate",
                "train loss", "accuracy", "val loss", "accuracy", "95 % interval", "seconds");
    watch->has_header = true;
    fprintf(stderr, "%5d %8lld %10.4g %10.4f %7.1f %% ", event->epoch, (long long)event->step,
            event->learning_rate, event->train.loss, 100.0 * event->train.accuracy);
    if (event->val.n > 0)
        fprintf(stderr, "%10.4f %7.1f %%  %5.1f to %5.1f %% %8.1f%s%s%s\n", event->val.loss,
                100.0 * tdm_accuracy_distinct(&event->val), 100.0 * event->val.low,
                100.0 * event->val.high, event->seconds,
                tdmi_style_begin(watch->has_color, TDMI_GREEN), event->is_best ? "  best" : "",
                tdmi_style_end(watch->has_color));
    else
        fprintf(stderr, "%10s %9s  %-16s %8.1f\n", "-", "-", "not validated", event->seconds);
}

static void on_event(void *self, const tdm_event *event)
{
    struct tdmi_watch *watch = self;
    char note[48] = "";
    if (watch->is_quiet)
        return;
    switch (event->kind) {
    case TDM_EVENT_NOTE:
        if (event->is_detail && !watch->is_verbose)
            break;
        clear_line(watch);
        print_note(event->text);
        break;
    case TDM_EVENT_PHASE_BEGIN:
        tdmi_progress_stop(watch->progress);
        watch->progress =
            tdmi_progress_start(stderr, TDMI_PROGRESS_AUTO, event->text, watch->unit, event->total);
        break;
    case TDM_EVENT_PROGRESS:
        if (event->step > 0)
            snprintf(note, sizeof note, "loss %.4f", event->loss);
        tdmi_progress_update(watch->progress, event->done, *note ? note : NULL);
        break;
    case TDM_EVENT_PHASE_END:
        tdmi_progress_stop(watch->progress);
        watch->progress = NULL;
        break;
    case TDM_EVENT_EPOCH:
        clear_line(watch);
        print_epoch(watch, event);
        break;
    case TDM_EVENT_CHECKPOINT:
        /* Every epoch writes one; people need the run folder, which is printed at the end. */
        break;
    }
}

tdm_sink tdmi_watch_sink(struct tdmi_watch *watch)
{
    return (tdm_sink){watch, on_event};
}

void tdmi_watch_stop(struct tdmi_watch *watch)
{
    tdmi_progress_stop(watch->progress);
    watch->progress = NULL;
}

const char *tdmi_format_score(const tdm_score *score, char *text, size_t text_bytes)
{
    if (score->n > 0 && score->n_distinct < score->n)
        snprintf(text, text_bytes,
                 "%.1f %% right, %lld of %lld; without copies %.1f %% (95 %%: %.1f to %.1f), %lld "
                 "of %lld",
                 100 * score->accuracy, (long long)score->correct, (long long)score->n,
                 100 * tdm_accuracy_distinct(score), 100 * score->low, 100 * score->high,
                 (long long)score->correct_distinct, (long long)score->n_distinct);
    else if (score->n > 0)
        snprintf(text, text_bytes, "%.1f %% right (95 %%: %.1f to %.1f), %lld of %lld",
                 100 * score->accuracy, 100 * score->low, 100 * score->high,
                 (long long)score->correct, (long long)score->n);
    else
        snprintf(text, text_bytes, "no images, so nothing to say");
    return text;
}

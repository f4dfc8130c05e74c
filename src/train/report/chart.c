/* The drawings of a page: lines over epochs, calibration, confusions. */
#include "train/report/html.h"
#include "base/scope.h"

#include <math.h>

enum { width = 4800, height = 2700, left = 620, right = 140, top = 420, bottom = 420 };

struct axis {
    double low, high, step;
    int from, to; /* where low and high are drawn */
};

static int place(const struct axis *axis, double value)
{
    const double share = (value - axis->low) / (axis->high - axis->low);
    return axis->from + (int)lround(share * (axis->to - axis->from));
}

/* Ends at multiples of 1, 2 or 5 times a power of ten, about five steps apart. */
static struct axis round_axis(double low, double high, int from, int to)
{
    if (!(high > low)) {
        const double around = fabs(low) > 0.0 ? 0.5 * fabs(low) : 1.0;
        low -= around;
        high += around;
    }
    const double rough = (high - low) / 5.0, power = pow(10.0, floor(log10(rough)));
    const double step = power * (rough <= power         ? 1.0
                                 : rough <= 2.0 * power ? 2.0
                                 : rough <= 5.0 * power ? 5.0
                                                        : 10.0);
    return (struct axis){floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step,
                         from, to};
}

static void begin(tdmi_text *out, const char *title)
{
    tdmi_text_printf(out,
                     "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title><text "
                     "class=\"t\" x=\"%d\" y=\"170\">%s</text>\n",
                     width, height, title, left, title);
}

static void end(tdmi_text *out)
{
    tdmi_text_printf(out, "</svg></figure>\n");
}

static void draw_axes(tdmi_text *out, const struct axis *x, const struct axis *y, const char *unit)
{
    for (int i = 0; i <= (int)lround((y->high - y->low) / y->step); i++) {
        const double value = y->low + i * y->step;
        const int at = place(y, value);
        tdmi_text_printf(out,
                         "<path class=\"g\" d=\"M%d %dH%d\"/><text class=\"r\" x=\"%d\" "
                         "y=\"%d\">%.6g%s</text>\n",
                         x->from, at, x->to, x->from - 60, at + 40,
                         fabs(value) < 1e-9 * y->step ? 0.0 : value, unit);
    }
    for (int i = 0; i <= (int)lround((x->high - x->low) / x->step); i++) {
        const double value = x->low + i * x->step;
        tdmi_text_printf(out, "<text class=\"m\" x=\"%d\" y=\"%d\">%.6g</text>\n", place(x, value),
                         y->from + 160, fabs(value) < 1e-9 * x->step ? 0.0 : value);
    }
}

static void draw_series(tdmi_text *out, const struct tdmi_series *series, int colour,
                        const struct axis *x, const struct axis *y)
{
    bool is_down = false;
    tdmi_text_printf(out, "<path class=\"l c%d\" d=\"", colour);
    for (size_t i = 0; i < series->n; i++) {
        if (!isfinite(series->y[i]))
            continue; /* epochs that were not validated are passed over, not gaps */
        tdmi_text_printf(out, "%c%d %d", is_down ? 'L' : 'M', place(x, series->x[i]),
                         place(y, series->y[i]));
        is_down = true;
    }
    tdmi_text_printf(out, "\"/>\n");
    for (size_t i = 0; i < series->n && series->n <= 100; i++)
        if (isfinite(series->y[i]))
            tdmi_text_printf(
                out,
                "<circle class=\"c%d\" cx=\"%d\" cy=\"%d\" r=\"32\"><title>epoch %.0f: "
                "%.5g</title></circle>\n",
                colour, place(x, series->x[i]), place(y, series->y[i]), series->x[i], series->y[i]);
}

void tdmi_chart_lines(tdmi_text *out, const char *title, const char *unit,
                      const struct tdmi_series *series, int n_series, double marked)
{
    double low = INFINITY, high = -INFINITY, last = 1.0;
    for (int s = 0; s < n_series; s++)
        for (size_t i = 0; i < series[s].n; i++)
            if (isfinite(series[s].y[i])) {
                low = fmin(low, series[s].y[i]);
                high = fmax(high, series[s].y[i]);
                last = fmax(last, series[s].x[i]);
            }
    if (!(low <= high))
        return;
    const struct axis y = round_axis(low, high, height - bottom, top);
    struct axis x = round_axis(0.0, last, left, width - right);
    x.step = fmax(1.0, x.step);
    x.high = ceil(last / x.step) * x.step;
    begin(out, title);
    draw_axes(out, &x, &y, unit);
    if (isfinite(marked))
        tdmi_text_printf(
            out, "<path class=\"b\" d=\"M%d %dV%d\"><title>best: epoch %.0f</title></path>\n",
            place(&x, marked), y.from, y.to, marked);
    for (int s = 0; s < n_series; s++)
        draw_series(out, &series[s], s % 6, &x, &y);
    for (int s = 0; s < n_series && s < 6; s++) {
        const int at = left + s % 3 * 1400, line = 300 + s / 3 * 110;
        tdmi_text_printf(out,
                         "<rect class=\"c%d\" x=\"%d\" y=\"%d\" width=\"80\" height=\"80\"/><text "
                         "x=\"%d\" y=\"%d\">",
                         s, at, line - 70, at + 120, line);
        tdmi_html_short(out, series[s].name, 22);
        tdmi_text_printf(out, "</text>\n");
    }
    tdmi_text_printf(out, "<text class=\"m\" x=\"%d\" y=\"%d\">epoch</text>\n",
                     (left + width - right) / 2, height - 60);
    end(out);
}

/* How many images each bin has, as bars at the foot. */
static void draw_bins(tdmi_text *out, const struct tdm_metrics *metrics, const struct axis *x,
                      const struct axis *y)
{
    int64_t most = 1;
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++)
        most = metrics->bins[b].n > most ? metrics->bins[b].n : most;
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++) {
        const int from = place(x, b / 15.0), to = place(x, (b + 1) / 15.0);
        const int tall = (int)(500.0 * (double)metrics->bins[b].n / (double)most);
        if (tall > 0)
            tdmi_text_printf(out,
                             "<rect class=\"n\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                             from + 15, y->from - tall, to - from - 30, tall);
    }
}

void tdmi_chart_calibration(tdmi_text *out, const struct tdm_metrics *metrics)
{
    const struct axis x = {0.0, 1.0, 0.2, left, width - right};
    const struct axis y = {0.0, 1.0, 0.2, height - bottom, top};
    begin(out, "Calibration");
    draw_axes(out, &x, &y, "");
    draw_bins(out, metrics, &x, &y);
    tdmi_text_printf(out, "<path class=\"b\" d=\"M%d %dL%d %d\"/>\n", x.from, y.from, x.to, y.to);
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++) {
        const struct tdm_calibration_bin *bin = &metrics->bins[b];
        if (bin->n_distinct == 0)
            continue;
        const double accuracy = (double)bin->correct_distinct / (double)bin->n_distinct;
        const tdm_interval interval = tdm_wilson(bin->correct_distinct, bin->n_distinct);
        const int at = place(&x, bin->confidence);
        tdmi_text_printf(
            out,
            "<path class=\"l c0\" d=\"M%d %dV%d\"/><circle class=\"c0\" cx=\"%d\" cy=\"%d\" "
            "r=\"45\"><title>%lld of %lld right, mean probability %.1f %%</title></circle>\n",
            at, place(&y, interval.low), place(&y, interval.high), at, place(&y, accuracy),
            (long long)bin->correct_distinct, (long long)bin->n_distinct, 100.0 * bin->confidence);
    }
    tdmi_text_printf(out,
                     "<text class=\"m\" x=\"%d\" y=\"%d\">mean probability (grey: images)</text>\n",
                     (left + width - right) / 2, height - 60);
    end(out);
}

/* ---- confusions: a cell's shade is its part of the row, so that classes of few images can be seen
 * as well as large ones --------------------------------------------------------------------------
 */

enum { cell = 300, names = 1900, head = 1700 };

static void put_name(tdmi_text *out, const struct tdm_metrics *metrics, int class)
{
    tdmi_html_put(out, "<title>", metrics->per_class[class].label, "</title>");
    tdmi_html_short(out, metrics->per_class[class].label, 20);
}

static void put_cell(tdmi_text *out, int row, int column, int64_t n, int64_t of, bool is_right)
{
    const int x = names + column * cell, y = head + row * cell;
    if (n == 0)
        return;
    tdmi_text_printf(out,
                     "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                     "fill-opacity=\"%d%%\"/><text class=\"v\" x=\"%d\" y=\"%d\">%lld</text>\n",
                     is_right ? "c0" : "c1", x + 5, y + 5, cell - 10, cell - 10,
                     8 + (int)(72.0 * (double)n / (double)of), x + cell / 2, y + cell / 2 + 40,
                     (long long)n);
}

static void put_heads(tdmi_text *out, const struct tdm_metrics *metrics, const int *classes, int n,
                      bool has_others)
{
    for (int i = 0; i < n; i++) {
        const int x = names + i * cell + cell / 2 + 40, y = head + i * cell + cell / 2 + 40;
        tdmi_text_printf(out, "<text class=\"r\" x=\"%d\" y=\"%d\">", names - 80, y);
        put_name(out, metrics, classes[i]);
        tdmi_text_printf(out, "</text>\n<text transform=\"translate(%d %d) rotate(-60)\">", x,
                         head - 60);
        put_name(out, metrics, classes[i]);
        tdmi_text_printf(out, "</text>\n");
    }
    if (has_others)
        tdmi_text_printf(out,
                         "<text transform=\"translate(%d %d) rotate(-60)\">all others</text>\n",
                         names + n * cell + cell / 2 + 40, head - 60);
}

tdm_status tdmi_chart_confusion(tdmi_text *out, const struct tdm_metrics *metrics,
                                const int *classes, int n, tdm_error *err)
{
    int64_t counts[TDMI_HEAT_MOST][TDMI_HEAT_MOST + 1] = {{0}};
    const bool has_others = n < metrics->n_classes;
    TDMI_AT_END(tdmi_free_at) int *rows = NULL;
    TDMI_TRY(TDMI_NEW(rows, metrics->n_classes, err));
    for (int c = 0; c < metrics->n_classes; c++)
        rows[c] = TDMI_HEAT_MOST;
    for (int i = 0; i < n; i++)
        rows[classes[i]] = i;
    for (int64_t i = 0; i < metrics->n_confusion; i++) {
        const struct tdm_confusion *pair = &metrics->confusion[i];
        if (rows[pair->label] < TDMI_HEAT_MOST)
            counts[rows[pair->label]][rows[pair->predicted]] += pair->n;
    }
    /* Ten classes fit a phone; more of them scroll before their names get too small to read. */
    const int wide = (names + (n + 1) * cell + 900) / 10;
    tdmi_text_printf(out,
                     "<figure class=\"heat\"><svg viewBox=\"0 0 %d %d\" width=\"%d\" "
                     "style=\"min-width:%dpx\" role=\"img\"><title>Confusions</title>\n",
                     10 * wide, head + n * cell + 100, wide, wide / 2);
    put_heads(out, metrics, classes, n, has_others);
    for (int r = 0; r < n; r++) {
        const int64_t of = metrics->per_class[classes[r]].n;
        for (int c = 0; c < n; c++)
            put_cell(out, r, c, counts[r][c], of, r == c);
        put_cell(out, r, n, counts[r][TDMI_HEAT_MOST], of, false);
    }
    tdmi_text_printf(out,
                     "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                     "</svg></figure>\n",
                     names, head, (n + has_others) * cell, n * cell);
    return TDM_OK;
}

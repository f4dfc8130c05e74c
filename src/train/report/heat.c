/*
 * Which classes are taken for which. A cell's shade is its part of the row, so that classes of few
 * pictures can be seen as well as large ones.
 */
#include "base/memory.h"
#include "train/report/html.h"

enum { cell = 300, names = 1900, head = 1700 };

static void put_name(tdmi_text *out, const struct tdm_metrics *metrics, int class)
{
    tdmi_text_printf(out, "<title>");
    tdmi_html_text(out, metrics->per_class[class].label);
    tdmi_text_printf(out, "</title>");
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
    int *rows = tdmi_alloc((size_t)metrics->n_classes, sizeof *rows);
    if (!rows)
        return TDM_FAIL(err, TDM_E_MEMORY, "drawing %d classes: out of memory", metrics->n_classes);
    for (int c = 0; c < metrics->n_classes; c++)
        rows[c] = TDMI_HEAT_MOST;
    for (int i = 0; i < n; i++)
        rows[classes[i]] = i;
    for (int64_t i = 0; i < metrics->n_confusion; i++) {
        const struct tdm_confusion *pair = &metrics->confusion[i];
        if (rows[pair->label] < TDMI_HEAT_MOST)
            counts[rows[pair->label]][rows[pair->predicted]] += pair->n;
    }
    tdmi_text_printf(out,
                     "<figure class=\"heat\"><svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">"
                     "<title>Confusions</title>\n",
                     names + (n + 1) * cell + 900, head + n * cell + 100,
                     (names + (n + 1) * cell + 900) / 10);
    put_heads(out, metrics, classes, n, has_others);
    for (int r = 0; r < n; r++) {
        const int64_t of = metrics->per_class[classes[r]].n;
        for (int c = 0; c < n; c++)
            put_cell(out, r, c, counts[r][c], of, r == c);
        if (has_others)
            put_cell(out, r, n, counts[r][TDMI_HEAT_MOST], of, false);
    }
    tdmi_text_printf(out,
                     "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                     "</svg></figure>\n",
                     names, head, (n + has_others) * cell, n * cell);
    tdmi_free(rows);
    return TDM_OK;
}

/*
 * Writing a page: text that is other people's, and drawings as inline SVG. Coordinates are whole
 * numbers, tenths of a pixel, so no locale can put a comma into them.
 */
#pragma once

#include "base/text/text.h"
#include "tandem/metrics.h"

/* Escaped for element content and quoted attributes; controls and what is no UTF-8 are
 * spelled as base/text/quote.h says. */
void tdmi_html_text(tdmi_text *out, const char *text);
/* The same, at most so many characters of it, with … where it is cut. */
void tdmi_html_short(tdmi_text *out, const char *text, int most);

/* before and after are markup, text is escaped. */
void tdmi_html_put(tdmi_text *out, const char *before, const char *text, const char *after);

/* As the value of a data: address. */
void tdmi_html_base64(tdmi_text *out, const uint8_t *bytes, int64_t n_bytes);

struct tdmi_series {
    const char *name;
    const double *x, *y; /* y NaN: nothing there */
    size_t n;
};

/* Lines over epochs; marked: an x that gets a vertical line, NaN: none. */
void tdmi_chart_lines(tdmi_text *out, const char *title, const char *unit,
                      const struct tdmi_series *series, int n_series, double marked);
/* Accuracy over confidence, with intervals, and how many images each bin has. */
void tdmi_chart_calibration(tdmi_text *out, const struct tdm_metrics *metrics);
/* Rows are labels; classes is which of them, n at most TDMI_HEAT_MOST. What lies outside is one
 * last column. */
enum { TDMI_HEAT_MOST = 20 };
tdm_status tdmi_chart_confusion(tdmi_text *out, const struct tdm_metrics *metrics,
                                const int *classes, int n, tdm_error *err) TDM_MUST_USE;

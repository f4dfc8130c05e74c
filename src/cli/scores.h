/* Counts of an evaluation, printed for people. */
#pragma once

#include "cli/output.h"
#include "tandem/metrics.h"

/* --show of evaluate and runs: rows of a table. */
enum { TDMI_SHOW_DEFAULT = 20, TDMI_SHOW_MOST = 1000 };

#define TDMI_ROW_SHOW(member)                                                              \
    TDMI_ROW(INTEGER, "show", member, "Result",                                            \
             "classes to print, worst first, and half as many confusions; --json has all", \
             .high = TDMI_SHOW_MOST, .unit = "classes", .is_common = true)

/* "  NAME  81.25 % right (…)"; nothing where no image was evaluated. */
void tdmi_print_score(struct tdmi_output *out, const char *name, const tdm_score *score);
/* A table of at most so many classes, worst first; half as many confusions, most frequent first;
 * the whole in a few lines. */
void tdmi_print_metrics(struct tdmi_output *out, const struct tdm_metrics *metrics, int most);

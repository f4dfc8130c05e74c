/* Counts of an evaluation, printed for people. */
#pragma once

#include "cli/output.h"
#include "tandem/metrics.h"

/* The validation images chose the epoch, so their accuracy is never called that of unseen ones. */
#define TDMI_TITLE_VALIDATION "validation accuracy (these images chose the epoch)"

/* --show of evaluate and runs: rows of a table. */
enum { TDMI_SHOW_DEFAULT = 20, TDMI_SHOW_MOST = 1000 };

#define TDMI_ROW_SHOW(member)                                                              \
    TDMI_ROW(INTEGER, "show", member, "Result",                                            \
             "classes to print, worst first, and half as many confusions; --json has all", \
             .high = TDMI_SHOW_MOST, .unit = "classes", .is_common = true)

/* "  NAME  81.3 % right (…)"; nothing where no image was evaluated. */
void tdmi_print_score(struct tdmi_output *out, const char *name, const tdm_score *score);
/* The answers before each step of the best epoch, which the weights had not learned yet. */
void tdmi_print_train_score(struct tdmi_output *out, const tdm_score *score);
/* A table of at most so many classes, worst first; half as many confusions, most frequent first;
 * the whole in a few lines, of which the first begins with the title ("": none). */
void tdmi_print_metrics(struct tdmi_output *out, const char *title,
                        const struct tdm_metrics *metrics, int most);

/*
 * Lines in which a rank reports to `tandem run`, on standard error, that it begins and with which
 * status it ends. Other launchers between them lose statuses: srun returns 0 after a node has
 * failed, MPICH's mpiexec 9 for any. `tandem run` does not pass these lines on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Set for the ranks that are to report. */
#define TDMI_REPORT_VARIABLE "TANDEM_REPORT"

struct tdmi_rank_line {
    int rank;
    int status;          /* -1: it begins */
    size_t before_bytes; /* of the line, of another rank that had not ended its own */
};

/* In one write, so that lines of several ranks do not mix. */
void tdmi_rank_line_write(int rank, int status);
/* False: the line, without its end, is none of these. */
bool tdmi_rank_line_read(const char *line, struct tdmi_rank_line *report);

/*
 * The trace of a training (`tandem train --trace`), read back and added up: where the time of every
 * rank went, how much communication was hidden behind computing, and who waited for whom.
 */
#ifndef TANDEM_TRACE_H
#define TANDEM_TRACE_H

#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds of one rank. Those of `computing` to `other` add up to `seconds`. */
struct tdm_trace_rank {
    int rank;
    int64_t steps;
    double seconds;   /* from the end of the step before to the end of the last one; of the first
                         step, from when its images were waited for */
    double computing; /* in steps, but for the waits below */
    double images;    /* waiting for the loader */
    double sums;      /* waiting for sums of gradients: communication that was not hidden */
    double messages;  /* waiting for other messages */
    double other;     /* validations, checkpoints and the rest */
    double communication; /* sums of gradients under way; ranks that are late count too */
    int waited_for;       /* the rank that came last most of the time of `sums`; -1: none */
    double waited;        /* for that one */
};

struct tdm_trace_sums {
    int64_t first_step, last_step;      /* that are added up */
    int64_t n_events, n_dropped;        /* in the file; dropped before it was written */
    size_t n_ranks;                     /* in the file, with steps */
    const struct tdm_trace_rank *ranks; /* by number */
    double communication;               /* seconds of all ranks */
    double exposed;                     /* seconds of it for which computing had to wait */
    double hidden;                      /* 1 - exposed / communication; 0: no communication */
    int straggler;                      /* the rank that the others waited for most; -1: none */
    double straggler_seconds;           /* waited for it by all others together */
};

typedef struct tdm_trace tdm_trace;

/* Steps first to last only; 0: from the first, to the last one. TDM_E_INPUT: no trace, or it holds
 * no such step. */
TDM_API tdm_status tdm_trace_read(const char *path, int64_t first, int64_t last, tdm_trace **trace,
                                  tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_trace_close(tdm_trace *trace);
TDM_API const struct tdm_trace_sums *tdm_trace_sums_of(const tdm_trace *trace);

#ifdef __cplusplus
}
#endif
#endif

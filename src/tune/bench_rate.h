/* Summary of a series of measured rates. */
#pragma once

#include "tandem/bench.h"

/* Runs that a GPU is given between two waits, so that they share the wait's cost. */
enum { TDMI_BENCH_IN_A_ROW = 8 };

/* Median, least and largest of n, at least 1; rates is sorted. */
struct tdm_bench_rate tdmi_bench_spread(double *rates, int n);

/* CPU time of the whole process so far. */
double tdmi_cpu_seconds(void);

/* Summary of a series of measured rates. */
#pragma once

#include "tandem/bench.h"

/* Median, least and largest of n, at least 1; rates is sorted. */
struct tdm_bench_rate tdmi_bench_spread(double *rates, int n);

/* CPU time of the whole process so far. */
double tdmi_cpu_seconds(void);

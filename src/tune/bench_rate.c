/* Median and spread: a few rates are sorted, not estimated. */
#include "tune/bench_rate.h"

#include <stdlib.h>
#include <time.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct tdm_bench_rate tdmi_bench_spread(double *rates, int n)
{
    qsort(rates, (size_t)n, sizeof *rates, by_size);
    double median = n % 2 ? rates[n / 2] : (rates[n / 2 - 1] + rates[n / 2]) / 2;
    return (struct tdm_bench_rate){.median = median, .low = rates[0], .high = rates[n - 1]};
}

double tdmi_cpu_seconds(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/*
 * Counts and what they prove. Every accuracy tandem reports carries n and a Wilson interval; every
 * "better" rests on a paired test on the same images.
 */
#ifndef TANDEM_STATS_H
#define TANDEM_STATS_H

#include "tandem/api.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_interval {
    double low, high;
} tdm_interval;

/* The 95 % Wilson score interval of correct out of n; [0, 1] when n is 0. */
TDM_API tdm_interval tdm_wilson(int64_t correct, int64_t n);

/* Exact two-sided McNemar test: only_a images right in A alone, only_b in B alone. Returns the
 * probability of a split at least this uneven when A and B are equally good; 1 when both are 0. */
TDM_API double tdm_mcnemar_exact(int64_t only_a, int64_t only_b);

/* The 95 % score interval (Tango 1998) of how much larger B's rate is than A's on the same n
 * images: around (only_b - only_a) / n. It fits McNemar's test, holds its level at few discordant
 * images and is never empty where there are none. [-1, 1] when n is 0. */
TDM_API tdm_interval tdm_paired_interval(int64_t only_a, int64_t only_b, int64_t n);

/* Streaming mean and variance (Welford). Start from a zeroed object. */
typedef struct tdm_moments {
    int64_t n;
    double mean, m2;
} tdm_moments;

TDM_API void tdm_moments_add(tdm_moments *moments, double value);
/* Sample variance (n - 1); 0 below two values. */
TDM_API double tdm_moments_variance(const tdm_moments *moments);

#ifdef __cplusplus
}
#endif
#endif

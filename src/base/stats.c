/*
 * Counts and what they prove: intervals and paired tests from integers alone, no table, no random
 * number. Exact sums are walked from their largest term outwards, so nothing over- or underflows
 * before the last step.
 */
#include "tandem/metrics.h"

#include <math.h>

/* The 97.5 % point of the normal distribution. */
static const double z = 1.959963984540054;

static int64_t at_least_0(int64_t count)
{
    return count < 0 ? 0 : count;
}

tdm_interval tdm_wilson(int64_t correct, int64_t n)
{
    /* Wilson, J. Am. Stat. Assoc. 22 (1927). */
    if (n <= 0)
        return (tdm_interval){0.0, 1.0};
    correct = correct < 0 ? 0 : correct > n ? n : correct;
    double count = (double)n, p = (double)correct / count, q = (double)(n - correct) / count;
    double scale = 1.0 + z * z / count;
    double centre = (p + z * z / (2.0 * count)) / scale;
    double half = z * sqrt(p * q / count + z * z / (4.0 * count * count)) / scale;
    /* The ends are exactly 0 and 1 there, but rounding would miss them by a little. */
    return (tdm_interval){
        .low = correct == 0 ? 0.0 : fmax(0.0, centre - half),
        .high = correct == n ? 1.0 : fmin(1.0, centre + half),
    };
}

/* log(n!) minus Stirling's formula, for n above a thousand (the next term is below 1e-18). */
static double stirling_rest(double n)
{
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * n * n)) / (n * n)) / n;
}

/* x log(x / mean) + mean - x without the cancellation near x = mean (Loader, "Fast and accurate
 * computation of binomial probabilities", 2000): a series in v = (x - mean) / (x + mean). */
static double deviance(double x, double mean)
{
    double v = (x - mean) / (x + mean);
    if (fabs(v) > 0.1)
        return x * log(x / mean) + mean - x;
    double sum = (x - mean) * v, power = 2.0 * x * v;
    for (int i = 3; i < 60; i += 2) {
        power *= v * v;
        double next = sum + power / i;
        if (next == sum)
            break;
        sum = next;
    }
    return sum;
}

/* log of the chance of k heads in n fair throws; k <= n / 2. */
static double log_chance(int64_t k, int64_t n)
{
    if (k <= 4096) {
        double sum = 0.0;
        for (int64_t i = 1; i <= k; i++)
            sum += log((double)(n - k + i) / (double)i);
        return sum - (double)n * log(2.0);
    }
    double a = (double)k, b = (double)(n - k), count = (double)n;
    return stirling_rest(count) - stirling_rest(a) - stirling_rest(b) - deviance(a, count / 2.0) -
           deviance(b, count / 2.0) + 0.5 * log(count / (2.0 * acos(-1.0) * a * b));
}

double tdm_mcnemar_exact(int64_t only_a, int64_t only_b)
{
    only_a = at_least_0(only_a);
    only_b = at_least_0(only_b);
    if (only_a == only_b)
        return 1.0;
    int64_t k = only_a < only_b ? only_a : only_b, n = only_a + only_b;
    /* Chances of k, k - 1, … heads relative to that of k: they fall ever faster, so the walk ends
     * after a few times sqrt(n) steps. */
    double sum = 1.0, term = 1.0;
    for (int64_t i = k; i > 0 && term > sum * 1e-18; i--) {
        term *= (double)i / (double)(n - i + 1);
        sum += term;
    }
    return fmin(1.0, 2.0 * exp(log_chance(k, n) + log(sum)));
}

/* How many standard deviations the counts are above the difference d, where the deviation is that
 * of the likeliest rates with this difference: q, that of "only A", is the root of
 * 2n q² + (d (2n - up + down) - up - down) q - down d (1 - d) = 0. Falls as d rises. */
static double paired_score(double up, double down, double n, double d)
{
    const double a = 2.0 * n, b = d * (2.0 * n - up + down) - up - down;
    const double c = -down * d * (1.0 - d);
    const double root = sqrt(fmax(0.0, b * b - 4.0 * a * c));
    /* Without the cancellation of -b + root where b is positive. */
    double q = b > 0.0 ? 2.0 * -c / (b + root) : (root - b) / (2.0 * a);
    q = fmax(q, fmax(0.0, -d));
    const double variance = n * (2.0 * q + d * (1.0 - d));
    const double above = up - down - n * d;
    if (variance > 0.0)
        return above / sqrt(variance);
    return above > 0.0 ? INFINITY : above < 0.0 ? -INFINITY : 0.0;
}

/* Where paired_score is level, between low (above the level) and high (below it). */
static double paired_end(double up, double down, double n, double level, double low, double high)
{
    for (int i = 0; i < 200; i++) {
        const double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            break;
        if (paired_score(up, down, n, middle) > level)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

tdm_interval tdm_paired_interval(int64_t only_a, int64_t only_b, int64_t n)
{
    if (n <= 0)
        return (tdm_interval){-1.0, 1.0};
    const double up = (double)at_least_0(only_b), down = (double)at_least_0(only_a);
    const double count = (double)n;
    const double middle = (up - down) / count;
    return (tdm_interval){
        .low = middle <= -1.0 ? -1.0 : paired_end(up, down, count, z, -1.0, middle),
        .high = middle >= 1.0 ? 1.0 : paired_end(up, down, count, -z, middle, 1.0),
    };
}

void tdm_moments_add(tdm_moments *moments, double value)
{
    double before = value - moments->mean;
    moments->n++;
    moments->mean += before / (double)moments->n;
    moments->m2 += before * (value - moments->mean);
}

double tdm_moments_variance(const tdm_moments *moments)
{
    return moments->n < 2 ? 0.0 : moments->m2 / (double)(moments->n - 1);
}

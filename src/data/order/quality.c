/*
 * Quality of an order, as order.h defines it: the distances between samples of one batch, compared
 * with those of a full shuffle. Pairs of a batch show a weak shuffle: neighbours in the file, often
 * of one class or one film, meet in a step.
 */
#include "data/order/order.h"

#include "base/hash/rng.h"
#include <math.h>
#include <stdlib.h>

enum { MAX_BATCHES = 4096, PAIRS = 16 };

static int by_value(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* P(distance <= k) of two distinct samples drawn from n. */
static double full_shuffle(double k, double n)
{
    return k * (2 * n - k - 1) / (n * (n - 1));
}

/* The distances of the fixed pairs; returns how many there are. */
static int64_t measure(const tdmi_order *order, uint32_t epoch, int64_t batch, int64_t *distances)
{
    const int64_t n_batches = (order->n + batch - 1) / batch;
    const int64_t n_taken = n_batches < MAX_BATCHES ? n_batches : MAX_BATCHES;
    int64_t n = 0;
    for (int64_t i = 0; i < n_taken; i++) {
        /* Evenly spread; the product of i and n_batches could overflow. */
        int64_t first = batch * (n_batches / n_taken * i + n_batches % n_taken * i / n_taken);
        int64_t length = order->n - first < batch ? order->n - first : batch;
        if (length < 2)
            continue;
        tdmi_rng rng = tdmi_rng_at(0, TDMI_RNG_ORDER, 0, (uint64_t)i);
        for (int p = 0; p < PAIRS; p++) {
            int64_t one = tdmi_rng_below(&rng, (uint32_t)length);
            int64_t other = tdmi_rng_below(&rng, (uint32_t)length - 1);
            other += other >= one;
            int64_t distance = tdmi_order_at(order, epoch, first + one) -
                               tdmi_order_at(order, epoch, first + other);
            distances[n++] = distance < 0 ? -distance : distance;
        }
    }
    return n;
}

/* Kolmogorov's distance; both functions are stairs with steps at whole numbers. */
static double difference(const tdmi_order *order, uint32_t epoch, int64_t batch, int64_t *distances)
{
    const int64_t n = measure(order, epoch, batch, distances);
    qsort(distances, (size_t)n, sizeof *distances, by_value);
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double k = (double)distances[i];
        if (i == 0 || distances[i - 1] != distances[i]) /* just below the step */
            largest =
                fmax(largest, fabs((double)i / (double)n - full_shuffle(k - 1, (double)order->n)));
        if (i + 1 == n || distances[i + 1] != distances[i])
            largest = fmax(largest,
                           fabs((double)(i + 1) / (double)n - full_shuffle(k, (double)order->n)));
    }
    return largest;
}

tdm_status tdmi_order_quality(const tdmi_order *order, uint32_t epoch, int batch, double *quality,
                              tdm_error *err)
{
    *quality = 1;
    if (order->kind == TDMI_ORDER_BALANCED)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot compare an order of weighted classes with a full shuffle: it draws "
                        "samples more than once");
    if (batch < 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot evaluate a shuffle by batches of %d: 1 or more are needed", batch);
    if (batch == 1 || batch >= order->n)
        return TDM_OK; /* nothing meets, or everything */
    TDMI_AT_END(tdmi_free_at) int64_t *distances = NULL;
    TDMI_TRY(TDMI_NEW(distances, MAX_BATCHES * PAIRS, err));
    const tdmi_order file = {.n = order->n},
                     full = {.seed = order->seed, .n = order->n, .is_shuffled = true};
    const double worst = difference(&file, 0, batch, distances);
    const double best = difference(&full, epoch, batch, distances);
    const double found = difference(order, epoch, batch, distances);
    if (worst > best)
        *quality = fmin(1, fmax(0, (worst - found) / (worst - best)));
    return TDM_OK;
}

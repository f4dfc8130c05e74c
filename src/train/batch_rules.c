/* Rules of --batch auto. */
#include "train/batch_rules.h"

static const double worth_doubling = 1.1;

int tdmi_batch_most(int64_t n_pictures)
{
    enum { least_steps = 100 }; /* per epoch */
    int batch = TDMI_BATCH_LEAST;
    while (batch < TDMI_BATCH_MOST && n_pictures / (2 * batch) >= least_steps)
        batch *= 2;
    return batch;
}

int tdmi_batch_is_flat(const double *rates, int n)
{
    return n > 1 && rates[n - 1] < worth_doubling * rates[n - 2];
}

int tdmi_batch_best(const double *rates, int n)
{
    for (int i = 2; i <= n; i++)
        if (tdmi_batch_is_flat(rates, i))
            return i - 2;
    return n - 1;
}

/*
 * Choose the number of threads and slots of a loader from its measurements. A pure function, so
 * that tests can feed it numbers; the delivered batches do not depend on it.
 */
#ifndef TANDEM_DATA_LOADER_TUNE_H
#define TANDEM_DATA_LOADER_TUNE_H

#include <stdbool.h>

struct tdmi_tuning {
    int threads, depth; /* now, at least 1 */
    int most_threads, most_depth;
    int given_back; /* number of threads before the last was stopped; 0: none was */
    int floor;      /* fewest threads to keep, since fewer made the caller wait */
};

/* A stretch of time inside an epoch. */
struct tdmi_tuning_sample {
    double seconds;
    double consumer_waits; /* the caller had nothing to do */
    double ring_waits;     /* active threads had nothing to do, added up */
};

/* Change threads or depth by one and return the reason; NULL: no change. Static storage. */
const char *tdmi_tuning_step(struct tdmi_tuning *tuning, const struct tdmi_tuning_sample *sample);

#endif

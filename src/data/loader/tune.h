/*
 * How many threads and slots a loader should use, from what it measured. A pure function, so that
 * it can be tried on numbers; what is delivered does not depend on it.
 */
#ifndef TANDEM_DATA_LOADER_TUNE_H
#define TANDEM_DATA_LOADER_TUNE_H

#include <stdbool.h>

struct tdmi_tuning {
    int threads, depth; /* now, at least 1 */
    int most_threads, most_depth;
    int given_back; /* threads before one was last given back; 0: none was */
    int floor;      /* threads that turned out to be needed after one was given back */
};

/* A stretch of time inside an epoch. */
struct tdmi_tuning_sample {
    double seconds;
    double consumer_waits; /* the caller had nothing to do */
    double ring_waits;     /* active threads had nothing to do, added up */
};

/* Changes threads or depth by one and says why; NULL: all is well as it is. Static storage. */
const char *tdmi_tuning_step(struct tdmi_tuning *tuning, const struct tdmi_tuning_sample *sample);

#endif

/*
 * The rules of --batch auto, apart from what they are asked about: accuracy first, then speed.
 */
#ifndef TANDEM_TRAIN_BATCH_H
#define TANDEM_TRAIN_BATCH_H

#include <stdint.h>

/* The usual batch, which auto goes below only where memory wants it; and the largest that the rules
 * of scaling are known to hold for. Candidates are the least, doubled again and again. */
enum { TDMI_BATCH_LEAST = 32, TDMI_BATCH_MOST = 8192, TDMI_BATCH_CANDIDATES = 9 };

/* The largest of which an epoch of so many pictures still has 100 steps, or the least: with fewer
 * steps a training of the usual length learns less, at any rate. */
int tdmi_batch_most(int64_t n_pictures);

/* rates: pictures a second of the first n candidates, in their order. Is it settled that no more
 * are to be tried, because doubling brought less than a tenth? */
int tdmi_batch_is_flat(const double *rates, int n);
/* The first candidate after which that is so; the last where it never is. */
int tdmi_batch_best(const double *rates, int n);

#endif

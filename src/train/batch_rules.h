/*
 * Rules of --batch auto, as pure functions: accuracy first, then speed.
 */
#pragma once

#include <stdint.h>

/* The usual batch size, which auto undercuts only when memory is short, and the largest size for
 * which scaling rules are known to hold. Each candidate is twice the one before. */
enum { TDMI_BATCH_LEAST = 32, TDMI_BATCH_MOST = 8192, TDMI_BATCH_CANDIDATES = 9 };

/* Largest candidate with at least 100 steps in an epoch of n_pictures images, or the smallest
 * candidate: with fewer steps a training of the usual length learns less at any learning rate. */
int tdmi_batch_most(int64_t n_pictures);

/* rates: images per second of the first n candidates, in their order. Whether the last doubling
 * gained less than a tenth, so that no further candidate is tried. */
int tdmi_batch_is_flat(const double *rates, int n);
/* Index of the first candidate whose doubling gained too little, or of the last candidate. */
int tdmi_batch_best(const double *rates, int n);

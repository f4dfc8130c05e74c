/*
 * The order: which sample stands at a position of an epoch. A keyed permutation of [0, n) by a
 * Feistel network with cycle walking, so any position of any epoch costs O(1) and nothing is
 * stored: batches, threads, ranks and restarts all ask the same function.
 */
#ifndef TANDEM_DATA_ORDER_H
#define TANDEM_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdmi_order {
    uint64_t seed;
    int64_t n;        /* at least 1 */
    bool is_shuffled; /* false: position p is sample p */
} tdmi_order;

/* position in [0, n) -> sample in [0, n), one to one for each (seed, epoch). */
int64_t tdmi_order_at(const tdmi_order *order, uint32_t epoch, int64_t position);

#endif

/* Shared by the kinds of order: keyed permutations, and the entries of <kind>.c. */
#ifndef TANDEM_DATA_ORDER_KINDS_H
#define TANDEM_DATA_ORDER_KINDS_H

#include "data/order/order.h"

/* Which of an order's permutations: streams never share keys. */
enum tdmi_order_stream {
    TDMI_ORDER_STREAM_FULL,    /* index 0 */
    TDMI_ORDER_STREAM_GROUPS,  /* index 0 */
    TDMI_ORDER_STREAM_WINDOW,  /* index: the window */
    TDMI_ORDER_STREAM_BALANCED /* index: the class; epoch 0 */
};

struct tdmi_order_key {
    uint64_t seed;
    uint32_t epoch;
    enum tdmi_order_stream stream;
    uint64_t index;
};

/* The keyed permutation of [0, n). */
int64_t tdmi_order_permute(struct tdmi_order_key key, int64_t n, int64_t value);

int64_t tdmi_order_grouped_at(const tdmi_order *order, uint32_t epoch, int64_t position);
void tdmi_order_groups_free(struct tdmi_order_groups *groups);

int64_t tdmi_order_balanced_at(const tdmi_order *order, uint32_t epoch, int64_t position,
                               int64_t *repeat);
void tdmi_order_classes_free(struct tdmi_order_classes *classes);

#endif

/* The order that suits a source: a full shuffle, or one through its groups where it has groups. */
#ifndef TANDEM_DATA_ORDER_SOURCE_H
#define TANDEM_DATA_ORDER_SOURCE_H

#include "data/order/order.h"
#include "data/source/source.h"

/* Does the source have groups that an order should stay in? */
bool tdmi_order_has_groups(const tdmi_source *source);
/* GROUPED over a subset of the source (items ascending; NULL: all n of them). */
tdm_status tdmi_order_init_source(tdmi_order *order, const tdmi_source *source,
                                  const int64_t *items, int64_t n, uint64_t seed,
                                  tdm_error *err) TDM_MUST_USE;

#endif

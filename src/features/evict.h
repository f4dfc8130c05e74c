/*
 * Space for rows: the bytes of all keys of a store, the free bytes of the disk, and the keys to
 * evict.
 */
#ifndef TANDEM_FEATURES_EVICT_H
#define TANDEM_FEATURES_EVICT_H

#include "features/reservation.h"
#include "tandem/error.h"
#include <stdint.h>

struct tdmi_store_request {
    const char *root;
    const char *own;     /* name of the requesting key, which is never evicted */
    const char *folder;  /* of that key */
    int64_t limit_bytes; /* of everything under root; 0: 32 GiB, at most half of what is free */
    int64_t bytes;       /* wanted */
};

/* Evict keys that no process has open, the least recently used first and no more than needed. Where
 * all of them are not enough none is removed: TDM_E_SYSTEM. Bytes reserved by others count as used.
 * End the reservation after use; on failure there is none. */
tdm_status tdmi_store_make_room(const struct tdmi_store_request *request,
                                struct tdmi_store_reservation *reservation,
                                tdm_error *err) TDM_MUST_USE;

#endif

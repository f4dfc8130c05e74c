/*
 * Room for rows: what all keys of a store take, what the disk has free, and which keys give way.
 */
#ifndef TANDEM_DATA_STORE_EVICT_H
#define TANDEM_DATA_STORE_EVICT_H

#include "features/promise.h"
#include "tandem/error.h"
#include <stdint.h>

struct tdmi_store_request {
    const char *root;
    const char *own;     /* name of the key that wants room: it never gives way */
    const char *folder;  /* of that key */
    int64_t limit_bytes; /* of everything under root; 0: 32 GiB, at most half of what is free */
    int64_t bytes;       /* wanted */
};

/* Removes keys that nobody has open, the least recently used first and no more than needed. Where
 * all of them are not enough none is removed: TDM_E_SYSTEM. What others were promised is taken. The
 * promise is to be ended; in a failure there is none. */
tdm_status tdmi_store_make_room(const struct tdmi_store_request *request,
                                struct tdmi_store_promise *promise, tdm_error *err) TDM_MUST_USE;

#endif

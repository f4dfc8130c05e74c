/*
 * Features that a Delta table may require of its readers, and those supported here.
 */
#ifndef TANDEM_DATA_DELTA_PROTOCOL_H
#define TANDEM_DATA_DELTA_PROTOCOL_H

#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

struct tdmi_delta_protocol {
    int64_t reader_version;
    const char *const *features; /* of readers; version 3 lists them */
    size_t n_features;
    const char *mapping; /* delta.columnMapping.mode; NULL: not set */
};

/* TDM_E_INPUT names every required feature that is not supported. table is its name in messages. */
tdm_status tdmi_delta_protocol_check(const struct tdmi_delta_protocol *protocol, const char *table,
                                     tdm_error *err) TDM_MUST_USE;

#endif

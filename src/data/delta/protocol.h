/*
 * What a Delta table may ask of its readers, and which of that is met here.
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

/* TDM_E_INPUT names everything that is asked for and not met. table is named in the sentence. */
tdm_status tdmi_delta_protocol_check(const struct tdmi_delta_protocol *protocol, const char *table,
                                     tdm_error *err) TDM_MUST_USE;

#endif

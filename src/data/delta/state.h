/*
 * State of a replay between two actions. Internal: delta/replay.c writes it and delta/table.c makes
 * it into a table.
 */
#ifndef TANDEM_DATA_DELTA_STATE_H
#define TANDEM_DATA_DELTA_STATE_H

#include "data/delta/files.h"
#include "data/delta/protocol.h"

/* Kept as text: only the newest counts. */
struct tdmi_delta_metadata {
    const char *origin; /* NULL: none was seen */
    int64_t line;
    const char *schema, *mapping;
    const char **partition_columns;
    int n_partition_columns;
};

struct tdmi_delta_replay {
    tdmi_arena arena;
    const char *table;
    struct tdmi_delta_files files;
    struct tdmi_delta_protocol protocol;
    bool has_protocol;
    struct tdmi_delta_metadata metadata;
    const char **sidecars;
    int64_t n_sidecars, sidecar_capacity;
    const char *origin; /* of the last action */
};

#endif

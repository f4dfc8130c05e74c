/*
 * State of a replay between two actions. Internal: delta/replay.c writes it and delta/table.c makes
 * it into a table.
 */
#pragma once

#include "data/delta/replay.h"

/* ---- files ---- */

/*
 * The files that a Delta log has named so far, found by path and deletion vector. The last action
 * that names a file says whether it is part of the table.
 */

struct tdmi_delta_pair {
    const char *key, *value; /* value NULL: null */
};

struct tdmi_delta_entry {
    struct tdmi_delta_file file; /* without values */
    struct tdmi_delta_pair *values;
    int n_values;
    bool is_there; /* false: the last action that named it removed it */
    uint64_t hash; /* of put */
};

struct tdmi_delta_files { /* start from a zeroed object */
    struct tdmi_delta_entry *entries;
    int64_t n_entries, capacity;
    int64_t *slots; /* 1 + index of an entry, 0: free; a power of 2, at most half full */
    int64_t n_slots;
};

/* Kept as text: only the newest counts. */
struct tdmi_delta_metadata {
    const char *origin; /* NULL: none was seen */
    int64_t line;
    const char *schema;
    const char *mapping; /* delta.columnMapping.mode; NULL: not set */
    const char **partition_columns;
    int n_partition_columns;
};

struct tdmi_delta_replay {
    tdmi_arena arena;
    const char *table;
    struct tdmi_delta_files files;
    bool has_protocol;
    int64_t reader_version;
    const char **reader_features; /* required of readers; version 3 lists them */
    size_t n_reader_features;
    struct tdmi_delta_metadata metadata;
    const char **sidecars;
    int64_t n_sidecars, sidecar_capacity;
    const char *origin; /* of the last action */
};

/* ---- schema ---- */

/*
 * The columns of a Delta table, from the JSON text in its metaData, and whether the text of a
 * partition value is one of its column's type.
 */

/* Into the arena of the table: fields and n_fields. TDM_E_INPUT with a sentence about the schema.
 */
tdm_status tdmi_delta_schema_read(struct tdmi_delta_table *table, const char *text,
                                  tdm_error *err) TDM_MUST_USE;
/* -1: no such column. */
int tdmi_delta_schema_find(const struct tdmi_delta_table *table, const char *name);

/* Can a column of this type be one of partitions? */
bool tdmi_delta_type_divides(const char *type);
/* text is never "" (that is null) and the type is one that divides. */
bool tdmi_delta_value_fits(const char *type, const char *text);

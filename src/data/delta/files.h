/*
 * The files that a Delta log has named so far, found by path and deletion vector. The last action
 * that names a file says whether it is part of the table.
 */
#ifndef TANDEM_DATA_DELTA_FILES_H
#define TANDEM_DATA_DELTA_FILES_H

#include "data/delta/replay.h"

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

void tdmi_delta_files_release(struct tdmi_delta_files *files);
/* Replaces the entry of the same path and vector, if any. The strings are lent until the release.
 * false: out of memory. */
bool tdmi_delta_files_put(struct tdmi_delta_files *files,
                          const struct tdmi_delta_entry *entry) TDM_MUST_USE;

#endif

/*
 * The shards of a WebDataset: the files that a path stands for, and the part of each.
 *
 *     sample.tar                     itself
 *     shards/                        every .tar, .tar.gz and .tgz in it, by bytes; where it has
 *                                    none, those in its folders train, val and test
 *     shards/train-{000..127}.tar    a range, as a shell would write it; several are allowed
 */
#ifndef TANDEM_DATA_SOURCE_SHARDS_H
#define TANDEM_DATA_SOURCE_SHARDS_H

#include "base/arena.h"
#include "data/source/source.h"

struct tdmi_source_shard {
    const char *path; /* to open */
    const char *name; /* below the path given, for the items' paths */
    enum tdmi_part part;
};

struct tdmi_shards {                /* start from a zeroed object */
    struct tdmi_source_shard *list; /* of tdmi_alloc; the strings in the arena */
    int64_t n, capacity;
};

void tdmi_shards_release(struct tdmi_shards *shards);
/* Does the path hold a range, "{000..127}"? */
bool tdmi_shards_is_pattern(const char *path);
/* Find all shards of the path, perhaps none. Shards of a pattern may be missing: opening them
 * reports it. */
tdm_status tdmi_shards_find(const char *path, tdmi_arena *arena, struct tdmi_shards *shards,
                            tdm_error *err) TDM_MUST_USE;

#endif

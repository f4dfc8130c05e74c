/*
 * What is done to the pictures of a shard when a step begins it: mixing some with others, and what
 * a batch leaves of the changes of each (tdmi_batch.keys). Here, into memory of the mixer's own;
 * or, where the device does it (tdmi_backend.changes), as numbers that go there with the pictures.
 */
#pragma once

#include "image/augment/augment.h"
#include "graph/executor.h"

typedef struct tdmi_mixer tdmi_mixer; /* of one lane */

/* Whose draws decide how the pictures of a shard are mixed, what is done to those of a batch that
 * leaves it, and what dropout zeroes. */
struct tdmi_mixing {
    const struct tdmi_augment *augment;
    uint64_t seed;
    uint32_t epoch;
};

/* What one of a plan reserves for pictures. */
int64_t tdmi_mixer_bytes(const tdmi_plan *plan);
tdm_status tdmi_mixer_open(const tdmi_plan *plan, tdmi_mixer **mixer, tdm_error *err) TDM_MUST_USE;
void tdmi_mixer_close(tdmi_mixer *mixer);

struct tdmi_mixer_work {
    const struct tdmi_mixing *mixing; /* NULL: nothing is mixed */
    const int64_t *items;             /* by which it is drawn */
    /* Changes of each picture that the device is left; NULL: none are. */
    const struct tdmi_augment *rest;
    const struct tdmi_augment_key *keys; /* by which these are drawn */
};
/* Sets pixels, mixed and changes of the shard, where something is done: to the mixer's own, which
 * they are until the next call. */
void tdmi_mixer_run(tdmi_mixer *mixer, const struct tdmi_mixer_work *work,
                    struct tdmi_shard *shard);

/*
 * Augmentation at the start of a group: mixing images with each other, and the changes that the
 * loader left to the device (tdmi_batch.keys). On the CPU images are mixed in memory of the mixer;
 * on a device that changes images itself (tdmi_backend.changes), the changes are uploaded with
 * them.
 */
#pragma once

#include "image/augment/augment.h"
#include "graph/executor.h"

typedef struct tdmi_mixer tdmi_mixer; /* of one executor */

/* The source of random draws: of mixing, of changes left to the device, and of dropout. */
struct tdmi_mixing {
    const struct tdmi_augment *augment;
    uint64_t seed;
    uint32_t epoch;
};

/* Bytes that a mixer reserves for images. */
int64_t tdmi_mixer_bytes(const tdmi_plan *plan);
tdm_status tdmi_mixer_open(const tdmi_plan *plan, tdmi_mixer **mixer, tdm_error *err) TDM_MUST_USE;
void tdmi_mixer_close(tdmi_mixer *mixer);

/* Sets pixels, mixed and changes of the group where something is done; they are lent until the next
 * call. mixing NULL: nothing is mixed; items are the keys of its draws. rest: changes that are left
 * to the device, with the keys of their draws; NULL: none. */
void tdmi_mixer_run(tdmi_mixer *mixer, const struct tdmi_mixing *mixing, const int64_t *items,
                    const struct tdmi_augment *rest, const struct tdmi_augment_key *keys,
                    struct tdmi_group *group);

/*
 * The samples of one group of a batch, side by side: those of its positions that have a label.
 */
#pragma once

#include "graph/executor.h"
#include "train/step/feed.h"

/* Arrays of n samples. */
struct tdmi_gathered {
    int n;
    const uint8_t **pixels; /* of images; unused where the batch has rows */
    int64_t *rows;          /* indices of cached feature rows on the device */
    int32_t *labels;
    int64_t *items;
    struct tdmi_augment_key *keys; /* of augmentation on the device, where the batch has keys */
    struct tdmi_judgement *judgements;
};

/* Room for as many samples as a batch has positions; groups point into it. */
tdm_status tdmi_gathered_open(struct tdmi_gathered *room, int max_batch,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_gathered_release(struct tdmi_gathered *room);

/* The samples of positions first to end - 1. */
struct tdmi_gathered tdmi_gathered_of(const struct tdmi_gathered *room,
                                      const struct tdmi_batch *batch, size_t image_bytes, int first,
                                      int end);

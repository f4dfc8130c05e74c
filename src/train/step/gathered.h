/*
 * What a shard is of a batch: the samples of its positions that are not left out, side by side.
 */
#ifndef TANDEM_TRAIN_GATHERED_H
#define TANDEM_TRAIN_GATHERED_H

#include "graph/executor.h"
#include "train/step/feed.h"

/* Arrays of n samples. */
struct tdmi_gathered {
    int n;
    const uint8_t **pixels; /* or … */
    int64_t *rows;          /* … numbers of rows that are kept on the device */
    int32_t *labels;
    int64_t *items;
    struct tdmi_augment_key *keys; /* of what is left to the device, where the batch has any */
    struct tdmi_judgement *judgements;
};

/* What shards point into: as many samples as a batch has positions. */
tdm_status tdmi_gathered_open(struct tdmi_gathered *room, int max_batch,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_gathered_release(struct tdmi_gathered *room);

/* Of the positions from first to end - 1. */
struct tdmi_gathered tdmi_gathered_of(const struct tdmi_gathered *room,
                                      const struct tdmi_batch *batch, size_t image_bytes, int first,
                                      int end);

#endif

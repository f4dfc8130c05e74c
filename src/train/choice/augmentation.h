/*
 * --augment auto: how training images are changed, by what they seem to show. It applies to
 * networks from scratch. With pretrained weights images stay as they are: in what was measured
 * changes cost accuracy while all layers were trained (bench/results/augment.md), and gained
 * nothing in front of frozen ones (bench/results/train.md).
 */
#pragma once

#include "image/augment/augment.h"
#include "train/choice/look.h"

struct tdmi_session;

struct tdmi_augmentation {
    char spec[60];    /* as tdmi_augment_read takes it */
    char reason[160]; /* why, for people */
};

/* The rule. side: of the network's input, pixels. */
struct tdmi_augmentation tdmi_augmentation_for(const struct tdmi_look *look,
                                               const char *const *classes, int n_classes, int side);

/* A stage of opening, once the freeze point is known: what auto means in this run, or meant when it
 * was started. Reports it. */
tdm_status tdmi_augmentation_choose(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* Does auto change nothing in this run, whatever the images show? */
bool tdmi_augmentation_is_idle(const struct tdmi_session *session);

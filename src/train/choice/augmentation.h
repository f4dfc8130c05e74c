/*
 * --augment auto: how training images are changed, by what they seem to show. It applies where
 * layers before the head are trained on images. While all frozen layers are still frozen, images
 * stay as they are: their features are computed once, and views of them gained nothing
 * (bench/results/train.md).
 */
#pragma once

#include "image/augment/augment.h"
#include "train/choice/look.h"
#include "train/freeze.h"

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

/* Are all images fed to layers that stay frozen to the end? Then auto changes none. */
bool tdmi_augmentation_is_idle(const struct tdmi_unfreeze *unfreeze);

/* How training images are changed while the freeze point is where it is. */
const struct tdmi_augment *tdmi_augmentation_now(const struct tdmi_session *session);

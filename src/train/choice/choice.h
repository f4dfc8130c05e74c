/*
 * The network that a training without --model and --weights gets: a small one from scratch where
 * the images are small drawings, pretrained weights where they are photos.
 */
#pragma once

#include "train/choice/estimate.h"
#include "train/choice/look.h"
#include "tandem/train.h"

struct tdmi_session;

struct tdmi_choice {
    const char *model;              /* from scratch; NULL: weights are there */
    const char *weights;            /* published ones on this machine; NULL: a model from scratch */
    int size;                       /* pixels of a side of the images; 0: the network's own */
    bool misses_weights;            /* they would suit the images, and are not on this machine */
    char reason[TDMI_REASON_BYTES]; /* why, for people; "" where weights are missed */
};

/* By the look at images of the session's source. at_hand: published weights on this machine; NULL:
 * none. Where the images do not decide, a probe trains in this process alone; it is announced, and
 * its time kept for the estimate. */
tdm_status tdmi_choice_make(struct tdmi_session *session, const char *at_hand,
                            struct tdmi_choice *choice, tdm_error *err) TDM_MUST_USE;

/*
 * Weights that a training starts with (--weights): which file, and what is in it. A resumed run has
 * all of it in its checkpoint.
 */
#pragma once

#include "tandem/weights.h"
#include "train/session/network.h"
#include "weights/import/import.h"

struct tdmi_pretrained {
    const char *path;                          /* NULL: from scratch */
    const struct tdm_weights_known *published; /* the catalogue's entry; NULL: none */
    const char *network;                       /* that the file is read as; NULL: as it says */
    bool is_resuming;    /* the folder holds a run to resume (checked again when it is opened) */
    bool is_by_default;  /* neither --model nor --weights when the run was started */
    bool is_open;        /* the images decide: tdmi_pretrained_choose */
    bool misses_weights; /* they would suit the images, and are not on this machine */
    const char *reason;  /* why it was chosen, for people; "" or NULL: nothing is said */
    struct tdmi_import import; /* contents of the file; empty in a resumed run */
    uint64_t *hashes;          /* of images that trained the file, a tandem model; ascending */
    int64_t n_hashes;
};

/* The published weights that are fetched, and used before others that are here too. */
#define TDMI_PRETRAINED_TO_FETCH "mobilenetv2-notop"

/* Published weights whose file is on this machine: the usual ones, else the first; NULL: none. */
tdm_status tdmi_pretrained_name_at_hand(const char **name, tdm_error *err) TDM_MUST_USE;
/* Which file --weights means, and of which network it is where --model does not say; without both,
 * what the resumed run was started with, else is_open is set. */
tdm_status tdmi_pretrained_find(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Where neither options nor a run that is resumed say it: by the images of the source. */
tdm_status tdmi_pretrained_choose(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Raises the momentum of batch norms that are trained to TDMI_LEAST_MOMENTUM at least. */
void tdmi_pretrained_raise_momentum(const struct tdmi_session *session);
void tdmi_pretrained_report(struct tdmi_session *session);

/*
 * All that changes the weights: the step, the optimizer and its state, rates of layers, the loss
 * scale.
 */
#pragma once

#include "train/session/network.h"
#include "train/step/step.h"
#include "train/step/update.h"

struct tdmi_trainer {
    const struct tdmi_optimizer *optimizer;
    tdmi_step *step;
    tdmi_update *update;
    float *slots[TDMI_OPTIMIZER_SLOTS]; /* the optimizer's state, on the device */
    struct tdmi_loss_scale *loss_scale; /* likewise; NULL: gradients are not scaled */
    float *rate_parts;    /* fraction of the rate by parameter tensor, --layer-decay; NULL: 1 */
    float *class_weights; /* by class; NULL: 1 */
};

void tdmi_trainer_release(struct tdmi_session *session);

struct tdmi_step_options tdmi_trainer_step_options(const struct tdmi_session *session);
/* The step that the optimizer was last reset before; 0: never. */
int64_t tdmi_trainer_began(const struct tdmi_session *session);

/* Copies the host's weights and optimizer state to the device. */
tdm_status tdmi_trainer_upload(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* The loss scale of f16: sets it as progress says, fetches it for a checkpoint, reports the steps
 * whose gradients were not finite. */
tdm_status tdmi_trainer_open_scale(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_trainer_fetch_scale(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
void tdmi_trainer_report_skipped(const struct tdmi_session *session);

/* Notes how much GPU memory recordings of the step have taken. */
void tdmi_trainer_note_recorded(struct tdmi_session *session);
